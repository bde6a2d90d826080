//! A real card on the command line: what is refused, what a dry run tells, what stands in the record. The card is a folder.

use crate::fake_card::{ADDRESS, FakeCard};
use crate::folder::{Folder, Outcome};
use serde_json::Value;

/// A question that is quickly answered.
const STORES: [&str; 6] = ["--question", "mmio_write_bandwidth", "--access", "8", "--sizes", "64,4KiB"];

fn bench(folder: &Folder, card: &FakeCard, arguments: &[&str]) -> Outcome {
    let root = card.root().to_str().unwrap();
    folder.run(&[&["bench", "--on", ADDRESS, "--system-root", root], arguments].concat())
}

fn refused(card: &FakeCard, code: i32, arguments: &[&str], hints: &[&str]) {
    let folder = Folder::new();
    let outcome = bench(&folder, card, arguments);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(code), ""), "{arguments:?}: {}", outcome.err);
    for hint in hints {
        assert!(outcome.err.contains(hint), "{arguments:?} does not say '{hint}' but: {}", outcome.err);
    }
    assert!(folder.content().is_empty(), "{arguments:?} left something");
}

#[test]
fn a_card_without_a_range_is_refused_and_its_bars_are_told() {
    let card = FakeCard::new();
    refused(&card, 2, &[], &["--bar 2:0..4KiB", "BAR0 4KiB", "BAR2 1MiB 64-bit memory, prefetchable"]);
    refused(&card, 2, &["--bar", "2:0..2MiB"], &["2:0..2MiB ends beyond BAR2"]);
    refused(&card, 2, &["--bar", "2:0..4Q"], &["'4Q'", "2:0..4KiB"]);
    refused(&card, 2, &["--bar", "2:0..64", "--region", "memory"], &["no such region", "bar2"]);
}

#[test]
fn a_card_in_use_off_or_gone_is_refused() {
    let card = FakeCard::new();
    card.bind("nvme");
    refused(&card, 2, &["--bar", "2:0..64"], &["'nvme'", "--i-own-this-device"]);
    let card = FakeCard::new();
    card.set_config(0x1af4, 0);
    refused(&card, 2, &["--bar", "2:0..64"], &["memory decoding is off", "--enable"]);
    card.set_config(0xffff, 0xffff);
    refused(&card, 1, &["--bar", "2:0..64"], &["is gone", "rescan"]);
    let card = FakeCard::new();
    std::fs::remove_file(card.path("resource2")).unwrap();
    refused(&card, 77, &["--bar", "2:0..64"], &["0000:01:00.0: no ", "resource2"]);
}

#[test]
fn options_of_a_card_want_a_card_and_one_only() {
    let folder = Folder::new();
    let refused = |arguments: &[&str], hint: &str| {
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}{}", outcome.out, outcome.err);
        assert!(outcome.err.contains(hint), "{}", outcome.err);
    };
    for option in [&["--bar", "2:0..64"][..], &["--enable"], &["--i-own-this-device"], &["--dry-run"], &["--emulated"]]
    {
        refused(&[&["bench", "--on", "host"], option].concat(), option[0]);
        refused(&[&["predict", "--on", "aws-f1"], option].concat(), option[0]);
    }
    refused(&["bench", "--on", "01:00.0", "--on", "02:00.0", "--bar", "2:0..64"], "one card at a time");
    refused(&["bench", "--on", "01:00.0", "--on", "host", "--dry-run"], "remove the other targets");
    refused(&["bench", "--on", "01:00.0", "--bar", "2:0..64", "--dry-run", "--json"], "--json");
    refused(&["predict", "--on", "01:00.0"], "has no formula");
}

#[test]
fn a_dry_run_tells_everything_and_leaves_everything() {
    let (folder, card) = (Folder::new(), FakeCard::new());
    card.bind("ivshmem");
    // There is nothing to read, so reading would be noticed.
    std::fs::remove_file(card.path("config")).unwrap();
    let outcome = bench(&folder, &card, &[&["--bar", "2:0..4KiB", "--dry-run"], &STORES[..]].concat());
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
    for line in [
        "a run would be refused: 0000:01:00.0 is bound to the driver 'ivshmem'",
        "range 2:0..4KiB: storage (assumed from the BAR); BAR2 1MiB 64-bit memory, prefetchable",
        "mapped as WC for each run: ",
        "  WC 8: 512 x store of 8 B per iteration, BAR2+0x0 to BAR2+0xfff; one load at its end",
        "nothing was accessed",
    ] {
        assert!(outcome.out.contains(line), "'{line}' is not in:\n{}", outcome.out);
    }
    assert!(folder.content().is_empty() && card.bytes("resource2").iter().all(|byte| *byte == 0));
    let wrong = bench(&folder, &card, &["--bar", "2:0..4KiB", "--dry-run", "--sizes", "8KiB"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.out);
}

#[test]
fn a_record_says_what_was_found_of_a_card_and_touched_of_it() {
    let (folder, card) = (Folder::new(), FakeCard::new());
    card.bind("nvme");
    card.write("current_link_speed", "16.0 GT/s PCIe\n");
    card.write("current_link_width", "16\n");
    let ranges = ["--bar", "2:4KiB..8KiB", "--bar", "0:0..64:registers", "--i-own-this-device", "--enable"];
    let outcome = bench(&folder, &card, &[&ranges[..], &STORES, &["--json"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let record: Value = serde_json::from_str(&outcome.out).unwrap();
    let target = &record["targets"][0];
    assert_eq!((&target["name"], &target["kind"]), (&ADDRESS.into(), &"emulated".into()));
    let found = &target["card"];
    assert_eq!((&found["id"], &found["driver"]), (&"1af4:1110".into(), &"nvme".into()));
    assert_eq!(found["was_enabled"], Value::Bool(false));
    assert!(found["emulated_because"].as_str().unwrap().contains("files below"));
    assert_eq!(found["ranges"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&found["ranges"][0]["kind"], &found["ranges"][0]["is_kind_assumed"]),
        (&"storage".into(), &true.into())
    );
    assert_eq!(found["links"][0]["generation"], 4);
    let used = found["mappings"].as_array().unwrap().iter().filter(|mapping| mapping["is_used"] == true).count();
    assert_eq!(used, 3, "BAR2 as UC and WC, BAR0 as UC");
    let answers = record["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 4, "two memory types, two sizes");
    for answer in answers {
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"]);
        assert_eq!(answer["delivery"]["known_by"], "read_back");
        assert!(answer["delivery"]["read_round_trip_ns"].is_number());
        assert_eq!(
            (&answer["ceiling"]["kind"], &answer["share_of_ceiling_percent"]),
            (&"unknown".into(), &Value::Null)
        );
    }
    let bytes = card.bytes("resource2");
    assert!(bytes[..4096].iter().chain(&bytes[8192..]).all(|byte| *byte == 0), "only the range is stored to");
    assert!(bytes[4096..8192].iter().all(|byte| *byte != 0));
}

#[test]
fn a_card_that_vanishes_is_a_failure_that_names_it_and_is_not_asked_again() {
    let (folder, card) = (Folder::new(), FakeCard::new());
    card.truncate("resource2", 4096);
    let before = ["--bar", "2:0..64KiB", "--record", "card.json", "--question", "mmio_write_latency"];
    let outcome = bench(&folder, &card, &[&before[..], &STORES[..4]].concat());
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.err.contains("bus error at BAR2+0x1000"), "{}", outcome.err);
    let record: Value = serde_json::from_slice(&folder.content()["card.json"]).unwrap();
    assert!(!record["answers"].as_array().unwrap().is_empty(), "what was answered before is kept");
    let warnings = record["warnings"].as_array().unwrap();
    assert_eq!(warnings.iter().filter(|warning| warning.as_str().unwrap().contains("bus error")).count(), 1);
    let skipped = record["skipped"].as_array().unwrap();
    let is_named =
        |row: &Value| row["because"].as_str().unwrap().ends_with(" has failed; its remaining cases are skipped");
    assert!(skipped.iter().any(|row| is_named(row) && row["question"] == "mmio_write_bandwidth"), "{skipped:?}");
}
