//! Copies of many pieces, and the table that `tune` makes of them.

use crate::{answers, bench, bench_in, bytes, compiled, record, said};
use lanemark_checks::lanemark;
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

const QUESTION: &str = "small_copies";

pub fn pieces_of_any_length_are_copied_by_every_method_in_both_directions() {
    // Units of 16, 8, 4 and 1 B; less than a slice, a slice, and several with a rest.
    let sizes = ["--sizes", "1,7,64,100,1000,4096,4104,9001"];
    let record = record(&bench(&[], &[&["--question", QUESTION, "--json"], &sizes[..]].concat()));
    // Two directions, four counts, four methods.
    assert_eq!(answers(&record).len(), 8 * 2 * 4 * 4, "{}", record["skipped"]);
    for answer in answers(&record) {
        let pieces = answer["method"]["copies"].as_u64().unwrap() * answer["size_bytes"].as_u64().unwrap();
        assert_eq!(bytes(answer), (pieces, pieces), "{answer}");
    }
    let skipped = record["skipped"].as_array().unwrap();
    assert!(skipped.iter().any(|one| one["what"].as_str().unwrap().ends_with("accesses of a core through a BAR")));
}

pub fn a_driver_without_a_batch_leaves_the_other_methods_and_says_so() {
    let without = |output: Output| {
        let record = record(&output);
        let mut methods: Vec<&str> =
            answers(&record).iter().map(|answer| answer["method"]["by"].as_str().unwrap()).collect();
        methods.sort_unstable();
        methods.dedup();
        assert_eq!(methods, ["in_place", "loop", "packed"]);
        let skipped = record["skipped"].to_string();
        assert!(
            skipped.contains("one batch call") && skipped.contains("a batch needs CUDA 12.8 or later"),
            "{skipped}"
        );
    };
    let question = ["--question", QUESTION, "--sizes", "64", "--json"];
    without(bench(&[("FAKE_CUDA_VERSION", "12040")], &question));
    without(bench_in(compiled(Some("cuGetProcAddress_v2")).path(), &[], &question));
}

pub fn wrong_bytes_of_pieces_and_of_the_gaps_between_them_are_counted() {
    // A wrong byte in each copy to the device, also of those that fill it before, and in each piece of a kernel.
    let output = bench(&[("FAKE_CUDA_WRONG_BYTES", "1")], &["--question", QUESTION, "--sizes", "64", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers(&record).len(), 2 * 4 * 4);
    for answer in answers(&record) {
        let ((claimed, confirmed), method) = (bytes(answer), &answer["method"]);
        let is_by_driver = ["loop", "batch"].contains(&method["by"].as_str().unwrap());
        if is_by_driver && method["direction"] == "from_device" {
            // Only the byte that was filled in wrongly.
            assert!(claimed - confirmed <= 1, "{answer}");
        } else {
            // A byte of each piece; in a packed copy, one may be changed twice, and so be right again.
            let pieces = method["copies"].as_u64().unwrap();
            assert!(confirmed < claimed && claimed - confirmed + 1 >= pieces, "{answer}");
        }
    }
}

pub fn a_tuned_table_says_that_it_is_emulated_and_gives_choices() {
    let folder = compiled(None);
    let run = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "90"]).arg(lanemark()).args(arguments).current_dir(folder.path());
        let output = command.env("LD_LIBRARY_PATH", folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&output)
    };
    let text = run(&["tune", "--on", "cuda:0", "--budget", "0.05", "-o", "table.json"]);
    let left = ["accesses of a core through a BAR: no backend maps", "the time budget of 0.05 s does not suffice"];
    assert!(left.iter().all(|left| text.contains(left)) && text.contains("not in the table: "), "{text}");
    let table: Value = serde_json::from_slice(&fs::read(folder.path().join("table.json")).unwrap()).unwrap();
    // Two directions, four methods, four counts, and at least the smallest size.
    assert!(table["points"].as_array().unwrap().len() >= 2 * 4 * 4, "{table}");
    let advice = run(&["advise", "copy", "--table", "table.json", "--sizes", "64", "--count", "8"]);
    let machine = advice.lines().next().unwrap();
    assert!(machine.starts_with("cuda:0: Fake GPU (test driver) at "), "{machine}");
    assert!(machine.ends_with(" (the device is emulated: timings are not meaningful)"), "{machine}");
    assert!(["to device, 8 of 64B: ", "from device, 8 of 64B: "].iter().all(|row| advice.contains(row)), "{advice}");
}
