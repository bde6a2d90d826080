//! `tune` and `advise copy`: the table of a machine, and the choices from it.

use crate::folder::Folder;
use serde_json::Value;
use std::fs;

const GPU: [&str; 5] = ["tune", "--on", "xeon-spr+gpu-h100", "-o", "table.json"];

fn table(folder: &Folder, name: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.path(name)).unwrap()).unwrap()
}

/// Choices for 64 B to the device, as JSON.
fn choices(folder: &Folder, count: &str) -> Vec<Value> {
    let asked = ["--sizes", "64", "--count", count, "--direction", "to-device", "--json"];
    let out = folder.good(&[&["advise", "copy", "--table", "table.json"], &asked[..]].concat());
    serde_json::from_str::<Value>(&out).unwrap()["choices"].as_array().unwrap().clone()
}

#[test]
fn a_choice_is_the_fastest_point_of_the_table_and_is_shown_with_all_others() {
    let folder = Folder::new();
    assert_eq!(folder.good(&GPU), "");
    assert_eq!(folder.content().into_keys().collect::<Vec<_>>(), ["table.json"]);
    let table = table(&folder, "table.json");
    assert!(table["machine"].as_str().unwrap().starts_with("xeon-spr+gpu-h100: "), "{}", table["machine"]);
    for count in [1, 8, 64, 500] {
        let is_asked = |point: &&Value| {
            (&point["direction"], &point["copies"], &point["size_bytes"])
                == (&"to_device".into(), &count.into(), &64.into())
        };
        let mut points: Vec<&Value> = table["points"].as_array().unwrap().iter().filter(is_asked).collect();
        points.sort_by(|one, other| one["ns"].as_f64().unwrap().total_cmp(&other["ns"].as_f64().unwrap()));
        let choices = choices(&folder, &count.to_string());
        assert_eq!(choices.len(), 1);
        let shown: Vec<(&Value, &Value)> =
            choices[0]["estimates"].as_array().unwrap().iter().map(|row| (&row["by"], &row["ns"])).collect();
        assert_eq!(shown, points.iter().map(|point| (&point["by"], &point["ns"])).collect::<Vec<_>>());
        assert_eq!((shown.len(), &choices[0]["by"]), (4, shown[0].0));
    }
}

#[test]
fn without_a_direction_both_are_chosen_for_every_count_and_size() {
    let folder = Folder::new();
    folder.good(&GPU);
    let out = folder.good(&["advise", "copy", "--table", "table.json", "--sizes", "64,4096", "--count", "1,8,200"]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("xeon-spr+gpu-h100: "), "{out}");
    let rows = ["to device", "from device"].map(|direction| {
        let of_direction = lines[1..].iter().filter(|line| line.starts_with(&format!("{direction}, ")));
        of_direction.filter(|line| line.contains(" (estimates: ") && line.ends_with(" us)")).count()
    });
    assert_eq!((lines.len(), rows), (1 + 12, [6, 6]), "{out}");
}

#[test]
fn a_slower_launch_moves_the_crossing_to_the_batch() {
    let folder = Folder::new();
    folder.good(&GPU);
    assert_eq!(choices(&folder, "64")[0]["by"], "in_place");
    folder.good(&[&GPU[..], &["--with", "runtime.kernel_start_ns=50000"]].concat());
    assert_eq!(choices(&folder, "64")[0]["by"], "batch");
}

#[test]
fn a_file_that_is_no_table_is_refused_with_its_name_and_the_reason() {
    let other = br#"{ "schema": 2, "machine": "m", "points": [] }"#;
    let empty = br#"{ "schema": 1, "machine": "m", "points": [] }"#;
    let point = br#"{ "schema": 1, "machine": "m", "points": [
        { "direction": "to_device", "by": "loop", "copies": 1, "size_bytes": 64, "ns": -1 }
    ] }"#;
    let folder =
        Folder::with(&[("other.json", other), ("empty.json", empty), ("point.json", point), ("text", b"hello")]);
    for (file, because) in [
        ("absent.json", "No such file or directory"),
        ("other.json", "has schema 2, and this program reads 1: run 'lanemark tune' of this version"),
        ("empty.json", "has no points: run 'lanemark tune' on a target that answers small_copies"),
        ("point.json", "point 0 of the table of copies: ns must be above 0"),
        ("text", "not a table of copies: expected value at line 1 column 1; 'lanemark tune' writes one"),
    ] {
        let outcome = folder.run(&["advise", "copy", "--table", file, "--sizes", "64", "--count", "1"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{file}: {}", outcome.err);
        assert!(
            outcome.err.starts_with(&format!("lanemark: {file}: ")) && outcome.err.contains(because),
            "{}",
            outcome.err
        );
    }
}

#[test]
fn a_target_that_copies_no_pieces_leaves_no_table() {
    let folder = Folder::new();
    for (target, code, because) in [
        ("card-gen5-x16", 77, "skipped, because this target is not a runtime that launches kernels"),
        ("nonsense", 2, "nonsense"),
    ] {
        let outcome = folder.run(&["tune", "--on", target, "-o", "table.json"]);
        assert_eq!(outcome.code, Some(code), "{}", outcome.err);
        assert!(outcome.err.contains(because), "{}", outcome.err);
        assert!(folder.content().is_empty());
    }
    let outcome = folder.run(&["tune", "--on", "xeon-spr+gpu-h100", "-o", "absent/table.json"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("absent/table.json cannot be written: "), "{}", outcome.err);
}
