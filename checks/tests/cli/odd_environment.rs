//! Odd environments: small stacks, no more threads, and names of files that are not UTF-8. A command works in them, or ends with
//! one message.

use crate::folder::{Folder, Outcome, small};
use lanemark_checks::lanemark;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::Command;

/// A space with one point.
const SPACE: &str = r#"
schema = 1
platforms = ["card-gen5-x16"]
by = "formulas"
[with]
dma.tags = [32]
[[question]]
name = "dma_read_bandwidth"
flows = "host:0"
sizes = "64K"
"#;

/// A file with one machine, which is this one.
const HOSTS: &str = r#"
schema = 1
bench = ["--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8"]
[[host]]
name = "here"
local = true
"#;

/// Commands that use threads, or much of the stack.
fn commands() -> Vec<Vec<&'static str>> {
    let trace = ["trace", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8"];
    vec![
        small("bench", "card-gen5-x16", &[]),
        small("bench", "host", &["--budget", "0.1"]),
        small("predict", "card-gen5-x16", &[]),
        trace.to_vec(),
        vec!["sweep", "space.toml", "--threads", "2"],
        vec!["fleet", "run", "hosts.toml"],
        vec!["doctor"],
        vec!["platforms"],
        vec!["man"],
    ]
}

fn folder() -> Folder {
    Folder::with(&[("space.toml", SPACE.as_bytes()), ("hosts.toml", HOSTS.as_bytes())])
}

/// Runs the program in the environment that this shell script makes.
fn within(folder: &Folder, script: &str, arguments: &[&str]) -> Outcome {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script}; exec \"$@\""), "sh"]).arg(lanemark()).args(arguments);
    folder.run_by(command)
}

/// Whether standard error has exactly one line that begins as a message of the program, and no panic.
fn is_one_message(outcome: &Outcome) -> bool {
    let begins = |line: &&str| line.starts_with("lanemark: ") || line.starts_with("error: ");
    outcome.err.lines().filter(begins).count() == 1 && !outcome.err.contains("panicked")
}

#[test]
fn every_command_works_with_a_small_stack() {
    for arguments in commands() {
        let (usual, limited) = (folder().run(&arguments), within(&folder(), "ulimit -s 256", &arguments));
        assert_eq!(limited.code, usual.code, "{arguments:?}: {}", limited.err);
    }
}

#[test]
fn a_stack_that_cannot_be_replaced_is_one_message_with_the_limits_to_raise() {
    // With too little memory, the loader ends the program before it runs; with enough, it works. Limits between both leave less
    // than the 8 MiB of the new stack.
    let (mut refused, mut works) = (0, false);
    for mib in (4..400_u32).step_by(4) {
        let script = format!("ulimit -s 256; ulimit -v {}", mib * 1024);
        let outcome = within(&folder(), &script, &["platforms"]);
        match outcome.code {
            Some(0) => {
                works = true;
                break;
            }
            Some(2) => {
                refused += 1;
                assert!(is_one_message(&outcome) && outcome.err.contains("ulimit -s"), "{mib} MiB: {}", outcome.err);
            }
            // The loader, which exits with 127, or an abort because the memory is too little for anything besides the stack.
            code => assert!(matches!(code, None | Some(127)), "{mib} MiB: {code:?}, {}", outcome.err),
        }
    }
    assert!(refused > 0 && works, "{refused} limits were refused; it works with a larger one: {works}");
}

#[test]
fn a_thread_that_cannot_be_created_is_one_message_with_exit_code_2_where_one_is_needed() {
    let mut refused = 0;
    for arguments in commands() {
        // A thread without an explicit stack size then needs 2^50 B, which no address space has.
        let script = format!("export RUST_MIN_STACK={}", 1_u64 << 50);
        let (usual, limited) = (folder().run(&arguments), within(&folder(), &script, &arguments));
        if limited.code == usual.code {
            continue;
        }
        refused += 1;
        assert_eq!(limited.code, Some(2), "{arguments:?}: {}", limited.err);
        assert!(is_one_message(&limited) && limited.err.contains("ulimit -u"), "{arguments:?}: {}", limited.err);
    }
    assert!(refused > 0, "no command creates a thread: the limit has no effect");
}

/// The place of a name in the rows below.
const NAME: &str = "@";

/// Options and arguments that name files to read, each with a file that does not exist.
const READ: &[&[&str]] = &[
    &["advise", "copy", "--table", NAME, "--count", "1", "--size", "64"],
    &["bench", "--on", NAME],
    &["bench", "--on", "card-gen5-x16", "--twin", NAME],
    &["bench", "--on", "opencl:0", "--kernels", NAME],
    &["bench", "--on", "0000:01:00.0", "--device", NAME, "--question", "dma_read_latency"],
    &["bench", "--on", "card-gen5-x16", "--question", "spmv", "--matrix", NAME],
    &["check", NAME],
    &["compare", NAME, NAME],
    &["compare", "--base", NAME, "--new", NAME],
    &["doctor", "--from", NAME],
    &["doctor", "--from", NAME, "--earlier", NAME],
    &["fit", NAME],
    &["fleet", "run", NAME],
    &["fuzz-rtl", NAME],
    &["fuzz-rtl", "library.so", "--replay", NAME],
    &["import", NAME],
    &["lspci", "--on", NAME],
    &["predict", "--on", NAME],
    &["recover", "0000:01:00.0", "--from", NAME],
    &["report", NAME],
    &["sweep", NAME],
    &["sweep", "--log", NAME],
    &["trace", "--read", NAME],
    &["trace", "--on", NAME, "--question", "mmio_read_latency"],
];

#[test]
fn a_file_to_read_whose_name_is_not_utf_8_is_missed_in_one_message() {
    for row in READ {
        let folder = folder();
        let outcome = folder.run(&named(row, b"no\xff"));
        assert_eq!(outcome.code, Some(2), "{row:?}: {}", outcome.err);
        assert!(is_one_message(&outcome), "{row:?}: {}", outcome.err);
    }
}

/// Options and arguments that name files to write, with the extension of each.
const WRITTEN: &[(&[&str], &str)] = &[
    (&["bench", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8", "--record", NAME], "json"),
    (&["bench", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8", "--csv", NAME], "csv"),
    (&["bench", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8", "--html", NAME], "html"),
    (&["report", "record.json", "--html", "page.html", "--svg", NAME], "svg"),
    (&["doctor", "--output", NAME, "--as-platform", "0000:01:00.0"], "toml"),
    (&["lspci", "--output", NAME], "lspci"),
    (&["new", "--like", "card-gen5-x16", "--output", NAME], "toml"),
    (&["report", "record.json", "--html", NAME], "html"),
    (&["sweep", "space.toml", "--log", NAME], "jsonl"),
    (&["sweep", "space.toml", "--csv", NAME], "csv"),
    (&["sweep", "space.toml", "--json-lines", NAME], "jsonl"),
    (&["sweep", "space.toml", "--parquet", NAME], "parquet"),
    (&["trace", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8", "--output", NAME], "json"),
];

#[test]
fn a_file_to_write_whose_name_is_not_utf_8_is_written() {
    let folder = folder();
    // A plot needs two sizes.
    let bandwidth = ["--question", "mmio_write_bandwidth", "--access", "8", "--memory-type", "uc", "--sizes", "64,128"];
    let plotted = [&["bench", "--on", "card-gen5-x16"], &bandwidth[..], &["--svg", NAME]].concat();
    folder.good(&[&["bench", "--on", "card-gen5-x16"], &bandwidth[..], &["--record", "record.json"]].concat());
    for (row, extension) in WRITTEN.iter().copied().chain([(plotted.as_slice(), "svg")]) {
        let name = [b"to\xff.", extension.as_bytes()].concat();
        let outcome = folder.run(&named(row, &name));
        let is_written = folder.path("").join(OsStr::from_bytes(&name)).is_file();
        if row[0] == "doctor" {
            // There is no such card here: a message, and no file.
            assert!(outcome.code != Some(0) && is_one_message(&outcome) && !is_written, "{row:?}: {outcome:?}");
            continue;
        }
        assert_eq!((outcome.code, is_written), (Some(0), true), "{row:?}: {}", outcome.err);
        std::fs::remove_file(folder.path("").join(OsStr::from_bytes(&name))).unwrap();
    }
}

/// The words of a row with this name.
fn named(row: &[&str], name: &[u8]) -> Vec<OsString> {
    let word = |word: &&str| if *word == NAME { OsString::from_vec(name.to_vec()) } else { OsString::from(word) };
    row.iter().map(word).collect()
}

/// Words that make a command complete besides the option; other commands need none.
const COMPLETE: &[(&str, &[&str])] = &[
    ("bench", &["--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8"]),
    ("predict", &["--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8"]),
    ("advise", &["copy", "--count", "1", "--size", "64"]),
    ("tune", &["--on", "card-gen5-x16", "--budget", "0.1"]),
    ("sweep", &["space.toml", "--x", "dma.tags"]),
    ("reproduce", &["no-such-paper"]),
    ("fit", &["card-gen5-x16"]),
    ("import", &["hosts.toml"]),
    ("recover", &["0000:01:00.0"]),
    ("bind", &["0000:01:00.0"]),
    ("trace", &["--on", "card-gen5-x16", "--question", "mmio_read_latency", "--access", "8"]),
    ("fuzz-rtl", &["library.so"]),
    ("report", &["record.json"]),
    ("compare", &["record.json", "record.json"]),
    ("fleet", &["run", "hosts.toml"]),
    ("new", &["--like", "card-gen5-x16"]),
];

/// Each command with each of its options that has a file or folder, from the completions of the command line.
fn options_with_files(folder: &Folder) -> Vec<(String, String)> {
    let mut command = "bench".to_owned();
    let mut found = Vec::new();
    for line in folder.good(&["completions", "zsh"]).lines() {
        if let Some(name) = line.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            name.clone_into(&mut command);
        } else if line.contains(":_files")
            && let Some((_, rest)) = line.split_once("--")
            && let Some((option, _)) = rest.split_once("=[")
        {
            // Behind the options that exclude it.
            let option = option.rsplit_once("--").map_or(option, |(_, option)| option);
            found.push((command.clone(), format!("--{option}")));
        }
    }
    found
}

#[test]
fn every_option_with_a_file_takes_a_name_that_is_not_utf_8_or_ends_with_one_message() {
    let folder = folder();
    folder.good(&["bench", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--record", "record.json"]);
    let options = options_with_files(&folder);
    for wanted in [("bench", "--record"), ("sweep", "--heat-map"), ("fit", "--write"), ("fleet", "--records")] {
        assert!(options.iter().any(|(command, option)| (command.as_str(), option.as_str()) == wanted), "{options:?}");
    }
    for (command, option) in options {
        let more = COMPLETE.iter().find(|(name, _)| *name == command).map_or(&[][..], |(_, more)| *more);
        let row = [&[command.as_str()], more, &[option.as_str(), NAME]].concat();
        let outcome = folder.run(&named(&row, b"odd\xff"));
        let is_refused = matches!(outcome.code, Some(1 | 2 | 77)) && is_one_message(&outcome);
        let works = outcome.code == Some(0) && !outcome.err.contains("panicked");
        assert!(is_refused || works, "{row:?}: {outcome:?}");
    }
}
