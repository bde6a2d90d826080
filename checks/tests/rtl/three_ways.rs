//! One card in two ways: compiled from `rtl/card`, and simulated from `rtl/platform.toml`.

use crate::card::Card;
use crate::design::{Mutant, all_detected, card, changed, mutants};
use crate::plans::{Simulated, accesses, dma, long_dma, odd_accesses, settings, simulate, simulate_odd};
use crate::sequence::{Compared, compare};
use crate::timing::{BEHIND, Stages, compare_times};
use fastrand::Rng;
use lanemark_checks::root;
use lanemark_hw::dut_library::DutLibrary;
use lanemark_machine::Transfer;
use lanemark_platform::Platform;
use std::fs;
use std::process::Command;

/// Random plans of each [`Kind`].
const PLANS: [u64; 4] = [700, 300, 400, 300];
/// Plans of DMA and of cores that are compared in time.
const TIMED_PLANS: [u64; 2] = [150, 100];
/// Plans of each kind for a mutant.
const MUTANT_PLANS: [u64; 4] = [60, 60, 40, 40];

/// The output of the generator.
fn generated(options: &[&str]) -> String {
    let output = Command::new(root().join("rtl/platform")).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The platform of the card with options of the generator.
pub fn platform(options: &[&str]) -> Platform {
    Platform::parse("rtl/platform.toml", &generated(options)).unwrap_or_else(|error| panic!("{error}"))
}

pub fn the_platform_file_is_what_its_generator_writes() {
    let file = fs::read_to_string(root().join("rtl/platform.toml")).unwrap();
    assert_eq!(file, generated(&[]), "make rtl-platform writes it anew");
    let usual = platform(&[]);
    let dma = usual.dma.as_ref().unwrap();
    assert_eq!((dma.tags.value, dma.beat_bytes.value), (8, 4));
    let other = platform(&["--clock-mhz", "300", "--mps", "512", "--bar-address", "0x2000000000"]);
    assert_eq!(other.link.mps_bytes.value, 512);
    // A header of four DWs takes a clock more.
    let clocks = |platform: &Platform| {
        let sram = platform.region("sram").unwrap();
        sram.read_ns.value.as_ns() / sram.beat_ns.value.as_ns()
    };
    assert_eq!([clocks(&usual), clocks(&other)].map(f64::round), [7.0, 8.0]);
}

/// Kind of accesses in a random plan.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// DMA of the card.
    Dma,
    /// DMA of the card: one long transfer.
    LongDma,
    /// Loads and stores of a core.
    Core,
    /// Loads and stores with odd byte enables.
    Odd,
}

/// A random plan, and what the simulated card does in it.
struct Case {
    platform: Platform,
    transfer: Option<Transfer>,
    simulated: Simulated,
    /// The plan, for messages.
    text: String,
}

/// Simulates plan `seed` of a kind.
fn case(platform: &Platform, seed: u64, kind: Kind) -> Case {
    let mut random = Rng::with_seed(seed);
    let platform = settings(&mut random, platform);
    let (transfer, simulated, work) = match kind {
        Kind::Odd => {
            let odd = odd_accesses(&mut random);
            (None, simulate_odd(&platform, &odd), format!("{odd:?}"))
        }
        Kind::Dma | Kind::LongDma | Kind::Core => {
            let plan = match kind {
                Kind::Dma => dma(&mut random),
                Kind::LongDma => long_dma(&mut random),
                _ => accesses(&mut random),
            };
            let transfer = plan.work.jobs().first().map(|job| *job.transfer());
            (transfer, simulate(&platform, &plan), format!("{:?}", plan.work))
        }
    };
    let (mps, mrrs) = (platform.link.mps_bytes.value, platform.link.mrrs_bytes.value);
    let text = format!("{kind:?}, seed {seed}, MPS {mps}, MRRS {mrrs}, {work}");
    Case { platform, transfer, simulated, text }
}

/// Compares so many plans of each kind, up to the first difference.
fn compare_all(library: &DutLibrary, platform: &Platform, plans: [u64; 4]) -> Result<Compared, String> {
    let mut card = Card::new(library, 128, 128);
    let mut all = Compared::default();
    for (count, kind) in plans.into_iter().zip([Kind::Dma, Kind::LongDma, Kind::Core, Kind::Odd]) {
        for seed in 0..count {
            let case = case(platform, seed, kind);
            let one = compare(&mut card, &case.platform, case.transfer, &case.simulated);
            let one = one.map_err(|what| format!("{}: {what}", case.text))?;
            all.writes += one.writes;
            all.reads += one.reads;
            all.completions += one.completions;
            all.forced_tags += one.forced_tags;
        }
    }
    Ok(all)
}

pub fn the_compiled_and_the_simulated_card_send_the_same_tlps() {
    let library = card();
    let all = compare_all(library, &platform(&[]), PLANS).unwrap_or_else(|what| panic!("{what}"));
    assert!(all.writes > 3000 && all.reads > 2500 && all.completions > 10_000, "{all:?}");
    assert!(all.forced_tags > 400, "{all:?}");
}

pub fn the_times_of_both_cards_differ_by_at_most_a_clock_a_stage() {
    let library = card();
    // The buffers of the hard block are not part of the card.
    let platform = platform(&["--send-buffers", "1024"]);
    let mut card = Card::new(library, 128, 128);
    let mut stages = Stages::default();
    for (count, kind) in TIMED_PLANS.into_iter().zip([Kind::LongDma, Kind::Core]) {
        for seed in 0..count {
            let case = case(&platform, seed, kind);
            compare_times(&mut card, &case.platform, case.transfer, &case.simulated, &mut stages)
                .unwrap_or_else(|what| panic!("{}: {what}", case.text));
        }
    }
    // As rtl/README.md shows them, each at least so many times. Times of the simulation are ticks: rounding is far below a clock.
    let expected = [
        ("command to first request", 0.0, 0.0, 100),
        ("completion to next read", 0.0, 1.0, 100),
        ("load to completion", 0.0, 0.0, 100),
        (BEHIND, 1.0, 12.0, 20),
        ("read to next read", 0.0, 0.0, 100),
        ("write to next write", 0.0, 0.0, 100),
    ];
    let is_near = |found: f64, expected: f64| (found - expected).abs() < 0.1;
    for (stage, least, most, count) in expected {
        let found = stages.0.remove(stage).unwrap_or_else(|| panic!("{stage}: {stages:#?}"));
        assert!(is_near(found.0, least) && is_near(found.1, most) && found.2 >= count, "{stage}: {found:?}");
    }
    assert!(stages.0.is_empty(), "{stages:#?}");
}

/// Mutants whose TLPs, data or beats differ with a legal host.
const CHANGED: &[&str] = &[
    "a tag is free after the first completion",
    "requests cross 4 KiB",
    "the limit of an unaligned request counts bytes",
    "the last byte enable is wrong",
    "the byte count of a completion ignores byte enables",
    "byte enables of stores are ignored",
];

/// What is wrong with the comparison of a mutant; `None` if its TLPs differ.
fn miss(mutant: &Mutant, platform: &Platform) -> Option<String> {
    let (_folder, library) = match changed(mutant) {
        Ok(built) => built,
        Err(because) => return Some(because),
    };
    match compare_all(&library, platform, MUTANT_PLANS) {
        Ok(compared) => Some(format!("its TLPs are those of the card: {compared:?}")),
        Err(_) => None,
    }
}

pub fn mutants_of_the_card_send_other_tlps() {
    let platform = platform(&[]);
    let mut mutants = mutants();
    mutants.retain(|mutant| CHANGED.contains(&mutant.name.as_str()));
    assert_eq!(mutants.len(), CHANGED.len(), "names of rtl/mutants.toml");
    all_detected(&mutants, |mutant| miss(mutant, &platform));
}
