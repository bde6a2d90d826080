//! Every command, its arguments and its exit code.

use crate::folder::{Folder, card, card_with, small};
use serde_json::Value;

const COMMANDS: [&str; 15] = [
    "bench",
    "predict",
    "reproduce",
    "fit",
    "recover",
    "trace",
    "lspci",
    "report",
    "compare",
    "baselines",
    "platforms",
    "new",
    "check",
    "questions",
    "schema",
];

#[test]
fn help_lists_every_command_and_version_is_said() {
    let folder = Folder::new();
    let help = folder.good(&["--help"]);
    for command in COMMANDS {
        assert!(help.lines().any(|line| line.trim_start().starts_with(command)), "{command} is not in\n{help}");
        folder.good(&[command, "--help"]);
    }
    assert!(help.contains("Exit codes: 0 done, 1 a check failed, 2 usage or bad input, 77 skipped"));
    let version = folder.good(&["--version"]);
    assert!(version.starts_with(concat!("lanemark ", env!("CARGO_PKG_VERSION"), " (")), "{version}");
    let (build, target) = version.trim_end().trim_end_matches(')').rsplit_once(", ").unwrap();
    assert!(build.ends_with("debug") || build.ends_with("release"), "{version}");
    assert!(target.contains("linux"), "{version}");
}

#[test]
fn lists_name_what_other_commands_take() {
    let folder = Folder::new();
    let platforms = folder.good(&["platforms"]);
    for name in ["card-gen5-x16", "tacc-stratix4", "aws-f1", "host", "xeon-spr", "gpu-h100"] {
        assert!(platforms.contains(name), "{platforms}");
    }
    let questions = folder.good(&["questions"]);
    for question in lanemark_bench::CATALOGUE {
        assert!(questions.contains(question.name), "{questions}");
    }
    assert_eq!(folder.good(&["schema", "platform"]), lanemark_platform::schema());
    assert_eq!(folder.good(&["schema", "record"]), lanemark_record::schema());
    assert!(folder.content().is_empty(), "lists write no files");
}

#[test]
fn a_configuration_space_is_printed_or_written_and_the_doctor_reads_it() {
    let folder = Folder::with(&[("mine.toml", card_with(&[("\"card-gen5-x16\"", "\"mine\"")]).as_bytes())]);
    let printed = folder.good(&["lspci", "--on", "mine.toml"]);
    assert!(printed.starts_with("# port root/card\n00:01.0 0604: fade:0001\n00: de fa 01 00"), "{printed}");
    assert_eq!(folder.good(&["lspci"]), printed, "the preset, by another name");
    assert_eq!(folder.good(&["lspci", "--on", "mine.toml", "--output", "mine.txt"]), "");
    assert_eq!(std::fs::read_to_string(folder.path("mine.txt")).unwrap(), printed);
    assert!(folder.good(&["doctor", "--from", "mine.txt"]).contains("01:00.0 Processing accelerators   Gen5 x16"));
    let written = folder.good(&["lspci", "--on", "rosta-virtex7", "--setpci", "05:00.0+CAP_EXP+8.w=20:e0"]);
    let before = folder.good(&["lspci", "--on", "rosta-virtex7"]);
    assert_eq!(written.lines().zip(before.lines()).filter(|(one, other)| one != other).count(), 1);
    let over = folder.run(&["lspci", "--on", "mine.toml", "--output", "mine.toml"]);
    assert!(over.code == Some(2) && over.err.contains("would overwrite"), "{}", over.err);
}

/// A card whose link goes down.
const LOOSE: &str = "
[[fault]]
name = \"loose\"
port = \"card\"
kind = { value = \"link_down\", assumed = \"a test\" }
at_ns = { value = 2000, assumed = \"a test\" }
";

#[test]
fn whatever_goes_wrong_ends_with_1_and_says_who_where_and_what_to_do() {
    let text = card_with(&[("\"card-gen5-x16\"", "\"mine\"")]) + LOOSE;
    let folder = Folder::with(&[("mine.toml", text.as_bytes())]);
    let ask = |question: &str, on: &str, fault: &[&str]| {
        let asked = ["bench", "--on", on, "--question", question, "--sizes", "4KiB"];
        folder.run(&[&asked[..], fault].concat())
    };
    let down = ask("dma_write_bandwidth", "mine.toml", &[]);
    assert_eq!(down.code, Some(1));
    assert!(down.out.contains("- mine: link_down@card:2000ns injected by fault.loose of its file"), "{}", down.out);
    for said in ["mine: 00:01.0 (root/card): PCIe Bus Error:", "[5] SDES", "the link to card went down", "check slot"] {
        assert!(down.err.contains(said), "{said}: {}", down.err);
    }
    let read = "dma_read_bandwidth";
    for (fault, question, bit) in [
        ("unsupported_request@root/card", read, "[20] UnsupReq"),
        ("completer_abort@root/card", read, "[15] CmpltAbrt"),
        ("poisoned@card:5", read, "[12] TLP"),
        ("ecrc@card:5", read, "[19] ECRC"),
        ("no_completion@root/card:5", read, "[14] CmpltTO"),
        ("surprise_removal@card", read, "[5] SDES"),
        ("credit_starvation@root/card:5", "dma_write_bandwidth", "not a PCIe error"),
    ] {
        let outcome = ask(question, "card-gen5-x16", &["--fault", fault]);
        assert_eq!(outcome.code, Some(1), "{fault}: {}", outcome.err);
        assert!(outcome.err.contains(bit) && outcome.err.contains("arrived: "), "{fault}: {}", outcome.err);
        assert!(outcome.out.contains(&format!("card-gen5-x16: {fault} injected by --fault")), "{}", outcome.out);
    }
    let traced = ["trace", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--fault", "no_completion@card"];
    let traced = folder.run(&traced);
    assert_eq!(traced.code, Some(1));
    assert!(traced.err.contains("[14] CmpltTO"), "{}", traced.err);
}

#[test]
fn a_fault_that_has_no_effect_is_said_to_have_none_and_formulas_know_of_none() {
    let text = card_with(&[("\"card-gen5-x16\"", "\"mine\"")]) + LOOSE;
    let folder = Folder::with(&[("mine.toml", text.as_bytes())]);
    let asked = ["--question", "dma_read_bandwidth", "--sizes", "4KiB"];
    let fault = ["bench", "--on", "card-gen5-x16", "--fault", "poisoned@card:40000"];
    let text = folder.good(&[&fault[..], &asked].concat());
    let said = "- card-gen5-x16: poisoned@card:40000 (from --fault) did not trigger: only 32768 TLPs with data came to card until the end";
    assert!(text.contains(said) && !text.contains("went wrong"), "{text}");
    let text = folder.good(&[&["predict", "--on", "mine.toml"][..], &asked].concat());
    assert!(
        text.contains("- mine: link_down@card:2000ns by fault.loose of its file is not modelled by formulas"),
        "{text}"
    );
    let traced = ["trace", "--on", "card-gen5-x16", "--fault", "no_completion@root/card:7", "-o", "x.txt"];
    let outcome = folder.run(&[&traced[..], &asked].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(
        outcome.err.contains("no_completion@root/card:7 (from --fault) did not trigger: only 1 read came to root/card"),
        "{}",
        outcome.err
    );
}

#[test]
fn a_target_that_has_failed_is_asked_no_more_and_what_is_not_asked_is_named() {
    let folder = Folder::new();
    let questions = ["--question", "dma_read_latency,dma_read_bandwidth,p2p_latency,mmio_read_latency"];
    let asked = ["bench", "--on", "card-gen5-x16", "--sizes", "64,128,256,512", "--json", "--fault", "poisoned@card:3"];
    let outcome = folder.run(&[&asked[..], &questions].concat());
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    let record: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(record["answers"].as_array().unwrap().len(), 0);
    let skipped: Vec<[&str; 2]> = (record["skipped"].as_array().unwrap().iter())
        .filter(|skipped| skipped["because"] == "card-gen5-x16 has failed; its remaining cases are skipped")
        .map(|skipped| ["question", "what"].map(|key| skipped[key].as_str().unwrap()))
        .collect();
    let ways = "3 of 4: host-to-device by DMA, 128B; host-to-device by DMA, 256B; host-to-device by DMA, 512B";
    let all = "all of it";
    assert_eq!(skipped, [["dma_read_latency", ways], ["dma_read_bandwidth", all], ["mmio_read_latency", all]]);
    assert_eq!(record["warnings"].as_array().unwrap().len(), 2, "what failed, and the fault");
}

#[test]
fn a_page_that_cannot_be_pinned_ends_its_copy_and_the_next_ones_are_answered() {
    let folder = Folder::new();
    let asked =
        ["bench", "--on", "card-stratix10mx", "--question", "runtime_copy", "--sizes", "64,80000,8000000", "--json"];
    let count = |outcome: &str| -> (usize, serde_json::Value) {
        let record: serde_json::Value = serde_json::from_str(outcome).unwrap();
        (record["answers"].as_array().unwrap().len(), record)
    };
    let (all, _) = count(&folder.good(&asked));
    let outcome = folder.run(&[&asked[..], &["--fault", "unpinnable@card:1"]].concat());
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.err.contains("page 1 of a buffer of 1 cannot be pinned"), "{}", outcome.err);
    let (answered, record) = count(&outcome.out);
    assert_eq!(answered, all - 1);
    assert_eq!(record["skipped"].as_array().unwrap().len(), 0, "{}", record["skipped"]);
    assert_eq!(record["warnings"].as_array().unwrap().len(), 2, "the copy that failed, and the fault");
}

#[test]
fn errors_that_links_repair_are_told_and_recorded_by_port() {
    let folder = Folder::new();
    let asked = ["bench", "--on", "card-gen5-x16", "--question", "dma_write_bandwidth", "--sizes", "4KiB"];
    let cable = ["--with", "link.tlps_per_error=3,link.skp=true"];
    let text = folder.good(&[&asked[..], &cable].concat());
    assert!(
        text.contains("device-to-host by DMA at 4 KiB: links corrected ") && text.contains(" BadTLP at root/card"),
        "{text}"
    );
    let record: serde_json::Value =
        serde_json::from_str(&folder.good(&[&asked[..], &cable, &["--json"]].concat())).unwrap();
    let found = record["answers"][0]["corrected"].as_array().unwrap();
    let count = |port: &str, error: &str| {
        found.iter().find(|row| row["port"] == port && row["error"] == error).unwrap()["count"].as_u64().unwrap()
    };
    // The card writes: the port above finds them damaged, and the card sends them again.
    assert!(count("root/card", "BadTLP") > count("card", "Timeout"));
    assert_eq!(count("card", "Timeout"), count("card", "BadDLLP"));
    assert!(count("card", "Rollover") > 0);
    assert_eq!(record["targets"][0]["platform"]["link"]["skp"]["value"], true);
    let clean = folder.good(&[&asked[..], &["--json"]].concat());
    assert!(!clean.contains("\"corrected\""), "{clean}");
}

#[test]
fn every_kind_of_target_is_asked() {
    let folder = Folder::with(&[("mine.toml", card_with(&[("\"card-gen5-x16\"", "\"mine\"")]).as_bytes())]);
    for target in ["card-gen5-x16", "tacc-stratix4", "aws-f1", "mine.toml"] {
        for verb in ["bench", "predict"] {
            let outcome = folder.run(&small(verb, target, &[]));
            assert_eq!(outcome.code, Some(0), "{verb} {target}: {}", outcome.err);
            assert!(outcome.out.contains(&format!("MMIO read latency of {}", target.trim_end_matches(".toml"))));
            assert_eq!(outcome.err, "", "no file is written unless it is named");
        }
    }
}

#[test]
fn bare_bench_prints_one_screen_and_writes_nothing() {
    let folder = Folder::new();
    let screen = folder.good(&["bench"]);
    assert!(screen.lines().count() <= 40, "{} lines:\n{screen}", screen.lines().count());
    assert!(screen.lines().all(|line| line.chars().count() <= 100), "{screen}");
    assert!(screen.starts_with("This machine: ") || screen.starts_with("PCIe: "), "{screen}");
    let order = ["PCIe: ", "Example card: card-gen5-x16 (simulated)", "bound by", "DMA read ", "Next:"];
    let places: Vec<usize> =
        order.iter().map(|text| screen.find(text).unwrap_or_else(|| panic!("{text}:\n{screen}"))).collect();
    assert!(places.is_sorted(), "{screen}");
    assert_eq!(screen.matches("  lanemark ").count(), 3, "three commands to go on with:\n{screen}");
    assert!(folder.content().is_empty(), "no file is written unless it is named");
}

#[test]
fn every_answer_of_a_busy_machine_says_so() {
    let folder = Folder::new();
    let outcome = folder.run(&["bench", "--on", "host", "--question", "timer_cost", "--json"]);
    if outcome.code == Some(77) {
        return;
    }
    let record: Value = serde_json::from_str(&outcome.out).unwrap();
    let is_busy = |text: &Value| text.as_str().is_some_and(|text| text.starts_with("the machine was busy"));
    let warns = record["warnings"].as_array().unwrap().iter().any(is_busy);
    for answer in record["answers"].as_array().unwrap() {
        let doubts = answer["doubts"].as_array().unwrap();
        assert_eq!(doubts.iter().any(|doubt| doubt["kind"] == "busy_machine"), warns, "{answer}");
    }
}

#[test]
fn a_bandwidth_plot_is_written_where_it_is_named() {
    let folder = Folder::new();
    let asked = ["bench", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--svg", "plot.svg"];
    folder.good(&asked);
    let plot = String::from_utf8(folder.content()["plot.svg"].clone()).unwrap();
    assert!(plot.starts_with("<svg xmlns=") && plot.contains("host-to-device by DMA"), "{plot}");
    let outcome = folder.run(&small("bench", "card-gen5-x16", &["--svg", "none.svg"]));
    assert_eq!(outcome.code, Some(2), "a latency has no bandwidth to plot: {}", outcome.err);
    assert!(outcome.err.contains("measure a question about bandwidth"), "{}", outcome.err);
    let outcome = folder.run(&[&asked[..4], &["dma_read_bandwidth", "--sizes", "64", "--svg", "none.svg"]].concat());
    assert_eq!(outcome.code, Some(2), "{}", outcome.err);
    assert!(outcome.err.contains("give at least two sizes") && outcome.out.is_empty(), "{}", outcome.err);
}

#[test]
fn the_host_is_measured_or_absent() {
    let folder = Folder::new();
    let outcome = folder.run(&["bench", "--on", "host", "--question", "mmio_read_latency", "--access", "8"]);
    match outcome.code {
        Some(0) => assert!(outcome.out.contains("host (real)"), "{}", outcome.out),
        Some(77) => assert!(outcome.err.starts_with("lanemark: skipped, because "), "{}", outcome.err),
        other => panic!("{other:?}: {}", outcome.err),
    }
}

#[test]
fn lending_memory_is_timed_where_a_program_runs_and_a_simulation_gives_one_reason() {
    let folder = Folder::new();
    let ask = |on: &str, sizes: &str| {
        folder.run(&["bench", "--on", on, "--question", "dma_map_cost", "--sizes", sizes, "--budget", "0.1", "--json"])
    };
    let outcome = ask("card-gen5-x16", "4KiB");
    assert_eq!(outcome.code, Some(77), "{}", outcome.err);
    assert_eq!(outcome.err.matches("software libraries are not simulated").count(), 1, "{}", outcome.err);
    let outcome = ask("host", "5000");
    if outcome.code == Some(77) {
        return;
    }
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    for shown in ["\"strategy\": \"baseline_free_list\"", "\"invalidation\": \"deferred\"", "must be a power of two"] {
        assert!(outcome.out.contains(shown), "{shown}:\n{}", outcome.out);
    }
    let outcome = ask("host", "33554433");
    assert_eq!(outcome.code, Some(2), "{}", outcome.err);
    assert!(outcome.err.contains("use at most 33554432"), "{}", outcome.err);
}

#[test]
fn two_targets_stand_side_by_side() {
    let folder = Folder::new();
    let outcome = folder.run(&small("bench", "card-gen5-x16", &["--on", "aws-f1"]));
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.out.contains("of card-gen5-x16") && outcome.out.contains("of aws-f1"), "{}", outcome.out);
}

#[test]
fn what_is_said_twice_is_asked_once() {
    let folder = Folder::new();
    let once = folder.good(&small("predict", "aws-f1", &[]));
    let twice = ["--access", "8,8", "--question", "mmio_read_latency", "--fence", "lfence,lfence", "--align", "0,0"];
    assert_eq!(folder.good(&small("predict", "aws-f1", &twice)), once);
}

#[test]
fn a_record_has_the_number_that_was_changed_and_how_far_devices_went() {
    let folder = Folder::new();
    let asked = ["predict", "--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--sizes", "4KiB", "--json"];
    let changed =
        ["--with", "link.mps_bytes=128", "--window", "64KiB", "--random", "--outstanding", "2", "--channels", "1"];
    let record: serde_json::Value = serde_json::from_str(&folder.good(&[&asked[..], &changed].concat())).unwrap();
    let mps_bytes = &record["targets"][0]["platform"]["link"]["mps_bytes"];
    assert_eq!(mps_bytes["value"], 128);
    assert_eq!(mps_bytes["assumed"], "given for this run; 512 otherwise");
    assert_eq!(record["warnings"][0], "card-gen5-x16: link.mps_bytes is 128 in this run, and 512 in its file");
    let reach = serde_json::json!({"window_bytes": 65536, "is_random": true, "outstanding": 2, "channels": 1});
    assert_eq!(record["answers"][0]["method"]["reach"], reach);
    let usual: serde_json::Value = serde_json::from_str(&folder.good(&asked)).unwrap();
    assert!(usual["answers"][0]["method"].get("reach").is_none() && usual["warnings"].as_array().unwrap().is_empty());
}

#[test]
fn a_target_with_nothing_to_ask_ends_with_77_and_leaves_no_page() {
    let fifo = card_with(&[("kind = { value = \"sram\"", "kind = { value = \"fifo\"")]);
    let fifo = fifo.replace("kind = { value = \"registers\"", "kind = { value = \"fifo\"");
    // Nor does it move anything by itself.
    let (before, behind) = fifo.split_once("[dma]").unwrap();
    let fifo = format!("{before}{}", &behind[behind.find("[[bar]]").unwrap()..]);
    let folder = Folder::with(&[("fifo.toml", fifo.as_bytes()), ("report.html", b"the last good one")]);
    let before = folder.content();
    let outcome = folder.run(&["bench", "--on", "fifo.toml"]);
    assert_eq!(outcome.code, Some(77), "{}", outcome.err);
    assert!(
        outcome.err.contains("skipped, because the target lacks the region, driver or instruction"),
        "{}",
        outcome.err
    );
    assert_eq!(folder.content(), before);
}

#[test]
fn no_answer_in_time_ends_with_1_and_says_why() {
    let far = card_with(&[("latency_ns = { value = 120", "latency_ns = { value = 1000000000")]);
    let folder = Folder::with(&[("far.toml", far.as_bytes())]);
    let outcome = folder.run(&small("bench", "far.toml", &[]));
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    assert!(outcome.err.contains("there is no answer: ") && outcome.err.contains("timed out after"));
    assert_eq!(folder.content().len(), 1, "there is nothing to show, so there is no page");
}

#[test]
fn a_size_that_one_question_has_no_room_for_is_left_out_there() {
    let folder = Folder::new();
    let both =
        ["bench", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--question", "mmio_write_latency"];
    let outcome = folder.run(&[&both[..], &["--access", "64", "--memory-type", "wc", "--sizes", "64,128KiB"]].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.out.contains("region registers (64KiB at BAR0+0x0), which the question accesses, is smaller"));
    assert!(outcome.out.contains("sizes from 128KiB"), "{}", outcome.out);
}

#[test]
fn small_and_odd_cards_are_asked_what_fits() {
    let tiny = card_with(&[("size_bytes = { value = \"256MiB\"", "size_bytes = { value = 16")]);
    let narrow = card_with(&[
        ("generation = { value = 5", "generation = { value = 1"),
        ("width_lanes = { value = 16", "width_lanes = { value = 1"),
        ("wc_buffers = { value = 16", "wc_buffers = { value = 1"),
        ("mps_bytes = { value = 512", "mps_bytes = { value = 128"),
        ("posted_header_credits = { value = 127", "posted_header_credits = { value = 1"),
        ("posted_data_credits = { value = 2047", "posted_data_credits = { value = 8"),
        ("core_round_trip_ns = { value = 120", "core_round_trip_ns = { value = 0"),
        ("cores = { value = 2", "cores = { value = 1"),
    ]);
    let registers = card().split_once("[[region]]\nname = \"memory\"").unwrap().0.to_owned();
    let unnamed = card_with(&[("\"card-gen5-x16\"", "\"карта 🚀 </script><b>\"")]);
    for (text, sizes) in [(tiny, "1,16"), (narrow, "64,256"), (registers, "4,64"), (unnamed, "64")] {
        let folder = Folder::with(&[("odd.toml", text.as_bytes())]);
        let questions = ["--question", "mmio_write_bandwidth", "--question", "mmio_read_latency"];
        let arguments =
            ["bench", "--on", "odd.toml", "--sizes", sizes, "--memory-type", "uc,wc", "--html", "report.html"];
        folder.good(&[&arguments[..], &questions].concat());
        let page = String::from_utf8(folder.content()["report.html"].clone()).unwrap();
        assert!(!page.contains("</script><b>"), "a name is no markup");
    }
}

#[test]
fn usual_sizes_are_those_that_fit() {
    let tiny = card_with(&[("size_bytes = { value = \"256MiB\"", "size_bytes = { value = 16")]);
    let folder = Folder::with(&[("tiny.toml", tiny.as_bytes())]);
    let stores = ["--question", "mmio_write_bandwidth", "--question", "mmio_write_latency"];
    let page = folder.good(&[&["bench", "--on", "tiny.toml", "--access", "1,8,64"], &stores[..]].concat());
    // The limit's own line may name 64 B: the region's data path is that wide.
    let tables: Vec<&str> = page.lines().filter(|line| !line.starts_with("limit:")).collect();
    assert!(page.contains("16 B") && !tables.join("\n").contains("64 B"), "{page}");
    folder.good(&["predict", "--on", "tiny.toml"]);
}

#[test]
fn a_paper_said_twice_is_reproduced_once() {
    let folder = Folder::new();
    let table = folder.good(&["reproduce", "tacc-tr-14-10", "tacc-tr-14-10"]);
    assert_eq!(table.lines().filter(|line| line.starts_with("T5 ")).count(), 1, "{table}");
    assert!(folder.content().is_empty());
}

#[test]
fn random_offsets_can_be_aligned_to_a_stride() {
    let folder = Folder::new();
    let mut lines = Vec::new();
    for places in [&["--random"][..], &["--random", "--stride", "64"], &["--stride", "256"]] {
        let of = ["bench", "--on", "card-gen5-x16", "--question", "dma_write_bandwidth", "--sizes", "200"];
        let out = folder.good(&[&of[..], places].concat());
        lines.push(out.lines().find(|line| line.starts_with("device-to-host")).unwrap().to_owned());
    }
    assert!(lines[0].starts_with("device-to-host by DMA, at random  "), "{lines:?}");
    assert!(lines[1].starts_with("device-to-host by DMA, at random multiples of 64B  "), "{lines:?}");
    assert!(lines[2].starts_with("device-to-host by DMA, every 256B  "), "{lines:?}");
    // A write at a multiple of 64 B begins no TLP in the middle of a line, wherever it is.
    let rate = |line: &str| line.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap();
    assert_eq!(rate(&lines[1]), rate(&lines[2]));
}

#[test]
fn a_platform_is_fitted_to_a_record() {
    let folder = Folder::new();
    let stores = ["--question", "mmio_write_bandwidth", "--memory-type", "uc", "--access", "8", "--sizes", "64,1KiB"];
    folder.good(&[&["bench", "--on", "aws-f1", "--json", "--record", "r.json"], &stores[..]].concat());
    let fit = ["fit", "r.json", "--on", "aws-f1", "--parameter", "root_complex.core_round_trip_ns"];
    assert!(folder.good(&fit).contains("root_complex.core_round_trip_ns = "));
}

#[test]
fn the_report_of_a_record_is_the_page_of_its_bench() {
    let folder = Folder::new();
    folder.good(&small("bench", "card-gen5-x16", &["--record", "r.json", "--html", "bench.html"]));
    let outcome = folder.run(&["report", "r.json", "--html", "again.html"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), ""), "{}", outcome.err);
    assert_eq!(outcome.err, "wrote again.html\n");
    let content = folder.content();
    assert!(content["bench.html"] == content["again.html"], "the pages differ");
    assert!(content["bench.html"].starts_with(b"<!"));
    assert_eq!(content.len(), 3);
}
