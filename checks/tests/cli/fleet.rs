//! `fleet run`: machines that are processes of this one, with the answers and listings of a test.

use crate::folder::Folder;
use lanemark_checks::root;
use serde_json::Value;
use std::fmt::Write;

/// A file of machines: ten of which one has a link of four lanes, and further lines.
fn hosts(more: &str) -> String {
    let listing = |name: &str| {
        let path = root().join("checks/tests/inventory/listings").join(name);
        format!("\"--from\", \"{}\"", path.display())
    };
    let mut text = String::from(
        "schema = 1\nbench = [\"--on\", \"card-gen5-x16\", \"--question\", \"dma_read_bandwidth,dma_read_latency\", \"--sizes\", \"64,4K\", \"--iterations\", \"1\"]\n",
    );
    for number in 0..10 {
        let (bench, from) = if number == 7 {
            let with = "bench = [\"--on\", \"card-gen5-x16\", \"--question\", \"dma_read_bandwidth,dma_read_latency\", \"--sizes\", \"64,4K\", \"--iterations\", \"1\", \"--with\", \"link.width_lanes=4\"]\n";
            (with, "server-with-a-degraded-card.txt")
        } else {
            ("", "virtual-machine-with-virtio.txt")
        };
        let doctor = listing(from);
        writeln!(text, "[[host]]\nname = \"node{number}\"\nlocal = true\n{bench}doctor = [{doctor}]").unwrap();
    }
    text + more
}

#[test]
fn the_machine_that_differs_is_named_with_what_only_it_has() {
    let folder = Folder::with(&[("hosts.toml", hosts("").as_bytes())]);
    let text = folder.good(&["fleet", "run", "hosts.toml", "--records", "all"]);
    assert!(text.contains("10 machines, 4 answers compared"), "{text}");
    assert!(text.contains("\nnode7:\n  - dma_read_bandwidth"), "{text}");
    assert!(text.contains("times slower than the median of the others of 10 machines"), "{text}");
    assert!(text.contains("  only here: ") && text.contains("(link_width)"), "{text}");
    assert!((0..10).all(|number| number == 7 || !text.contains(&format!("node{number}:"))), "{text}");
    let document: Value = serde_json::from_str(&folder.good(&["fleet", "run", "hosts.toml", "--json"])).unwrap();
    let outliers = document["outliers"].as_array().unwrap();
    assert!(!outliers.is_empty() && outliers.iter().all(|outlier| outlier["machine"] == "node7"));
    assert!(outliers[0]["ratio"].as_f64().unwrap() > 3.0, "{}", outliers[0]);
    let record = lanemark_record::read(&folder.path("all/node7.json")).unwrap();
    assert_eq!(record.answers.len(), 4);
}

#[test]
fn machines_that_fail_or_say_something_else_do_not_stop_the_others() {
    let more = r#"
[[host]]
name = "absent"
command = ["./no-such-program"]
[[host]]
name = "talks"
command = ["echo"]
[[host]]
name = "refuses"
local = true
bench = ["--on", "no-such-card"]
[[host]]
name = "undiagnosed"
local = true
doctor = ["--fron", "listing.txt"]
"#;
    let folder = Folder::with(&[("hosts.toml", hosts(more).as_bytes())]);
    let outcome = folder.run(&["fleet", "run", "hosts.toml", "--timeout", "300"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.err.contains("no answers from absent, talks, refuses"), "{}", outcome.err);
    for words in [
        "starting ./no-such-program: ",
        "a record is JSON",
        "exit code 2: lanemark: 'no-such-card' is not a target",
        "node7:",
        "no diagnosis of undiagnosed: ",
        "exit code 2: error: unexpected argument '--fron' found",
    ] {
        assert!(outcome.out.contains(words), "{words}: {}", outcome.out);
    }
}

#[test]
fn a_machine_that_hangs_is_left_after_the_timeout() {
    let text =
        "schema = 1\nbench = []\n[[host]]\nname = \"hangs\"\ncommand = [\"sh\", \"-c\", \"sleep 1234.5; true\"]\n";
    let folder = Folder::with(&[("hosts.toml", text.as_bytes())]);
    let outcome = folder.run(&["fleet", "run", "hosts.toml", "--timeout", "0.5"]);
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.out.contains("no answer within 0.5 s"), "{}", outcome.out);
    // The process that the command started has ended, too.
    let left = std::process::Command::new("pgrep").args(["-f", "sleep 1234.5"]).output();
    assert!(left.is_ok_and(|left| left.stdout.is_empty()), "a process is left");
}

#[test]
fn wrong_files_of_machines_are_refused_with_the_key() {
    let bench = "schema = 1\nbench = []\n";
    for (text, reason) in [
        ("schema = 2\nbench = []\nhost = []\n".to_owned(), "schema: 2 is not known; this program reads 1"),
        (format!("{bench}host = []\n"), "host: there is no machine"),
        (format!("{bench}[[host]]\nname = \"a\"\n"), "host a: 0 ways to reach it are given; give one"),
        (format!("{bench}[[host]]\nname = \"a\"\nssh = \"b\"\nlocal = true\n"), "host a: 2 ways to reach it"),
        (
            format!("{bench}[[host]]\nname = \"a\"\nssh = \"-oProxyCommand=x\"\n"),
            "'-oProxyCommand=x' is no destination",
        ),
        (format!("{bench}[[host]]\nname = \"../a\"\nlocal = true\n"), "host.name: '../a'"),
        (format!("{bench}[[host]]\nname = \"a\"\nlocal = true\n[[host]]\nname = \"a\"\nlocal = true\n"), "given twice"),
        (format!("{bench}[[host]]\nname = \"a\"\nlocal = true\nport = 3\n"), "unknown field `port`"),
    ] {
        let folder = Folder::with(&[("hosts.toml", text.as_bytes())]);
        let outcome = folder.run(&["fleet", "run", "hosts.toml"]);
        assert_eq!(outcome.code, Some(2), "{text}: {}", outcome.err);
        assert!(outcome.err.contains("hosts.toml") && outcome.err.contains(reason), "{text}: {}", outcome.err);
    }
}
