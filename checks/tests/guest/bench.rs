//! `lanemark bench` on a card, as described in the guide.

use crate::guest::Guest;
use crate::storage::{self, CARD, bound_to, with_decoding_off};
use crate::{BEFORE, shared};
use serde_json::Value;
use std::fs;

/// Record of a run that must succeed.
fn record(guest: &mut Guest, arguments: &str) -> Value {
    guest.expect(&format!("lanemark bench {arguments} --html page.html --record card.json >/dev/null"));
    serde_json::from_str(&guest.expect("cat card.json")).unwrap()
}

/// A short run on the storage card.
const SHORT: &str = "--on 0000:01:00.0 --bar 2:0..4KiB --question mmio_write_bandwidth --sizes 4KiB --access 8";

pub fn a_dry_run_prints_all_accesses_and_performs_none() {
    let mut guest = shared();
    storage::fresh(&guest);
    let state = format!("cat {CARD}/enable; xxd {CARD}/config");
    let before = guest.expect(&state);
    let said = guest.expect("lanemark bench --on 0000:01:00.0 --bar 2:0..4KiB --dry-run");
    assert_eq!(before, guest.expect(&state));
    assert!(fs::read(guest.file("storage")).unwrap().iter().all(|byte| *byte == BEFORE));
    for wanted in ["2:0..4KiB", "resource2\n", "resource2_wc\n", "mmio_write_bandwidth", "mmio_read_latency"] {
        assert!(said.contains(wanted), "no word of '{}':\n{said}", wanted.trim());
    }
    let offsets: Vec<u64> = said
        .split("BAR2+0x")
        .skip(1)
        .map(|rest| u64::from_str_radix(rest.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap(), 16).unwrap())
        .collect();
    assert_eq!(offsets.iter().max(), Some(&4095), "the last byte of the range, and none behind it");
}

pub fn a_run_stores_in_the_named_range_and_its_record_is_marked_emulated() {
    let mut guest = shared();
    storage::fresh(&guest);
    let record = record(&mut guest, "--on 0000:01:00.0 --bar 2:0..4KiB --budget 0.5");
    let outside = fs::read(guest.file("storage")).unwrap();
    assert!(outside[..4096].chunks(64).all(|line| line != [BEFORE; 64]), "a line of the range was not stored to");
    assert!(outside[4096..].iter().all(|byte| *byte == BEFORE), "something beyond the range has changed");

    assert_eq!(record["warnings"], serde_json::json!([]));
    assert_eq!(record["advice"], serde_json::json!([]), "no way is the best of an emulator");
    let target = &record["targets"][0];
    assert_eq!((&target["kind"], &target["card"]["id"]), (&"emulated".into(), &"1af4:1110".into()));
    for (mapping, memory_type) in target["card"]["mappings"].as_array().unwrap().iter().zip(["uc", "wc"]) {
        assert_eq!(mapping["effective_memory_type"], memory_type, "{mapping}");
    }
    let answers = record["answers"].as_array().unwrap();
    let questions = ["mmio_write_bandwidth", "mmio_write_latency", "mmio_read_latency", "mmio_read_bandwidth"];
    for question in questions {
        assert!(answers.iter().any(|answer| answer["question"] == question), "{question} was not asked");
    }
    for answer in answers {
        let bytes = &answer["bytes"];
        assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{answer}");
        assert!(
            answer["question"] != "mmio_write_bandwidth" || bytes["claimed_bytes"] == answer["size_bytes"],
            "{answer}"
        );
        // Speeds of an emulator mean nothing, so there is no limit to compare with.
        assert_eq!(
            (&answer["ceiling"]["kind"], &answer["share_of_ceiling_percent"]),
            (&"unknown".into(), &Value::Null)
        );
    }
}

pub fn the_record_contains_the_slowest_link_on_the_path() {
    let mut guest = shared();
    let record = record(&mut guest, "--on 0000:04:00.0 --bar 0:0..4KiB --question mmio_read_latency");
    let card = &record["targets"][0]["card"];
    assert_eq!(card["ranges"][0]["kind"], "registers");
    let trained = serde_json::json!({ "device": "0000:00:03.0", "generation": 1, "width_lanes": 1 });
    assert!(card["links"].as_array().unwrap().contains(&trained), "{card}");
}

pub fn only_named_ranges_are_accessed() {
    let mut guest = shared();
    let refused = guest.run("lanemark bench --on 0000:01:00.0");
    assert!(refused.status == 2 && refused.stderr.contains("--bar 2:0..4KiB"), "{refused:?}");
    let refused = guest.run("lanemark bench --on 0000:01:00.0 --bar 2:0..8MiB");
    assert!(refused.status == 2 && refused.stderr.contains("ends beyond BAR2"), "{refused:?}");
}

pub fn a_bound_driver_is_bypassed_only_with_the_option() {
    let mut guest = shared();
    bound_to(&mut guest, "uio_pci_generic", |guest| {
        let refused = guest.run(&format!("lanemark bench {SHORT}"));
        assert!(refused.status == 2 && refused.stderr.contains("bound to the driver 'uio_pci_generic'"), "{refused:?}");
        let owned = record(guest, &format!("{SHORT} --i-own-this-device"));
        assert_eq!(owned["targets"][0]["card"]["driver"], "uio_pci_generic");
    });
}

pub fn a_bar_claimed_by_the_kernel_is_refused_with_the_kernels_rule() {
    let mut guest = shared();
    let ask = "lanemark bench --on 0000:00:07.0 --bar 0:0..4KiB --question mmio_read_latency";
    let refused = guest.run(ask);
    assert!(refused.status == 2 && refused.stderr.contains("bound to the driver 'nvme'"), "{refused:?}");
    let refused = guest.run(&format!("{ask} --i-own-this-device"));
    assert!(refused.status == 77 && refused.stderr.contains("IO_STRICT_DEVMEM"), "{refused:?}");
}

pub fn memory_decoding_is_enabled_only_with_the_option_and_recorded() {
    let mut guest = shared();
    with_decoding_off(&mut guest, |guest| {
        let refused = guest.run(&format!("lanemark bench {SHORT}"));
        assert!(refused.status == 2 && refused.stderr.contains("--enable"), "{refused:?}");
        for was_enabled in [true, false] {
            let record = record(guest, &format!("{SHORT} --enable"));
            assert_eq!(record["targets"][0]["card"]["was_enabled"], was_enabled);
        }
    });
}

pub fn a_second_process_is_refused_until_the_first_one_is_killed() {
    let mut guest = shared();
    let bench = format!("lanemark bench {SHORT}");
    // All sizes and types take longer than this test.
    let long = "lanemark bench --on 0000:01:00.0 --bar 2:0..4KiB --full --budget 200";
    guest.expect(&format!("{long} >/dev/null 2>&1 & echo $! >running"));
    let holds = "ls -l /proc/$(cat running)/fd | grep -q 0000:01:00.0/config";
    guest.expect(&format!("for i in $(seq 300); do {holds} && exit 0; sleep 0.1; done; exit 1"));
    for second in [format!("{bench} --budget 0.1"), "touch-card 0000:01:00.0 2:0..4KiB uc peek:0:4".to_owned()] {
        let said = guest.run(&second);
        assert!(said.status != 0 && said.stderr.contains("0000:01:00.0 is locked by another process"), "{said:?}");
    }
    let bind = guest.run("lanemark bind 0000:01:00.0");
    assert!(bind.status == 2 && bind.stderr.contains("another process of Lanemark uses it"), "{bind:?}");
    guest.expect("kill -9 $(cat running); sleep 0.2");
    guest.expect(&format!("{bench} --budget 0.1"));
}
