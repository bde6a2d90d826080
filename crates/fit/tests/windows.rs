//! Recovery of a last-level cache and of an IOMMU from figures of several windows.

mod drawn;

use drawn::{Curve, Draw, LATENCIES, unknown};
use lanemark_bench::{Axes, Effort, ask, question};
use lanemark_fit::{FillOptions, Filled, FitData, Measured, Row, Table, fill_in};
use lanemark_machine::Machine;
use lanemark_method::Reach;
use lanemark_platform::{Draft, Platform};
use lanemark_sim::SimulatedMachine;
use std::fmt::Write;

/// Numbers of the card that the fit does not know, each with its true value.
const CARD: [(&str, f64); 4] =
    [("memory.read_ns", 640.0), ("dma.tags", 24.0), ("dma.beat_ns", 4.0), ("dma.write_request_ns", 12.0)];

/// Two of them, for fits that take long.
const SOME: [&str; 2] = ["memory.read_ns", "dma.tags"];

const SIZES: [u64; 6] = [64, 128, 256, 512, 1 << 12, 1 << 14];

const CURVES: [Curve<'_>; 3] = [LATENCIES, ("dma_read_bandwidth", &SIZES), ("dma_write_bandwidth", &SIZES)];

/// Windows of 64 B at random places, from far below the reach of the part to far above it.
const WINDOWS: [u64; 8] = [1 << 16, 1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 26];

/// The entry of the card for a key.
fn known(key: &str) -> String {
    let value = CARD.iter().find(|(other, _)| *other == key).map_or(0.0, |(_, value)| *value);
    format!("{{ value = {value}, assumed = \"a test\" }}")
}

/// The card with more sections or keys, as text.
fn hidden(change: impl Fn(String) -> String) -> Platform {
    Platform::parse("hidden.toml", &change(drawn::text(CARD.iter().map(|(key, _)| *key), &known))).unwrap()
}

/// Figures of the curves and of the windows, with an error of 1 %.
fn table(hidden: &Platform, questions: &[&str]) -> Table {
    let (mut machine, mut draw) = (SimulatedMachine::new(hidden).unwrap(), Draw(0x5DEE_CE66_D153_2F0D));
    let curves = drawn::measured(&mut machine, &CURVES, &mut draw, 0.01);
    let mut text = without_windows(&curves);
    let all = questions.iter().flat_map(|name| WINDOWS.map(|window| (*name, 64, window, true)));
    text += &windows(&mut machine, all, &Effort::default(), || draw.between(0.99, 1.01));
    Table::parse("card.csv", &text).unwrap()
}

/// The lines of a table without windows, with empty columns for these.
fn without_windows(curves: &str) -> String {
    let mut text = String::from("question,size_bytes,figure,window,random\n");
    for line in curves.lines().skip(1) {
        let _ = writeln!(text, "{line},,");
    }
    text
}

/// Lines of a table: question, size and window of each figure, and whether it is of random places. The figure is multiplied by
/// the next of `errors`.
fn windows<'a>(
    machine: &mut SimulatedMachine,
    all: impl Iterator<Item = (&'a str, u64, u64, bool)>,
    effort: &Effort,
    mut errors: impl FnMut() -> f64,
) -> String {
    let mut text = String::new();
    for (name, size, window, is_random) in all {
        let reach = Reach { window_bytes: Some(window), is_random, ..Reach::default() };
        let figure = figure(machine, name, size, reach, effort) * errors();
        let figure = if name == LATENCIES.0 { format!("{figure} ns") } else { format!("{} MB/s", figure / 1e6) };
        let _ = writeln!(text, "{name},{size},{figure},{window},{}", if is_random { "yes" } else { "no" });
    }
    text
}

/// The simulated figure of these transfers, of as many as `effort` says.
fn figure(machine: &mut SimulatedMachine, name: &str, size: u64, reach: Reach, effort: &Effort) -> f64 {
    let question = question(name).unwrap();
    let axes = Axes { sizes: Some(vec![size]), reach, ..Axes::default() };
    let case = (question.cases)(machine.facts(), &axes).remove(0);
    let answer = ask(question, machine, &case, effort).unwrap();
    answer.delivered_rate_bytes_per_s.or(answer.latency_ns).unwrap().median
}

/// Checks every figure of the table against a simulation of the file that the fit writes.
#[track_caller]
fn check_file(filled: &Filled, table: &Table) {
    let platform = filled.draft.clone().complete().unwrap();
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let effort = Effort::default();
    let mut error =
        |row: &Row| figure(&mut machine, row.question, row.size_bytes, row.reach, &effort) / row.figure - 1.0;
    let errors: Vec<f64> = table.rows.iter().map(&mut error).collect();
    for (row, error) in table.rows.iter().zip(&errors) {
        assert!(error.abs() < 0.05, "{row:?}: {error}, {}", filled.draft.text());
    }
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
    assert!(mean < 0.02, "{mean}");
}

/// The file of the card, which knows nothing of the hidden part, filled in from figures of the hidden platform.
fn filled(hidden: &Platform) -> Filled {
    filled_from(&table(hidden, &READS), CARD.iter().map(|(key, _)| *key), FillOptions::default())
}

/// Questions about windows.
const READS: [&str; 2] = [LATENCIES.0, "dma_read_bandwidth"];
const ALL: [&str; 3] = [LATENCIES.0, "dma_read_bandwidth", "dma_write_bandwidth"];

/// The file of the card with these unknown numbers, filled in from a table.
fn filled_from(table: &Table, keys: impl Iterator<Item = &'static str>, options: FillOptions<'_>) -> Filled {
    let keys: Vec<&str> = keys.collect();
    let entry = |key: &str| if keys.contains(&key) { unknown(key) } else { known(key) };
    let others = CARD.iter().map(|(key, _)| *key).filter(|key| !keys.contains(key));
    let draft = Draft::parse("card.toml", &drawn::text(keys.iter().copied().chain(others), &entry)).unwrap();
    fill_in("card.csv", &Measured::Table(table), &draft, options).unwrap()
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
    let latencies = latencies(&hidden(|text| text.replacen("[memory]\n", CACHE, 1)));
    let filled = filled_from(&latencies, ["memory.read_ns", key].into_iter(), FillOptions::default());
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
    let table = table(&hidden(|text| text + &iommu(64, 8, 90, 3)), &ALL);
    let filled = filled_from(&table, CARD.iter().map(|(key, _)| *key), FillOptions::default());
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
    check_file(&filled, &table);
}

#[test]
fn latencies_of_windows_show_an_iotlb_and_not_the_number_of_walkers() {
    let latencies = latencies(&hidden(|text| text + &iommu(256, 4, 60, 2)));
    let filled = filled_from(&latencies, ["memory.read_ns"].into_iter(), FillOptions::default());
    check(&filled, "iommu.iotlb_entries", 256.0, 0.0);
    check(&filled, "iommu.walk_read_ns", 60.0, 0.05);
    assert!(filled.at_default.iter().any(|key| key == "iommu.walkers"), "{:?}", filled.at_default);
    assert_eq!(value(&filled, "iommu.walkers"), Some(1.0));
    check_file(&filled, &latencies);
}

/// Latencies without and with windows.
fn latencies(hidden: &Platform) -> Table {
    let mut latencies = table(hidden, &READS[..1]);
    latencies.rows.retain(|row| row.question == LATENCIES.0);
    latencies
}

#[test]
fn the_file_has_as_many_walkers_as_the_figures_need() {
    // Twice as many give the same figures, and one does not.
    let table = table(&hidden(|text| text + &iommu(64, 8, 40, 8)), &READS);
    let filled = filled_from(&table, SOME.into_iter(), FillOptions::default());
    check(&filled, "iommu.iotlb_entries", 64.0, 0.0);
    check(&filled, "iommu.walk_read_ns", 40.0, 0.05);
    let walkers = value(&filled, "iommu.walkers");
    assert!(walkers > Some(1.0) && walkers <= Some(8.0), "{}", filled.draft.text());
    check_chosen(&filled);
    check_file(&filled, &table);
}

#[test]
fn short_walks_are_found() {
    // An IOTLB of 1 MiB or more could be a cache.
    let latencies = latencies(&hidden(|text| text + &iommu(64, 4, 15, 2)));
    let filled = filled_from(&latencies, ["memory.read_ns"].into_iter(), FillOptions::default());
    check(&filled, "iommu.iotlb_entries", 64.0, 0.0);
    check(&filled, "iommu.walk_read_ns", 15.0, 0.1);
    check_file(&filled, &latencies);
}

#[test]
fn a_time_of_a_walk_outside_its_search_range_stays_unknown_until_it_is_assumed() {
    let latencies = latencies(&hidden(|text| text + &iommu(256, 4, 800, 2)));
    for assume_rest in [false, true] {
        let options = FillOptions { assume_rest, ..FillOptions::default() };
        let filled = filled_from(&latencies, ["memory.read_ns"].into_iter(), options);
        let key = "iommu.walk_read_ns";
        let found = filled.fit.found.iter().find(|found| found.name == key).unwrap();
        assert!(found.at_bound && filled.beyond.iter().any(|beyond| beyond == key), "{found:?}");
        assert_eq!(value(&filled, key), assume_rest.then_some(found.value));
    }
}

#[test]
fn a_fit_simulates_enough_transfers_to_fill_a_large_iotlb() {
    let own =
        |entry: &str| drawn::text(["memory.read_ns"].into_iter(), &|_| entry.to_owned()) + &iommu(4096, 4, 300, 1);
    let card = Platform::parse("card.toml", &own("{ value = 640, assumed = \"a test\" }")).unwrap();
    let draft = Draft::parse("card.toml", &own("{ unknown = \"fitted\" }")).unwrap();
    let sizes = [(1 << 12, true), (1 << 10, true), (1 << 14, false), (64, true)];
    let all = sizes.iter().flat_map(|(size, is_random)| {
        [1_u64 << 22, 1 << 24, 1 << 26].map(|window| ("dma_read_bandwidth", *size, window, *is_random))
    });
    // Several times as many iterations as a usual run of 4 KiB has.
    let long = Effort { simulated_passes: Some(128), ..Effort::default() };
    let mut machine = SimulatedMachine::new(&card).unwrap();
    let text = format!("question,size_bytes,figure,window,random\n{}", windows(&mut machine, all, &long, || 1.0));
    let table = Table::parse("card.csv", &text).unwrap();
    for rows in table.rows.chunks(3) {
        assert!(rows[2].figure < 0.8 * rows[0].figure, "walks are seen: {rows:?}");
    }
    let problem = FitData::of_table(&table, &draft).unwrap();
    let residuals = problem.compare(&[640.0]).unwrap();
    assert_eq!(residuals.len(), 12);
    for residual in residuals {
        assert!(residual.error_percent.abs() < 1.0, "{residual:?}");
        let formula = residual.formula.unwrap() / residual.measured - 1.0;
        assert!(formula.abs() < 0.02, "{formula}: {residual:?}");
    }
}

/// Checks that the chosen contender has the number of walkers of the file.
#[track_caller]
fn check_chosen(filled: &Filled) {
    let chosen = filled.contenders.iter().find(|contender| contender.is_chosen).unwrap();
    let walkers = chosen.set.iter().find(|(key, _)| key == "iommu.walkers").map(|(_, value)| *value);
    assert_eq!(walkers, value(filled, "iommu.walkers"));
}

#[test]
fn a_single_walker_that_the_figures_determine_is_not_called_a_default() {
    let table = table(&hidden(|text| text + &iommu(64, 8, 90, 1)), &READS);
    let filled = filled_from(&table, SOME.into_iter(), FillOptions::default());
    check(&filled, "iommu.iotlb_entries", 64.0, 0.0);
    check(&filled, "iommu.walkers", 1.0, 0.0);
    assert!(!filled.at_default.iter().any(|key| key == "iommu.walkers"), "{:?}", filled.at_default);
    assert!(filled.draft.text().contains("walkers = { value = 1, fitted_to"), "{}", filled.draft.text());
    check_chosen(&filled);
}

#[test]
fn more_walkers_than_reads_in_flight_are_as_good_as_the_fewest_that_never_wait() {
    let table = table(&hidden(|text| text + &iommu(64, 8, 90, 64)), &READS);
    let filled = filled_from(&table, SOME.into_iter(), FillOptions::default());
    check(&filled, "iommu.iotlb_entries", 64.0, 0.0);
    check(&filled, "iommu.walk_read_ns", 90.0, 0.05);
    check_chosen(&filled);
    check_file(&filled, &table);
}

#[test]
fn an_iotlb_of_large_pages_is_found() {
    let pages = format!("{}page_bytes = {{ value = {}, assumed = \"a test\" }}\n", iommu(16, 4, 60, 2), 2 << 20);
    let mut machine = SimulatedMachine::new(&hidden(|text| text + &pages)).unwrap();
    let mut draw = Draw(0x1234_5678_9ABC_DEF1);
    let curve = drawn::measured(&mut machine, &CURVES[..1], &mut draw, 0.01);
    let all = (20..29).map(|twos| (LATENCIES.0, 64, 1 << twos, true));
    let mut text = without_windows(&curve);
    text += &windows(&mut machine, all, &Effort::default(), || draw.between(0.99, 1.01));
    let table = Table::parse("card.csv", &text).unwrap();
    let filled = filled_from(&table, ["memory.read_ns"].into_iter(), FillOptions::default());
    check(&filled, "iommu.page_bytes", f64::from(2 << 20), 0.0);
    check(&filled, "iommu.iotlb_entries", 16.0, 0.0);
    check(&filled, "iommu.walk_read_ns", 60.0, 0.05);
    check_file(&filled, &table);
}

#[test]
fn an_iommu_that_the_file_has_is_fitted_and_no_other_is_added() {
    let latencies = latencies(&hidden(|text| text + &iommu(256, 4, 60, 2)));
    let own = iommu(256, 4, 60, 2).replace("walk_read_ns = { value = 60, assumed", "walk_read_ns = { unknown");
    let text = drawn::text(["memory.read_ns"].into_iter(), &unknown) + &own;
    let draft = Draft::parse("card.toml", &text).unwrap();
    let filled = fill_in("card.csv", &Measured::Table(&latencies), &draft, FillOptions::default()).unwrap();
    check(&filled, "iommu.walk_read_ns", 60.0, 0.05);
    assert_eq!(value(&filled, "iommu.walkers"), Some(2.0));
    let is_of_iommu = |key: &str| key.starts_with("iommu.");
    let of_iommu = |contender: &lanemark_fit::Contender| contender.set.iter().any(|(key, _)| is_of_iommu(key));
    assert!(!filled.contenders.iter().any(of_iommu), "{:?}", filled.contenders);
    check_file(&filled, &latencies);
}
