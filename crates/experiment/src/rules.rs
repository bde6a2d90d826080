//! Rules that papers state in words, tested on the simulated platform by bytes, TLPs and counters.
//!
//! Each rule builds a board, performs its accesses, and checks the result. It returns a description of the observation.

use crate::asked::simulated;
use crate::coherent::rules as board;
use crate::figure::{Ask, Wanted};
use crate::runtime_rules as runtime;
use lanemark_machine::{
    Access, Completion, Descriptors, Fence, Flow, Lane, Machine, Order, Peer, Plan, Share, Span, Step, Stream, Verb,
    Width,
};
use lanemark_method::{AccessPath, Method, Reach};
use lanemark_platform::memory_type::{Effective, Manual, Pat, effective, effective_of_encodings};
use lanemark_platform::spec::Vendor;
use lanemark_platform::{Origin, Platform, RegionKind};
use lanemark_sim::{Board, SimulatedMachine, TlpKind};
use lanemark_units::{BarOffset, MemoryType, Ticks, format_size};
use std::collections::BTreeMap;

/// A named rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Name of the rule, a statement.
    pub name: &'static str,
    /// The test; it returns the observation, or the violation as an error.
    pub check: Check,
}

/// Test of a rule, by its target.
#[derive(Clone, Copy)]
pub enum Check {
    /// On the experiment's platform.
    Platform(fn(&Platform) -> Result<String, String>),
    /// On a board that the rule builds itself.
    Board(fn() -> Result<String, String>),
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule { name: "uc_stores_arrive_one_by_one_in_order", check: Check::Platform(uc_stores_arrive_one_by_one_in_order) },
    Rule {
        name: "wc_combines_sixteen_stores_into_one_beat",
        check: Check::Platform(wc_combines_sixteen_stores_into_one_beat),
    },
    Rule { name: "counters_clear_when_read", check: Check::Platform(counters_clear_when_read) },
    Rule {
        name: "wc_keeps_neither_order_nor_number_of_writes",
        check: Check::Platform(wc_keeps_neither_order_nor_number_of_writes),
    },
    Rule {
        name: "fifo_behind_wc_loses_same_address_writes",
        check: Check::Platform(fifo_behind_wc_loses_same_address_writes),
    },
    Rule {
        name: "fifo_behind_wc_receives_writes_to_different_addresses",
        check: Check::Platform(fifo_behind_wc_receives_writes_to_different_addresses),
    },
    Rule { name: "partial_flush_splits_a_line", check: Check::Platform(partial_flush_splits_a_line) },
    Rule { name: "another_core_reads_stale_until_flush", check: Check::Platform(another_core_reads_stale_until_flush) },
    Rule { name: "seventh_line_evicts_on_six_buffers", check: Check::Platform(seventh_line_evicts_on_six_buffers) },
    Rule { name: "sfence_drains_and_lfence_does_not", check: Check::Platform(sfence_drains_and_lfence_does_not) },
    Rule { name: "uc_loads_do_not_overlap", check: Check::Platform(uc_loads_do_not_overlap) },
    Rule { name: "unfenced_wc_loads_may_overlap", check: Check::Platform(unfenced_wc_loads_may_overlap) },
    Rule { name: "cached_lines_go_stale", check: Check::Platform(cached_lines_go_stale) },
    Rule { name: "wb_is_refused", check: Check::Platform(wb_is_refused) },
    Rule { name: "side_effects_need_uc", check: Check::Platform(side_effects_need_uc) },
    Rule { name: "mtrr_and_pat_determine_the_type", check: Check::Platform(mtrr_and_pat_determine_the_type) },
    Rule { name: "lines_in_flight_equal_the_buffers", check: Check::Platform(lines_in_flight_equal_the_buffers) },
    Rule { name: "peers_exchange_payloads_that_the_root_refuses", check: Check::Platform(crate::payload_rule::check) },
    Rule { name: "a_chain_of_cards_relays_all_bytes", check: Check::Platform(crate::relay_rule::chain) },
    Rule { name: "a_card_writes_back_all_bytes", check: Check::Platform(crate::relay_rule::loopback) },
    Rule { name: "small_payloads_fall_short_of_the_link", check: Check::Platform(crate::small_payload_rule::check) },
    Rule {
        name: "a_performance_governor_shortens_launches",
        check: Check::Platform(runtime::a_performance_governor_shortens_launches),
    },
    Rule { name: "a_hung_card_is_recovered", check: Check::Platform(runtime::a_hung_card_is_recovered) },
    Rule {
        name: "the_nearest_core_launches_fastest",
        check: Check::Platform(runtime::the_nearest_core_launches_fastest),
    },
    Rule { name: "unaligned_buffers_are_staged", check: Check::Platform(runtime::unaligned_buffers_are_staged) },
    Rule {
        name: "a_page_that_cannot_be_pinned_ends_one_transfer",
        check: Check::Platform(runtime::a_page_that_cannot_be_pinned_ends_one_transfer),
    },
    Rule {
        name: "partially_used_words_are_loaded_whole",
        check: Check::Platform(runtime::partially_used_words_are_loaded_whole),
    },
    Rule { name: "memcpy_makes_the_counted_stores", check: Check::Platform(memcpy_makes_the_counted_stores) },
    Rule { name: "loads_beat_dma_from_128_to_512_bytes", check: Check::Platform(loads_beat_dma_from_128_to_512_bytes) },
    Rule { name: "dma_beats_loads_from_1_kib", check: Check::Platform(dma_beats_loads_from_1_kib) },
    Rule {
        name: "dirty_lines_are_copied_to_the_reader",
        check: Check::Board(board::dirty_lines_are_copied_to_the_reader),
    },
    Rule {
        name: "readers_wait_for_the_line_of_the_adapter",
        check: Check::Board(board::readers_wait_for_the_line_of_the_adapter),
    },
    Rule {
        name: "without_coherence_a_missing_flush_is_stale",
        check: Check::Board(board::without_coherence_a_missing_flush_is_stale),
    },
    Rule {
        name: "without_coherence_a_missing_purge_is_stale",
        check: Check::Board(board::without_coherence_a_missing_purge_is_stale),
    },
    Rule { name: "with_coherence_nothing_is_flushed", check: Check::Board(board::with_coherence_nothing_is_flushed) },
    Rule { name: "a_page_costs_one_tlb_miss", check: Check::Board(board::a_page_costs_one_tlb_miss) },
    Rule { name: "streams_on_one_chain_id_thrash", check: Check::Board(board::streams_on_one_chain_id_thrash) },
    Rule { name: "half_line_writes_are_fast_or_safe", check: Check::Board(board::half_line_writes_are_fast_or_safe) },
    Rule {
        name: "prefetch_must_be_off_where_processors_write",
        check: Check::Board(board::prefetch_must_be_off_where_processors_write),
    },
    Rule { name: "an_atomic_transfer_locks_memory", check: Check::Board(board::an_atomic_transfer_locks_memory) },
    Rule { name: "map_returns_the_unmapped_rest", check: Check::Board(board::map_returns_the_unmapped_rest) },
    Rule {
        name: "unaligned_or_short_buffers_are_safe",
        check: Check::Board(board::unaligned_or_short_buffers_are_safe),
    },
    Rule {
        name: "sync_flushes_only_without_coherence",
        check: Check::Board(board::sync_flushes_only_without_coherence),
    },
    Rule { name: "up_to_256_ranges_share_no_entry", check: Check::Board(board::up_to_256_ranges_share_no_entry) },
    Rule {
        name: "a_sequential_device_keeps_its_ranges",
        check: Check::Board(board::a_sequential_device_keeps_its_ranges),
    },
    Rule { name: "remap_joins_scattered_pages", check: Check::Board(board::remap_joins_scattered_pages) },
    Rule { name: "a_page_may_be_mapped_safe_and_fast", check: Check::Board(board::a_page_may_be_mapped_safe_and_fast) },
    Rule { name: "the_tlb_is_purged_in_two_ways", check: Check::Board(board::the_tlb_is_purged_in_two_ways) },
    Rule {
        name: "the_directory_is_2_to_the_k_and_a_purge_is_needed",
        check: Check::Board(board::the_directory_is_2_to_the_k_and_a_purge_is_needed),
    },
    Rule {
        name: "memory_accepts_no_write_below_half_a_line",
        check: Check::Board(board::memory_accepts_no_write_below_half_a_line),
    },
    Rule {
        name: "a_flush_keeps_data_that_a_write_purge_loses",
        check: Check::Board(board::a_flush_keeps_data_that_a_write_purge_loses),
    },
];

/// A board with the region under test, and helpers.
struct Trial {
    board: Board,
    region: String,
    at: BarOffset,
    bus: u64,
}

impl Trial {
    /// A trial on the first storage region.
    fn new(platform: &Platform) -> Result<Trial, String> {
        Trial::on(platform, |kind| matches!(kind, RegionKind::Sram | RegionKind::Ddr))
    }

    fn on(platform: &Platform, wanted: fn(RegionKind) -> bool) -> Result<Trial, String> {
        let region = platform
            .regions
            .iter()
            .find(|region| wanted(region.kind.value))
            .ok_or_else(|| "the platform has no region of the required kind".to_owned())?;
        let bar = region.bar.value as u8;
        let base = platform.bar(bar).map_or(0, |bar| bar.address_bytes.value);
        let mut board = Board::new(platform).map_err(|error| error.to_string())?;
        board.crossings = Some(Vec::new());
        Ok(Trial {
            board,
            region: region.name.clone(),
            at: BarOffset { bar, offset: region.offset_bytes.value },
            bus: base + region.offset_bytes.value,
        })
    }

    fn span(&self, offset: u64, len: u64, memory_type: MemoryType) -> Span {
        Span { at: BarOffset { offset: self.at.offset + offset, ..self.at }, len, memory_type }
    }

    fn store(&self, offset: u64, len: u64, width: Width, kind: MemoryType) -> Step {
        Step::Stream(Stream::over(Verb::Store, Access::Plain(width), self.span(offset, len, kind)))
    }

    fn load(&self, offset: u64, width: Width, kind: MemoryType) -> Step {
        let span = self.span(offset, width.bytes(), kind);
        Step::Stream(Stream::over(Verb::Load, Access::Plain(width), span))
    }

    /// Runs `steps` on `core` until the board is idle; lines in write-combining buffers stay there.
    fn run(&mut self, core: u32, steps: Vec<Step>) -> Result<Ticks, String> {
        let start = self.board.now();
        self.board.start(&Lane { core, task: steps.into() }, 1, 1);
        self.board.run_until(start + Ticks::whole_ns(1_000_000_000));
        if self.board.core(core as usize).is_done() {
            Ok(self.board.core(core as usize).issued_at().since(start))
        } else {
            Err("the core has not finished after one second".to_owned())
        }
    }

    /// Offsets and enabled bytes of the writes that crossed the link.
    fn writes(&self) -> Vec<(u64, u32)> {
        let crossings = self.board.crossings.iter().flatten();
        crossings
            .filter(|crossing| crossing.tlp.kind == TlpKind::MWr)
            .map(|crossing| (crossing.tlp.address - self.bus, crossing.tlp.enabled_bytes()))
            .collect()
    }

    /// Content of the device's memory.
    fn device_bytes(&mut self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        if let Some(region) = self.board.region_mut(&self.region) {
            region.memory.read(offset, &mut bytes);
        }
        bytes
    }
}

pub(crate) fn hold(holds: bool, seen: String) -> Result<String, String> {
    if holds { Ok(seen) } else { Err(seen) }
}

fn with(platform: &Platform, key: &str, value: f64) -> Result<Platform, String> {
    platform.with(key, value, Origin::Assumed("condition of a rule".to_owned())).map_err(|error| error.to_string())
}

/// The platform with its storage turned into queues.
fn with_fifo(platform: &Platform) -> Platform {
    let mut changed = platform.clone();
    for region in &mut changed.regions {
        if matches!(region.kind.value, RegionKind::Sram | RegionKind::Ddr) {
            region.kind.value = RegionKind::Fifo;
        }
    }
    changed
}

/// The platform with storage that has beat counters.
fn with_counters(platform: &Platform) -> Result<Platform, String> {
    let mut changed = platform.clone();
    for region in &mut changed.regions {
        if region.kind.value == RegionKind::Sram {
            region.kind.value = RegionKind::Ddr;
        }
    }
    let name =
        changed.regions.iter().find(|region| region.kind.value == RegionKind::Ddr).map(|region| region.name.clone());
    let name = name.ok_or("the platform has no storage")?;
    with(&changed, &format!("region.{name}.beat_bytes"), 64.0)
}

fn uc_stores_arrive_one_by_one_in_order(platform: &Platform) -> Result<String, String> {
    let mut board = Trial::new(platform)?;
    board.run(0, vec![board.store(0, 64, Width::B4, MemoryType::Uc)])?;
    let expected: Vec<(u64, u32)> = (0..16).map(|dw| (dw * 4, 4)).collect();
    let seen = board.writes();
    hold(seen == expected, format!("{} writes of 4 B in order", seen.len()))
}

fn wc_combines_sixteen_stores_into_one_beat(platform: &Platform) -> Result<String, String> {
    let platform = with_counters(platform)?;
    let mut beats = [0; 2];
    for (count, kind) in beats.iter_mut().zip([MemoryType::Uc, MemoryType::Wc]) {
        let mut board = Trial::new(&platform)?;
        board.run(0, vec![board.store(0, 64, Width::B4, kind)])?;
        let region = board.region.clone();
        *count = board.board.region_mut(&region).map_or(0, |region| region.take_beats().write);
    }
    hold(beats == [16, 1], format!("16 stores of 4 B make {} beats on UC and {} on WC", beats[0], beats[1]))
}

fn counters_clear_when_read(platform: &Platform) -> Result<String, String> {
    let platform = with_counters(platform)?;
    let mut board = Trial::new(&platform)?;
    board.run(0, vec![board.store(0, 64, Width::B4, MemoryType::Uc)])?;
    let name = board.region.clone();
    let mut look = || board.board.region_mut(&name).map_or(0, |region| region.take_beats().write);
    let (first, second) = (look(), look());
    hold(first == 16 && second == 0, format!("{first} beats at the first read, {second} at the second"))
}

fn wc_keeps_neither_order_nor_number_of_writes(platform: &Platform) -> Result<String, String> {
    let mut board = Trial::new(platform)?;
    // The first half of line 0, all of line 1, the second half of line 0.
    let (wc, first, second) = (MemoryType::Wc, 0, 64);
    let body = vec![
        board.store(first, 32, Width::B4, wc),
        board.store(second, 64, Width::B4, wc),
        board.store(first + 32, 32, Width::B4, wc),
    ];
    board.run(0, body)?;
    let seen = board.writes();
    hold(seen == [(64, 64), (0, 64)], format!("32 stores, {} writes, the later line first", seen.len()))
}

fn fifo_after(platform: &Platform, body: fn(&Trial) -> Vec<Step>) -> Result<Vec<u64>, String> {
    let platform = with_fifo(platform);
    let mut board = Trial::on(&platform, |kind| kind == RegionKind::Fifo)?;
    let mut ops = body(&board);
    ops.push(Step::Fence(Fence::Sfence));
    board.run(0, ops)?;
    let name = board.region.clone();
    let region = board.board.region_mut(&name).ok_or("the platform has no queue")?;
    Ok(region.fifo.iter().map(|entry| u64::from(entry.len)).collect())
}

fn six_to_one_address(board: &Trial, kind: MemoryType) -> Vec<Step> {
    let order = Order::SameAddress { times: 6 };
    let stream = Stream::over(Verb::Store, Access::Plain(Width::B1), board.span(0, 1, kind));
    vec![Step::Stream(Stream { order, ..stream })]
}

fn fifo_behind_wc_loses_same_address_writes(platform: &Platform) -> Result<String, String> {
    let (uc, wc) = (
        fifo_after(platform, |board| six_to_one_address(board, MemoryType::Uc))?,
        fifo_after(platform, |board| six_to_one_address(board, MemoryType::Wc))?,
    );
    hold(uc == [1; 6] && wc == [1], format!("six bytes to one address: {} entries by UC, {} by WC", uc.len(), wc.len()))
}

fn fifo_behind_wc_receives_writes_to_different_addresses(platform: &Platform) -> Result<String, String> {
    let entries = fifo_after(platform, |board| vec![board.store(0, 6, Width::B1, MemoryType::Wc)])?;
    let bytes: u64 = entries.iter().sum();
    hold(bytes == 6, format!("six bytes to addresses 0 to 5: {bytes} bytes in {} entries", entries.len()))
}

fn partial_flush_splits_a_line(platform: &Platform) -> Result<String, String> {
    let mut board = Trial::new(platform)?;
    let body = vec![board.store(0, 32, Width::B4, MemoryType::Wc), Step::Fence(Fence::Sfence)];
    board.run(0, body)?;
    let seen = board.writes();
    let bytes: u32 = seen.iter().map(|write| write.1).sum();
    hold(seen.len() > 1 && bytes == 32, format!("half a line leaves in {} writes, {bytes} B in total", seen.len()))
}

fn another_core_reads_stale_until_flush(platform: &Platform) -> Result<String, String> {
    if platform.core.cores.value < 2 {
        return Err("the platform needs two cores".to_owned());
    }
    let mut board = Trial::new(platform)?;
    board.board.observe_loads(1);
    board.board.observe_loads(0);
    let before = board.device_bytes(0, 8);
    let look = board.load(0, Width::B8, MemoryType::Uc);
    board.run(0, vec![board.store(0, 8, Width::B8, MemoryType::Wc)])?;
    board.run(1, vec![look.clone()])?;
    let stale = board.board.loads_seen(1).last().map(|seen| seen.bytes.clone()).unwrap_or_default();
    board.run(0, vec![Step::Fence(Fence::Sfence)])?;
    board.run(1, vec![look])?;
    let fresh = board.board.loads_seen(1).last().map(|seen| seen.bytes.clone()).unwrap_or_default();
    let device = board.device_bytes(0, 8);
    hold(
        stale == before && fresh == device && device != before,
        "another core and the device see the old bytes until SFENCE, then the new ones".to_owned(),
    )
}

fn seventh_line_evicts_on_six_buffers(platform: &Platform) -> Result<String, String> {
    let platform = with(platform, "core.wc_buffers", 6.0)?;
    let arrived = |lines: u64| -> Result<usize, String> {
        let mut board = Trial::new(&platform)?;
        let body = (0..lines).map(|line| board.store(line * 64, 8, Width::B8, MemoryType::Wc)).collect();
        board.run(0, body)?;
        Ok(board.writes().len())
    };
    let (six, seven) = (arrived(6)?, arrived(7)?);
    hold(six == 0 && seven == 1, format!("six lines: {six} evicted; with a seventh: {seven}"))
}

fn sfence_drains_and_lfence_does_not(platform: &Platform) -> Result<String, String> {
    let arrived = |fence: Option<Fence>| -> Result<usize, String> {
        let mut board = Trial::new(platform)?;
        let mut body = vec![board.store(0, 8, Width::B8, MemoryType::Wc)];
        body.extend(fence.map(Step::Fence));
        board.run(0, body)?;
        Ok(board.writes().len())
    };
    let none = arrived(None)?;
    let lfence = arrived(Some(Fence::Lfence))?;
    let others = [Fence::Sfence, Fence::Mfence, Fence::Locked, Fence::Interrupt];
    let drained = others.into_iter().map(|fence| arrived(Some(fence))).collect::<Result<Vec<_>, _>>()?;
    hold(
        none == 0 && lfence == 0 && drained.iter().all(|writes| *writes == 1),
        "SFENCE, MFENCE, a locked instruction and an interrupt drain; LFENCE does not".to_owned(),
    )
}

/// Time of eight loads of 8 B, in ns.
fn eight_loads(platform: &Platform, kind: MemoryType, fence_each: Option<Fence>) -> Result<f64, String> {
    let mut board = Trial::new(platform)?;
    let stream = Stream::over(Verb::Load, Access::Plain(Width::B8), board.span(0, 64, kind));
    Ok(board.run(0, vec![Step::Stream(Stream { fence_each, ..stream })])?.as_ns())
}

fn uc_loads_do_not_overlap(platform: &Platform) -> Result<String, String> {
    let mut board = Trial::new(platform)?;
    let one = board.run(0, vec![board.load(0, Width::B8, MemoryType::Uc)])?.as_ns();
    let eight = eight_loads(platform, MemoryType::Uc, None)?;
    hold((eight / one - 8.0).abs() < 0.01, format!("one UC load takes {one:.0} ns, eight take {eight:.0} ns"))
}

fn unfenced_wc_loads_may_overlap(platform: &Platform) -> Result<String, String> {
    let speculating = with(platform, "core.wc_loads_in_flight", 8.0)?;
    let unfenced = eight_loads(&speculating, MemoryType::Wc, None)?;
    let fenced = eight_loads(&speculating, MemoryType::Wc, Some(Fence::Lfence))?;
    let mfenced = eight_loads(&speculating, MemoryType::Wc, Some(Fence::Mfence))?;
    hold(
        unfenced * 4.0 < fenced && unfenced * 4.0 < mfenced,
        format!("eight speculating WC loads take {unfenced:.0} ns, fenced {fenced:.0} ns"),
    )
}

fn cached_lines_go_stale(platform: &Platform) -> Result<String, String> {
    for kind in [MemoryType::Wt, MemoryType::Wp] {
        let mut board = Trial::new(platform)?;
        board.board.observe_loads(0);
        let look = board.load(0, Width::B8, kind);
        board.run(0, vec![look.clone()])?;
        let name = board.region.clone();
        board.board.region_mut(&name).ok_or("no region")?.memory.write(0, &[0xAB; 8]);
        board.run(0, vec![look.clone()])?;
        board.run(0, vec![Step::FlushLines(board.span(0, 64, kind)), look])?;
        let seen: Vec<bool> = board.board.loads_seen(0).iter().map(|seen| seen.bytes == [0xAB; 8]).collect();
        if seen != [false, false, true] {
            return Err(format!("{kind}: the device's bytes were returned by loads {seen:?}"));
        }
    }
    Ok("WT and WP loads return the device's bytes only after the line is flushed".to_owned())
}

fn wb_is_refused(platform: &Platform) -> Result<String, String> {
    let board = Trial::new(platform)?;
    let plan = Plan::new(vec![board.load(0, Width::B8, MemoryType::Wb)], 1);
    let machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    match machine.supports(&plan) {
        Err(unsupported) => Ok(unsupported.to_string()),
        Ok(()) => Err("a plan that maps the BAR WB is accepted".to_owned()),
    }
}

fn side_effects_need_uc(platform: &Platform) -> Result<String, String> {
    let looks = |kind: MemoryType| -> Result<Vec<bool>, String> {
        let mut board = Trial::on(platform, |kind| kind == RegionKind::Registers)?;
        let name = board.region.clone();
        let region = board.board.region_mut(&name).ok_or("no registers")?;
        region.clear_on_read(0);
        region.memory.write(0, &[1; 8]);
        board.board.observe_loads(0);
        let look = board.load(0, Width::B8, kind);
        board.run(0, vec![look.clone(), look])?;
        Ok(board.board.loads_seen(0).iter().map(|seen| seen.bytes == [1; 8]).collect())
    };
    let (uc, wt) = (looks(MemoryType::Uc)?, looks(MemoryType::Wt)?);
    hold(
        uc == [true, false] && wt == [true, true],
        "a clear-on-read register: the second UC read returns the cleared value, the second WT read hits the cache"
            .to_owned(),
    )
}

fn mtrr_and_pat_determine_the_type(platform: &Platform) -> Result<String, String> {
    let manual = match platform.core.vendor.value {
        Vendor::Intel => Manual::Intel,
        Vendor::Amd => Manual::Amd,
    };
    let types = [MemoryType::Wt, MemoryType::Wp, MemoryType::Uc, MemoryType::Wb];
    let under_wb_pages = types.map(|mtrr| effective(manual, mtrr, Pat::Wb));
    let holds = under_wb_pages == types.map(Effective::Type)
        && effective(manual, MemoryType::Uc, Pat::Wc) == Effective::Type(MemoryType::Wc)
        && effective_of_encodings(manual, 2, 6) == Effective::Undefined;
    hold(holds, "an MTRR of type WT or WP under WB pages gives WT or WP; PAT WC wins; reserved is undefined".to_owned())
}

fn lines_in_flight_equal_the_buffers(platform: &Platform) -> Result<String, String> {
    // With a long round trip to the root complex, lines arrive in groups of as many as there are buffers.
    let buffers = platform.core.wc_buffers.value as usize;
    let far = with(platform, "root_complex.core_round_trip_ns", 100_000.0)?;
    let mut board = Trial::new(&far)?;
    board.run(0, vec![board.store(0, 64 * 32, Width::B8, MemoryType::Wc)])?;
    let times: Vec<f64> = board.board.crossings.iter().flatten().map(|crossing| crossing.at.as_ns()).collect();
    let group = times.iter().take_while(|at| **at < times[0] + 50_000.0).count();
    hold(group == buffers.min(32) && (4..=16).contains(&buffers), format!("{group} lines are in flight together"))
}

fn memcpy_makes_the_counted_stores(platform: &Platform) -> Result<String, String> {
    let variant = platform.core.memcpy.value;
    let counts: Vec<usize> =
        [64, 128, 256, 512, 1024].into_iter().filter_map(|len| variant.stores(len, 0)).map(Iterator::count).collect();
    let strings = variant.stores(2048, 0).is_none();
    hold(
        counts == [8, 16, 13, 21, 37] && strings,
        format!("{}: {counts:?} stores for 64 B to 1 KiB, rep movsb from 2 KiB", variant.name()),
    )
}

fn loads_beat_dma_from_128_to_512_bytes(platform: &Platform) -> Result<String, String> {
    compared(platform, &[128, 256, 512], |loads, dma| loads < dma)
}

fn dma_beats_loads_from_1_kib(platform: &Platform) -> Result<String, String> {
    compared(platform, &[1 << 10, 4 << 10, 64 << 10], |loads, dma| dma < loads)
}

/// Compares streaming loads from WC memory with DMA that signals completion by a polled word, at `sizes`.
fn compared(platform: &Platform, sizes: &[u64], holds: fn(f64, f64) -> bool) -> Result<String, String> {
    let call = Method::DmaCall {
        flows: vec![Flow { card: 0, verb: Verb::Store, peer: Peer::Host }],
        share: Share::List,
        descriptors: Descriptors::Written(MemoryType::Uc),
        completion: Completion::Flag,
        reach: Reach::default(),
    };
    let ask = |method: Option<Method>, size| {
        let is_of_loads = method.is_none();
        let wanted = Ask {
            method,
            kind: None,
            path: is_of_loads.then_some(AccessPath::Loads),
            question: "dma_or_mmio".to_owned(),
            access: None,
            memory_type: is_of_loads.then_some(MemoryType::Wc),
            fence: None,
            region: None,
            flows: None,
            with: BTreeMap::new(),
            setpci: Vec::new(),
            size: Some(size),
            passes: None,
            at_most_bytes: None,
            figure: Wanted::LatencyNs,
        };
        simulated(platform, &wanted, None)
    };
    let (mut seen, mut all_hold) = (Vec::new(), true);
    for size in sizes {
        let (loads, dma) = (ask(None, *size)?, ask(Some(call.clone()), *size)?);
        all_hold &= holds(loads, dma);
        seen.push(format!("{}: loads {loads:.0} ns, DMA {dma:.0} ns", format_size(*size)));
    }
    hold(all_hold, seen.join("; "))
}
