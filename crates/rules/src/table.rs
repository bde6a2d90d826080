//! The table of all rules.

use crate::coherent::{adapter_tlb, cache_coherence, half_lines, hints, mapping};
use crate::rule::{Check, Rule};
use crate::{
    beat_counters, dma_or_loads, fifo, kernel_loads, launches, listing, loads, max_payload, memory_types, pinning,
    recovery, relay, stores, write_combining, write_payload,
};

/// Makes the table from the target, the file and the functions of rules; the name of a function is the name of its rule.
macro_rules! rules {
    ($($target:ident $file:ident { $($name:ident)+ })+) => {
        /// Every rule, by target and mechanism.
        pub const RULES: &[Rule] =
            &[$($(Rule { name: stringify!($name), check: Check::$target($file::$name) }),+),+];
    };
}

rules! {
    Platform beat_counters {
        wc_combines_sixteen_stores_into_one_beat
        counters_clear_when_read
    }
    Platform dma_or_loads {
        loads_beat_dma_from_128_to_512_bytes
        dma_beats_loads_from_1_kib
    }
    Platform fifo {
        fifo_behind_wc_loses_same_address_writes
        fifo_behind_wc_receives_writes_to_different_addresses
    }
    Platform kernel_loads {
        partially_used_words_are_loaded_whole
    }
    Platform launches {
        a_performance_governor_shortens_launches
        the_nearest_core_launches_fastest
    }
    Platform listing {
        lspci_lists_the_bars_of_the_platform
    }
    Platform loads {
        uc_loads_do_not_overlap
        unfenced_wc_loads_may_overlap
    }
    Platform max_payload {
        peers_exchange_payloads_that_the_root_refuses
    }
    Platform memory_types {
        cached_lines_go_stale
        wb_is_refused
        side_effects_need_uc
        mtrr_and_pat_determine_the_type
    }
    Platform pinning {
        unaligned_buffers_are_staged
        a_page_that_cannot_be_pinned_ends_one_transfer
    }
    Platform recovery {
        a_hung_card_is_recovered
    }
    Platform relay {
        a_chain_of_cards_relays_all_bytes
        a_card_writes_back_all_bytes
    }
    Platform stores {
        uc_stores_arrive_one_by_one_in_order
        memcpy_makes_the_counted_stores
    }
    Platform write_combining {
        wc_keeps_neither_order_nor_number_of_writes
        partial_flush_splits_a_line
        another_core_reads_stale_until_flush
        seventh_line_evicts_on_six_buffers
        sfence_drains_and_lfence_does_not
        lines_in_flight_equal_the_buffers
    }
    Platform write_payload {
        small_payloads_fall_short_of_the_link
    }
    Board adapter_tlb {
        a_page_costs_one_tlb_miss
        streams_on_one_chain_id_thrash
        up_to_256_ranges_share_no_entry
        the_tlb_is_purged_in_two_ways
        the_directory_is_2_to_the_k_and_a_purge_is_needed
    }
    Board cache_coherence {
        dirty_lines_are_copied_to_the_reader
        readers_wait_for_the_line_of_the_adapter
        without_coherence_a_missing_flush_is_stale
        without_coherence_a_missing_purge_is_stale
        with_coherence_nothing_is_flushed
        sync_flushes_only_without_coherence
    }
    Board half_lines {
        half_line_writes_are_fast_or_safe
        unaligned_or_short_buffers_are_safe
        a_page_may_be_mapped_safe_and_fast
        memory_accepts_no_write_below_half_a_line
        a_flush_keeps_data_that_a_write_purge_loses
    }
    Board hints {
        prefetch_must_be_off_where_processors_write
        an_atomic_transfer_locks_memory
    }
    Board mapping {
        map_returns_the_unmapped_rest
        a_sequential_device_keeps_its_ranges
        remap_joins_scattered_pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rules_are_unique() {
        for (place, rule) in RULES.iter().enumerate() {
            assert!(RULES[..place].iter().all(|other| other.name != rule.name), "{}", rule.name);
        }
    }
}
