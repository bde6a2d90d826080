//! `advise`: methods, changes and goals for a workload.

use crate::folder::Folder;
use serde_json::Value;

fn guidance(arguments: &[&str]) -> Value {
    let text = Folder::new().good(&[&["advise", "--json", "--on"], arguments].concat());
    serde_json::from_str(&text).unwrap()
}

fn choices(guidance: &Value) -> impl Iterator<Item = &Value> {
    guidance["choices"].as_array().unwrap().iter()
}

#[test]
fn a_goal_at_the_prediction_is_met_and_one_above_it_exits_with_one() {
    let found = guidance(&["card-gen5-x16", "--direction", "from-device", "--sizes", "1MiB", "--rate", "1GB/s"]);
    let rate = found["goals"][0]["best"].as_f64().unwrap();
    let folder = Folder::new();
    let ask = |rate: f64| {
        let goal = format!("{rate}B/s");
        folder.run(&[
            "advise",
            "--on",
            "card-gen5-x16",
            "--direction",
            "from-device",
            "--sizes",
            "1MiB",
            "--rate",
            &goal,
        ])
    };
    assert_eq!(ask(rate).code, Some(0));
    let refused = ask(rate * 1.001);
    assert_eq!(refused.code, Some(1));
    let text = refused.err;
    assert!(text.contains("not met: from device 1 MiB") && text.contains("bound by link busy"), "{text}");
}

#[test]
fn every_load_from_cached_memory_has_its_flush_and_every_uc_memcpy_its_cliff() {
    let mut cached = 0;
    for platform in ["tacc-stratix4", "soc-noncoherent", "aws-f1"] {
        let found = guidance(&[platform, "--sizes", "64,64KiB"]);
        for one in choices(&found).flat_map(|choice| choice["ranked"].as_array().unwrap()) {
            let (method, rules) = (&one["method"], one["rules"].to_string());
            if method["verb"] == "load" && ["wt", "wp"].iter().any(|cached| method["memory_type"] == *cached) {
                cached += 1;
                assert!(rules.contains("CLFLUSH") && rules.contains("side effects"), "{platform}: {one}");
            }
            if method["access"] == "memcpy" && method["memory_type"] == "uc" {
                assert!(rules.contains("rep movsb"), "{platform}: {one}");
            }
        }
    }
    assert!(cached > 0, "no preset has such a method");
}

#[test]
fn the_best_method_is_first_and_others_are_at_most_twenty_times_slower() {
    for choice in choices(&guidance(&["card-gen5-x16", "--sizes", "64,4KiB"])) {
        let slower: Vec<f64> =
            choice["ranked"].as_array().unwrap().iter().map(|one| one["times_slower"].as_f64().unwrap()).collect();
        assert!((0.98..=1.021).contains(&slower[0]), "{choice}");
        assert!(slower.iter().all(|times| (1.0..=21.0).contains(times)), "{slower:?}");
    }
}

#[test]
fn more_tags_are_advised_only_where_tags_bound() {
    let gain = |read_bytes: &str| {
        let card = "link.generation=3,dma.beat_bytes=16,dma.beat_ns=1.215,dma.tags=32";
        let with = format!("{card},link.mrrs_bytes={read_bytes}");
        let found = guidance(&[
            "card-gen5-x16",
            "--direction",
            "to-device",
            "--sizes",
            "4MiB",
            "--rate",
            "1GB/s",
            "--with",
            &with,
        ]);
        let all = found["changes"].as_array().unwrap().clone();
        all.into_iter().find(|change| change["with"][0][0] == "dma.tags" && change["kind"] == "setting")
    };
    assert!(gain("128").is_some(), "32 tags bound reads of 128 B");
    assert!(gain("4096").is_none(), "the data path bounds reads of 4 KiB");
}

#[test]
fn a_larger_payload_is_a_setting_only_where_all_ports_support_it() {
    let kinds = |platform: &str| -> Vec<(String, String)> {
        let found = guidance(&[platform, "--direction", "from-device", "--sizes", "1MiB", "--rate", "1MB/s"]);
        let changes = found["changes"].as_array().unwrap().clone();
        let of = |change: &Value| change["with"][0][0] == "link.mps_bytes";
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        changes.iter().filter(|change| of(change)).map(|one| (text(&one["kind"]), text(&one["what"]))).collect()
    };
    let larger = ("hardware".to_owned(), "ports that support Max_Payload_Size 1KiB".to_owned());
    assert_eq!(kinds("card-gen5-x16"), [larger], "its ports support 512 B, which is set");
}

#[test]
fn bad_goals_and_real_targets_are_refused() {
    let folder = Folder::new();
    for (arguments, expected) in [
        (&["--on", "card-gen5-x16", "--rate", "12"][..], "write a number and a unit"),
        (&["--on", "card-gen5-x16", "--rate", "-1GB/s"], "is not a rate"),
        (&["--on", "card-gen5-x16", "--latency-below", "0ns"], "use a time above 0 with its unit"),
        (&["--on", "card-gen5-x16", "--latency-below", "5"], "use a time above 0 with its unit"),
        (&["--on", "card-gen5-x16", "--direction", "sideways"], "to-device"),
        (&["--on", "card-gen5-x16", "--sizes", "17MiB"], "above the maximum of 16MiB"),
        (&["--on", "host"], "is no simulated platform, which is required"),
        (&["--on", "card-gen5-x16", "--with", "link.mps=3"], "did you mean link.mps_bytes?"),
        (&[], "--on <PLATFORM>"),
    ] {
        let refused = folder.run(&[&["advise"], arguments].concat());
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.err);
        assert!(refused.err.contains(expected), "{arguments:?}: {}", refused.err);
    }
}
