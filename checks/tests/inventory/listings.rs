//! Listings as people write and paste them, with the findings of each: formats of lspci, machines, faults, wrapping.
//!
//! Each folder entry `listings/NAME.txt` has one row. The listings were written for this test by the formats of
//! pciutils 3.1 to 3.14; they are of no real machine.

use lanemark_advise::doctor::{DiagnosisRequest, diagnose};
use lanemark_inventory::{Inventory, InventoryError, Seen};
use lanemark_record::diagnosis::{Diagnosis, Finding, Severity};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A listing, its findings as `severity check function`, and the begin of the reason why it is incomplete.
struct Row(&'static str, &'static [&'static str], Option<&'static str>);

/// A GPU with half of its lanes, which is pasted in several ways.
const NARROW: &[&str] = &["minor link_width 01:00.0", "hint low_bar 01:00.0"];
const NO_REGISTERS: Option<&str> = Some("the listing has no registers of links");
const NO_ROOT: Option<&str> = Some("the listing was made without root");

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // One device, without the port above it.
    Row("gpu-alone-idle", &["minor link_speed 0b:00.0", "hint low_bar 0b:00.0"], None),
    Row("gpu-and-its-audio-function", &["minor link_speed 01:00.0", "minor link_width 01:00.0", "hint low_bar 01:00.0"], None),
    Row("drive-alone-below-its-capability", &["minor link_speed 3b:00.0", "minor link_width 3b:00.0"], None),
    Row("storage-adapter-alone-old-format", &[], None),
    Row("listing-cut-in-the-middle", &["minor link_speed 3b:00.0"], None),
    // Functions that do not respond.
    Row("gpu-off-the-bus", &["BROKEN config_space 01:00.0", "BROKEN config_space 01:00.1"], None),
    Row("network-controller-off-the-bus-new-format", &["BROKEN config_space 06:00.0"], None),
    Row("short-listing-with-a-gpu-off-the-bus", &["BROKEN config_space 01:00.0"], NO_REGISTERS),
    Row("hex-and-text-of-an-absent-function", &["BROKEN config_space 04:00.0"], None),
    // Errors.
    Row("card-on-a-riser-with-link-errors", &["costly link_integrity 82:00.0"], None),
    Row("link-errors-split-over-both-ends", &["costly link_integrity 40:01.1 41:00.0"], None),
    Row("link-with-one-kind-of-errors", &["minor corrected_errors 41:00.0"], None),
    Row("port-disabled-by-containment", &["BROKEN containment 20:03.0"], None),
    Row("payload-sizes-that-differ", &["BROKEN payload_mismatch 02:00.0"], None),
    // Listings that lack facts.
    Row("machine-listed-without-root", &[], NO_ROOT),
    Row("short-listing", &[], NO_REGISTERS),
    Row("listing-with-one-v", &[], NO_REGISTERS),
    // Pasted text.
    Row("quoted-mail", NARROW, None),
    Row("quotation-of-a-quotation", NARROW, None),
    Row("fenced-code-block", NARROW, None),
    Row("bulletin-board-code", NARROW, None),
    Row("indented-code-block", NARROW, None),
    Row("listing-without-indentation", NARROW, None),
    Row("terminal-session", NARROW, None),
    // Whole machines.
    Row("desktop-with-one-lane-devices", &["minor payload_size 03:00.0", "minor payload_size 04:00.0"], None),
    Row("server-with-a-degraded-card", &["costly link_speed 17:00.0", "costly link_width 17:00.0"], None),
    Row("arm-server-with-a-degraded-card", &[
        "costly link_speed 000d:01:00.0", "costly link_width 000d:01:00.0", "minor payload_size 000d:01:00.0",
    ], None),
    Row("arm-board-with-a-fast-drive", &[], None),
    Row("accelerator-behind-a-retimer", &["costly link_speed 27:00.0"], None),
    Row("drive-behind-two-retimers", &[], None),
    Row("cxl-memory-in-a-wide-slot", &[], None),
    Row("cxl-memory-with-lost-lanes", &["costly link_width be:00.0"], None),
    Row("two-gpus-below-a-switch", &[
        "costly peers 82:00.0 82:01.0", "hint uplink 83:00.0 84:00.0", "hint low_bar 83:00.0", "hint low_bar 84:00.0",
    ], None),
    Row("two-gpus-below-two-root-ports", &[], None),
    // Virtual machines.
    Row("virtual-machine-with-virtio", &[], None),
    Row("virtual-machine-with-a-gpu", &["hint low_bar 00:05.0"], None),
    Row("virtual-machine-of-a-cloud", &[], None),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inventory/listings")
}

fn diagnosis(name: &str) -> Diagnosis {
    let inventory = Inventory::from_path(&folder().join(format!("{name}.txt"))).unwrap();
    diagnose(&inventory, &DiagnosisRequest::default())
}

fn in_words(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Broken => "BROKEN",
        Severity::Costly => "costly",
        Severity::Minor => "minor",
        Severity::Hint => "hint",
    };
    let short = |address: &String| address.strip_prefix("0000:").unwrap_or(address).to_owned();
    let functions: Vec<String> = finding.functions.iter().map(short).collect();
    format!("{severity} {} {}", finding.check, functions.join(" "))
}

#[test]
fn each_listing_has_its_findings_and_no_others() {
    let mut wrong = Vec::new();
    for Row(name, expected, incomplete) in ROWS {
        let diagnosis = diagnosis(name);
        let found: Vec<String> = diagnosis.findings.iter().map(in_words).collect();
        if found != *expected {
            wrong.push(format!("{name}: {found:?} instead of {expected:?}"));
        }
        let reasons = &diagnosis.incomplete;
        let is_right = match incomplete {
            Some(reason) => reasons.len() == 1 && reasons[0].starts_with(reason),
            None => reasons.is_empty(),
        };
        if !is_right {
            wrong.push(format!("{name}: incomplete: {reasons:?} instead of {incomplete:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_listing_has_a_row() {
    let names: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ROWS.iter().map(|Row(name, ..)| (*name).to_owned()).collect());
}

#[test]
fn wrapping_does_not_change_the_facts() {
    let link = |name: &str| diagnosis(name).links;
    for name in ["quoted-mail", "quotation-of-a-quotation", "bulletin-board-code", "indented-code-block"] {
        assert_eq!(link(name), link("fenced-code-block"), "{name}");
    }
    assert_eq!(link("listing-without-indentation"), link("terminal-session"));
    assert_eq!(link("terminal-session"), link("fenced-code-block"));
}

#[test]
fn text_that_is_no_listing_is_refused_with_what_to_try() {
    for text in [
        "",
        "hello\n",
        "00:01.5 started\n00:02.0 finished\n",
        "0000:00:00.0\n0000:00:01.0\n0000:00:02.0\n",
        "12:30.1 level=info: request done\n",
        "-[0000:00]-+-00.0  Intel Corporation Device 29c0\n           +-01.0  Red Hat, Inc. Device 0100\n",
        "[    0.412] pci 0000:00:01.0: [8086:7000] type 00 class 0x060100\n",
        "Bus 001 Device 001: ID 1d6b:0002 Linux Foundation 2.0 root hub\n",
        "| NVIDIA-SMI 550.54   Driver Version: 550.54   CUDA Version: 12.4 |\n| 0  Tesla T4  Off | 00000000:00:1E.0 Off |\n",
        "{\"functions\": [{\"address\": \"0000:01:00.0\"}]}\n",
        "Slot:\t00:00.0\nClass:\tHost bridge\n",
        "> 00:01.5 started\n",
    ] {
        let refusal = Inventory::from_bytes(text.as_bytes(), Path::new("here.txt"));
        let Err(error @ InventoryError::Unrecognised { .. }) = refusal else { panic!("{text}: {refusal:?}") };
        assert!(error.to_string().contains("sudo lspci -D -nn -vvv"), "{error}");
    }
    let least = Inventory::from_bytes(b"00:01.5 Host bridge: started\n", Path::new("here.txt")).unwrap();
    assert_eq!(least.functions.len(), 1, "the class makes it a listing");
}

/// Files of a real virtual machine, by `capture.sh`: a passed-through GPU on the root bus, and virtio devices. The serial
/// number of the GPU and words of the command line were removed.
const MACHINE_WITH_ONE_H100: &[u8] = include_bytes!("virtual-machine-with-one-h100.tar.gz");

#[test]
fn a_gpu_in_a_virtual_machine_has_a_link_without_a_port() {
    let inventory = Inventory::from_bytes(MACHINE_WITH_ONE_H100, Path::new("vm.tar.gz")).unwrap();
    let diagnosis = diagnose(&inventory, &DiagnosisRequest::default());
    let links: Vec<_> = diagnosis.links.iter().map(|link| (link.lower.as_str(), link.state.as_str())).collect();
    assert_eq!(links, [("0000:00:06.0", "Gen5 x16")]);
    assert_eq!((&diagnosis.links[0].upper, diagnosis.links[0].both_can.value()), (&None, None));
    assert_eq!((diagnosis.findings.len(), diagnosis.incomplete.len()), (0, 0), "{:?}", diagnosis.findings);
    assert_eq!(inventory.function("00:06.0".parse().unwrap()).unwrap().class.get().unwrap().base(), 0x03);
}

#[test]
fn an_idle_gpu_in_a_virtual_machine_is_minor_and_the_port_is_on_the_host() {
    let mut inventory = Inventory::from_bytes(MACHINE_WITH_ONE_H100, Path::new("vm.tar.gz")).unwrap();
    let gpu = inventory.functions.last_mut().unwrap();
    let Seen::Known(mut bytes) = gpu.config.clone() else { panic!("no configuration space") };
    // LnkSta of the capability at 0x60: 2.5 GT/s.
    bytes[0x72] = bytes[0x72] & 0xf0 | 1;
    *gpu = lanemark_inventory::Function {
        parent: gpu.parent.clone(),
        ..lanemark_inventory::config::function(gpu.address, bytes).0
    };
    let findings = diagnose(&inventory, &DiagnosisRequest::default()).findings;
    assert_eq!(findings.iter().map(in_words).collect::<Vec<_>>(), ["minor link_speed 00:06.0"]);
    let words = &findings[0].fix.words;
    assert!(words.contains("look again under load") && words.contains("look on the host"), "{words}");
    assert!(findings[0].gain.factor().unwrap() > 10.0, "{:?}", findings[0].gain);
}

#[test]
fn peers_below_two_root_ports_are_facts_and_no_findings() {
    let peers = diagnosis("two-gpus-below-two-root-ports").peers;
    let begins = [
        "devices are below 2 root ports (0000:16:01.0, 0000:97:01.0): a request between two of them crosses the root complex",
        "NUMA nodes 0, 1:",
        "ACS P2P Request Redirect is on at 1 of 2 root ports:",
        "2 IOMMU groups, none spans two root ports",
    ];
    assert_eq!(peers.len(), begins.len(), "{peers:#?}");
    assert!(peers.iter().zip(begins).all(|(said, begin)| said.starts_with(begin)), "{peers:#?}");
    for without in ["two-gpus-below-a-switch", "server-with-a-degraded-card", "virtual-machine-of-a-cloud"] {
        assert_eq!(diagnosis(without).peers, [""; 0], "{without}");
    }
}
