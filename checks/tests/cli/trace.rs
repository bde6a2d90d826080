//! Traces: every form is written whole and the same each time, captures are read back, broken ones counted.

use crate::folder::{Folder, card, card_with};
use lanemark_bench::CATALOGUE;
use lanemark_record::Capture;
use serde_json::Value;
use std::path::Path;

const READS: [&str; 7] = ["trace", "--on", "card-gen5-x16", "--question", "dma_read_latency", "--sizes", "64,4KiB"];

fn with<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

fn capture(bytes: &[u8]) -> Capture {
    Capture::from_pcapng(bytes, Path::new("x")).unwrap()
}

#[test]
fn each_form_is_the_same_twice_and_says_which_case_it_is_of() {
    let folder = Folder::new();
    let about = "dma_read_latency of card-gen5-x16: host-to-device by DMA, 64 B, 8 iterations; case 1 of 2";
    for form in ["txt", "json", "pcapng"] {
        let names = ["one", "two"].map(|name| format!("{name}.{form}"));
        for name in &names {
            let outcome = folder.run(&with(&READS, &["-o", name]));
            assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), ""), "{}", outcome.err);
            assert_eq!(outcome.err, format!("{about}\nwrote {name}\n"));
        }
        let content = folder.content();
        let [one, two] = names.map(|name| content[&name].clone());
        assert!(one == two && !one.is_empty(), "{form} differs");
        let has = |text: &str| one.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(has(about), "{form}");
    }
    assert_eq!(folder.good(&READS).into_bytes(), folder.content()["one.txt"], "printed, or written: the same");
    assert_eq!(folder.content().len(), 6, "nothing else is written");
}

#[test]
fn every_question_is_traced_or_says_why_not() {
    for target in ["card-gen5-x16", "rosta-virtex7"] {
        let folder = Folder::new();
        let mut traced = 0;
        for question in CATALOGUE.iter().filter(|question| question.name != "shared_link") {
            let outcome = folder.run(&["trace", "--on", target, "--question", question.name, "-o", "t.pcapng"]);
            match outcome.code {
                Some(0) => {
                    let capture = capture(&folder.content()["t.pcapng"]);
                    assert_eq!(capture.unread, lanemark_record::Unread::default(), "{}", question.name);
                    let exchanges = capture.exchanges();
                    assert_eq!((exchanges.unanswered, exchanges.strays, exchanges.backwards), (0, 0, 0));
                    traced += 1;
                }
                Some(77) => assert!(outcome.err.starts_with("lanemark: skipped, because "), "{}", outcome.err),
                other => panic!("{} {other:?}: {}", question.name, outcome.err),
            }
        }
        assert!(traced >= 9, "only {traced} questions were traced on {target}");
    }
}

#[test]
fn what_is_written_is_read_back_with_the_latency_that_was_simulated() {
    let folder = Folder::new();
    folder.good(&with(&READS, &["--iterations", "3", "-o", "x.pcapng"]));
    let text = folder.good(&["trace", "--read", "x.pcapng"]);
    assert!(text.starts_with("x.pcapng: 6 TLPs at card\n"), "{text}");
    assert!(text.contains("\n3 requests completed\n"), "{text}");
    let row = text.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row[..2], ["01:00.0", "3"]);
    assert_eq!(row[2], row[5], "one completion is the first and the last");
}

#[test]
fn the_viewers_file_has_an_end_for_every_beginning() {
    let folder = Folder::new();
    let flows = ["trace", "--on", "rosta-virtex7", "--question", "shared_link", "--flows", "0:host,1:host"];
    folder.good(&with(&flows, &["--sizes", "1KiB", "--dllps", "-o", "x.json"]));
    let document: Value = serde_json::from_slice(&folder.content()["x.json"]).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert!(count("X") > 50 && count("s") > 10);
    assert_eq!(count("s"), count("f"));
    assert_eq!(count("b"), count("e"));
    // Slices on one track do not overlap.
    let mut slices: Vec<(u64, u64, f64, f64)> = (events.iter())
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let [process, thread] = ["pid", "tid"].map(|key| event[key].as_u64().unwrap());
            let [from, span] = ["ts", "dur"].map(|key| event[key].as_f64().unwrap());
            (process, thread, from, from + span)
        })
        .collect();
    slices.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    for pair in slices.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        assert!(pair[0].3 <= pair[1].2 + 1e-9, "{pair:?}");
    }
}

#[test]
fn dllps_are_shown_on_demand_and_damaged_tlps_always() {
    let folder = Folder::new();
    let cable = ["--with", "link.tlps_per_error=4", "--iterations", "8"];
    let plain = folder.good(&with(&READS, &cable));
    assert!(plain.contains(" of them damaged\n") && plain.contains(", damaged"), "{plain}");
    assert!(!plain.contains("UpdateFC") && !plain.contains(" Nak"), "{plain}");
    let whole = folder.good(&with(&with(&READS, &cable), &["--dllps"]));
    for shown in [" DLLPs\n", " Ack ", " Nak ", " UpdateFC-NP "] {
        assert!(whole.contains(shown), "{shown} in {whole}");
    }
    folder.good(&with(&with(&READS, &cable), &["-o", "x.pcapng"]));
    let capture = capture(&folder.content()["x.pcapng"]);
    assert_eq!(capture.frames.len(), 16, "each once");
    assert!(capture.about.contains(" damaged TLPs are left out"), "{}", capture.about);
}

#[test]
fn one_link_is_shown_by_its_name() {
    let folder = Folder::new();
    let peers = ["trace", "--on", "rosta-virtex7", "--question", "p2p_latency", "--flows", "0:4", "--sizes", "128"];
    let all = folder.good(&with(&peers, &["--iterations", "1"]));
    assert!(all.contains("4 TLPs on 4 links") && all.contains("fpga0 up") && all.contains("fpga4 down"), "{all}");
    let one = folder.good(&with(&peers, &["--iterations", "1", "--link", "rc47b"]));
    assert!(one.contains("1 TLP on 1 link\n") && one.contains("rc47b down"), "{one}");
    for (link, frames) in [("fpga0", 1), ("fpga4", 1), ("fpga1", 0)] {
        folder.good(&with(&peers, &["--iterations", "1", "--link", link, "-o", "x.pcapng"]));
        let capture = capture(&folder.content()["x.pcapng"]);
        assert_eq!((capture.place.as_str(), capture.frames.len()), (link, frames));
    }
    // Without a name: that of the card that is asked.
    let fourth = ["trace", "--on", "rosta-virtex7", "--question", "dma_write_bandwidth", "--flows", "4:host"];
    folder.good(&with(&fourth, &["-o", "x.pcapng"]));
    assert_eq!(capture(&folder.content()["x.pcapng"]).place, "fpga4");
}

#[test]
fn what_there_is_no_room_for_is_said() {
    let folder = Folder::new();
    let many = ["trace", "--on", "card-gen5-x16", "--question", "mmio_write_bandwidth", "--memory-type", "uc"];
    let outcome =
        folder.run(&with(&many, &["--access", "8", "--sizes", "64KiB", "--iterations", "9", "-o", "x.pcapng"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    // 73,728 writes; 65,536 are kept.
    assert!(outcome.err.contains("\n8192 earlier TLPs were dropped\n"), "{}", outcome.err);
    let capture = capture(&folder.content()["x.pcapng"]);
    assert_eq!(capture.frames.len(), 65_536);
    assert!(capture.about.contains("8192 earlier TLPs were dropped"), "{}", capture.about);
}

/// Refused with exit code 2, these words and nothing written.
fn refused(folder: &Folder, arguments: &[&str], hints: &[&str]) {
    let before = folder.content();
    let outcome = folder.run(arguments);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{arguments:?}: {}", outcome.err);
    for hint in hints {
        assert!(outcome.err.contains(hint), "{arguments:?}: {hint} is not in {}", outcome.err);
    }
    assert_eq!(folder.content(), before, "{arguments:?}");
}

#[test]
fn wrong_choices_are_refused_and_the_right_ones_told() {
    let folder = Folder::with(&[("mine.txt", card().as_bytes())]);
    refused(&folder, &["trace"], &["--on", "--question"]);
    refused(&folder, &["trace", "--on", "card-gen5-x16"], &["--question"]);
    refused(&folder, &["trace", "--on", "nowhere", "--question", "dma_read_latency"], &["'nowhere'", "card-gen5-x16"]);
    for real in ["host", "0000:01:00.0"] {
        let arguments = ["trace", "--on", real, "--question", "mmio_read_latency"];
        refused(&folder, &arguments, &[real, "name a built-in platform"]);
    }
    refused(
        &folder,
        &["trace", "--on", "aws-f1", "--question", "why"],
        &["'why' is not a question", "dma_read_latency"],
    );
    refused(&folder, &with(&READS, &["--link", "attic"]), &["--link attic", "it has card"]);
    refused(&folder, &with(&READS, &["--dllps", "-o", "x.pcapng"]), &["--dllps", "TLPs only", ".json"]);
    refused(&folder, &with(&READS, &["--iterations", "0"]), &["--iterations", "1..="]);
    refused(&folder, &with(&READS, &["--iterations", "1000001"]), &["1000000"]);
    for name in ["x", "x.pcap", "x.PCAPNG", ".json"] {
        refused(&folder, &with(&READS, &["-o", name]), &[name, ".pcapng", ".json", ".txt"]);
    }
    refused(&folder, &with(&READS, &["-o", "no/such/x.txt"]), &["no/such/x.txt"]);
    let mine = ["trace", "--on", "mine.txt", "--question", "dma_read_latency", "-o", "mine.txt"];
    refused(&folder, &mine, &["mine.txt would overwrite mine.txt"]);
    refused(&folder, &with(&["trace", "--read", "x"], &["--on", "aws-f1"]), &["--read", "--on"]);
    refused(&folder, &with(&["trace", "--read", "x"], &["--sizes", "64"]), &["--read", "--sizes"]);
}

#[test]
fn what_is_no_capture_is_refused_and_what_is_broken_is_counted() {
    let folder = Folder::new();
    folder.good(&with(&READS, &["-o", "x.pcapng"]));
    let whole = folder.content()["x.pcapng"].clone();
    let folder = Folder::with(&[
        ("empty.pcapng", b""),
        ("text.pcapng", b"{\"schema\": 2}"),
        ("old.pcapng", &[0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0]),
        ("half.pcapng", &whole[..whole.len() - 5]),
    ]);
    refused(&folder, &["trace", "--read", "none.pcapng"], &["none.pcapng", "No such file"]);
    refused(&folder, &["trace", "--read", "."], &["directory"]);
    refused(&folder, &["trace", "--read", "empty.pcapng"], &["empty.pcapng: it has 0 B"]);
    refused(&folder, &["trace", "--read", "text.pcapng"], &["it begins with 0x7b227363", "0x0a0d0d0a"]);
    refused(&folder, &["trace", "--read", "old.pcapng"], &["editcap -F pcapng"]);
    let text = folder.good(&["trace", "--read", "half.pcapng"]);
    assert!(text.contains("half.pcapng: 15 TLPs at card\n"), "{text}");
    assert!(text.contains("incomplete: byte") && text.contains("the file ends within a block\n"), "{text}");
    assert!(text.contains("7 requests completed, 1 without a completion in the capture\n"), "{text}");
}

#[test]
fn a_run_that_fails_is_traced_up_to_that_and_ends_with_its_exit_code() {
    let far = card_with(&[("latency_ns = { value = 120", "latency_ns = { value = 1000000000")]);
    let folder = Folder::with(&[("far.toml", far.as_bytes())]);
    let late = ["trace", "--on", "far.toml", "--question", "mmio_read_latency"];
    let gone =
        ["trace", "--on", "card-gen5-x16", "--question", "dma_read_latency", "--fault", "surprise_removal@card:600ns"];
    for (arguments, error) in [(&late[..], "timed out after"), (&gone, "[5] SDES")] {
        for form in ["txt", "json", "pcapng"] {
            let name = format!("x.{form}");
            let outcome = folder.run(&with(arguments, &["--sizes", "8", "-o", &name]));
            assert_eq!(outcome.code, Some(1), "{}", outcome.err);
            assert!(outcome.err.contains(&format!("\nwrote {name}, up to the error\n")), "{}", outcome.err);
            assert_eq!(outcome.err.matches(error).count(), 1, "{}", outcome.err);
            let written = folder.content()[&name].clone();
            let said = [b"the run ended with an error: ", error.as_bytes()]
                .map(|text| written.windows(text.len()).any(|part| part == text));
            assert_eq!(said, [true; 2], "{form}");
        }
        assert!(!capture(&folder.content()["x.pcapng"]).frames.is_empty());
        let printed = folder.run(&with(arguments, &["--sizes", "8"]));
        assert_eq!((printed.code, printed.out.into_bytes()), (Some(1), folder.content()["x.txt"].clone()));
    }
}
