//! `compare` on a noisy machine: unchanged machines give no verdicts, and a change of 10 % is found.
//!
//! The machine replays samples with every disturbance that real machines have shown: noise, drift
//! and two modes within a run; noise, drift and two modes between runs. Seeds are fixed.

#[path = "../../crates/bench/tests/scripted/mod.rs"]
#[allow(dead_code)]
mod scripted;

use lanemark_advise::{Named, compare};
use lanemark_bench::{Axes, Effort, measure_all, question};
use lanemark_machine::{Machine, Plan};
use lanemark_record::{Change, Comparison, Criteria, Interval, Record, Target, TargetKind};
use lanemark_units::Ticks;
use scripted::Scripted;
use std::f64::consts::TAU;

/// Whole comparisons.
const COMPARISONS: u64 = 200;
/// Answers of a record.
const ANSWERS: u64 = 24;
/// Records a side.
const RECORDS: u64 = 5;
/// Length of a sample without disturbances.
const QUIET_NS: f64 = 50_000.0;

/// A pseudorandom number with a normal distribution (Box and Muller).
fn normal(numbers: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - numbers.f64()).ln()).sqrt() * (TAU * numbers.f64()).cos()
}

/// Random numbers of one stream in one run; the finaliser of `SplitMix64` makes near seeds independent.
fn random(comparison: u64, run: u64, stream: u64) -> fastrand::Rng {
    let mut seed = (comparison << 32 | run << 8 | stream).wrapping_add(0x9e37_79b9_7f4a_7c15);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    fastrand::Rng::with_seed(seed ^ (seed >> 31))
}

/// A change of one answer: its number, and the factor of its time.
type Changed = Option<(u64, f64)>;

/// Factor of the time of one answer in one whole run.
fn between_runs(answer: u64, comparison: u64, run: u64) -> f64 {
    let mut machine = random(comparison, run, 0);
    let mut alone = random(comparison, run, answer + 1);
    // The whole machine: noise, and a slow drift to and fro.
    let drift = 0.01 * (TAU * (run as f64 / 13.0 + machine.f64() / 40.0 + comparison as f64 / 7.0)).sin();
    let shared = drift + 0.004 * normal(&mut machine);
    // Each answer: quiet ones, noisy ones, and some with two modes that last for a whole run.
    let deviation = [0.0005, 0.002, 0.005, 0.01][(answer % 4) as usize];
    let mode = if answer % 12 == 5 && alone.bool() { 0.12 } else { 0.0 };
    (shared + deviation * normal(&mut alone) + mode).exp()
}

/// A machine in one run.
fn machine(comparison: u64, run: u64, changed: Changed) -> Scripted {
    let mut numbers = random(comparison, run, 255);
    Scripted::new(move |plan: &Plan, played| {
        let answer = plan.bytes_per_sample() / plan.passes / 64 - 1;
        let mut ns = QUIET_NS * between_runs(answer, comparison, run);
        if let Some((_, factor)) = changed.filter(|(place, _)| *place == answer) {
            ns *= factor;
        }
        // Noise, two modes, a drift, and single samples that another program disturbs.
        ns *= (0.01 * normal(&mut numbers)).exp();
        if answer % 3 == 1 && numbers.f64() < 0.25 {
            ns *= 1.3;
        }
        ns *= 1.0 + 0.05 * (played as f64 / 2000.0).min(1.0);
        if numbers.f64() < 0.03 {
            ns *= 1.5 + 2.5 * numbers.f64();
        }
        (ns, None)
    })
}

/// The record of one run.
fn record(comparison: u64, run: u64, changed: Changed) -> Record {
    let asked = question("mmio_write_bandwidth").unwrap();
    let mut machine = machine(comparison, run, changed);
    let axes = Axes { sizes: Some((1..=ANSWERS).map(|n| 64 * n).collect()), ..Axes::default() };
    let cases = (asked.cases)(machine.facts(), &axes);
    let effort = Effort { budget: Ticks::whole_ns(40_000_000), ..Effort::default() };
    let answers = measure_all(asked, &mut machine, &cases, &effort, &mut |_| true);
    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.len() as u64, ANSWERS);
    let target = Target {
        name: "scripted".to_owned(),
        summary: String::new(),
        kind: TargetKind::Real,
        memcpy: String::new(),
        platform: None,
        origins: None,
        card: None,
        links: vec![],
        runtime: None,
        design: None,
    };
    Record { targets: vec![target], answers, written_unix_s: Some(run), ..Record::new(vec![]) }
}

fn records(comparison: u64, runs: std::ops::Range<u64>, changed: Changed) -> Vec<Record> {
    runs.map(|run| record(comparison, run, changed)).collect()
}

fn compared(base: &[Record], new: &[Record]) -> Comparison {
    let named = |side| -> Vec<Named<'_>> {
        let records: &[Record] = side;
        records.iter().map(|record| Named { name: "a record", record }).collect()
    };
    compare(&named(base), &named(new), &Criteria::default()).unwrap()
}

/// Whether any answer has a verdict.
fn is_alarmed(comparison: &Comparison) -> bool {
    comparison.pairs.iter().any(|pair| matches!(pair.verdict, Change::Slower | Change::Faster))
}

/// Whether the interval of the samples of single records excludes 1 for any answer.
fn is_alarmed_within(base: &Record, new: &Record) -> bool {
    base.answers.iter().zip(&new.answers).any(|(base, new)| {
        let interval = Interval::of_ratio(&new.samples_ns, &base.samples_ns);
        interval.is_some_and(|interval| interval.low > 1.0 || interval.high < 1.0)
    })
}

#[test]
fn unchanged_machines_give_no_verdicts_and_a_change_of_a_tenth_is_found() {
    let (mut alarms, mut alarms_of_three, mut alarms_of_one, mut alarms_within) = (0, 0, 0, 0);
    let (mut found, mut wrong, mut doubled) = (0, 0, 0);
    for comparison in 0..COMPARISONS {
        let base = records(comparison, 0..RECORDS, None);
        let same = records(comparison, RECORDS..2 * RECORDS, None);
        alarms += u64::from(is_alarmed(&compared(&base, &same)));
        alarms_of_three += u64::from(is_alarmed(&compared(&base[..3], &same[..3])));
        alarms_of_one += u64::from(is_alarmed(&compared(&base[..1], &same[..1])));
        alarms_within += u64::from(is_alarmed_within(&base[0], &same[0]));
        // Each answer in turn; slower and faster in turn.
        let (place, is_slower) = (comparison % ANSWERS, comparison % 2 == 0);
        let factor = if is_slower { 1.1 } else { 1.0 / 1.1 };
        let changed = records(comparison, 2 * RECORDS..3 * RECORDS, Some((place, factor)));
        let comparison_with_change = compared(&base, &changed);
        let mut is_wrong = false;
        for (number, pair) in comparison_with_change.pairs.iter().enumerate() {
            let right = if is_slower { Change::Slower } else { Change::Faster };
            match (pair.verdict, number as u64 == place) {
                (verdict, true) => found += u64::from(verdict == right),
                (Change::Slower | Change::Faster, false) => is_wrong = true,
                _ => {}
            }
        }
        wrong += u64::from(is_wrong);
        // One record a side finds large changes only.
        let twice = record(comparison, 3 * RECORDS, Some((place, 2.0)));
        let pair = &compared(&base[..1], &[twice]).pairs[place as usize];
        doubled += u64::from(pair.verdict == Change::Slower);
    }
    let counts = format!(
        "of {COMPARISONS} unchanged comparisons {alarms} have verdicts ({alarms_of_three} with three records a side, \
         {alarms_of_one} with one, {alarms_within} by samples alone); {found} changes of a tenth were found, {doubled} \
         two-fold ones with one record a side; {wrong} of these comparisons have a verdict for an unchanged answer"
    );
    println!("{counts}");
    assert!(alarms <= COMPARISONS / 20, "{counts}");
    assert!(alarms_of_three <= COMPARISONS / 20, "{counts}");
    assert!(alarms_of_one <= COMPARISONS / 20, "{counts}");
    assert!(alarms_within >= COMPARISONS * 9 / 10, "the machine is too quiet for this test: {counts}");
    assert!(found >= COMPARISONS * 9 / 10, "{counts}");
    assert!(doubled >= COMPARISONS * 9 / 10, "{counts}");
    assert!(wrong <= COMPARISONS / 20, "{counts}");
}
