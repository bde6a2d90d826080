//! Recovery of a last-level cache and of an IOMMU from figures of several windows.

mod drawn;

use drawn::{Curve, Draw, LATENCIES, unknown};
use lanemark_bench::{Axes, Effort, ask, question};
use lanemark_fit::{FillOptions, Filled, Measured, Table, fill_in};
use lanemark_machine::Machine;
use lanemark_method::Reach;
use lanemark_platform::{Draft, Platform};
use lanemark_sim::SimulatedMachine;
use std::fmt::Write;

/// Numbers of the card that the fit does not know, each with its true value.
const CARD: [(&str, f64); 4] =
    [("memory.read_ns", 640.0), ("dma.tags", 24.0), ("dma.beat_ns", 4.0), ("dma.write_request_ns", 12.0)];

const SIZES: [u64; 6] = [64, 128, 256, 512, 1 << 12, 1 << 14];

const CURVES: [Curve<'_>; 3] = [LATENCIES, ("dma_read_bandwidth", &SIZES), ("dma_write_bandwidth", &SIZES)];

/// Windows of 64 B at random places, from far below the reach of the part to far above it.
const WINDOWS: [u64; 8] = [1 << 16, 1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 26];

/// The card with more sections or keys, as text.
fn hidden(change: impl Fn(String) -> String) -> Platform {
    let value = |key: &str| CARD.iter().find(|(other, _)| *other == key).map_or(0.0, |(_, value)| *value);
    let entry = |key: &str| format!("{{ value = {}, assumed = \"a test\" }}", value(key));
    Platform::parse("hidden.toml", &change(drawn::text(CARD.iter().map(|(key, _)| *key), &entry))).unwrap()
}

/// Figures of the curves and of the windows, with an error of 1 %.
fn table(hidden: &Platform, questions: &[&str]) -> Table {
    let (mut machine, mut draw) = (SimulatedMachine::new(hidden).unwrap(), Draw(0x5DEE_CE66_D153_2F0D));
    let curves = drawn::measured(&mut machine, &CURVES, &mut draw, 0.01);
    let mut text = String::from("question,size_bytes,figure,window,random\n");
    for line in curves.lines().skip(1) {
        let _ = writeln!(text, "{line},,");
    }
    for name in questions.iter().copied() {
        for window in WINDOWS {
            let figure = figure(&mut machine, name, window) * draw.between(0.99, 1.01);
            let figure = if name == LATENCIES.0 { format!("{figure} ns") } else { format!("{} MB/s", figure / 1e6) };
            let _ = writeln!(text, "{name},64,{figure},{window},yes");
        }
    }
    Table::parse("card.csv", &text).unwrap()
}

/// The figure of 64 B at random places of a window.
fn figure(machine: &mut SimulatedMachine, name: &str, window: u64) -> f64 {
    let question = question(name).unwrap();
    let reach = Reach { window_bytes: Some(window), is_random: true, ..Reach::default() };
    let case = (question.cases)(machine.facts(), &Axes { sizes: Some(vec![64]), reach, ..Axes::default() }).remove(0);
    let answer = ask(question, machine, &case, &Effort::default()).unwrap();
    answer.delivered_rate_bytes_per_s.or(answer.latency_ns).unwrap().median
}

/// The file of the card, which knows nothing of the hidden part, filled in from figures of the hidden platform.
fn filled(hidden: &Platform) -> Filled {
    filled_in(hidden, &READS, &[])
}

/// Questions about windows.
const READS: [&str; 2] = [LATENCIES.0, "dma_read_bandwidth"];
const ALL: [&str; 3] = [LATENCIES.0, "dma_read_bandwidth", "dma_write_bandwidth"];

/// As [`filled`], of a file with more unknown numbers.
fn filled_in(hidden: &Platform, questions: &[&str], more: &[&'static str]) -> Filled {
    let keys = CARD.iter().map(|(key, _)| *key).chain(more.iter().copied());
    let draft = Draft::parse("card.toml", &drawn::text(keys, &unknown)).unwrap();
    fill_in("card.csv", &Measured::Table(&table(hidden, questions)), &draft, FillOptions::default()).unwrap()
}

/// The fitted or chosen value of a key.
fn value(filled: &Filled, key: &str) -> Option<f64> {
    let values = filled.draft.values();
    values.iter().find(|value| value.key == key)?.value.as_ref()?.parse().ok()
}

#[track_caller]
fn check(filled: &Filled, key: &str, wanted: f64, within: f64) {
    let found = value(filled, key).unwrap_or_else(|| panic!("{key} is unknown"));
    assert!((found / wanted - 1.0).abs() <= within, "{key}: {found}, expected {wanted}");
}

#[track_caller]
fn check_errors(filled: &Filled) {
    let (fitted, held_out, _) = filled.halves().unwrap();
    let windows = filled.held_out.iter().filter(|residual| residual.what.contains("MiB")).count();
    assert!(windows >= WINDOWS.len(), "windows are held out: {windows}");
    assert!(fitted.median_percent < 1.0 && held_out.median_percent < 1.0, "{fitted:?}, {held_out:?}");
    assert!(held_out.mean_percent < 2.5, "{held_out:?}");
}

#[test]
fn a_last_level_cache_is_found_from_the_windows_that_it_holds() {
    let filled = filled(&hidden(|text| text.replacen("[memory]\n", CACHE, 1)));
    check(&filled, "memory.cache_bytes", f64::from(4 << 20), 0.0);
    check(&filled, "memory.cached_read_ns", 360.0, 0.05);
    check(&filled, "memory.read_ns", 640.0, 0.05);
    assert_eq!(value(&filled, "iommu.iotlb_entries"), None);
    check_errors(&filled);
}

/// The part of the last-level cache that is to be found.
const CACHE: &str = "[memory]\ncache_bytes = { value = \"4MiB\", assumed = \"a test\" }\n\
                     cached_read_ns = { value = 360, assumed = \"a test\" }\n";

#[test]
fn a_cache_is_found_whose_latency_the_file_has_as_an_unknown_number() {
    let key = "memory.cached_read_ns";
    let filled = filled_in(&hidden(|text| text.replacen("[memory]\n", CACHE, 1)), &READS, &[key]);
    check(&filled, "memory.cache_bytes", f64::from(4 << 20), 0.0);
    check(&filled, key, 360.0, 0.05);
    assert_eq!(filled.fit.found.iter().filter(|found| found.name == key).count(), 1, "{:?}", filled.fit.found);
}

#[test]
fn windows_without_effect_add_no_cache() {
    let filled = filled(&hidden(|text| text));
    assert_eq!(value(&filled, "memory.cache_bytes"), Some(0.0));
    check_errors(&filled);
}

/// An IOMMU that is to be found.
fn iommu(entries: u32, ways: u32, walk_read_ns: u32, walkers: u32) -> String {
    let numbers = [
        ("iotlb_entries", entries),
        ("iotlb_ways", ways),
        ("lookup_ns", 5),
        ("walk_read_ns", walk_read_ns),
        ("walkers", walkers),
    ];
    let line = |(key, value): (&str, u32)| format!("{key} = {{ value = {value}, assumed = \"a test\" }}\n");
    format!("\n[iommu]\n{}", numbers.map(line).concat())
}

#[test]
fn an_iommu_of_which_the_file_says_nothing_is_found_from_windows() {
    let filled = filled_in(&hidden(|text| text + &iommu(64, 8, 90, 3)), &ALL, &[]);
    check(&filled, "iommu.iotlb_entries", 64.0, 0.0);
    check(&filled, "iommu.walk_read_ns", 90.0, 0.05);
    check(&filled, "iommu.walkers", 3.0, 0.0);
    check(&filled, "memory.read_ns", 640.0, 0.05);
    assert_eq!(value(&filled, "memory.cache_bytes"), Some(0.0));
    // Only the time of all reads of a walk is determined.
    let walk = filled.conditional.iter().find(|(key, _)| key == "iommu.walk_read_ns").unwrap();
    assert_eq!(walk.1, ["iommu.walk_reads"]);
    assert!(filled.draft.text().contains("fitted with an assumed iommu.walk_reads"), "{}", filled.draft.text());
    check_errors(&filled);
}

#[test]
fn latencies_of_windows_show_an_iotlb_and_not_the_number_of_walkers() {
    let hidden = hidden(|text| text + &iommu(256, 4, 60, 2));
    let mut latencies = table(&hidden, &READS[..1]);
    latencies.rows.retain(|row| row.question == LATENCIES.0);
    let draft = Draft::parse("card.toml", &drawn::text(["memory.read_ns"].into_iter(), &unknown)).unwrap();
    let filled = fill_in("card.csv", &Measured::Table(&latencies), &draft, FillOptions::default()).unwrap();
    check(&filled, "iommu.iotlb_entries", 256.0, 0.0);
    check(&filled, "iommu.walk_read_ns", 60.0, 0.05);
    assert!(filled.at_default.iter().any(|key| key == "iommu.walkers"), "{:?}", filled.at_default);
    assert_eq!(value(&filled, "iommu.walkers"), Some(1.0));
}
