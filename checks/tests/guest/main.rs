//! Accesses to cards on a real kernel with PCI devices.
//!
//! `make test-qemu` runs these tests: a Debian kernel in an emulator, with emulated devices. If it cannot fetch the emulator,
//! it sets `LANEMARK_SKIPPED_QEMU` to the reason, and they are counted as ignored. `make test-iommufd` runs those of VFIO on
//! kernels that are built for it (`LANEMARK_GUEST_KERNEL`), and `make test-kmod-debug` those of our module on a kernel that
//! checks itself. No test measures speed, because an emulator has no caches, write combining or links.

mod bench;
mod card;
mod cdma;
mod cdma_twin;
mod cost;
mod descriptors;
mod dma;
mod doctor;
mod drive;
mod drive_data;
mod drive_peers;
mod driver;
mod eight_cards;
mod guest;
mod guide;
mod host;
mod initramfs;
mod iommufd;
mod iommus;
mod kernel_drive;
mod lockdown;
mod module;
mod peers;
mod refusals;
mod removal;
mod sharing;
mod storage;
mod topology;
mod vfio;
mod xdma_card;
mod xdma_twin;

use guest::{Guest, Hardware, KERNEL_WITH_BOTH, KERNEL_WITH_CHECKS, KERNEL_WITH_IOMMUFD, usual_kernel};
use lanemark_checks::trials::{Available, Trial, run_all_at_once};
use lanemark_checks::{compile_c_example, lanemark, library, trials};
use sharing::{Guests, Lent};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

fn main() -> ExitCode {
    let kernel = Available::unless("LANEMARK_SKIPPED_QEMU");
    let built = kernel.and(&Available::unless("LANEMARK_SKIPPED_IOMMUFD"));
    match usual_kernel() {
        KERNEL_WITH_IOMMUFD => return run_all_at_once(of_iommufd(&built)),
        KERNEL_WITH_BOTH => return run_all_at_once(of_both(&built)),
        KERNEL_WITH_CHECKS => {
            return run_all_at_once(of_module(&kernel.and(&Available::unless("LANEMARK_SKIPPED_KMOD"))));
        }
        _ => {}
    }
    let tests = trials!(
        kernel;
        bench::a_dry_run_prints_all_accesses_and_performs_none,
        bench::a_run_stores_in_the_named_range_and_its_record_is_marked_emulated,
        bench::the_record_contains_the_slowest_link_on_the_path,
        bench::only_named_ranges_are_accessed,
        bench::a_bound_driver_is_bypassed_only_with_the_option,
        bench::a_second_process_is_refused_until_the_first_one_is_killed,
        bench::a_bar_claimed_by_the_kernel_is_refused_with_the_kernels_rule,
        bench::memory_decoding_is_enabled_only_with_the_option_and_recorded,
        card::a_card_keeps_every_promise,
        card::stores_change_exactly_their_bytes,
        card::a_c_program_writes_to_a_card,
        card::loads_return_bytes_written_outside,
        card::the_last_bytes_of_an_8_gib_bar_are_accessible,
        card::registers_are_loaded_and_not_stored_to_by_default,
        card::a_non_prefetchable_bar_has_no_write_combining_mapping,
        cdma::an_axi_cdma_answers_questions_about_dma,
        cdma::error_bits_of_an_axi_cdma_end_a_run_with_their_direction_and_the_keys_to_check,
        cdma::an_axi_cdma_that_hangs_loses_bytes_or_sends_no_interrupt_is_named,
        descriptors::a_card_that_fetches_descriptors_answers_questions_about_dma,
        descriptors::an_engine_with_descriptors_writes_and_reads_the_memory_of_another_card_and_nothing_beside_it,
        descriptors::an_engine_with_descriptors_keeps_every_promise,
        descriptors::registers_in_a_page_that_another_bar_shares_are_accessed_by_system_calls,
        descriptors::lists_of_several_pages_end_in_memory_in_a_register_and_by_an_interrupt_of_any_vector,
        descriptors::both_directions_move_data_at_once_and_all_of_their_bytes_are_compared,
        descriptors::bytes_that_the_engine_loses_or_writes_beside_a_transfer_are_found,
        descriptors::an_engine_that_hangs_or_sends_no_interrupt_is_a_timeout_with_its_name,
        descriptors::errors_that_the_engine_logs_end_a_run_with_their_words,
        descriptors::another_engine_at_these_registers_is_refused_before_a_store,
        descriptors::a_dry_run_lists_layout_lists_and_interrupt_and_touches_no_register,
        cost::the_ranges_strategy_adds_few_instructions_to_the_two_system_calls_of_a_mapping,
        dma::the_engine_of_a_device_answers_questions_about_dma,
        dma::the_engine_of_a_device_file_keeps_every_promise,
        dma::an_engine_whose_memory_decoding_is_turned_off_is_an_error_with_that_cause,
        dma::pages_of_4_kib_and_of_2_mib_are_mapped_by_the_iommu,
        dma::a_dry_run_lists_binds_registers_and_pages_and_changes_nothing,
        dma::blocked_dma_is_an_error_with_the_report_of_the_kernel,
        dma::an_interrupt_that_never_comes_is_a_timeout_with_its_name,
        dma::a_wrong_device_file_is_refused_before_the_card_is_bound,
        dma::the_driver_is_restored_after_a_signal_and_listed_after_a_kill,
        dma::removing_a_card_behind_vfio_ends_its_run,
        dma::removing_a_drive_behind_vfio_ends_its_run,
        dma::loads_and_stores_go_through_vfio_to_a_bound_card,
        dma::calls_of_vfio_read_and_write_bytes_of_a_card,
        doctor::the_tree_shows_the_slow_switch_and_nothing_is_changed,
        doctor::the_json_document_matches_the_kernels_bars_drivers_and_groups,
        doctor::a_drive_on_another_node_is_found_by_the_processors_that_its_interrupts_go_to,
        doctor::cards_below_a_narrower_uplink_and_what_is_between_peers_are_found,
        doctor::without_root_it_reports_unseen_facts,
        drive::reads_of_every_size_and_depth_return_the_bytes_of_the_image,
        drive::a_read_beyond_the_end_is_refused_by_the_drive_with_its_status,
        drive::a_drive_answers_questions_about_dma_writes_and_names_the_rest,
        drive::dma_reads_overwrite_only_the_first_blocks_of_a_namespace_that_is_named,
        drive::reads_go_to_the_namespace_that_is_named,
        drive_data::channels_are_queue_pairs_of_a_drive_and_their_bytes_are_those_of_the_image,
        drive_data::reads_and_writes_of_a_drive_alternate_and_both_directions_are_compared,
        drive::a_drive_behind_vfio_keeps_every_promise,
        drive_data::data_in_the_controller_memory_buffer_are_the_bytes_of_the_image_and_cross_no_link,
        drive::queue_depths_are_outstanding_transfers,
        drive_data::pages_of_each_size_that_the_system_has_hold_the_data_of_reads_and_writes,
        drive::blocks_of_4_kib_and_a_small_namespace_limit_the_sizes,
        drive::a_drive_without_a_namespace_says_so_and_maps_memory,
        drive::a_drive_that_cannot_be_identified_maps_memory_and_says_why_it_is_not_read,
        drive::a_dry_run_lists_the_commands_of_a_drive_and_changes_nothing,
        drive::a_controller_memory_buffer_answers_questions_about_loads_and_stores,
        drive::queues_in_a_controller_memory_buffer_read_the_same_bytes,
        drive::who_moves_a_command_is_answered_in_both_ways_side_by_side,
        drive::queues_in_a_controller_memory_buffer_need_one,
        drive::data_described_by_sgls_are_the_bytes_of_the_image,
        drive::completions_by_interrupt_answer_the_same_questions_and_the_latency_of_interrupts,
        drive::a_read_to_memory_that_was_just_unmapped_is_blocked_and_reported_with_address_and_direction,
        drive::a_signal_ends_the_reads_of_a_drive_and_restores_its_driver,
        drive_peers::a_drive_reads_into_the_memory_of_another_card_and_nothing_beside_it,
        drive_peers::a_drive_writes_from_the_memory_of_another_card_only_to_a_namespace_that_is_named,
        drive_peers::a_dry_run_of_a_drive_with_another_card_lists_the_steps_and_changes_nothing,
        drive_peers::memory_that_a_drive_cannot_use_is_refused_with_the_reason,
        drive_peers::removing_the_other_card_ends_the_reads_of_a_drive_to_its_memory,
        drive_peers::below_one_switch_drives_move_data_with_acs_redirect_on_and_off,
        driver::a_drive_is_bound_to_vfio_and_back_to_its_driver,
        driver::a_card_without_a_driver_is_bound_and_left_without_one,
        driver::a_driver_that_refuses_the_device_leaves_the_former_one,
        driver::binding_needs_root,
        eight_cards::eight_cards_move_data_in_a_ring_and_touch_nothing_beside_the_named_pages,
        guide::card_commands_print_the_shown_output,
        guide::commands_for_an_engine_with_descriptors_print_the_shown_output,
        host::bench_of_the_guests_memory_is_marked_as_emulated,
        iommus::a_virtual_iommu_answers_the_questions_of_a_real_one,
        iommus::vt_d_without_caching_mode_answers_the_same_questions,
        iommus::without_an_iommu_a_card_is_not_bound_to_vfio,
        iommus::pages_of_1_gib_and_of_4_kib_are_mapped_if_they_are_named,
        iommus::vfio_without_interrupt_remapping_is_refused_with_the_setting_that_permits_it,
        iommus::dma_blocked_by_a_virtual_iommu_is_an_error_with_the_report_of_the_kernel,
        iommus::a_read_to_memory_that_was_just_unmapped_is_blocked_by_a_virtual_iommu,
        kernel_drive::a_drive_that_keeps_its_driver_answers_questions_and_its_bytes_are_compared,
        kernel_drive::a_drive_behind_its_driver_keeps_every_promise,
        kernel_drive::a_record_of_reads_by_the_kernel_names_function_driver_and_way,
        kernel_drive::where_io_uring_is_not_permitted_commands_go_by_ioctl_one_at_a_time,
        kernel_drive::a_user_without_permission_is_told_what_to_do,
        kernel_drive::other_paths_are_refused_with_the_path_to_name,
        kernel_drive::a_dry_run_of_reads_by_the_kernel_lists_the_commands_and_sends_none,
        kernel_drive::a_second_process_is_refused_until_the_first_one_is_killed,
        kernel_drive::a_signal_ends_the_reads_by_the_kernel,
        kernel_drive::removing_a_drive_ends_its_reads_with_its_name,
        lockdown::kernel_lockdown_is_named_as_the_reason,
        lockdown::vfio_works_under_lockdown,
        peers::a_card_writes_and_reads_the_memory_of_another_one_and_nothing_beside_it,
        peers::cards_below_a_switch_and_functions_of_one_group_move_data_between_them,
        peers::without_acs_redirect_at_their_root_ports_cards_move_data_between_them,
        peers::a_controller_memory_buffer_is_memory_of_another_card,
        peers::memory_decoding_turned_off_at_the_other_card_is_an_error_that_names_it,
        peers::a_card_whose_memory_is_in_use_is_locked_for_other_processes,
        peers::removing_a_card_ends_the_transfers_of_another_one_to_its_memory,
        peers::a_dry_run_of_transfers_between_cards_changes_nothing,
        peers::memory_of_another_card_that_cannot_be_used_is_refused_with_the_reason,
        refusals::missing_devices_missing_bars_and_ranges_beyond_a_bar_are_named,
        refusals::a_device_with_a_driver_is_refused_with_the_name_of_the_driver,
        refusals::a_device_without_memory_decoding_is_not_accessed,
        refusals::opening_a_bar_needs_root,
        removal::removing_a_card_ends_the_run_with_its_name,
        topology::devices_have_the_expected_addresses,
        topology::the_switch_is_a_degraded_link_of_its_root_port,
        topology::the_large_bar_is_above_4_gib_and_the_iommu_is_on,
        topology::bytes_written_outside_are_visible_through_the_bar,
        topology::a_failing_command_reports_status_and_both_outputs,
        vfio::mappings_by_the_real_iommu_are_timed_with_every_strategy,
        vfio::a_card_behind_vfio_keeps_every_promise,
        vfio::a_drive_bound_for_a_run_has_its_driver_back_also_after_an_error,
        vfio::a_card_with_another_driver_is_not_opened_through_vfio,
        vfio::a_second_process_is_refused_until_the_first_is_killed,
        vfio::the_last_bytes_of_an_8_gib_bar_are_accessible_through_vfio,
        vfio::mappings_beyond_the_limit_of_the_kernel_are_refused_with_its_name,
        vfio::a_card_behind_vfio_without_memory_decoding_is_an_error_and_no_data,
        vfio::loads_from_a_card_behind_vfio_that_stops_decoding_are_no_figures,
        vfio::a_range_that_the_mtrrs_make_another_type_is_refused_behind_vfio,
    );
    let module = kernel.and(&Available::unless("LANEMARK_SKIPPED_KMOD"));
    let with_module = trials!(
        module;
        guide::commands_with_our_module_print_the_shown_output,
        guide::commands_with_amds_driver_print_the_shown_output,
        xdma_card::a_card_reads_and_writes_host_memory_and_only_addresses_that_are_given_away,
        xdma_card::a_card_behind_amds_driver_keeps_every_promise,
        xdma_card::several_channels_move_their_shares_at_once,
        xdma_card::bytes_that_the_card_stores_elsewhere_or_not_at_all_are_not_confirmed,
        xdma_card::errors_of_the_driver_end_a_run_with_the_file_and_a_remedy,
        xdma_card::a_card_without_a_range_of_its_memory_and_other_paths_are_refused,
        xdma_card::registers_of_the_user_bar_are_loaded_and_stored_to_through_the_drivers_file,
        xdma_card::a_range_that_is_not_in_a_user_bar_is_refused,
        xdma_card::a_dry_run_lists_the_calls_and_makes_none,
        xdma_card::a_dry_run_lists_loads_from_the_user_bar_and_makes_none,
        xdma_card::a_second_program_is_refused_and_a_killed_one_leaves_no_lock,
        xdma_card::a_signal_within_a_call_ends_transfers_by_the_driver,
        xdma_card::unbinding_the_driver_ends_a_run_with_the_name_of_the_card,
        xdma_card::removing_a_card_ends_a_run_with_the_name_of_the_card,
        cost::loops_of_loads_and_stores_have_the_same_instructions_behind_every_driver,
        removal::removing_a_card_behind_our_module_ends_its_run,
        lockdown::our_module_is_refused_under_lockdown_with_the_reason_and_what_works,
    );
    let dkms = trials!(
        module.and(&module::dkms());
        module::dkms_builds_the_module_for_another_kernel_than_the_running_one,
    );
    run_all_at_once(tests.into_iter().chain(with_module).chain(of_module(&module)).chain(dkms).collect())
}

/// The tests of our kernel module.
fn of_module(module: &Available) -> Vec<Trial> {
    let tests = trials!(
        module;
        module::every_member_of_the_interface_is_described_as_kernel_doc_wants_it,
        module::every_memory_type_is_mapped_and_read_back,
        module::mistakes_are_refused_with_their_error,
        module::random_requests_leave_no_warning_in_the_kernels_log,
        module::memory_is_mapped_by_the_dma_api_and_released_at_the_end,
        module::mappings_by_the_dma_api_are_timed_in_parts_and_leave_nothing_pinned,
        module::a_bounce_buffer_is_reported_with_the_number_of_its_pages,
        module::bus_mastering_is_off_unless_asked_for_and_off_at_the_end,
        module::only_a_named_function_without_another_claim_is_bound,
        module::a_second_program_is_refused_and_the_driver_is_restored,
        module::removing_the_driver_ends_the_mappings_of_a_program,
        module::the_driver_is_restored_after_a_signal,
        module::a_card_behind_the_module_keeps_every_promise,
        module::a_dry_run_prints_steps_mappings_and_calls_and_changes_nothing,
        module::a_card_answers_with_cached_types_and_driver_calls,
    );
    tests.into()
}

/// The tests of VFIO on a kernel with iommufd alone.
fn of_iommufd(kernel: &Available) -> Vec<Trial> {
    let tests = trials!(
        kernel;
        iommufd::a_kernel_without_groups_is_used_by_iommufd_and_the_record_says_so,
        iommufd::containers_are_refused_where_the_kernel_has_none,
        iommufd::memory_of_another_card_is_refused_with_the_interface_that_maps_it,
        iommufd::without_interrupt_remapping_the_setting_of_iommufd_is_named,
        guide::commands_with_iommufd_print_the_shown_output,
        dma::the_engine_of_a_device_answers_questions_about_dma,
        dma::the_engine_of_a_device_file_keeps_every_promise,
        dma::an_engine_whose_memory_decoding_is_turned_off_is_an_error_with_that_cause,
        dma::pages_of_4_kib_and_of_2_mib_are_mapped_by_the_iommu,
        dma::a_dry_run_lists_binds_registers_and_pages_and_changes_nothing,
        dma::blocked_dma_is_an_error_with_the_report_of_the_kernel,
        dma::an_interrupt_that_never_comes_is_a_timeout_with_its_name,
        dma::a_wrong_device_file_is_refused_before_the_card_is_bound,
        dma::the_driver_is_restored_after_a_signal_and_listed_after_a_kill,
        dma::removing_a_card_behind_vfio_ends_its_run,
        dma::removing_a_drive_behind_vfio_ends_its_run,
        dma::loads_and_stores_go_through_vfio_to_a_bound_card,
        drive::reads_of_every_size_and_depth_return_the_bytes_of_the_image,
        drive::a_read_beyond_the_end_is_refused_by_the_drive_with_its_status,
        drive::a_drive_answers_questions_about_dma_writes_and_names_the_rest,
        drive::queue_depths_are_outstanding_transfers,
        drive::blocks_of_4_kib_and_a_small_namespace_limit_the_sizes,
        drive::a_drive_without_a_namespace_says_so_and_maps_memory,
        drive::a_drive_that_cannot_be_identified_maps_memory_and_says_why_it_is_not_read,
        drive::a_dry_run_lists_the_commands_of_a_drive_and_changes_nothing,
        drive::a_controller_memory_buffer_answers_questions_about_loads_and_stores,
        drive::queues_in_a_controller_memory_buffer_read_the_same_bytes,
        drive::who_moves_a_command_is_answered_in_both_ways_side_by_side,
        drive::queues_in_a_controller_memory_buffer_need_one,
        drive::data_described_by_sgls_are_the_bytes_of_the_image,
        drive::completions_by_interrupt_answer_the_same_questions_and_the_latency_of_interrupts,
        drive::a_read_to_memory_that_was_just_unmapped_is_blocked_and_reported_with_address_and_direction,
        drive::a_signal_ends_the_reads_of_a_drive_and_restores_its_driver,
        drive::a_drive_behind_vfio_keeps_every_promise,
        drive::dma_reads_overwrite_only_the_first_blocks_of_a_namespace_that_is_named,
        drive::reads_go_to_the_namespace_that_is_named,
        drive_data::channels_are_queue_pairs_of_a_drive_and_their_bytes_are_those_of_the_image,
        drive_data::reads_and_writes_of_a_drive_alternate_and_both_directions_are_compared,
        drive_data::data_in_the_controller_memory_buffer_are_the_bytes_of_the_image_and_cross_no_link,
        driver::a_drive_is_bound_to_vfio_and_back_to_its_driver,
        iommus::vt_d_without_caching_mode_answers_the_same_questions,
        vfio::mappings_by_the_real_iommu_are_timed_with_every_strategy,
        vfio::a_card_behind_vfio_keeps_every_promise,
        vfio::a_drive_bound_for_a_run_has_its_driver_back_also_after_an_error,
        vfio::a_card_with_another_driver_is_not_opened_through_vfio,
        vfio::a_second_process_is_refused_until_the_first_is_killed,
        vfio::the_last_bytes_of_an_8_gib_bar_are_accessible_through_vfio,
        vfio::a_card_behind_vfio_without_memory_decoding_is_an_error_and_no_data,
        vfio::loads_from_a_card_behind_vfio_that_stops_decoding_are_no_figures,
        vfio::a_range_that_the_mtrrs_make_another_type_is_refused_behind_vfio,
    );
    tests.into()
}

/// The tests of the choice between both interfaces, on a kernel with both.
fn of_both(kernel: &Available) -> Vec<Trial> {
    let tests = trials!(
        kernel;
        iommufd::iommufd_is_preferred_and_a_container_is_used_if_it_is_named,
        iommufd::a_device_that_is_open_by_one_interface_is_refused_by_the_other,
        iommus::without_an_iommu_a_card_is_used_only_if_both_kernel_and_user_permit_it,
        peers::a_card_writes_and_reads_the_memory_of_another_one_and_nothing_beside_it,
        peers::cards_below_a_switch_and_functions_of_one_group_move_data_between_them,
        peers::without_acs_redirect_at_their_root_ports_cards_move_data_between_them,
        peers::a_controller_memory_buffer_is_memory_of_another_card,
        peers::a_dry_run_of_transfers_between_cards_changes_nothing,
        drive_peers::a_drive_reads_into_the_memory_of_another_card_and_nothing_beside_it,
        drive_peers::below_one_switch_drives_move_data_with_acs_redirect_on_and_off,
    );
    tests.into()
}

/// Initial byte of the storage card.
const BEFORE: u8 = 0xa7;
/// Size of the storage card in bytes.
const STORAGE_BYTES: usize = 4 << 20;
/// Size of the large card in bytes.
const LARGE_BYTES: u64 = 8 << 30;

/// Devices of the guest that most tests share:
///
/// | address | device |
/// | --- | --- |
/// | 01:00.0 | ivshmem behind a Gen4 x16 root port: BAR2 is 4 MiB of storage, the file `storage` on the outside |
/// | 02:00.0 | the upstream port of a switch in a Gen3 x8 slot, trained to Gen1 x1: a degraded link |
/// | 04:00.0 | edu behind that switch: a megabyte of registers |
/// | 05:00.0 | ivshmem with an 8 GiB BAR, above 4 GiB |
/// | 00:06.0 | pci-testdev with a prefetchable BAR and two others |
/// | 00:07.0 | nvme with a controller memory buffer, whose driver has claimed its registers, with a medium of 4 MiB: the file `drive` on the outside |
const DEVICES: &[&str] = &[
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2,x-speed=16,x-width=16",
    "-object memory-backend-file,id=storage,share=on,mem-path={folder}/storage,size=4M",
    "-device ivshmem-plain,memdev=storage,bus=rp1",
    "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=0x3,x-speed=8,x-width=8",
    "-device x3130-upstream,id=up,bus=rp2",
    "-device xio3130-downstream,id=dn1,bus=up,chassis=3,slot=3",
    "-device edu,dma_mask=0xffffffffff,bus=dn1",
    "-device pcie-root-port,id=rp3,chassis=4,slot=4,addr=0x4,x-speed=32,x-width=4",
    "-object memory-backend-file,id=large,share=on,mem-path={folder}/large,size=8G",
    "-device ivshmem-plain,memdev=large,bus=rp3",
    "-device pci-testdev,addr=0x6,membar=4M",
    "-drive if=none,id=medium,format=raw,file={folder}/drive",
    "-device nvme,addr=0x7,serial=none,drive=medium,cmb_size_mb=1",
];

/// A guest that most tests share.
fn shared() -> Lent {
    static GUESTS: Guests = Guests::new(|| boot(""));
    GUESTS.lend()
}

fn boot(kernel: &str) -> Guest {
    let mut guest =
        Guest::boot(&Hardware { packages: usual_kernel(), devices: DEVICES, kernel }, &programs(), |folder| {
            fs::write(folder.join("storage"), vec![BEFORE; STORAGE_BYTES]).unwrap();
            fs::write(folder.join("drive"), vec![BEFORE; STORAGE_BYTES]).unwrap();
        });
    // Without a driver, memory decoding of these devices is off.
    for card in ["01:00.0", "04:00.0", "05:00.0", "00:06.0"] {
        guest.expect(&format!("echo 1 >/sys/bus/pci/devices/0000:{card}/enable"));
    }
    guest
}

/// Programs of the guest besides busybox.
fn programs() -> Vec<&'static Path> {
    static HELLO: OnceLock<PathBuf> = OnceLock::new();
    let hello = HELLO.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hello");
        let archive = library().join("liblanemark.a");
        compile_c_example(&program, &[archive.to_str().unwrap(), "-lgcc_s", "-lpthread", "-ldl", "-lm"]);
        program
    });
    let ours = [Path::new(env!("CARGO_BIN_EXE_promises")), Path::new(env!("CARGO_BIN_EXE_touch-card"))];
    [lanemark(), hello].into_iter().chain(ours).chain(module::program()).collect()
}
