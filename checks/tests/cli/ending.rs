//! How it ends when it is ended: Ctrl-C, a reader who has had enough, a full disk.

use crate::folder::{Folder, Outcome, small, wait};
use lanemark_experiment::PAPERS;
use lanemark_record::Record;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Time for a program to be at work.
const AT_WORK: Duration = Duration::from_secs(1);
/// Ctrl-C ends it within this time, also on a busy machine.
const PROMPTLY: Duration = Duration::from_secs(10);

fn interrupt(child: Child) -> ExitStatus {
    std::thread::sleep(AT_WORK);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success(), "it ended before it was interrupted");
    wait(child, PROMPTLY).expect("it goes on after Ctrl-C")
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let folder = Folder::new();
    let command = ["bench", "--on", "host", "--on", "card-gen5-x16", "--record", "r.json"];
    let status = interrupt(folder.start(&command));
    let said = folder.said(status);
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(said.err.contains("interrupted; the results so far are kept"), "{}", said.err);
    let record = lanemark_record::read(&folder.path("r.json")).unwrap();
    assert!(record.interrupted && !record.answers.is_empty());
    let all = folder.good(&["predict", "--on", "card-gen5-x16", "--json"]);
    let all: Record = serde_json::from_str(&all).unwrap();
    let kept = record.answers.iter().filter(|answer| answer.target == "card-gen5-x16").count();
    assert!(kept < all.answers.len(), "{kept} of {} answers", all.answers.len());
    folder.good(&["report", "r.json"]);
}

#[test]
fn ctrl_c_between_papers_keeps_those_that_are_done() {
    let folder = Folder::new();
    let status = interrupt(folder.start(&["reproduce", "--json"]));
    let said = folder.said(status);
    assert_eq!(said.code, Some(130), "{}", said.err);
    let document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let kept = document["reproductions"].as_array().unwrap();
    assert!(kept.len() < PAPERS.len(), "{} papers", kept.len());
    assert!(kept.iter().all(|paper| !paper["rows"].as_array().unwrap().is_empty()));
}

/// A platform with six unknown numbers.
const UNKNOWN: &str = r#"schema = 2
name = "mine"
extends = "card-gen5-x16"
[memory]
read_ns = { unknown = "to be fitted" }
[dma]
read_request_ns = { unknown = "to be fitted" }
write_request_ns = { unknown = "to be fitted" }
beat_ns = { unknown = "to be fitted" }
descriptor_ns = { unknown = "to be fitted" }
tags = { unknown = "to be fitted" }
"#;

/// Curves that no card has, so that a fit tries every mechanism.
fn uneven_curves() -> String {
    let mut table = "question,size_bytes,figure\n".to_owned();
    for (question, most) in [("dma_read_bandwidth", 5e9), ("dma_write_bandwidth", 7e9)] {
        for size in (1..60).map(|count| 64 * count) {
            let rate = most * f64::from(size) / f64::from(size + 300 + size % 448);
            let _ = writeln!(table, "{question},{size},{} GB/s", rate / 1e9);
        }
    }
    table
}

#[test]
fn ctrl_c_ends_a_fit_at_once_and_writes_no_platform() {
    let folder = Folder::with(&[("card.toml", UNKNOWN.as_bytes()), ("card.csv", uneven_curves().as_bytes())]);
    let status = interrupt(folder.start(&["fit", "card.csv", "--on", "card.toml", "--write", "twin.toml"]));
    assert_eq!(status.code(), Some(130));
    assert!(!folder.path("twin.toml").exists());
}

#[test]
fn ctrl_c_ends_what_keeps_nothing() {
    for command in [&["reproduce", "aws-f1-write-combining"], &["fit", "aws-f1-write-combining"]] {
        let folder = Folder::new();
        let status = interrupt(folder.start(command));
        assert!(!status.success(), "{command:?}");
        assert!(folder.content().is_empty());
    }
}

/// Runs a command whose standard output nobody reads.
fn unread(folder: &Folder, arguments: &[&str]) -> Outcome {
    let mut child = folder.start_into(Stdio::piped(), arguments);
    drop(child.stdout.take());
    folder.said(wait(child, Duration::from_mins(1)).expect("it ends"))
}

#[test]
fn a_reader_who_has_had_enough_is_no_failure() {
    let folder = Folder::new();
    let commands: [&[&str]; 6] = [
        &small("bench", "card-gen5-x16", &["--record", "r.json"]),
        &small("predict", "card-gen5-x16", &["--json"]),
        &["reproduce", "tacc-tr-14-10"],
        &["platforms"],
        &["schema", "record"],
        &["--help"],
    ];
    for command in commands {
        let outcome = unread(&folder, command);
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{command:?}");
    }
    assert!(folder.path("r.json").is_file(), "what was asked for is written all the same");
}

#[test]
fn nobody_listening_to_complaints_is_no_failure_either() {
    let folder = Folder::new();
    let script = "exec 2>&1; \"$0\" bench --on nowhere; echo $? >code";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(lanemark_checks::lanemark()).current_dir(folder.path(""));
    let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    wait(child, PROMPTLY).expect("it ends");
    assert_eq!(folder.content()["code"], b"2\n");
}

#[test]
fn a_full_disk_is_told() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let folder = Folder::new();
    let child = folder.start_into(full.into(), &["questions"]);
    let outcome = folder.said(wait(child, PROMPTLY).unwrap());
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.starts_with("lanemark: writing the output: "), "{}", outcome.err);
    let outcome = folder.run(&small("bench", "card-gen5-x16", &["--record", "/dev/full"]));
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.out.contains("MMIO read latency"), "what was found is shown all the same");
    assert!(outcome.err.contains("writing /dev/full: "), "{}", outcome.err);
}
