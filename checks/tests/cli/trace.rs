//! Traces: every form is written whole and the same each time, captures are read back, broken ones counted.

use crate::folder::{Folder, card, card_with};
use lanemark_bench::CATALOGUE;
use lanemark_record::{Capture, Exchanges};
use serde_json::Value;
use std::path::Path;

const READS: [&str; 7] = ["trace", "--on", "card-gen5-x16", "--question", "dma_read_latency", "--sizes", "64,4KiB"];

fn with<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

fn capture(bytes: &[u8]) -> Capture {
    Capture::from_bytes(bytes, Path::new("x")).unwrap()
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
                    let Exchanges { open, unanswered, early, strays, backwards, .. } = exchanges;
                    assert_eq!((open, unanswered, early, strays, backwards), (0, 0, 0, 0, 0));
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

/// A capture in classic pcap format with nanoseconds, with two VLAN tags in every frame.
fn classic(pcapng: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(*pcapng[at..].first_chunk().unwrap());
    let mut file = [&0xA1B2_3C4D_u32.to_le_bytes()[..], &[2, 0, 4, 0], &[0; 8], &[255, 255, 0, 0, 1, 0, 0, 0]].concat();
    let mut at = 0;
    while at < pcapng.len() {
        if word(at) == 6 {
            let (ns, length) = (u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)), word(at + 20));
            for field in [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, length + 8, length + 8] {
                file.extend(field.to_le_bytes());
            }
            let frame = &pcapng[at + 28..][..length as usize];
            file.extend([&frame[..12], &[0x88, 0xA8, 0, 7, 0x81, 0, 0, 9], &frame[12..]].concat());
        }
        at += word(at + 4) as usize;
    }
    file
}

#[test]
fn classic_pcap_with_vlan_tags_reads_like_pcapng_without_directions() {
    let folder = Folder::new();
    folder.good(&with(&READS, &["--iterations", "3", "-o", "x.pcapng"]));
    let file = classic(&folder.content()["x.pcapng"]);
    let folder = Folder::with(&[("x.pcap", &file), ("half.pcap", &file[..file.len() - 1])]);
    let text = folder.good(&["trace", "--read", "x.pcap"]);
    assert!(text.starts_with("x.pcap: 6 TLPs\n"), "{text}");
    assert!(text.contains("\n3 requests completed\n") && text.contains("  -     MRd 64 B"), "{text}");
    let half = folder.run(&["trace", "--read", "half.pcap"]);
    assert_eq!(half.code, Some(1), "{}", half.err);
    assert!(half.out.starts_with("half.pcap: 5 TLPs\nincomplete: byte "), "{}", half.out);
    assert!(half.out.contains("\n2 requests completed, 1 outstanding where the capture ends\n"), "{}", half.out);
}

/// Traces of a relay with several channels, of peers, of cores and of a link with LCRC errors.
const VIEWED: [&[&str]; 8] = [
    &["--on", "rosta-virtex7", "--question", "shared_link", "--flows", "0:host,1:host", "--sizes", "1KiB", "--dllps"],
    &["--on", "rosta-virtex7", "--question", "relay_bandwidth"],
    &["--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--with", "dma.channels=4", "--channels", "4"],
    &[
        "--on",
        "card-gen5-x16",
        "--question",
        "dma_read_bandwidth",
        "--sizes",
        "64KiB",
        "--with",
        "link.tlps_per_error=4",
    ],
    &["--on", "card-gen5-x16", "--question", "mmio_read_bandwidth", "--sizes", "4KiB"],
    &["--on", "card-stratix10mx", "--question", "interrupt_latency"],
    &["--on", "card-stratix10mx", "--question", "many_small_few_large"],
    &["--on", "rosta-virtex7", "--question", "p2p_write_bandwidth", "--flows", "0:4", "--sizes", "4KiB"],
];

#[test]
fn the_viewers_file_keeps_the_rules_of_its_format() {
    for arguments in VIEWED {
        let folder = Folder::new();
        folder.good(&with(&["trace"], &with(arguments, &["-o", "x.json"])));
        let document: Value = serde_json::from_slice(&folder.content()["x.json"]).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        for event in events {
            keeps_the_format(event);
        }
        let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert!(count("X") > 10 && count("C") > 100, "{arguments:?}");
        pairs_match(events, ["b", "e"]);
        pairs_match(events, ["s", "f"]);
        slices_do_not_overlap(events);
        flows_start_and_end_at_slices(events);
        let counters = events.iter().filter(|event| event["ph"] == "C");
        let names: Vec<&str> = counters.map(|event| event["name"].as_str().unwrap()).collect();
        for name in ["utilisation in %", "credits left", "tags in use"] {
            let is_write_only = ["p2p_write_bandwidth", "shared_link", "interrupt_latency", "many_small_few_large"]
                .iter()
                .any(|question| arguments.contains(question));
            let is_there = names.iter().any(|other| other.ends_with(name));
            assert!(is_there || is_write_only && name == "tags in use", "{name} in {arguments:?}");
        }
    }
}

/// Rules for each event. Source: "Trace Event Format", sections "Event Descriptions" and "Metadata Events".
fn keeps_the_format(event: &Value) {
    let phase = event["ph"].as_str().unwrap();
    assert!(event["name"].is_string() && event["pid"].is_u64(), "{event}");
    if phase == "M" {
        assert!(event["args"]["name"].is_string(), "{event}");
        assert!(["process_name", "thread_name"].contains(&event["name"].as_str().unwrap()), "{event}");
        return;
    }
    assert!(event["ts"].as_f64().is_some_and(|ts| ts.is_finite() && ts >= 0.0), "{event}");
    assert!(event["cat"].is_string(), "{event}");
    match phase {
        "X" => assert!(event["dur"].as_f64().is_some_and(|dur| dur >= 0.0) && event["tid"].is_u64(), "{event}"),
        "b" | "e" | "s" | "t" | "f" => assert!(event["id"].is_u64() && event["tid"].is_u64(), "{event}"),
        "C" => {
            let series = event["args"].as_object().unwrap();
            assert!(!series.is_empty() && series.values().all(Value::is_number), "{event}");
        }
        _ => panic!("{event}"),
    }
}

/// Each event that begins has one that ends it, later, with the same category and ID.
fn pairs_match(events: &[Value], [begin, end]: [&str; 2]) {
    let of = |phase: &str| {
        let all = events.iter().filter(|event| event["ph"] == phase);
        let mut keys: Vec<(String, u64, f64)> = all
            .map(|event| {
                (
                    event["cat"].as_str().unwrap().to_owned(),
                    event["id"].as_u64().unwrap(),
                    event["ts"].as_f64().unwrap(),
                )
            })
            .collect();
        keys.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)).then(a.2.total_cmp(&b.2)));
        keys
    };
    let (begins, ends) = (of(begin), of(end));
    assert_eq!(begins.len(), ends.len(), "{begin} and {end}");
    for (from, until) in begins.iter().zip(&ends) {
        assert!((&from.0, from.1) == (&until.0, until.1) && from.2 <= until.2, "{from:?} {until:?}");
    }
}

/// Slices by track and time.
fn slices(events: &[Value]) -> Vec<(u64, u64, f64, f64)> {
    let mut slices: Vec<(u64, u64, f64, f64)> = (events.iter())
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            let [process, thread] = ["pid", "tid"].map(|key| event[key].as_u64().unwrap());
            let [from, span] = ["ts", "dur"].map(|key| event[key].as_f64().unwrap());
            (process, thread, from, from + span)
        })
        .collect();
    slices.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    slices
}

fn slices_do_not_overlap(events: &[Value]) {
    for pair in slices(events).windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        assert!(pair[0].3 <= pair[1].2 + 1e-9, "{pair:?}");
    }
}

/// A flow event binds to the slice of its track that encloses its time.
fn flows_start_and_end_at_slices(events: &[Value]) {
    let starts: std::collections::BTreeSet<(u64, u64, u64)> =
        slices(events).iter().map(|slice| (slice.0, slice.1, slice.2.to_bits())).collect();
    for event in events.iter().filter(|event| ["s", "t", "f"].contains(&event["ph"].as_str().unwrap())) {
        let key = |name: &str| event[name].as_u64().unwrap();
        let at = (key("pid"), key("tid"), event["ts"].as_f64().unwrap().to_bits());
        assert!(starts.contains(&at) && event["bp"] == "e", "{event}");
    }
}

#[test]
fn dllps_are_shown_on_demand_and_damaged_tlps_always() {
    let folder = Folder::new();
    let cable = ["--with", "link.tlps_per_error=4", "--iterations", "8"];
    let plain = folder.good(&with(&READS, &cable));
    assert!(plain.contains(" of them with an LCRC error\n") && plain.contains(", LCRC error"), "{plain}");
    assert!(!plain.contains("UpdateFC") && !plain.contains(" Nak"), "{plain}");
    let whole = folder.good(&with(&with(&READS, &cable), &["--dllps"]));
    for shown in [" DLLPs\n", " Ack ", " Nak ", " UpdateFC-NP "] {
        assert!(whole.contains(shown), "{shown} in {whole}");
    }
    folder.good(&with(&with(&READS, &cable), &["-o", "x.pcapng"]));
    let capture = capture(&folder.content()["x.pcapng"]);
    let is_good = |passed: &&lanemark_record::Passed| !passed.has_lcrc_error;
    assert_eq!(capture.frames.iter().filter(is_good).count(), 16, "each once without error");
    let damaged = capture.frames.len() - 16;
    assert!(damaged > 0 && capture.about.contains(&format!("{damaged} TLPs have an LCRC error")), "{}", capture.about);
    let text = folder.good(&["trace", "--read", "x.pcapng"]);
    assert_eq!(text.matches(", LCRC error\n").count(), damaged, "{text}");
    assert!(text.contains("\n8 requests completed\n"), "{text}");
}

#[test]
fn injected_faults_are_in_the_bytes_of_the_capture() {
    let folder = Folder::new();
    for (fault, shown) in [("poisoned@card:3", ", poisoned\n"), ("ecrc@card:3", ", wrong ECRC\n")] {
        let arguments = ["--iterations", "4", "--sizes", "4KiB", "--fault", fault, "-o", "x.pcapng"];
        let outcome = folder.run(&with(&READS[..5], &arguments));
        assert_eq!(outcome.code, Some(1), "{}", outcome.err);
        let capture = capture(&folder.content()["x.pcapng"]);
        let packets: Vec<_> = capture.frames.iter().filter_map(lanemark_record::Passed::packet).collect();
        let faulty: Vec<usize> =
            (0..packets.len()).filter(|place| packets[*place].ep() || packets[*place].td()).collect();
        let [place] = *faulty else { panic!("{fault}: {faulty:?}") };
        assert_eq!(packets[place].kind(), Some(lanemark_wire::TlpKind::CplD));
        let before = packets[..place].iter().filter(|packet| packet.kind() == packets[place].kind()).count();
        assert_eq!(before, 2, "it is the third");
        assert_eq!(packets[place].ep(), fault.starts_with("poisoned"));
        let text = folder.good(&["trace", "--read", "x.pcapng"]);
        assert_eq!(text.matches(shown).count(), 1, "{text}");
    }
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
    refused(&folder, &with(&READS, &["--iterations", "0"]), &["--iterations", "from 1 to 1000000"]);
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
        ("old.pcapng", &[0x34, 0xCD, 0xB2, 0xA1, 2, 0, 4, 0]),
        ("short.pcap", &[0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0]),
        ("half.pcapng", &whole[..whole.len() - 5]),
    ]);
    refused(&folder, &["trace", "--read", "none.pcapng"], &["none.pcapng", "No such file"]);
    refused(&folder, &["trace", "--read", "."], &["directory"]);
    refused(&folder, &["trace", "--read", "empty.pcapng"], &["empty.pcapng: it has 0 B"]);
    refused(&folder, &["trace", "--read", "text.pcapng"], &["it begins with 0x7b227363", "0x0a0d0d0a"]);
    refused(&folder, &["trace", "--read", "old.pcapng"], &["editcap -F pcapng"]);
    let half = folder.run(&["trace", "--read", "half.pcapng"]);
    let (text, said) = (half.out, "lanemark: half.pcapng is incomplete: byte ");
    assert!(half.code == Some(1) && half.err.starts_with(said), "{:?} {}", half.code, half.err);
    assert!(text.contains("half.pcapng: 15 TLPs at card\n"), "{text}");
    assert!(text.contains("incomplete: byte") && text.contains("the file ends within a block\n"), "{text}");
    assert!(text.contains("7 requests completed, 1 outstanding where the capture ends\n"), "{text}");
    let short = folder.run(&["trace", "--read", "short.pcap"]);
    assert_eq!(
        (short.code, short.out.as_str()),
        (Some(1), "short.pcap: 0 TLPs\nincomplete: it has 8 B, its file header 24\n")
    );
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
