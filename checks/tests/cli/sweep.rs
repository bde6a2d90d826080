//! `sweep`: a space, its log and its tables.

use crate::folder::Folder;
use crate::samples::text_column;
use lanemark_checks::root;
use std::collections::BTreeSet;
use std::fs;

const SPACE: &str = r#"
schema = 1
platforms = ["card-gen5-x16"]
by = "simulation"
[with]
dma.tags = "8..256*2"
link.mps_bytes = [128, 256, 512, 1024]
memory.read_ns = "100..400+10"
[[question]]
name = "dma_read_bandwidth"
flows = "host:0"
sizes = "64K"
iterations = 1
"#;

/// Lines of the log, without the last one if it is incomplete.
fn lines(folder: &Folder) -> Vec<String> {
    let text = fs::read_to_string(folder.path("a.jsonl")).unwrap_or_default();
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text[..end].lines().map(str::to_owned).collect()
}

#[test]
fn a_killed_sweep_continues_and_repeats_nothing() {
    let folder = Folder::with(&[("a.toml", SPACE.as_bytes())]);
    for _ in 0..3 {
        let mut child = folder.start(&["sweep", "a.toml", "--threads", "2"]);
        std::thread::sleep(std::time::Duration::from_millis(300));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = lines(&folder);
    folder.good(&["sweep", "a.toml", "--csv", "a.csv"]);
    let all = lines(&folder);
    assert_eq!(all[..before.len()], before[..]);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (744, 744));
    folder.good(&["sweep", "a.toml", "--log", "b.jsonl", "--threads", "1", "--csv", "b.csv"]);
    let read = |name: &str| fs::read(folder.path(name)).unwrap();
    assert!(read("a.csv") == read("b.csv"), "the table depends on the order of the log");
}

#[test]
fn the_example_of_tags_and_read_requests_has_24_points_with_figures() {
    let folder = Folder::new();
    let space = root().join("spaces/tags-and-mrrs.toml");
    let space = space.to_str().unwrap();
    let files = ["--csv", "a.csv", "--json-lines", "rows.jsonl", "--parquet", "a.parquet", "--heat-map", "a.svg"];
    folder.good(&[&["sweep", space, "--log", "a.jsonl"], &files[..]].concat());
    let text = fs::read_to_string(folder.path("a.csv")).unwrap();
    let heads: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    for column in ["dma.tags", "link.mrrs_bytes", "delivered_rate_bytes_per_s", "bound_by", "bound", "because"] {
        assert!(heads.contains(&column), "{column}");
    }
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows.len(), 24);
    assert!(rows.iter().all(|row| row.ends_with(',')), "a point has no figure: {text}");
    assert_eq!(fs::read(folder.path("a.parquet")).unwrap()[..4], *b"PAR1");
    let rows = fs::read_to_string(folder.path("rows.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&first["dma.tags"], &first["link.mrrs_bytes"]), (&8.into(), &128.into()));
    // Eight tags of 128 B are too few for a round trip; with 4 KiB, the data path is.
    let bound_by: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["bound_by"].clone()).collect();
    assert_eq!([&bound_by[0], &bound_by[3]], ["tag", "data path"]);
    let parquet = text_column(&fs::read(folder.path("a.parquet")).unwrap(), "bound_by");
    assert_eq!(parquet, bound_by.iter().map(|cell| cell.as_str().map(str::to_owned)).collect::<Vec<_>>());
    let place = heads.iter().position(|head| *head == "bound_by").unwrap();
    let csv: Vec<&str> = text.lines().skip(1).map(|row| row.split(',').nth(place).unwrap()).collect();
    assert_eq!(csv, bound_by.iter().map(|cell| cell.as_str().unwrap()).collect::<Vec<_>>());
    let million = root().join("spaces/million.toml");
    let out = folder.good(&["sweep", million.to_str().unwrap(), "--dry-run"]);
    assert!(out.starts_with("1002240 points\n"), "{out}");
}

#[test]
fn a_point_that_cannot_run_is_a_row_with_its_reason() {
    let space = SPACE.replace("\"8..256*2\"", "[64, 4096]").replace("\"100..400+10\"", "100");
    let folder = Folder::with(&[("a.toml", space.as_bytes())]);
    let outcome = folder.run(&["sweep", "a.toml", "--csv", "a.csv"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.err.contains("8 of 8 points run, 4 of them without a figure"), "{}", outcome.err);
    let text = fs::read_to_string(folder.path("a.csv")).unwrap();
    assert_eq!(text.matches("dma.tags").count(), 1 + 4, "{text}");
}

#[test]
fn a_sweep_without_any_figure_fails_with_the_reason_also_when_it_is_run_again() {
    let space = SPACE.replace("\"8..256*2\"", "4096").replace("\"100..400+10\"", "100");
    let folder = Folder::with(&[("a.toml", space.as_bytes())]);
    let outcome = folder.run(&["sweep", "a.toml", "--csv", "a.csv"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.err.contains("no point has a figure; the first reason: ") && outcome.err.contains("dma.tags"));
    assert_eq!(fs::read_to_string(folder.path("a.csv")).unwrap().lines().count(), 1 + 4);
    let again = folder.run(&["sweep", "a.toml"]);
    assert_eq!(again.code, Some(1), "{}", again.err);
    assert!(again.err.contains("0 of 4 points run, 4 were in the log"), "{}", again.err);
}

#[test]
fn bad_spaces_and_logs_are_refused_by_name() {
    let fifo = Folder::with(&[
        ("a.toml", SPACE.as_bytes()),
        ("empty.toml", b""),
        ("bytes.toml", &[0xff, 0xfe]),
        ("key.toml", SPACE.replace("dma.tags", "dma.tag").as_bytes()),
        ("log.jsonl", b"name = 1\n"),
    ]);
    let made = std::process::Command::new("mkfifo").arg(fifo.path("fifo")).status();
    assert!(made.is_ok_and(|made| made.success()), "mkfifo is missing");
    for (arguments, says) in [
        (&["sweep"][..], "<SPACE.toml>"),
        (&["sweep", "none.toml"], "reading none.toml: No such file"),
        (&["sweep", "empty.toml"], "empty.toml: schema: is missing"),
        (&["sweep", "bytes.toml"], "reading bytes.toml: it is not valid UTF-8"),
        (&["sweep", "fifo"], "it is a pipe or a device"),
        (&["sweep", "key.toml"], "with.dma.tag: "),
        (&["sweep", "a.toml", "--log", "log.jsonl"], "log.jsonl: line 1, column 1: this is not a line of a log"),
        (&["sweep", "a.toml", "--log", "fifo"], "it is a pipe"),
        (&["sweep", "a.toml", "--log", "a.toml"], "a.toml would overwrite a.toml"),
        (&["sweep", "a.toml", "--threads", "0"], "use a whole number from 1 to 1024"),
        (&["sweep", "--log", "none.jsonl", "--csv", "a.csv"], "opening the log none.jsonl: No such file"),
        (&["sweep", "--log", "none.jsonl"], "sweep writes tables and pictures of a log"),
    ] {
        let outcome = fifo.run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {}", outcome.err);
        assert!(outcome.err.contains(says), "{arguments:?}: {}", outcome.err);
    }
    assert_eq!(fs::read(fifo.path("log.jsonl")).unwrap(), b"name = 1\n");
}

#[test]
fn several_values_of_keys_give_a_target_for_each_combination() {
    let folder = Folder::new();
    let varied = |more: &[&str]| -> Vec<String> {
        let asked =
            ["predict", "--json", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--sizes", "64K"];
        let record: serde_json::Value = serde_json::from_str(&folder.good(&[&asked, more].concat())).unwrap();
        let of = |answer: &serde_json::Value| format!("{} {}", answer["target"].as_str().unwrap(), answer["varied"]);
        record["answers"].as_array().unwrap().iter().map(of).collect()
    };
    let product = varied(&["--with", "dma.tags=16,64,link.mrrs_bytes=512,4096"]);
    assert_eq!(product.len(), 4);
    assert!(product[1].starts_with("card-gen5-x16, dma.tags=16, link.mrrs_bytes=4096 "), "{}", product[1]);
    let zipped = varied(&["--with", "dma.tags=16..64*4", "--with", "link.mrrs_bytes=512,4096", "--zip"]);
    let expected = r#"card-gen5-x16, dma.tags=64, link.mrrs_bytes=4096 {"dma.tags":"64","link.mrrs_bytes":"4096"}"#;
    assert_eq!((zipped.len(), zipped[1].as_str()), (2, expected));
    assert_eq!(varied(&["--with", "dma.tags=1..64+1"]).len(), 64, "the largest number of combinations");
    for (with, expected) in [
        (&["--with", "dma.tags=1..65+1"][..], "use lanemark sweep"),
        (&["--with", "dma.tags=16,64,link.mrrs_bytes=128,256,512", "--zip"], "the same number of values"),
        (&["--with", "dma.tags=16", "--zip"], "--zip combines several values"),
        (&["--with", "dma.tags=16,64", "--with", "dma.tags=8"], "is given twice"),
    ] {
        let refused = folder.run(&[&["predict", "--on", "card-gen5-x16"], with].concat());
        assert_eq!(refused.code, Some(2), "{with:?}");
        assert!(refused.err.contains(expected), "{with:?}: {}", refused.err);
    }
    let one =
        folder.run(&["trace", "--on", "card-gen5-x16", "--question", "dma_read_latency", "--with", "dma.tags=8,16"]);
    assert!(one.err.contains("with one value"), "{}", one.err);
}
