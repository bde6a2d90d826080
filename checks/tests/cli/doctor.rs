//! What `doctor` promises to those who script it.

use crate::folder::Folder;
use lanemark_record::diagnosis::{Diagnosis, schema};
use std::fmt::Write;

/// The slot of the guide: a link that lost speed and width, small payloads, tags off.
fn slot() -> Folder {
    let guide = include_str!("../../../docs/guide/doctor.md");
    let (_, rest) = guide.split_once("```text file=slot.txt\n").unwrap();
    let (listing, _) = rest.split_once("```").unwrap();
    Folder::with(&[("slot.txt", listing.as_bytes())])
}

#[test]
fn the_document_obeys_its_schema_and_reads_back() {
    let outcome = slot().run(&["doctor", "--from", "slot.txt", "--json"]);
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
    let document = serde_json::from_str(&outcome.out).unwrap();
    let validator = jsonschema::draft202012::new(&serde_json::from_str(&schema()).unwrap()).unwrap();
    validator.validate(&document).unwrap_or_else(|error| panic!("{error}"));
    let diagnosis: Diagnosis = serde_json::from_value(document).unwrap();
    assert_eq!(diagnosis.links[0].state, "Gen3 x8 of Gen4 x16");
    assert!(diagnosis.unseen.iter().all(|unseen| !unseen.because.is_empty() && !unseen.enable.is_empty()));
}

#[test]
fn findings_are_no_failure_unless_somebody_asks() {
    let folder = slot();
    let code = |more: &[&str]| folder.run(&[&["doctor", "--from", "slot.txt"], more].concat()).code;
    assert_eq!(code(&[]), Some(0));
    assert_eq!(code(&["--fail-on-finding"]), Some(1));
    assert_eq!(code(&["--fail-on-finding=broken"]), Some(0), "the worst is costly");
    assert_eq!(code(&["--fail-on-finding=costly"]), Some(1));
    assert_eq!(code(&["--fail-on-finding=hint"]), Some(1));
}

#[test]
fn this_machine_is_read_or_said_to_have_no_pci_and_nothing_is_left_behind() {
    let folder = Folder::new();
    let outcome = folder.run(&["doctor"]);
    assert!(matches!(outcome.code, Some(0 | 77)), "{outcome:?}");
    assert!(folder.content().is_empty());
}

#[test]
fn a_platform_file_is_written_whole_or_not_at_all() {
    let folder = slot();
    let to = |address: &str| {
        folder.run(&["doctor", "--from", "slot.txt", "--as-platform", address, "--output", "slot.toml"])
    };
    let refused = to("05:00.0");
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("no function 0000:05:00.0"), "{}", refused.err);
    assert_eq!(to("00:01.0").code, Some(2), "a root port has no BARs");
    assert!(!folder.content().contains_key("slot.toml"));
    assert_eq!(to("01:00.0").code, Some(0));
    let printed = folder.run(&["doctor", "--from", "slot.txt", "--as-platform", "0000:01:00.0"]);
    assert_eq!(printed.out.as_bytes(), folder.content()["slot.toml"]);
    let over = folder.run(&["doctor", "--from", "slot.txt", "--as-platform", "01:00.0", "--output", "slot.txt"]);
    assert_eq!(over.code, Some(2), "it would overwrite what it reads");
}

#[test]
fn a_platform_with_unknown_numbers_runs_nowhere_and_every_one_is_named() {
    let folder = slot();
    folder.run(&["doctor", "--from", "slot.txt", "--as-platform", "--unknown", "mmio", "--output", "slot.toml"]);
    for command in ["bench", "predict"] {
        let outcome = folder.run(&[command, "--on", "slot.toml"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{command}");
        let unknown = outcome.err.lines().filter(|line| line.contains(": is unknown (")).count();
        assert_eq!(unknown, outcome.err.lines().count(), "{}", outcome.err);
        assert_eq!(unknown, 14, "{}", outcome.err);
    }
}

#[test]
fn what_is_out_of_range_or_no_machine_is_refused() {
    let folder = slot();
    let code = |arguments: &[&str]| folder.run(&[&["doctor", "--from", "slot.txt"], arguments].concat()).code;
    assert_eq!((code(&["--round-trip", "0.9"]), code(&["--round-trip", "1"])), (Some(2), Some(0)));
    assert_eq!((code(&["--round-trip", "1e9"]), code(&["--round-trip", "1.1e9"])), (Some(0), Some(2)));
    assert_eq!((code(&["--cpus", "0-3"]), code(&["--cpus", "3-0"])), (Some(0), Some(2)));
    assert_eq!(code(&["--earlier", "nothing.txt"]), Some(2));
    assert_eq!(folder.run(&["doctor", "--from", "nothing.txt"]).code, Some(2));
    assert_eq!(code(&["--output", "x.toml"]), Some(2), "nothing would be written there");
}

#[test]
fn lspci_text_and_a_table_become_a_platform_with_two_commands() {
    let folder = slot();
    let text = folder.good(&["doctor", "--from", "slot.txt", "--as-platform"]);
    std::fs::write(folder.path("my.toml"), &text).unwrap();
    let checked = folder.good(&["check", "my.toml"]);
    assert!(checked.contains("dma.tags is unknown (bandwidths of reads; extended tags are disabled, so at most 32"));
    // Figures of a card with this link and 24 tags.
    let mut table = "question,size_bytes,figure\n".to_owned();
    let known = text
        .replace("tags = { unknown = ", "tags = { value = 24, assumed = ")
        .replace(", at_most = 32", "")
        .replace("{ unknown = ", "{ value = 4, assumed = ")
        .replace("read_ns = { value = 4,", "read_ns = { value = 500,");
    std::fs::write(folder.path("true.toml"), known).unwrap();
    for (question, sizes) in [
        ("dma_read_latency", "8,256,1K,4K"),
        ("dma_read_bandwidth", "64,128,256,512,1K,4K,64K"),
        ("dma_write_bandwidth", "64,128,256,512,1K,4K,64K"),
    ] {
        let arguments = ["predict", "--on", "true.toml", "--question", question, "--sizes", sizes, "--json"];
        let record: serde_json::Value = serde_json::from_str(&folder.good(&arguments)).unwrap();
        for answer in record["answers"].as_array().unwrap() {
            let size = &answer["size_bytes"];
            let formula = &answer["formula"];
            match formula["delivered_rate_bytes_per_s"].as_f64() {
                Some(rate) if question != "dma_read_latency" => {
                    let _ = writeln!(table, "{question},{size},{rate} B/s");
                }
                _ => {
                    let _ = writeln!(table, "{question},{size},{} ns", formula["latency_ns"].as_f64().unwrap());
                }
            }
        }
    }
    std::fs::write(folder.path("card.csv"), table).unwrap();
    let fitted = folder.good(&["fit", "card.csv", "--on", "my.toml", "--assume-rest", "--write", "fitted.toml"]);
    assert!(fitted.contains("held out:"), "{fitted}");
    assert!(fitted.contains("dma.tags = 24"), "{fitted}");
    assert!(fitted.contains(", 0 unknown"), "{fitted}");
    folder.good(&["predict", "--on", "fitted.toml", "--question", "dma_read_latency", "--sizes", "2K", "--json"]);
}
