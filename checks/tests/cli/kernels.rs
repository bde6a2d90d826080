//! Kernels on a card's own memory: what is asked of them, and of which matrices.

use crate::folder::{Folder, card};
use serde_json::Value;

const KERNELS: &str = r#"
[device_memory]
ports = { value = 4, source = "a test" }
port_bytes = { value = 32, source = "a test" }
word_ns = { value = 2.5, source = "a test" }
read_ns = { value = 300, source = "a test" }
turnaround_ns = { value = 22.4, source = "a test" }
[kernel]
clock_ghz = { value = 0.3, source = "a test" }
"#;
const SPRINGS: &[u8] = include_bytes!("../../../matrices/springs.mtx");
const HUB: &[u8] = include_bytes!("../../../matrices/hub.mtx");

fn folder() -> Folder {
    Folder::with(&[
        ("card.toml", format!("{}{KERNELS}", card()).as_bytes()),
        ("springs.mtx", SPRINGS),
        ("hub.mtx", HUB),
        ("cut.mtx", &SPRINGS[..SPRINGS.len() - 17]),
    ])
}

fn answers(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let outcome = folder.run(&[&["bench", "--on", "card.toml", "--json"], arguments].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let record: Value = serde_json::from_str(&outcome.out).unwrap();
    record["answers"].as_array().unwrap().clone()
}

#[test]
fn copies_are_asked_of_one_port_up_to_all_and_confirmed() {
    let answers = answers(&folder(), &["--question", "stream_copy", "--sizes", "64KiB"]);
    // Ports 1, 2 and 4, in vectors and plain; with a stride too of one and of all; and three more ports alone.
    assert_eq!(answers.len(), 13);
    let rate = |through: &str| {
        let answer = answers.iter().find(|answer| answer["way"]["through"] == through).unwrap();
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"]);
        assert_eq!(answer["waits"][0]["cause"], "compute");
        answer["delivered_rate_bytes_per_s"]["median"].as_f64().unwrap()
    };
    let one = rate("compute_stream_copy_1_port_vectors_of_4");
    assert!((one / 9.9e9 - 1.0).abs() < 0.03, "{one}");
    assert!((rate("compute_stream_copy_4_ports_vectors_of_4") / one - 4.0).abs() < 0.01);
    assert!((rate("compute_stream_copy_1_port_from_3_on_vectors_of_4") / one - 1.0).abs() < 1e-9);
    assert!(one / rate("compute_stream_copy_1_port_plain") > 3.8);
}

#[test]
fn matrices_come_from_files_or_are_made_and_stand_in_the_record_by_name() {
    let folder = folder();
    for (name, shown) in [("springs.mtx", "springs"), ("hub.mtx", "hub"), ("powerlaw:500x6", "powerlaw:500x6")] {
        let answers = answers(&folder, &["--question", "spmv", "--matrix", name]);
        // Of 4 ports: one kernel of 1 to 4, two of 1 and 2, four and eight of one.
        assert_eq!(answers.len(), 8);
        for answer in &answers {
            let through = answer["way"]["through"].as_str().unwrap();
            assert!(through.starts_with(&format!("compute_spmv_{shown}_")), "{through}");
            assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"]);
            assert!(answer["formula"]["bound"].is_string());
        }
    }
}

#[test]
fn matrices_that_are_none_are_refused_with_their_line_and_what_to_try() {
    let folder = folder();
    for (name, hints) in [
        ("cut.mtx", ["cut.mtx: line", "it was cut off"]),
        ("card.toml", ["line 1", "%%MatrixMarket matrix coordinate"]),
        ("absent.mtx", ["absent.mtx", "No such file"]),
        ("springs", ["poisson:256", "MATRIX.mtx"]),
        ("poisson:100000", ["50000000000 entries", "at most 67108864"]),
    ] {
        let outcome = folder.run(&["bench", "--on", "card.toml", "--question", "spmv", "--matrix", name]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{name}: {}", outcome.err);
        assert!(hints.iter().all(|hint| outcome.err.contains(hint)), "{name}: {}", outcome.err);
    }
}

#[test]
fn a_card_without_kernels_says_which_sections_it_takes() {
    let outcome = Folder::new().run(&["bench", "--on", "aws-f1", "--question", "spmv"]);
    assert_eq!(outcome.code, Some(77));
    assert!(outcome.err.contains("[device_memory] and [kernel]"), "{}", outcome.err);
}
