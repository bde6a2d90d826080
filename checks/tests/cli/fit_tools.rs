//! `fit --from`: the output of other tools, and the columns of a table.

use crate::folder::Folder;
use std::fmt::Write;

/// Files in the formats of the tools, made by hand.
const FILES: [(&str, &str); 6] = [
    ("nvbandwidth", include_str!("../../../crates/fit/tests/tools/nvbandwidth-by-hand.txt")),
    ("nvbandwidth", include_str!("../../../crates/fit/tests/tools/nvbandwidth-by-hand.json")),
    ("perftest", include_str!("../../../crates/fit/tests/tools/perftest-by-hand.txt")),
    ("fio", include_str!("../../../crates/fit/tests/tools/fio-by-hand.json")),
    ("dd", include_str!("../../../crates/fit/tests/tools/dd-by-hand.txt")),
    ("xdma", include_str!("../../../crates/fit/tests/tools/dma_to_device-by-hand.txt")),
];

/// A platform whose engine has an unknown clock, which bounds all large transfers.
fn draft(card: &str) -> String {
    format!(
        "schema = 2\nname = \"draft\"\nhost = \"xeon-icelake\"\ncard = \"{card}\"\n\n[dma]\n\
         beat_ns = {{ unknown = \"bandwidths\" }}\n"
    )
}

/// A folder with the file of a tool, `out.txt`, and a draft, `draft.toml`.
fn folder(output: &[u8], card: &str) -> Folder {
    Folder::with(&[("out.txt", output), ("draft.toml", draft(card).as_bytes())])
}

#[test]
fn the_output_of_each_tool_is_fitted_to() {
    let cards = ["gpu-h100", "gpu-h100", "nic-100g", "nvme-gen4", "fpga-gen3-xdma", "fpga-gen3-xdma"];
    for ((tool, output), card) in FILES.iter().zip(cards) {
        let folder = folder(output.as_bytes(), card);
        let fit = ["fit", "--from", tool, "out.txt", "--on", "draft.toml", "--write", "twin.toml"];
        let outcome = folder.run(&fit);
        assert_eq!(outcome.code, Some(0), "{tool}: {}", outcome.err);
        assert!(outcome.out.contains("out.txt on draft: fitted to ") && outcome.out.contains("dma_read_bandwidth"));
        assert!(outcome.err.contains(" figures read, "), "{tool}: {}", outcome.err);
        assert!(outcome.err.contains("note: ") || outcome.err.contains("left out: "), "{tool}: {}", outcome.err);
        assert!(folder.content().contains_key("twin.toml"), "{tool}");
    }
}

#[test]
fn the_clock_that_the_figures_of_a_tool_were_made_with_is_found() {
    // Rates of a simulated card with this clock, as the tool prints them; a short transfer shows the time of a call.
    let folder = folder(b"", "fpga-gen3-xdma");
    let known = draft("fpga-gen3-xdma").replace("{ unknown = \"bandwidths\" }", "{ value = 10, assumed = \"known\" }");
    std::fs::write(folder.path("known.toml"), known).unwrap();
    let bench = ["bench", "--on", "known.toml", "--question", "dma_write_bandwidth", "--sizes", "4MiB,8MiB", "--json"];
    let record: serde_json::Value = serde_json::from_str(&folder.good(&bench)).unwrap();
    let mut text = "/dev/xdma0_c2h_0 ** Average BW = 4096, 157.500000\n".to_owned();
    for answer in record["answers"].as_array().unwrap() {
        let rate = answer["delivered_rate_bytes_per_s"]["median"].as_f64().unwrap();
        let _ = writeln!(text, "/dev/xdma0_c2h_0 ** Average BW = {}, {:.6}", answer["size_bytes"], rate / 1e6);
    }
    std::fs::write(folder.path("out.txt"), text).unwrap();
    let out = folder.good(&["fit", "--from", "xdma", "out.txt", "--on", "draft.toml", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let beat = found["parameters"][0]["value"].as_f64().unwrap();
    assert!((beat - 10.0).abs() < 0.05, "{beat}");
    assert_eq!(found["reading"]["figures"], 2);
    assert_eq!(found["reading"]["refused"][0]["line"], 1);
    assert_eq!(found["reading"]["skipped_lines"], 0);
    assert!(found["reading"]["notes"][0].as_str().unwrap().contains("waits for each transfer"));
}

#[test]
fn a_file_that_is_not_of_the_tool_is_refused_with_its_line() {
    let fit = |tool: &str, output: &[u8]| {
        let folder = folder(output, "fpga-gen3-xdma");
        let outcome = folder.run(&["fit", "--from", tool, "out.txt", "--on", "draft.toml", "--write", "twin.toml"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{tool}: {}", outcome.err);
        assert!(!folder.content().contains_key("twin.toml"));
        outcome.err
    };
    for (tool, output) in FILES {
        let bytes = output.as_bytes();
        let broken = [&bytes[..bytes.len() / 2], &[b'\n', 0xff, b'\n'], &bytes[bytes.len() / 2..]].concat();
        let line = output[..output.len() / 2].matches('\n').count() + 2;
        let error = fit(tool, &broken);
        assert!(error.contains(&format!("out.txt:{line}: the line is not valid UTF-8")), "{tool}: {error}");
        assert!(fit(tool, b"").contains("out.txt:1: no figure found: looked for "), "{tool}");
    }
    assert!(fit("fio", &FILES[3].1.as_bytes()[..2000]).contains("invalid JSON"));
}

#[test]
fn options_that_do_not_go_with_a_tool_are_refused() {
    let folder = folder(FILES[5].1.as_bytes(), "fpga-gen3-xdma");
    let refused = |args: &[&str]| {
        let outcome = folder.run(args);
        assert_eq!(outcome.code, Some(2), "{args:?}");
        outcome.err
    };
    let names = refused(&["fit", "--from", "iperf", "out.txt", "--on", "draft.toml"]);
    assert!(names.contains("use one of nvbandwidth, perftest, fio, dd, xdma"), "{names}");
    assert!(refused(&["fit", "--from", "xdma", "out.txt"]).contains("--on"));
    let parameter = ["fit", "--from", "xdma", "out.txt", "--on", "card-gen5-x16", "--parameter", "dma.beat_ns"];
    assert!(refused(&parameter).contains("cannot be used with"));
    assert!(refused(&["fit", "--from", "xdma", "no.txt", "--on", "draft.toml"]).contains("no.txt"));
    let known = refused(&["fit", "--from", "xdma", "out.txt", "--on", "card-gen5-x16"]);
    assert!(known.contains("has no unknown number"), "{known}");
}

#[test]
fn a_table_says_how_its_figures_were_measured() {
    let folder = folder(b"", "fpga-gen3-xdma");
    let table = |text: &str| std::fs::write(folder.path("card.csv"), text).unwrap();
    table(
        "direction,size_bytes,figure,outstanding,align\nread,4KiB,20 Gbit/s,1,\nwrite,256,30 Mpps,,60\nboth,4KiB,9 GB/s,,\n",
    );
    let out = folder.good(&["fit", "card.csv", "--on", "draft.toml"]);
    assert!(out.contains("dma_read_bandwidth host-to-device by DMA, 1 outstanding 4096 B"), "{out}");
    assert!(out.contains("256 B, 60 B into a page") && out.contains("dma_read_write_mix"), "{out}");
    table("direction,size_bytes,figure,outstanding\nwrite,4KiB,20 Gbit/s,1\n");
    let outcome = folder.run(&["fit", "card.csv", "--on", "draft.toml"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("card.csv:2: outstanding is 1, but a posted write"), "{}", outcome.err);
}
