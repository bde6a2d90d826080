//! Transfers between two cards, through VFIO and the IOMMU of the guest.

use crate::dma::{boot, ended, memory_plugged_again, shared, started};
use crate::guest::Guest;
use serde_json::Value;
use std::fs;

/// A card with an engine, and one with memory: BAR2 is 1 MiB, the file `storage` on the outside.
const EDU: &str = "0000:01:00.0";
const MEMORY: &str = "0000:02:00.0";
const QUESTIONS: &str = "p2p_write_bandwidth,p2p_read_bandwidth,p2p_latency";

/// Runs `then` while the card with memory is bound to `vfio-pci`.
fn bound<T>(guest: &mut Guest, then: impl FnOnce(&mut Guest) -> T) -> T {
    guest.expect(&format!("lanemark bind {MEMORY}"));
    let done = then(guest);
    guest.expect(&format!("lanemark unbind {MEMORY}"));
    done
}

/// A bench of the engine's card with the pages from 4 KiB to 12 KiB of the other one.
fn bench(arguments: &str) -> String {
    format!("lanemark bench --on {EDU} --bind vfio-pci --device edu --peer {MEMORY}:2:4KiB..12KiB {arguments}")
}

/// The record of a bench, in which every byte that an answer claims must be confirmed.
pub fn record(guest: &mut Guest, command: &str) -> Value {
    guest.expect(&format!("{command} --record peers.json >/dev/null"));
    let record: Value = serde_json::from_str(&guest.expect("cat peers.json")).unwrap();
    for answer in record["answers"].as_array().unwrap() {
        let bytes = &answer["bytes"];
        assert!(bytes["claimed_bytes"] == bytes["confirmed_bytes"], "{answer}");
        assert!(bytes["claimed_bytes"].as_u64() >= answer["size_bytes"].as_u64(), "{answer}");
    }
    record
}

/// Checks that bytes of the pages that were named have changed, and no others.
fn check_outside(guest: &Guest, file: &str) {
    let outside = fs::read(guest.file(file)).unwrap();
    let is_changed = |range: std::ops::Range<usize>| outside[range].iter().any(|byte| *byte != 0xa7);
    assert!(is_changed(4096..12288), "nothing arrived");
    assert!(!is_changed(0..4096) && !is_changed(12288..1 << 20), "bytes beside the named pages have changed");
}

pub fn a_card_writes_and_reads_the_memory_of_another_one_and_nothing_beside_it() {
    let mut guest = shared();
    fs::write(guest.file("storage"), vec![0xa7; 1 << 20]).unwrap();
    // A transfer takes a tenth of a second, so there are few.
    let asked = format!("--question {QUESTIONS} --sizes 2KiB,4KiB --budget 0.1");
    let found = bound(&mut guest, |guest| record(guest, &bench(&asked)));
    check_answered(&found);
    assert!(found["skipped"].to_string().contains("the engine moves 1 B to 2KiB at once"), "{}", found["skipped"]);
    let summary = found["targets"][0]["summary"].to_string();
    assert!(summary.contains(&format!("transfers to and from {MEMORY}")), "{summary}");
    check_outside(&guest, "storage");
}

pub fn cards_below_a_switch_and_functions_of_one_group_move_data_between_them() {
    let mut guest = shared();
    for port in ["0000:04:00.0", "0000:04:01.0"] {
        assert_eq!(redirection(&mut guest, port), None, "{port}: the switch redirects nothing");
    }
    for (engine, memory, file, are_one_group) in
        [("0000:05:00.0", "0000:06:00.0", "below", false), ("0000:00:07.0", "0000:00:07.1", "beside", true)]
    {
        fs::write(guest.file(file), vec![0xa7; 1 << 20]).unwrap();
        let mut group = |card| guest.expect(&format!("readlink /sys/bus/pci/devices/{card}/iommu_group"));
        assert_eq!(group(engine) == group(memory), are_one_group);
        guest.expect(&format!("lanemark bind {engine}; lanemark bind {memory}"));
        let asked = format!("lanemark bench --on {engine} --device edu --peer {memory}:2:4KiB..12KiB");
        let found = record(&mut guest, &format!("{asked} --question p2p_latency --sizes 8,2KiB --budget 0.1"));
        assert_eq!(found["answers"].as_array().map(Vec::len), Some(2), "{}", found["skipped"]);
        guest.expect(&format!("lanemark unbind {engine}; lanemark unbind {memory}"));
        check_outside(&guest, file);
    }
}

pub fn without_acs_redirect_at_their_root_ports_cards_move_data_between_them() {
    let ports = ["0000:00:02.0", "0000:00:03.0"];
    let mut guest = boot(&format!("pci=disable_acs_redir={}", ports.join(";")));
    for (port, card) in ports.into_iter().zip([EDU, MEMORY]) {
        assert_eq!(redirection(&mut guest, port), Some(0), "{port}");
        // The kernel isolates a card from its port no longer.
        let mut group =
            |function| guest.expect(&format!("basename $(readlink /sys/bus/pci/devices/{function}/iommu_group)"));
        assert_eq!(group(port), group(card));
    }
    assert_eq!(redirection(&mut guest, "0000:00:04.0"), Some(0b1100), "a port that the option does not name");
    let asked = format!("--question {QUESTIONS} --sizes 2KiB --budget 0.1");
    let found = bound(&mut guest, |guest| record(guest, &bench(&asked)));
    check_answered(&found);
    check_outside(&guest, "storage");
}

/// The bits P2P Request Redirect (2) and P2P Completion Redirect (3) of the ACS Control register of a port; `None` without
/// it. The other bits of a port that `pci=disable_acs_redir` names are set by Linux 6.1, and left to the firmware by 6.12.
/// Source: PCI Express Base Specification, "ACS Extended Capability"; Linux, `__pci_config_acs`.
pub fn redirection(guest: &mut Guest, port: &str) -> Option<u16> {
    let text = guest.expect(&format!("xxd -p /sys/bus/pci/devices/{port}/config | tr -d '\\n'"));
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..][..2], 16).unwrap();
    let word = |at: usize| u16::from_le_bytes([byte(at), byte(at + 1)]);
    let chain = std::iter::successors(Some(0x100), |at| Some(usize::from(word(at + 2) >> 4)).filter(|at| *at != 0));
    chain.into_iter().find(|at| word(*at) == 0xd).map(|at| word(at + 6) & 0b1100)
}

/// Each question must have an answer.
fn check_answered(record: &Value) {
    let answers = record["answers"].as_array().unwrap();
    for question in QUESTIONS.split(',') {
        let has = |answer: &Value| answer["question"] == question && answer["size_bytes"] == 2048;
        assert!(answers.iter().any(has), "{question}: {}", record["skipped"]);
    }
}

pub fn memory_decoding_turned_off_at_the_other_card_is_an_error_that_names_it() {
    let mut guest = shared();
    bound(&mut guest, |guest| {
        started(guest, EDU, &format!("--device edu --peer {MEMORY}:2:4KiB..12KiB --question p2p_latency --sizes 64"));
        guest.expect(&format!("printf '\\000' | dd of=/sys/bus/pci/devices/{MEMORY}/config bs=1 seek=4 conv=notrunc"));
        let (status, said) = ended(guest);
        assert!(status == "1" && said.contains(&format!("{MEMORY}: memory decoding is off")), "{status} {said}");
        assert!(said.contains("run again, which turns it on"), "{said}");
        let found = record(guest, &bench("--question p2p_latency --sizes 64 --budget 0.1"));
        assert_eq!(found["answers"].as_array().map(Vec::len), Some(1), "{}", found["skipped"]);
    });
}

pub fn a_card_whose_memory_is_in_use_is_locked_for_other_processes() {
    let mut guest = shared();
    bound(&mut guest, |guest| {
        started(guest, EDU, &format!("--device edu --peer {MEMORY}:2:4KiB..12KiB --question p2p_latency --sizes 64"));
        // Through sysfs, which does not know of VFIO.
        let refused =
            guest.run(&format!("lanemark bench --on {MEMORY} --bar 2:0..4KiB --i-own-this-device --budget 0.1"));
        guest.expect("kill -INT $(pidof lanemark)");
        ended(guest);
        let is_locked = refused.stderr.contains(&format!("{MEMORY} is locked by another process"));
        assert!(refused.status == 77 && is_locked, "{refused:?}");
    });
}

pub fn removing_a_card_ends_the_transfers_of_another_one_to_its_memory() {
    let mut guest = shared();
    guest.expect(&format!("lanemark bind {MEMORY}"));
    started(&mut guest, EDU, &format!("--device edu --peer {MEMORY}:2:4KiB..12KiB --question p2p_latency --sizes 64"));
    guest.monitor("device_del memory");
    let (status, said) = ended(&mut guest);
    // The kernel takes its driver away first.
    let is_named = said.contains(&format!("{MEMORY} is gone")) || said.contains(&format!("lanemark: {MEMORY} was "));
    assert!(status == "1" && is_named, "{status} {said}");
    assert!(said.contains("restored; driver now: none\n"), "{said}");
    guest.expect(&format!("rm -f /run/lanemark/{MEMORY}.*"));
    memory_plugged_again(&mut guest, MEMORY, "memory", ("storage", "1M"), "rp2");
}

pub fn a_controller_memory_buffer_is_memory_of_another_card() {
    let drive = "0000:00:08.0";
    let mut guest = shared();
    // The emulator's own view of BAR2, from outside of the guest.
    let start = guest.expect(&format!("sed -n 3p /sys/bus/pci/devices/{drive}/resource | cut -d ' ' -f 1"));
    let start = u64::from_str_radix(start.trim().trim_start_matches("0x"), 16).unwrap();
    guest.expect(&format!("lanemark bind {drive}"));
    let asked = format!("lanemark bench --on {EDU} --bind vfio-pci --device edu --peer {drive}:2:4KiB..12KiB");
    let found = record(&mut guest, &format!("{asked} --question {QUESTIONS} --sizes 2KiB --budget 0.1"));
    check_answered(&found);
    let file = guest.file("buffer");
    // Without a driver, memory decoding can be turned on; the drive's own driver would use the buffer.
    let folder = format!("/sys/bus/pci/devices/{drive}");
    guest.expect(&format!("echo {drive} >{folder}/driver/unbind; echo 1 >{folder}/enable"));
    guest.monitor(&format!("pmemsave {start} {} \"{}\"", 1 << 20, file.display()));
    let buffer = fs::read(&file).unwrap();
    assert!(buffer[4096..12288].iter().any(|byte| *byte != 0), "nothing arrived");
    let beside = buffer[..4096].iter().chain(&buffer[12288..]);
    assert!(beside.copied().all(|byte| byte == 0), "bytes beside the named pages have changed");
    guest.expect(&format!("lanemark unbind {drive}"));
}

pub fn a_dry_run_of_transfers_between_cards_changes_nothing() {
    let mut guest = shared();
    fs::write(guest.file("storage"), vec![0xa7; 1 << 20]).unwrap();
    let asked = bench(&format!("--question {QUESTIONS} --sizes 64 --dry-run"));
    let said = bound(&mut guest, |guest| guest.expect(&asked));
    for words in [
        "opened in the same container: 0000:02:00.0, which is reset if it can be; BAR2 from 0x1000 to 0x2fff: overwritten",
        "DMA to 0000:02:00.0: 1024 x 64B per iteration, at offsets 0x1000 to 0x2fff of BAR2; the end by polling",
        "DMA from 0000:02:00.0: 1024 x 64B per iteration, at offsets 0x1000 to 0x2fff of BAR2; the end by polling",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    assert!(fs::read(guest.file("storage")).unwrap().iter().all(|byte| *byte == 0xa7));
}

pub fn memory_of_another_card_that_cannot_be_used_is_refused_with_the_reason() {
    let mut guest = shared();
    let mut refused = |arguments: &str, words: &str| {
        let said = guest.run(&format!("lanemark bench --on {EDU} --bind vfio-pci {arguments} --question p2p_latency"));
        assert!(said.status != 0 && said.stderr.contains(words), "{words}: {said:?}");
        let driver = guest.run(&format!("[ -e /sys/bus/pci/devices/{EDU}/driver ]"));
        assert_ne!(driver.status, 0, "its state is restored: {said:?}");
    };
    refused(&format!("--device edu --peer {MEMORY}:2:0..4KiB"), &format!("lanemark bind {MEMORY}"));
    refused(&format!("--device edu --peer {EDU}:0:0..4KiB"), "is the target itself");
    refused(&format!("--device edu --peer {MEMORY}:2:0..4095"), "multiples of 4096 B");
    refused(&format!("--peer {MEMORY}:2:0..4KiB"), "--device");
    refused(&format!("--device edu --peer {EDU}:0:0..4KiB --dry-run"), "is the target itself");
    bound(&mut guest, |guest| {
        let beyond = format!("--device edu --peer {MEMORY}:2:0..2MiB --question p2p_latency");
        let said = guest.run(&format!("lanemark bench --on {EDU} --bind vfio-pci {beyond}"));
        assert!(said.status == 2 && said.stderr.contains("0000:02:00.0: 2:0..2MiB ends beyond BAR2"), "{said:?}");
        assert_eq!(said.stderr.matches(MEMORY).count(), 1, "{said:?}");
    });
    // A megabyte of registers.
    guest.expect("lanemark bind 0000:05:00.0");
    let registers = "--device edu --peer 0000:05:00.0:0:0..4KiB --question p2p_latency";
    let said = guest.run(&format!("lanemark bench --on {EDU} --bind vfio-pci {registers}"));
    guest.expect("lanemark unbind 0000:05:00.0");
    assert!(said.status != 0 && said.stderr.contains("BAR0 is not prefetchable, so it may be registers"), "{said:?}");
}
