//! A card behind the real IOMMU of the guest, through VFIO.

use crate::guest::Guest;
use crate::storage::{self, CARD};
use crate::{BEFORE, LARGE_BYTES, shared};
use lanemark_checks::conformance::PROMISES;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// A drive whose driver is `nvme`.
const DRIVE: &str = "0000:00:07.0";

/// Binds the drive to VFIO while `then` runs.
fn behind_vfio(then: impl FnOnce(&mut Guest)) {
    let mut guest = shared();
    guest.expect(&format!("lanemark bind {DRIVE}"));
    then(&mut guest);
    guest.expect(&format!("lanemark unbind {DRIVE}"));
}

/// The command that times mappings of 4 KiB and 64 KiB.
fn map_cost(more: &str) -> String {
    format!("lanemark bench --on {DRIVE} --question dma_map_cost --sizes 4KiB,64KiB {more}")
}

pub fn mappings_by_the_real_iommu_are_timed_with_every_strategy() {
    behind_vfio(|guest| {
        let said = guest.expect(&map_cost("--record cost.json"));
        for strategy in ["ranges", "sequential", "magazine", "baseline free list", "fixed address"] {
            assert!(said.contains(&format!("{strategy}, iommu strict")), "{strategy}: {said}");
        }
        assert!(!said.contains("page table") && !said.contains("deferred"), "{said}");
        let record: serde_json::Value = serde_json::from_str(&guest.expect("cat cost.json")).unwrap();
        let card = &record["targets"][0]["card"];
        assert_eq!(card["driver"], "vfio-pci", "{card}");
        assert!(card["emulated_because"].is_string(), "{card}");
    });
}

pub fn a_card_with_another_driver_is_not_opened_through_vfio() {
    let mut guest = shared();
    let said = guest.run(&map_cost(""));
    assert!(said.status == 2 && said.stderr.contains("no range named"), "{said:?}");
}

pub fn a_second_process_is_refused_until_the_first_is_killed() {
    behind_vfio(|guest| {
        // Longer than this test.
        guest.expect(&format!("{} >/dev/null 2>&1 & echo $! >running", map_cost("--full --budget 200")));
        guest.expect(
            "for i in $(seq 300); do ls -l /proc/$(cat running)/fd | grep -q -E 'vfio/([0-9]|devices)' && break; sleep 0.1; done",
        );
        let busy = guest.run(&map_cost(""));
        assert!(busy.status == 77 && busy.stderr.contains("is locked by another process"), "{busy:?}");
        // Its registers are also files of the kernel.
        let owned = format!("lanemark bench --on {DRIVE} --bar 0:0..4KiB --i-own-this-device --budget 0.1");
        let through_sysfs = guest.run(&owned);
        let is_locked = through_sysfs.stderr.contains("is locked by another process");
        assert!(through_sysfs.status == 77 && is_locked, "{through_sysfs:?}");
        let unbind = guest.run(&format!("lanemark unbind {DRIVE}"));
        assert!(unbind.status == 2 && unbind.stderr.contains("a program uses it"), "{unbind:?}");
        // Killed without a chance to clean up: the kernel closes its files, and removes its mappings.
        guest.expect("kill -9 $(pidof lanemark); sleep 0.5");
        guest.expect(&map_cost(""));
    });
}

pub fn a_card_behind_vfio_keeps_every_promise() {
    let mut guest = shared();
    storage::fresh(&guest);
    guest.expect("lanemark bind 0000:01:00.0");
    let said = guest.run("promises vfio 0000:01:00.0 2:0..64KiB");
    guest.expect(&format!("lanemark unbind 0000:01:00.0; echo 1 >{CARD}/enable"));
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
    let outside = std::fs::read(guest.file("storage")).unwrap();
    assert!(outside[64 << 10..].iter().all(|byte| *byte == BEFORE), "something beyond the range has changed");
}

pub fn a_drive_bound_for_a_run_has_its_driver_back_also_after_an_error() {
    let mut guest = shared();
    let driver = format!("basename $(readlink /sys/bus/pci/devices/{DRIVE}/driver)");
    let said = guest.expect(&map_cost("--bind vfio-pci --budget 0.1"));
    assert!(said.contains("drivers/nvme/unbind") && said.ends_with("restored; driver now: nvme\n"), "{said}");
    assert_eq!(guest.expect(&driver), "nvme\n");
    // The card is opened, and has no such range.
    let said = guest.run(&map_cost("--bind vfio-pci --bar 5:0..4KiB"));
    assert!(said.status != 0 && said.stderr.contains("BAR5"), "{said:?}");
    assert_eq!(guest.expect(&driver), "nvme\n");
    assert_eq!(guest.expect("lanemark unbind"), "every function has its former driver\n");
}

pub fn the_last_bytes_of_an_8_gib_bar_are_accessible_through_vfio() {
    let mut guest = shared();
    let large = "0000:05:00.0";
    let asked =
        "--bar 2:0x1fffff000..8GiB:storage --question mmio_write_bandwidth,mmio_read_latency --access 8 --sizes 4KiB";
    let said =
        guest.expect(&format!("lanemark bench --on {large} --bind vfio-pci {asked} --budget 0.1 --record large.json"));
    guest.expect(&format!("echo 1 >/sys/bus/pci/devices/{large}/enable"));
    let mut found = [0; 8192];
    let outside = File::options().read(true).write(true).open(guest.file("large")).unwrap();
    outside.read_exact_at(&mut found, LARGE_BYTES - 8192).unwrap();
    outside.write_all_at(&[0; 4096], LARGE_BYTES - 4096).unwrap();
    assert!(found[4096..].chunks(64).all(|line| line != [0; 64]), "a line of the last page was not stored to: {said}");
    assert!(found[..4096].iter().all(|byte| *byte == 0), "something before the range has changed");
    let record: serde_json::Value = serde_json::from_str(&guest.expect("cat large.json")).unwrap();
    let answers = record["answers"].as_array().unwrap();
    let stored = answers.iter().find(|answer| answer["question"] == "mmio_write_bandwidth").unwrap();
    assert_eq!(stored["bytes"]["confirmed_bytes"], 4096, "{stored}");
    assert_eq!(record["targets"][0]["card"]["driver"], "vfio-pci");
}

pub fn mappings_beyond_the_limit_of_the_kernel_are_refused_with_its_name() {
    let limit = "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
    behind_vfio(|guest| {
        // Two at a time are enough for this question: some strategies map 64 KiB in two pieces.
        guest.expect(&format!("cat {limit} >limit; echo 2 >{limit}"));
        let two = guest.expect(&map_cost(""));
        guest.expect(&format!("echo 0 >{limit}"));
        let none = guest.expect(&map_cost(""));
        guest.expect(&format!("cat limit >{limit}"));
        assert!(!two.contains("dma_entry_limit"), "{two}");
        // For each of four strategies and for the fixed address, of two sizes; the pool maps nothing.
        let refused = none.matches("mapping memory for DMA: ").count();
        assert!(refused == 10 && none.contains("raise dma_entry_limit"), "{refused}: {none}");
    });
}

pub fn loads_from_a_card_behind_vfio_that_stops_decoding_are_no_figures() {
    let mut guest = shared();
    // Nothing compares the values of loads from registers.
    let said = without_decoding(&mut guest, "0:0..4:registers --question mmio_read_latency");
    assert!(said.contains("0000:01:00.0: memory decoding is off"), "{said}");
}

pub fn a_range_that_the_mtrrs_make_another_type_is_refused_behind_vfio() {
    let mut guest = shared();
    storage::fresh(&guest);
    let start = guest.expect(&format!("sed -n 3p {CARD}/resource | cut -d ' ' -f 1"));
    // VFIO maps as UC-, over which an MTRR of WC wins.
    guest.expect(&format!("echo 'base={} size=0x400000 type=write-combining' >/proc/mtrr", start.trim()));
    let bench = "lanemark bench --on 0000:01:00.0 --bind vfio-pci --bar 2:0..4KiB:storage --question mmio_write_bandwidth --budget 0.1";
    let said = guest.run(bench);
    guest.expect("echo \"disable=$(sed -n 's/^reg0*\\([0-9]*\\):.*write-combining.*/\\1/p' /proc/mtrr)\" >/proc/mtrr");
    assert!(said.status != 0 && said.stderr.contains("was requested as UC but is WC"), "{said:?}");
    let outside = std::fs::read(guest.file("storage")).unwrap();
    assert!(outside.iter().all(|byte| *byte == BEFORE), "something was stored");
    guest.expect(bench);
    guest.expect(&format!("echo 1 >{CARD}/enable"));
}

/// Turns memory decoding off during a run on ranges of the card, which must fail: its messages.
fn without_decoding(guest: &mut Guest, asked: &str) -> String {
    storage::fresh(guest);
    // An interval that no run reaches: it lasts as long as its budget.
    let bench = format!("lanemark bench --on 0000:01:00.0 --bar {asked} --interval 0.0001 --budget 10");
    guest.expect("lanemark bind 0000:01:00.0");
    guest.expect(&format!("rm -f status; ({bench} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    let decodes = format!("$(( 0x$(xxd -s 4 -l 1 -p {CARD}/config) & 2 ))");
    guest.expect(&format!("for i in $(seq 300); do [ {decodes} -ne 0 ] && exit 0; sleep 0.1; done; cat said; exit 1"));
    // From outside of VFIO, which would take the mappings away first. Again and again: the reset of an opening card turns it on.
    let off = format!("printf '\\000\\000' | dd of={CARD}/config bs=1 seek=4 conv=notrunc 2>/dev/null");
    guest.expect(&format!("for i in $(seq 600); do [ -s status ] && break; {off}; sleep 0.05; done"));
    let said = guest.expect("for i in $(seq 900); do [ -s status ] && break; sleep 0.1; done; cat status said");
    guest.expect(&format!("lanemark unbind 0000:01:00.0; echo 1 >{CARD}/enable"));
    assert!(said.starts_with("1\n"), "{said}");
    said
}

pub fn a_card_behind_vfio_without_memory_decoding_is_an_error_and_no_data() {
    let mut guest = shared();
    let said = without_decoding(&mut guest, "2:0..4KiB --question mmio_write_bandwidth");
    let cause = "0000:01:00.0: memory decoding is off (bit 1 of its Command register)";
    assert!(said.contains(cause) && said.contains("run again, which turns it on"), "{said}");
}
