//! How long do many small copies to a device take, and as many bytes in few large ones?
//!
//! Traffic: what the runtime makes of it.
//! Unit: bytes per second of a whole run; the record has the time of the shortest, the middle and the longest run in seconds. A run is 8 GB in
//! copies of 80 kB (100 000) or of 8 MB (1 000) from the same memory of the program to the same memory of the device, each waited for by
//! its event before the next. A hundredth of them is asked for unless somebody wants all, and the record says so.
//! Spoiled by: other programs, and that is a part of the answer: a run counts whatever happened to it, and there are several.
//! Source of the numbers: measurements of an FPGA card under a SYCL runtime, where 80 kB took up to four times longer in some runs than
//! in others.

use crate::case::{Axes, Case, Through};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::measured::Measured;
use crate::needs;
use crate::question::Question;
use crate::sampling::answer;
use lanemark_machine::{
    Allocation, Clockwork, Facts, Machine, MachineError, MovedByRuntime, Op, Plan, Samples, Told, Verb,
};
use lanemark_record::{Answer, Detail, LEAST_SAMPLES, Quantity, Runs, Summary};
use lanemark_units::Ticks;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "many_small_few_large",
    summary: "seconds that a run of small copies to a device takes, and one of as many bytes in large copies, with the spread of runs",
    quantity: Quantity::Bandwidth,
    cases,
    plan,
    simulated_passes: |case| copies(case.size, false),
    most_passes: |case| copies(case.size, true),
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: false,
    left_out: needs::a_runtime,
};

const SIZES: [u64; 2] = [80_000, 8_000_000];
/// Bytes of a whole run.
const RUN_BYTES: u64 = 8_000_000_000;
/// The most copies of a run.
const MOST_COPIES: u64 = 100_000;
/// How much of a run is asked for unless somebody wants all.
const PART: u64 = 100;
/// Runs of each: the fewest of which a median has an interval.
const RUNS: usize = LEAST_SAMPLES;
/// The longest that a run may take: a minute, or as long as at 10 MB/s. A whole one took two minutes where it was slow.
const LEAST_TIMEOUT_NS: u64 = 60_000_000_000;
const TIMEOUT_NS_PER_BYTE: u64 = 100;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(runtime) = facts.runtime.as_ref().filter(|_| needs::has_queue(facts)) else { return Vec::new() };
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let of = |allocation: &Allocation| {
        let through = Through::Runtime { told: Told::Event, allocation: *allocation };
        sizes.clone().into_iter().map(move |size| Case::of_runtime(Verb::Store, size, through))
    };
    runtime.allocations.iter().flat_map(of).collect()
}

/// Copies of one run.
fn copies(bytes: u64, is_whole: bool) -> u64 {
    let whole = (RUN_BYTES / bytes.max(1)).min(MOST_COPIES);
    if is_whole { whole.max(1) } else { (whole / PART).max(1) }
}

/// A pass is a copy, and a sample a run.
fn plan(case: &Case, passes: u64) -> Plan {
    let Through::Runtime { told, allocation } = case.through else { return Plan::on_one_core(Vec::new(), passes) };
    let moved = MovedByRuntime { verb: case.verb, bytes: case.size, told, allocation };
    // The first copy of a buffer may make it on the device.
    let bytes = case.size.saturating_mul(passes).min(RUN_BYTES);
    let timeout = Ticks::whole_ns((bytes * TIMEOUT_NS_PER_BYTE).max(LEAST_TIMEOUT_NS));
    Plan { warmup_passes: 1, timeout, ..Plan::on_one_core(vec![Op::MovedByRuntime(moved)], passes) }
}

fn ask(question: &Question, machine: &mut dyn Machine, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
    let is_simulated = machine.facts().clockwork == Clockwork::Simulated;
    let usual = copies(case.size, effort.is_whole);
    let passes = effort.simulated_passes.filter(|_| is_simulated).unwrap_or(usual);
    let plan = plan(case, passes);
    let runs = if is_simulated { 1 } else { RUNS };
    let mut measured = Measured::of(String::new(), plan.clone());
    // One by one: a run may take half a minute, and those that are over are kept.
    let (mut visit, mut taken) = (0, 0);
    while taken < runs {
        let mut samples = Samples::wanted(1);
        match machine.run(&plan, &mut samples) {
            Err(MachineError::Interrupted { .. }) if taken > 0 => break,
            done => done?,
        }
        let samples = every_run(samples);
        if samples.taken.is_empty() {
            break;
        }
        taken += samples.taken.len();
        measured.add(visit, &samples, 0);
        visit += 1;
    }
    let mut answer = answer(question, case, machine.facts(), &measured, effort);
    let seconds: Vec<f64> = measured.delivered_ns().iter().map(|ns| ns / 1e9).collect();
    answer.detail = Summary::of(&seconds).map(|total| {
        Detail::Runs(Runs {
            copies: passes,
            whole_copies: copies(case.size, true),
            runs: total.count,
            shortest_s: total.min,
            median_s: total.median,
            longest_s: total.max,
        })
    });
    Ok(answer)
}

/// Those too in which the core was taken away: no run is so short that it never is.
fn every_run(mut samples: Samples) -> Samples {
    for (before, sample, _) in samples.disturbed.drain(..).rev() {
        samples.taken.insert(before, sample);
    }
    samples.dropped = lanemark_machine::Dropped::default();
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_fixture::{Runtime, facts};
    use lanemark_machine::{Disturbance, Sample};

    #[test]
    fn a_run_is_as_many_bytes_in_small_copies_as_in_large_ones_or_a_hundredth_of_them() {
        assert_eq!(SIZES.map(|size| copies(size, true)), [100_000, 1000]);
        assert_eq!(SIZES.map(|size| copies(size, false)), [1000, 10]);
        assert_eq!([copies(1, true), copies(256 << 20, false), copies(0, true)], [100_000, 1, 100_000]);
    }

    #[test]
    fn every_kind_of_memory_is_asked_for_by_both_sizes() {
        let ways = |allocations: &[Allocation]| -> Vec<(String, u64)> {
            let cases = cases(&facts(allocations), &Axes::default());
            cases.iter().map(|case| (case.way().through, case.size)).collect()
        };
        let usm = "runtime_usm_to_device".to_owned();
        assert_eq!(ways(&[Allocation::Device]), [(usm.clone(), 80_000), (usm, 8_000_000)]);
        assert_eq!(ways(&Allocation::ALL).len(), 8);
    }

    #[test]
    fn the_record_says_how_many_of_how_many_copies_a_run_had_and_what_it_took() {
        let mut runtime = Runtime::new(&Allocation::ALL);
        let case = &cases(&facts(&[Allocation::Buffer]), &Axes::default())[0];
        for (is_whole, copies) in [(false, 1000), (true, 100_000)] {
            let effort = Effort { is_whole, ..Effort::default() };
            let answer = ask(&QUESTION, &mut runtime, case, &effort).unwrap();
            let Some(Detail::Runs(runs)) = answer.detail else { panic!("{:?}", answer.detail) };
            assert_eq!((runs.copies, runs.whole_copies, runs.runs), (copies, 100_000, 8));
            // A copy takes a microsecond and a tenth of a nanosecond a byte.
            let total = copies as f64 * 9e-6;
            assert!((runs.median_s / total - 1.0).abs() < 1e-9 && runs.shortest_s <= runs.longest_s);
            assert!((answer.delivered_rate_bytes_per_s.unwrap().median / (80_000.0 / 9e-6) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_run_in_which_the_core_was_taken_away_counts_in_its_place() {
        let sample = |ns| Sample { issue: Ticks::whole_ns(ns), delivered: Ticks::whole_ns(ns) };
        let mut samples = Samples::wanted(3);
        let switched = Some(Disturbance::ContextSwitch);
        for (ns, disturbance) in [(1, None), (2, switched), (3, switched), (4, None)] {
            samples.keep(sample(ns), disturbance);
        }
        let all = every_run(samples);
        assert_eq!(all.taken, [1, 2, 3, 4].map(sample));
        assert_eq!((all.disturbed.len(), all.dropped.count()), (0, 0));
    }

    /// Answers so often, and is interrupted then.
    struct Interrupted(Runtime, usize);

    impl Machine for Interrupted {
        fn facts(&self) -> &Facts {
            self.0.facts()
        }

        fn supports(&self, plan: &Plan) -> Result<(), lanemark_machine::Unsupported> {
            self.0.supports(plan)
        }

        fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
            let interrupted = || MachineError::Interrupted { machine: "a test".to_owned() };
            self.1 = self.1.checked_sub(1).ok_or_else(interrupted)?;
            self.0.run(plan, samples)
        }
    }

    #[test]
    fn runs_that_were_over_when_it_was_interrupted_are_kept() {
        let case = &cases(&facts(&[Allocation::Buffer]), &Axes::default())[0];
        let asked = |whole_runs| {
            let mut machine = Interrupted(Runtime::new(&[Allocation::Buffer]), whole_runs);
            ask(&QUESTION, &mut machine, case, &Effort::default())
        };
        let Some(Detail::Runs(runs)) = asked(3).unwrap().detail else { panic!("no runs") };
        assert_eq!(runs.runs, 3);
        assert!(asked(0).is_err());
    }
}
