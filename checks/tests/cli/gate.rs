//! Recorded cases through the limit gate: what is an error, what is only said, and which cause is named.

use crate::folder::Folder;
use lanemark_checks::root;

/// A case: its record, the exit code, and what must be said.
const CASES: &[(&str, i32, &str)] = &[
    ("at-the-limit", 0, ""),
    ("a-millionth-above", 1, "100.0001 % of the limit of 6000000000 B/s (Gen3 x8 in 64 B packets)"),
    ("units-278-times-too-low", 0, "20000000 B/s is far below every bound, check units"),
    ("twice-the-limit", 1, "likely cause: half of the buffers were submitted: 2048 of 4096 bytes crossed the link"),
    ("512-gb-per-s", 1, "likely cause: seconds lost by a timer: at the limit a sample takes 11.5 s, and 0.134 s"),
    ("small-messages-above-theory", 1, "likely cause: issue time used as delivery time"),
    ("wrong-size-counted", 1, "likely cause: wrong size: rate and time give 4194304 B per iteration instead of 4096 B"),
    ("bytes-unequal", 1, "4095 of 4096 bytes arrived; the figure is invalid"),
    (
        "short-transfers",
        1,
        "1000 of 4096 bytes arrived; the figure is invalid; likely cause: short transfers, which count",
    ),
    (
        "failed-transfers",
        1,
        "0 of 4096 bytes arrived; the figure is invalid; likely cause: transfers that failed and count",
    ),
    ("above-a-stand-in", 0, "1 answer lies up to 1.67 % above the ceiling; it is a measured stand-in"),
];

fn text(name: &str) -> Vec<u8> {
    let path = root().join(format!("checks/tests/gate/{name}.json"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_recorded_case_ends_as_it_should() {
    let schema = serde_json::from_str(&lanemark_record::schema()).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    for (name, code, said) in CASES {
        let bytes = text(name);
        schema.validate(&serde_json::from_slice(&bytes).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let folder = Folder::with(&[("r.json", &bytes)]);
        let outcome = folder.run(&["report", "r.json"]);
        assert_eq!(outcome.code, Some(*code), "{name}: {}", outcome.err);
        assert!(outcome.err.contains(said), "{name}: {}", outcome.err);
        let is_silent = outcome.err == "wrote report.html\n";
        assert_eq!(is_silent, said.is_empty(), "{name}: {}", outcome.err);
        let page = String::from_utf8(folder.content()["report.html"].clone()).unwrap();
        assert!(page.contains("check units") == (*name == "units-278-times-too-low"), "{name}: the page says so too");
    }
}

#[test]
fn every_recorded_case_is_listed() {
    let files = std::fs::read_dir(root().join("checks/tests/gate")).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut listed: Vec<String> = CASES.iter().map(|(name, ..)| format!("{name}.json")).collect();
    listed.sort();
    assert_eq!(names, listed);
}

#[test]
fn compare_judges_both_records_too() {
    let (good, bad) = (text("at-the-limit"), text("bytes-unequal"));
    let folder = Folder::with(&[("good.json", &good), ("bad.json", &bad)]);
    assert_eq!(folder.run(&["compare", "good.json", "good.json"]).code, Some(0));
    for files in [["good.json", "bad.json"], ["bad.json", "good.json"]] {
        let outcome = folder.run(&["compare", files[0], files[1]]);
        assert_eq!(outcome.code, Some(1), "{}", outcome.err);
        assert!(outcome.err.contains("bad.json: mmio_write_bandwidth on card"), "{}", outcome.err);
    }
}
