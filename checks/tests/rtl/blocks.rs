//! The card behind models of hard blocks: correct, with misuse of the block, and in test benches of cocotb.

use crate::design::{load, sources};
use crate::{fuzz, package};
use lanemark_adversary::Target;
use lanemark_checks::root;
use lanemark_devices::DeviceFile;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A top of the card: its name, the folders of its files, and widths of its streams in bits.
struct Top {
    name: &'static str,
    folders: &'static [&'static str],
    widths: &'static [u32],
    timeout_clocks: u32,
    /// Whether its block can reset the function.
    has_reset: bool,
}

/// Seeds of the card behind a block, with each partner.
const SEEDS: u64 = 60;

const TOPS: &[Top] = &[
    Top {
        name: "card_ultrascale",
        folders: &["card", "adapters", "ultrascale"],
        widths: &[64, 128, 256, 512],
        timeout_clocks: 2048,
        has_reset: true,
    },
    Top {
        name: "card_series7",
        folders: &["card", "adapters", "series7"],
        widths: &[64, 128],
        timeout_clocks: 2048,
        has_reset: false,
    },
    Top {
        name: "card_litepcie",
        folders: &["card", "adapters", "litepcie"],
        widths: &[64, 512],
        timeout_clocks: 2048,
        has_reset: false,
    },
    // The card takes a DW per clock: it needs a longer timeout if completions arrive faster.
    Top {
        name: "card_wide",
        folders: &["card", "adapters"],
        widths: &[64, 512],
        timeout_clocks: 1 << 15,
        has_reset: true,
    },
];

fn top(name: &str) -> &'static Top {
    TOPS.iter().find(|top| top.name == name).unwrap()
}

/// Files of a top in the folders of `rtl`.
fn files(top: &Top, rtl: &Path) -> Vec<PathBuf> {
    top.folders.iter().flat_map(|folder| sources(&rtl.join(folder))).collect()
}

/// Compiles a top, or a mutant of it in another folder, with streams of this width.
fn compile(library: &Path, top: &Top, rtl: &Path, width: u32) {
    let output = Command::new(root().join("rtl/build"))
        .arg(library)
        .args([top.name.to_owned(), format!("-GWIDTH={width}")])
        .args(files(top, rtl))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles the card for a block.
pub fn build(library: &Path, name: &str, width: u32) {
    compile(library, top(name), &root().join("rtl"), width);
}

fn target(top: &Top) -> Target {
    let text = fs::read_to_string(root().join("rtl/card.toml")).unwrap();
    Target::new(&DeviceFile::parse("rtl/card.toml", &text).unwrap(), top.timeout_clocks).unwrap()
}

pub fn the_card_breaks_no_rule_behind_any_block() {
    let folder = tempfile::tempdir().unwrap();
    for top in TOPS {
        for width in top.widths {
            let file = folder.path().join(format!("{}{width}.so", top.name));
            build(&file, top.name, *width);
            let library = load(&file);
            for is_illegal in [false, true] {
                let summary = fuzz(&library, &target(top), SEEDS, is_illegal, 2);
                let texts: Vec<String> =
                    summary.failures.iter().map(|failure| format!("{:?}", failure.finding)).collect();
                assert!(texts.is_empty(), "{}, {width} bits: {}", top.name, texts.join("\n"));
                assert!(summary.tlps > 15_000, "{}, {width} bits: only {} TLPs", top.name, summary.tlps);
                let resets = summary.coverage.of(lanemark_adversary::Situation::FunctionLevelReset);
                assert_eq!(resets > 0, top.has_reset && is_illegal, "{}", top.name);
            }
        }
    }
}

/// A change that misuses a block: what it does, the top and its width, the file, the text and what takes its place, the rule that
/// finds it, and a part of the finding.
struct Misuse {
    name: &'static str,
    top: &'static str,
    width: u32,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    rule: &'static str,
    said: &'static str,
}

const MISUSES: &[Misuse] = &[
    Misuse {
        name: "completions do not wait for the sequence numbers of writes",
        top: "card_ultrascale",
        width: 128,
        file: "card_ultrascale.sv",
        from: ".writes_sent(unsent == 0)",
        to: ".writes_sent(1'b1)",
        rule: "posted_order",
        said: "before its last bytes came",
    },
    Misuse {
        name: "completions without a read are passed on",
        top: "card_ultrascale",
        width: 128,
        file: "packet_to_tlp.sv",
        from: "error == 4'd8 || error == 4'd6",
        to: "error == 4'd8",
        rule: "unexpected_completion",
        said: "",
    },
    Misuse {
        name: "a packet pauses",
        top: "card_ultrascale",
        width: 128,
        file: "tlp_to_packet.sv",
        from: "assign rq_valid = state == SEND && !is_completion;",
        to: "logic beat_is_odd;\n    always_ff @(posedge clk) beat_is_odd <= next[3];\n    \
             assign rq_valid = state == SEND && !is_completion && beat_is_odd == next[3];",
        rule: "assertion",
        said: "s_axis_rq: tvalid is 0 inside a packet",
    },
    Misuse {
        name: "the descriptor of a write announces a DW too much",
        top: "card_ultrascale",
        width: 128,
        file: "tlp_to_packet.sv",
        from: "poisoned, 3'b000, is_write, length}",
        to: "poisoned, 3'b000, is_write, length + 11'(is_write)}",
        rule: "assertion",
        said: "the descriptor announces",
    },
    Misuse {
        name: "first and last byte enables are exchanged",
        top: "card_ultrascale",
        width: 128,
        file: "tlp_to_packet.sv",
        from: "byte_enables = header[1][7:0]",
        to: "byte_enables = {header[1][3:0], header[1][7:4]}",
        rule: "byte_enables",
        said: "",
    },
    Misuse {
        name: "a TLP behind the end of another is taken for a part of it",
        top: "card_series7",
        width: 128,
        file: "card_series7.sv",
        from: "(is_start && start > last && 2'(at) >= start)",
        to: "(is_start && 2'(at) >= start)",
        rule: "missing_completion",
        said: "",
    },
    Misuse {
        name: "a TLP that starts in the beat of another's end is lost",
        top: "card_series7",
        width: 128,
        file: "card_series7.sv",
        from: "(is_start && start > last && 2'(at) >= start)",
        to: "1'b0",
        rule: "failed_without_cause",
        said: "",
    },
    Misuse {
        name: "the last beat is taken for a whole one",
        top: "card_series7",
        width: 64,
        file: "card_series7.sv",
        from: "{m_axis_rx_tkeep[4], 1'b1}",
        to: "2'b11",
        rule: "missing_completion",
        said: "",
    },
    Misuse {
        name: "requests do not wait for Bus Master Enable, which this block leaves to the design",
        top: "card_series7",
        width: 64,
        file: "card_series7.sv",
        from: ".bus_master(cfg_command[2])",
        to: ".bus_master(1'b1)",
        rule: "bus_master",
        said: "",
    },
    Misuse {
        name: "the request for an interrupt does not wait for its acceptance",
        top: "card_series7",
        width: 64,
        file: "msi_to_interrupt.sv",
        from: "INTERRUPT: if (interrupt_taken) state <= HEADER;",
        to: "INTERRUPT: state <= HEADER;",
        rule: "assertion",
        said: "cfg_interrupt falls before cfg_interrupt_rdy",
    },
    Misuse {
        name: "Max_Payload_Size is read from the bits of Max_Read_Request_Size",
        top: "card_series7",
        width: 64,
        file: "card_series7.sv",
        from: ".mps(13'd128 << cfg_dcommand[7:5])",
        to: ".mps(13'd128 << cfg_dcommand[14:12])",
        rule: "max_payload",
        said: "",
    },
    Misuse {
        name: "the requester of a completion is ignored",
        top: "card_series7",
        width: 64,
        file: "tag_table.sv",
        from: "&& dw2[31:16] == requester_id;",
        to: ";",
        rule: "unexpected_completion",
        said: "",
    },
    Misuse {
        name: "the request for an interrupt ends before it is taken",
        top: "card_litepcie",
        width: 64,
        file: "card_litepcie.sv",
        from: ".interrupt_taken(phy_msi_ready)",
        to: ".interrupt_taken(1'b1)",
        rule: "interrupt_missing",
        said: "",
    },
    Misuse {
        name: "an offered beat is withdrawn",
        top: "card_litepcie",
        width: 64,
        file: "dws_to_beats.sv",
        from: "if (beat_valid && beat_ready) begin",
        to: "if (beat_valid) begin",
        rule: "assertion",
        said: "phy_sink: valid became 0 before the beat was accepted",
    },
];

pub fn misuse_of_a_block_is_found() {
    let folder = tempfile::tempdir().unwrap();
    for (number, misuse) in MISUSES.iter().enumerate() {
        let Misuse { name, file, from, to, rule, said, .. } = *misuse;
        let top = top(misuse.top);
        let mutant = folder.path().join(number.to_string());
        let mut changed = 0;
        for source in files(top, &root().join("rtl")) {
            let mut text = fs::read_to_string(&source).unwrap();
            if source.ends_with(file) {
                assert_eq!(text.matches(from).count(), 1, "{name}: {from}");
                text = text.replacen(from, to, 1);
                changed += 1;
            }
            let copy = mutant.join(source.strip_prefix(root().join("rtl")).unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(copy, text).unwrap();
        }
        assert_eq!(changed, 1, "{name}: {file}");
        let library = mutant.join("mutant.so");
        compile(&library, top, &mutant, misuse.width);
        let library = load(&library);
        let mut found = Vec::new();
        let is_found = [false, true].into_iter().any(|is_illegal| {
            let failures = fuzz(&library, &target(top), SEEDS, is_illegal, 2).failures;
            found.extend(failures.iter().map(|failure| failure.finding.clone()));
            found.iter().any(|finding| finding.rule.row().name == rule && finding.what.contains(said))
        });
        assert!(is_found, "{name}: {found:#?}");
    }
}

pub fn the_card_with_ultrascale_streams_works_with_a_model_of_others() {
    let text = cocotb("card_ultrascale", "rtl/ultrascale/test_card_ultrascale.py", &[]);
    assert!(text.contains("TESTS=2 PASS=2 FAIL=0 SKIP=0"), "{text}");
}

pub fn one_test_bench_of_cocotb_serves_every_interface() {
    for (name, width) in [("card_ultrascale", 512), ("card_series7", 128), ("card_litepcie", 64), ("card_wide", 128)] {
        let text = cocotb(name, "rtl/examples/test_card.py", &[format!("-GWIDTH={width}")]);
        assert!(text.contains("TESTS=3 PASS=3 FAIL=0 SKIP=0"), "{name}: {text}");
    }
}

/// Runs a test bench of cocotb on a top; returns what it prints.
fn cocotb(name: &str, bench: &str, options: &[String]) -> String {
    let (_packages, path) = package();
    let output = Command::new(root().join("rtl/cocotb_run"))
        .args([name, bench])
        .args(options)
        .args(files(top(name), &root().join("rtl")))
        .current_dir(root())
        .env("PYTHONPATH", path)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Compiles a module with these ports, and says why it is refused.
fn refusal(ports: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("odd.sv"), format!("module odd({ports});\nendmodule\n")).unwrap();
    let library = folder.path().join("odd.so");
    let command = Command::new(root().join("rtl/build"))
        .args([library.as_os_str(), "odd".as_ref(), "-Wno-fatal".as_ref(), folder.path().join("odd.sv").as_os_str()])
        .output()
        .unwrap();
    assert!(command.status.success(), "{}", String::from_utf8_lossy(&command.stderr));
    let (status, text) = crate::command(
        folder.path(),
        &["fuzz-rtl", "odd.so", "--device", root().join("rtl/card.toml").to_str().unwrap(), "--seeds", "0..1"],
    );
    assert_eq!(status, Some(2), "{text}");
    text
}

pub fn ports_that_fit_no_interface_are_refused_by_name() {
    let none = refusal("input logic clk, output logic [7:0] leds");
    assert!(
        none.contains("interface not recognised: the top has none of the ports m_axis_cq_tdata (AMD UltraScale+"),
        "{none}"
    );
    let missing = refusal("input logic clk, rst, input logic [31:0] rx_data");
    assert!(missing.contains("no port rx_valid, which the interface stream (plain stream of TLPs) needs"), "{missing}");
    let stream = |rx: &str, tx: &str| {
        format!(
            "input logic clk, rst, input logic [{rx}] rx_data, input logic rx_valid, rx_last, output logic rx_ready,\n\
             output logic [{tx}] tx_data, output logic tx_valid, tx_last, input logic tx_ready"
        )
    };
    let width = refusal(&stream("31:0", "63:0"));
    assert!(width.contains("interface stream: tx_data has 64 bits; both streams have the same width"), "{width}");
    let keep = refusal(&stream("63:0", "63:0"));
    assert!(keep.contains("rx_keep has 0 bits; in a stream of 64 bits it has one for each DW, 2"), "{keep}");
    let direction = refusal(&stream("31:0", "31:0").replace("output logic rx_ready", "input logic rx_ready"));
    assert!(direction.contains("port rx_ready is an input, and the interface stream needs an output"), "{direction}");
}
