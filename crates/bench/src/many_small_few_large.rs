//! How long do many small copies to a device take, compared with the same bytes in few large
//! copies?
//!
//! Traffic: that of the runtime.
//!
//! Unit: bytes per second of a whole run; the record has the time of the shortest, the median and
//! the longest run in seconds. A run is 8 GB in copies of 80 kB (100 000) or of 8 MB (1 000), from
//! the same host memory to the same device memory, each with a wait for its event. By default a
//! hundredth of a run is measured, and the record says so.
//!
//! A run has one copy as warm-up and then all others back to back. A whole run is split into parts
//! of about a second, at least a hundredth of it each, and its time is the sum of theirs. Between
//! parts, outside the measured time, the bytes of the last copy are checked and replaced, and
//! progress is reported. Parts last a second because the first copies after such a pause are
//! slower.
//!
//! Spoiled by: other programs, which is part of the answer: disturbed runs count, and there are
//! several runs.
//!
//! Source of the numbers: measurements of an FPGA card with a SYCL runtime, where copies of 80 kB
//! took up to four times longer in some runs than in others.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::measured::Measured;
use crate::needs;
use crate::question::{Question, Watch};
use crate::sampling::{answer, interrupted};
use lanemark_machine::{
    Allocation, Confirmed, Facts, HostWait, Machine, MachineError, Plan, RuntimeCopy, Sample, Samples, TimeBase,
};
use lanemark_method::{CopyDirection, Method};
use lanemark_record::{Answer, Detail, LEAST_SAMPLES, Quantity, Runs, Summary};
use lanemark_units::Ticks;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "many_small_few_large",
    summary: "run time of many small copies to a device and of the same bytes in few large copies, with the spread of runs",
    quantity: Quantity::Bandwidth,
    cases,
    plan,
    simulated_passes: |case| copies(case.size, false),
    most_passes: |case| copies(case.size, true),
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: false,
    left_out: needs::kernel_runtime,
};

const SIZES: [u64; 2] = [80_000, 8_000_000];
/// Bytes per whole run.
const RUN_BYTES: u64 = 8_000_000_000;
/// Largest number of copies per run.
const MOST_COPIES: u64 = 100_000;
/// Largest number of parts per whole run. By default, one part is measured.
const PARTS: u64 = 100;
/// Target length of a part: long enough to hide the pause after it, and short enough for progress
/// reports.
const PART: Ticks = Ticks::whole_ns(1_000_000_000);
/// Number of runs: the smallest with an interval of the median.
const RUNS: usize = LEAST_SAMPLES;
/// Smallest timeout of a part: a minute, or the time at 10 MB/s if longer.
const LEAST_TIMEOUT_NS: u64 = 60_000_000_000;
const TIMEOUT_NS_PER_BYTE: u64 = 100;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(runtime) = facts.runtime.as_ref().filter(|_| needs::has_queue(facts)) else { return Vec::new() };
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let of = |allocation: &Allocation| {
        let (direction, allocation) = (CopyDirection::ToDevice, *allocation);
        let method = Method::RuntimeCopy { direction, wait: HostWait::Event, allocation };
        sizes.clone().into_iter().map(move |size| Case::of_runtime(size, method.clone()))
    };
    runtime.allocations.iter().flat_map(of).collect()
}

/// Number of copies of one run.
fn copies(bytes: u64, is_whole: bool) -> u64 {
    let whole = (RUN_BYTES / bytes.max(1)).min(MOST_COPIES);
    if is_whole { whole.max(1) } else { (whole / PARTS).max(1) }
}

/// An iteration is a copy, and a sample is a run or a part of one.
fn plan(case: &Case, passes: u64) -> Plan {
    let Method::RuntimeCopy { direction, wait, allocation } = case.method else {
        return Plan::empty();
    };
    let moved = RuntimeCopy { verb: direction.verb(), bytes: case.size, wait, allocation };
    // The first copy of a buffer may allocate it on the device.
    let bytes = case.size.saturating_mul(passes).min(RUN_BYTES);
    let timeout = Ticks::whole_ns((bytes * TIMEOUT_NS_PER_BYTE).max(LEAST_TIMEOUT_NS));
    Plan { warmup_passes: 1, timeout, ..Plan::new(moved, passes) }
}

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    watch: Watch<'_>,
) -> Result<Answer, BenchError> {
    let is_simulated = machine.facts().time_base == TimeBase::Simulated;
    let usual = copies(case.size, effort.is_whole);
    let passes = effort.simulated_passes.filter(|_| is_simulated).unwrap_or(usual);
    // Virtual time needs no progress reports.
    let least = if is_simulated { passes } else { copies(case.size, false) };
    let mut part = least;
    let wanted = if is_simulated { 1 } else { RUNS };
    let (mut measured, mut runs) = (Measured::of(String::new(), plan(case, passes)), 0);
    let mut run = Run::begun(passes);
    // A whole run can take half a minute. Complete runs are kept, and an incomplete one is dropped.
    while runs < wanted {
        let done = (runs as f64 + run.share()) / wanted as f64;
        let mut samples = Samples::wanted(1);
        let plan = Plan { warmup_passes: u64::from(run.is_empty()), ..plan(case, part.min(run.left)) };
        let ended = if watch(done) { machine.run(&plan, &mut samples) } else { Err(interrupted(machine)) };
        match ended {
            Err(MachineError::Interrupted { .. }) if runs > 0 => break,
            ended => ended?,
        }
        if samples.taken.is_empty() && samples.disturbed.is_empty() {
            break;
        }
        let (parts, confirmed) = (every_part(&mut samples), samples.confirmed);
        for (sample, cpu) in parts {
            part = copies_of_a_part(plan.passes, sample.delivered).max(least);
            if run.add(sample, plan.passes, confirmed) {
                let whole = std::mem::replace(&mut run, Run::begun(passes));
                (samples.taken, samples.confirmed) = (vec![whole.sample], whole.confirmed);
                samples.cpus = cpu.into_iter().collect();
                measured.add(runs as u64, &samples, 0);
                runs += 1;
            }
        }
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

/// Number of copies for a part of the target length, from the time of the previous part.
fn copies_of_a_part(copies: u64, took: Ticks) -> u64 {
    PART.0.saturating_mul(copies) / took.0.max(1)
}

/// A run in progress.
struct Run {
    copies: u64,
    /// Remaining copies.
    left: u64,
    /// Times of the completed parts.
    sample: Sample,
    /// The smallest confirmation of a part.
    confirmed: Option<Confirmed>,
}

impl Run {
    fn begun(copies: u64) -> Run {
        Run { copies, left: copies, sample: Sample::default(), confirmed: None }
    }

    fn is_empty(&self) -> bool {
        self.left == self.copies
    }

    /// Completed share, from 0 to 1.
    fn share(&self) -> f64 {
        (self.copies - self.left) as f64 / self.copies.max(1) as f64
    }

    /// Adds a part if it is not longer than the rest of the run; returns whether the run is
    /// complete.
    fn add(&mut self, part: Sample, copies: u64, confirmed: Option<Confirmed>) -> bool {
        // Disturbed parts count, and a machine that repeats them may make more copies than a run
        // has.
        let Some(left) = self.left.checked_sub(copies) else { return false };
        self.left = left;
        self.sample.issue += part.issue;
        self.sample.delivered += part.delivered;
        let both = self.confirmed.into_iter().chain(confirmed);
        self.confirmed = both.min_by_key(|confirmed| confirmed.confirmed_bytes);
        left == 0
    }
}

/// All parts with their processors, including those with a context switch, which every long run
/// has.
fn every_part(samples: &mut Samples) -> Vec<(Sample, Option<u32>)> {
    for (before, sample, _) in samples.disturbed.drain(..).rev() {
        samples.taken.insert(before, sample);
    }
    samples.dropped = lanemark_machine::Dropped::default();
    let cpu = |place| samples.cpus.get(place).copied();
    samples.taken.iter().enumerate().map(|(place, sample)| (*sample, cpu(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_fixture::{Runtime, facts};
    use lanemark_machine::Disturbance;

    #[test]
    fn runs_of_small_and_large_copies_move_the_same_bytes() {
        assert_eq!(SIZES.map(|size| copies(size, true)), [100_000, 1000]);
        assert_eq!(SIZES.map(|size| copies(size, false)), [1000, 10]);
        assert_eq!([copies(1, true), copies(256 << 20, false), copies(0, true)], [100_000, 1, 100_000]);
    }

    #[test]
    fn every_kind_of_memory_is_measured_with_both_sizes() {
        let ways = |allocations: &[Allocation]| -> Vec<(String, u64)> {
            let cases = cases(&facts(allocations), &Axes::default());
            cases.iter().map(|case| (case.method.to_string(), case.size)).collect()
        };
        let usm = "usm to device by runtime, wait by event".to_owned();
        assert_eq!(ways(&[Allocation::Device]), [(usm.clone(), 80_000), (usm, 8_000_000)]);
        assert_eq!(ways(&Allocation::ALL).len(), 2 * Allocation::ALL.len());
    }

    #[test]
    fn the_record_has_the_measured_and_whole_copies_and_their_time() {
        for (is_whole, copies) in [(false, 1000), (true, 100_000)] {
            let mut machine = Watched::default();
            let answer = machine.asked(80_000, is_whole).unwrap();
            let Some(Detail::Runs(runs)) = answer.detail else { panic!("{:?}", answer.detail) };
            assert_eq!((runs.copies, runs.whole_copies, runs.runs), (copies, 100_000, 8));
            // A copy takes one millisecond and 0.1 us per byte.
            let total = copies as f64 * 9e-3;
            assert!((runs.median_s / total - 1.0).abs() < 1e-9 && runs.shortest_s <= runs.longest_s);
            assert!((answer.delivered_rate_bytes_per_s.unwrap().median / (80_000.0 / 9e-3) - 1.0).abs() < 1e-9);
            assert_eq!((answer.passes, answer.samples_ns.len()), (copies, 8));
        }
    }

    #[test]
    fn a_whole_run_has_a_hundred_parts_and_one_warm_up_copy() {
        let made = |size, is_whole| {
            let mut machine = Watched::default();
            machine.asked(size, is_whole).unwrap();
            machine.made
        };
        assert_eq!(made(80_000, false), [(1, 1000); 8]);
        let whole = made(80_000, true);
        assert_eq!((whole.len(), whole[0], whole[100]), (800, (1, 1000), (1, 1000)));
        assert!(whole[1..100].iter().all(|part| *part == (0, 1000)));
        // 7629 copies make a hundred parts and a shorter one.
        let uneven = made(1 << 20, true);
        assert_eq!((uneven.len(), uneven[99], uneven[100]), (8 * 101, (0, 76), (0, 29)));
    }

    #[test]
    fn parts_last_a_second_if_a_hundredth_is_shorter() {
        // A copy takes 9 us, so a second is longer than a run.
        let mut machine = Watched { is_quick: true, ..Watched::default() };
        machine.asked(80_000, true).unwrap();
        assert_eq!(machine.made[..3], [(1, 1000), (0, 99_000), (1, 100_000)]);
        assert_eq!(machine.made.len(), 9);
        let second = Ticks::whole_ns(1_000_000_000);
        assert_eq!([second / 4, second, second * 3].map(|took| copies_of_a_part(30, took)), [120, 30, 10]);
        assert!(copies_of_a_part(30, Ticks::ZERO) > MOST_COPIES);
    }

    #[test]
    fn progress_is_reported_before_each_part_and_can_cancel() {
        let mut machine = Watched::default();
        machine.asked(80_000, true).unwrap();
        let parts: Vec<usize> = machine.heard.iter().map(|share| (share * 800.0).round() as usize).collect();
        assert!(parts.iter().copied().eq(0..800), "{parts:?}");
        let mut machine = Watched { enough_after: Some(150), ..Watched::default() };
        let Some(Detail::Runs(runs)) = machine.asked(80_000, true).unwrap().detail else { panic!("no runs") };
        assert_eq!((runs.runs, machine.made.len()), (1, 150));
    }

    #[test]
    fn a_run_with_a_context_switch_counts_in_order() {
        let sample = |ns| Sample { issue: Ticks::whole_ns(ns), delivered: Ticks::whole_ns(ns) };
        let mut samples = Samples::wanted(3);
        let switched = Some(Disturbance::ContextSwitch);
        for (ns, disturbance) in [(1, None), (2, switched), (3, switched), (4, None)] {
            samples.keep(sample(ns), disturbance);
            samples.cpus.push(ns as u32);
        }
        let all = every_part(&mut samples);
        assert_eq!(all, [1, 2, 3, 4].map(|ns| (sample(ns), Some(ns as u32))));
        assert_eq!((samples.disturbed.len(), samples.dropped.count()), (0, 0));
    }

    #[test]
    fn a_disturbed_part_and_its_repetition_are_two_parts() {
        let mut machine = Watched { disturbed: true, ..Watched::default() };
        let answer = machine.asked(80_000, true).unwrap();
        let Some(Detail::Runs(runs)) = answer.detail else { panic!("{:?}", answer.detail) };
        assert_eq!((runs.runs, machine.made.len()), (8, 400));
        assert!((runs.longest_s / 900.0 - 1.0).abs() < 1e-9 && answer.doubts.is_empty(), "{runs:?}");
    }

    #[test]
    fn a_run_is_the_sum_of_its_parts_without_parts_beyond_its_end() {
        let part = Sample { issue: Ticks(3), delivered: Ticks(5) };
        let brought = |confirmed_bytes| Some(Confirmed { claimed_bytes: 9, confirmed_bytes });
        let mut run = Run::begun(25);
        assert_eq!([brought(9), brought(7)].map(|confirmed| run.add(part, 10, confirmed)), [false, false]);
        assert!(!run.add(part, 10, brought(0)) && run.left == 5);
        assert!(run.add(part, 5, brought(9)));
        assert_eq!((run.sample.issue, run.sample.delivered, run.confirmed), (Ticks(9), Ticks(15), brought(7)));
    }

    /// A machine that records its plans, and can be interrupted after a number of parts.
    #[derive(Default)]
    struct Watched {
        runtime: Option<Runtime>,
        /// Whether copies are a thousand times faster.
        is_quick: bool,
        /// Whether every sample is disturbed and repeated.
        disturbed: bool,
        interrupted_at: Option<usize>,
        /// Number of parts after which the caller cancels.
        enough_after: Option<usize>,
        /// Warm-up and counted iterations of each plan.
        made: Vec<(u64, u64)>,
        heard: Vec<f64>,
    }

    impl Watched {
        fn asked(&mut self, size: u64, is_whole: bool) -> Result<Answer, BenchError> {
            self.runtime = Some(Runtime::new(&[Allocation::Buffer]));
            let axes = Axes { sizes: Some(vec![size]), ..Axes::default() };
            let case = &cases(self.facts(), &axes)[0];
            let (mut heard, enough_after) = (Vec::new(), self.enough_after);
            let effort = Effort { is_whole, ..Effort::default() };
            let answer = ask(&QUESTION, self, case, &effort, &mut |share| {
                heard.push(share);
                enough_after.is_none_or(|enough| heard.len() <= enough)
            });
            self.heard = heard;
            answer
        }
    }

    impl Machine for Watched {
        fn facts(&self) -> &Facts {
            self.runtime.as_ref().unwrap().facts()
        }

        fn supports(&self, _: &Plan) -> Result<(), lanemark_machine::Unsupported> {
            Ok(())
        }

        fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
            if self.interrupted_at == Some(self.made.len()) {
                return Err(MachineError::Interrupted { machine: "a test".to_owned() });
            }
            self.made.push((plan.warmup_passes, plan.passes));
            self.runtime.as_mut().unwrap().run(plan, samples)?;
            for sample in samples.taken.iter_mut().filter(|_| !self.is_quick) {
                (sample.issue, sample.delivered) = (sample.issue * 1000, sample.delivered * 1000);
            }
            let first = samples.taken.first().copied().filter(|_| self.disturbed);
            samples.disturbed.extend(first.map(|sample| (0, sample, Disturbance::ContextSwitch)));
            Ok(())
        }
    }

    #[test]
    fn complete_runs_are_kept_after_an_interrupt_and_an_incomplete_one_is_dropped() {
        let asked = |at, is_whole| {
            let mut machine = Watched { interrupted_at: Some(at), ..Watched::default() };
            match machine.asked(80_000, is_whole)?.detail {
                Some(Detail::Runs(runs)) => Ok(runs.runs),
                detail => panic!("{detail:?}"),
            }
        };
        assert_eq!((asked(3, false).unwrap(), asked(399, true).unwrap(), asked(400, true).unwrap()), (3, 3, 4));
        let ended = |runs: Result<u64, BenchError>| runs.unwrap_err();
        for error in [ended(asked(0, false)), ended(asked(99, true))] {
            assert!(matches!(error, BenchError::Machine(MachineError::Interrupted { .. })), "{error}");
        }
    }
}
