//! Sampling yields the right figure or a doubt, under any disturbance.

mod scripted;

use lanemark_bench::{Axes, BenchError, Case, Effort, measure_all, question};
use lanemark_machine::{Disturbance, Machine, MachineError};
use lanemark_record::{Answer, DoubtKind};
use lanemark_units::Ticks;
use scripted::Scripted;

/// Length of a sample of a quiet machine, which needs no more iterations.
const QUIET_NS: f64 = 50_000.0;

fn cases(machine: &Scripted, sizes: &[u64]) -> Vec<Case> {
    let axes = Axes { sizes: Some(sizes.to_vec()), ..Axes::default() };
    (question("mmio_write_bandwidth").unwrap().cases)(machine.facts(), &axes)
}

fn asked(machine: &mut Scripted, sizes: &[u64], effort: &Effort) -> Vec<Result<Answer, BenchError>> {
    let cases = cases(machine, sizes);
    measure_all(question("mmio_write_bandwidth").unwrap(), machine, &cases, effort, &mut |_| true)
}

fn answer(mut machine: Scripted, effort: &Effort) -> Answer {
    asked(&mut machine, &[4096], effort).pop().unwrap().unwrap()
}

fn kinds(answer: &Answer) -> Vec<DoubtKind> {
    answer.doubts.iter().map(|doubt| doubt.kind).collect()
}

/// The median time per iteration.
fn median_ns(answer: &Answer) -> f64 {
    lanemark_record::Summary::of(&answer.samples_ns).unwrap().median
}

/// A pseudorandom figure between 0 and 1.
fn noise(n: usize) -> f64 {
    fastrand::Rng::with_seed(n as u64).f64()
}

#[test]
fn a_quiet_machine_is_sampled_for_three_rounds_without_doubts() {
    let answer = answer(Scripted::new(|_, _| (QUIET_NS, None)), &Effort::default());
    assert_eq!(kinds(&answer), []);
    let rate = answer.delivered_rate_bytes_per_s.unwrap();
    let interval = rate.ci95.unwrap();
    assert_eq!((rate.count, interval.low, interval.high), (15, rate.median, rate.median));
    assert_eq!(answer.raw[0].round, [[0; 5], [1; 5], [2; 5]].concat());
}

#[test]
fn a_noisy_machine_is_sampled_until_the_interval_is_narrow() {
    let noisy = || Scripted::new(|_, n| (QUIET_NS * (1.0 + 0.1 * noise(n)), None));
    let counts = [4.0, 2.0, 1.0].map(|percent| {
        let answer = answer(noisy(), &Effort { interval_percent: percent, ..Effort::default() });
        let rate = answer.delivered_rate_bytes_per_s.unwrap();
        assert_eq!(kinds(&answer), [], "{percent} %");
        assert!(rate.ci95.unwrap().width_percent_of(rate.median).unwrap() <= percent * 1.01);
        rate.count
    });
    assert!(counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
}

#[test]
fn the_budget_ends_sampling_and_a_wide_interval_is_doubtful() {
    let effort = Effort { interval_percent: 0.0, budget: Ticks::whole_ns(3_000_000), ..Effort::default() };
    let mut machine = Scripted::new(|_, n| (QUIET_NS * (1.0 + noise(n)), None));
    let answers = asked(&mut machine, &[4096, 8192], &effort);
    for answer in &answers {
        assert!(kinds(answer.as_ref().unwrap()).contains(&DoubtKind::WideInterval));
    }
    // 3 ms are 40 samples of 75 us; a visit of six more may be in progress.
    assert!((40..=46 + 6).contains(&machine.played), "{}", machine.played);
}

#[test]
fn a_zero_budget_gives_every_case_one_round() {
    let effort = Effort { budget: Ticks::ZERO, ..Effort::default() };
    let answers = asked(&mut Scripted::new(|_, _| (QUIET_NS, None)), &[64, 4096, 8192], &effort);
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.samples_ns.len(), 5);
        assert_eq!(kinds(&answer), [DoubtKind::FewSamples]);
    }
}

/// Length of a sample of which only three fit into a visit.
const LONG_NS: f64 = 2_000_000.0;
/// A visit of long samples: three and a warm-up.
const LONG_VISIT_NS: u64 = 4 * 2_000_000;

/// The default sizes that were measured, of all, with a budget of so many visits of long samples after the first round.
fn measured_sizes(machine: &mut Scripted, visits: u64) -> (Vec<u64>, Vec<Answer>) {
    let cases = (question("mmio_write_bandwidth").unwrap().cases)(machine.facts(), &Axes::default());
    assert_eq!(cases.len(), 9);
    let first_round = 9 * (LONG_NS as u64 + LONG_VISIT_NS);
    let budget = Ticks::whole_ns(first_round + visits * LONG_VISIT_NS);
    let effort = Effort { has_default_sizes: true, interval_percent: 0.0, budget, ..Effort::default() };
    let answers = measure_all(question("mmio_write_bandwidth").unwrap(), machine, &cases, &effort, &mut |_| true);
    assert_eq!(answers.len(), 9);
    let is_measured = |answer: &Result<Answer, BenchError>| match answer {
        Ok(_) => true,
        Err(BenchError::LeftOut) => false,
        Err(error) => panic!("{error}"),
    };
    let sizes = answers.iter().zip(&cases).filter(|(answer, _)| is_measured(answer)).map(|(_, case)| case.size);
    (sizes.collect(), answers.into_iter().filter_map(Result::ok).collect())
}

#[test]
fn default_sizes_are_left_out_until_the_budget_suffices_for_the_samples_of_an_interval() {
    let quiet = |visits| measured_sizes(&mut Scripted::new(|_, _| (LONG_NS, None)), visits);
    // Each size needs two visits more.
    for (visits, sizes) in [
        (18, &[64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22][..]),
        (17, &[64, 256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 22][..]),
        (10, &[64, 1 << 10, 1 << 14, 1 << 18, 1 << 22]),
        (6, &[64, 1 << 14, 1 << 22]),
        (4, &[64, 1 << 22]),
        (0, &[64, 1 << 22]),
    ] {
        let (measured, answers) = quiet(visits);
        assert_eq!(measured, sizes, "{visits} visits");
        for answer in answers {
            assert!(answer.samples_ns.len() >= 9 && kinds(&answer).is_empty(), "{:?}", answer.doubts);
        }
    }
}

#[test]
fn an_extension_that_suffices_for_every_default_size_leaves_none_out() {
    let measured = |extension| {
        let mut machine = Scripted::new(|_, _| (LONG_NS, None));
        let cases = (question("mmio_write_bandwidth").unwrap().cases)(machine.facts(), &Axes::default());
        let budget = Ticks::whole_ns(9 * (LONG_NS as u64 + LONG_VISIT_NS));
        let interval_percent = 0.0;
        let effort = Effort { has_default_sizes: true, interval_percent, budget, extension, ..Effort::default() };
        let question = question("mmio_write_bandwidth").unwrap();
        let answers = measure_all(question, &mut machine, &cases, &effort, &mut |_| true);
        answers.iter().filter(|answer| answer.is_ok()).count()
    };
    assert_eq!(measured(Ticks::whole_ns(18 * LONG_VISIT_NS)), 9);
    assert_eq!(measured(Ticks::whole_ns(18 * LONG_VISIT_NS - 1)), 8);
}

#[test]
fn default_sizes_get_the_samples_of_an_interval_on_a_machine_that_becomes_slower() {
    let is_first_round = |n: usize| n < 9 * 5;
    let slower = move |_: &_, n: usize| (if is_first_round(n) { LONG_NS } else { 20.0 * LONG_NS }, None);
    let (sizes, answers) = measured_sizes(&mut Scripted::new(slower), 10);
    assert_eq!(sizes.len(), 5, "the first round decides");
    assert!(answers.iter().all(|answer| answer.samples_ns.len() == 9));
}

#[test]
fn dropped_samples_delay_the_end_of_the_budget_by_a_few_rounds_only() {
    let mut machine = Scripted::new(|_, n| (LONG_NS, (n % 3 > 0).then_some(Disturbance::ContextSwitch)));
    let (_, answers) = measured_sizes(&mut machine, 0);
    assert!(answers.iter().all(|answer| !kinds(answer).contains(&DoubtKind::FewSamples)));
    let mut machine = Scripted::new(|_, _| (LONG_NS, Some(Disturbance::ContextSwitch)));
    let (sizes, answers) = measured_sizes(&mut machine, 0);
    assert_eq!(sizes, [64, 1 << 22]);
    assert!(answers.iter().all(|answer| kinds(answer) == [DoubtKind::NoSamples]));
    assert!(machine.played < 1000, "{}", machine.played);
}

#[test]
fn a_question_of_several_plans_gets_the_samples_of_an_interval_from_any_budget() {
    let question = question("driver_call_overhead").unwrap();
    let mut machine = Scripted::new(|plan, _| (QUIET_NS * plan.passes as f64, None));
    let cases = (question.cases)(machine.facts(), &Axes::default());
    let effort = Effort { has_default_sizes: true, budget: Ticks::ZERO, ..Effort::default() };
    for answer in measure_all(question, &mut machine, &cases, &effort, &mut |_| true) {
        let answer = answer.unwrap();
        assert!(!kinds(&answer).contains(&DoubtKind::FewSamples), "{}: {:?}", answer.method, answer.doubts);
    }
}

#[test]
fn questions_about_the_processor_always_have_the_samples_of_an_interval_or_no_answer() {
    let axes = Axes { sizes: Some(vec![8, 64, 4096]), ..Axes::default() };
    // No budget, and sizes that a user named: other questions get one round of five samples.
    let effort = Effort { budget: Ticks::ZERO, ..Effort::default() };
    let asked = |name: &str, machine: &mut Scripted| {
        let question = question(name).unwrap();
        let cases = (question.cases)(machine.facts(), &axes);
        assert!(!cases.is_empty(), "{name}");
        measure_all(question, machine, &cases, &effort, &mut |_| true)
    };
    for name in ["fence_cost", "dma_map_cost"] {
        for answer in asked(name, &mut Scripted::new(|_, _| (QUIET_NS, None))) {
            assert!(answer.unwrap().samples_ns.len() >= 8, "{name}");
        }
        let disturbed = |_: &lanemark_machine::Plan, _| (QUIET_NS, Some(Disturbance::ContextSwitch));
        for answer in asked(name, &mut Scripted::new(disturbed)) {
            let error = answer.unwrap_err();
            assert!(matches!(error, BenchError::TooFewSamples { samples: 0 }), "{name}: {error}");
        }
    }
}

#[test]
fn the_sample_limit_holds_for_any_budget() {
    let effort = Effort { interval_percent: 0.0, budget: Ticks::NEVER, most_samples: 101, ..Effort::default() };
    let answer = answer(Scripted::new(|_, n| (QUIET_NS * (1.0 + noise(n)), None)), &effort);
    assert_eq!(answer.samples_ns.len(), 105, "whole visits of five");
}

#[test]
fn variants_take_turns_in_a_reproducible_random_order() {
    let order = || {
        let mut machine = Scripted::new(|_, _| (QUIET_NS, None));
        asked(&mut machine, &[64, 128, 256, 512], &Effort::default());
        machine.runs
    };
    let runs = order();
    assert_eq!(runs, order());
    // A trial of one sample precedes the first visit of each variant.
    let first: Vec<u64> = runs[..8].iter().step_by(2).copied().collect();
    let rounds = [&first[..], &runs[8..12], &runs[12..16]];
    for round in rounds {
        let mut sizes = round.to_vec();
        sizes.sort_unstable();
        assert_eq!(sizes, [64, 128, 256, 512], "each once per round: {runs:?}");
    }
    assert!(rounds[0] != rounds[1] || rounds[1] != rounds[2], "{runs:?}");
}

#[test]
fn a_slow_down_affects_all_variants_alike() {
    let mut machine = Scripted::new(|_, n| (QUIET_NS * (1.0 + n as f64 / 100.0), None));
    let answers = asked(&mut machine, &[64, 128], &Effort::default());
    let [small, large] = [0, 1].map(|place| median_ns(answers[place].as_ref().unwrap()));
    assert!((small / large - 1.0).abs() < 0.1, "{small} {large}");
    assert!(kinds(answers[0].as_ref().unwrap()).contains(&DoubtKind::Drift));
}

#[test]
fn a_drift_is_reported() {
    let effort = Effort { interval_percent: 0.5, most_samples: 60, ..Effort::default() };
    let answer = answer(Scripted::new(|_, n| (QUIET_NS * (1.0 + n as f64 / 500.0 + 0.01 * noise(n)), None)), &effort);
    assert!(kinds(&answer).contains(&DoubtKind::Drift), "{:?}", answer.doubts);
}

#[test]
fn two_humps_are_reported() {
    let answer = answer(
        Scripted::new(|_, n| (if noise(n) < 0.5 { QUIET_NS } else { 1.5 * QUIET_NS }, None)),
        &Effort::default(),
    );
    assert!(kinds(&answer).contains(&DoubtKind::TwoHumps), "{:?}", answer.doubts);
}

/// Another program on the core makes samples three times as long.
#[test]
fn under_load_the_median_is_within_a_quarter_or_doubtful() {
    for share in [0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8] {
        for spread in [0.0, 0.02, 0.1] {
            let hogged = move |n: usize| if noise(n * 2 + 1) < share { 3.0 } else { 1.0 };
            let machine = Scripted::new(move |_, n| (QUIET_NS * hogged(n) * (1.0 + spread * noise(n * 2)), None));
            let answer = answer(machine, &Effort { most_samples: 200, ..Effort::default() });
            let off = median_ns(&answer) / QUIET_NS;
            let is_said =
                kinds(&answer).iter().any(|kind| [DoubtKind::TwoHumps, DoubtKind::WideInterval].contains(kind));
            assert!(
                (0.75..=1.25).contains(&off) || is_said,
                "share {share}, spread {spread}: {off} {:?}",
                answer.doubts
            );
        }
    }
    let every_second = |n: usize| if n.is_multiple_of(2) { QUIET_NS } else { 3.0 * QUIET_NS };
    let answer = answer(Scripted::new(move |_, n| (every_second(n), None)), &Effort::default());
    assert!(kinds(&answer).contains(&DoubtKind::TwoHumps), "{:?}", answer.doubts);
}

#[test]
fn disturbed_samples_are_dropped_and_counted() {
    let script = |_: &_, n: usize| {
        if n.is_multiple_of(2) { (QUIET_NS, None) } else { (3.0 * QUIET_NS, Some(Disturbance::ContextSwitch)) }
    };
    let answer = answer(Scripted::new(script), &Effort::default());
    let dropped = answer.dropped.unwrap();
    assert!(dropped.context_switches >= 14 && dropped.clock_steps == 0, "{dropped:?}");
    assert_eq!(median_ns(&answer), QUIET_NS);
    assert_eq!(kinds(&answer), [DoubtKind::Dropped]);
    let raw = &answer.raw[0];
    assert_eq!(raw.dropped.len() as u64, dropped.context_switches);
    assert_eq!(raw.issue_ns.len(), answer.samples_ns.len() + raw.dropped.len());
    assert!(raw.dropped.iter().all(|dropped| raw.issue_ns[dropped.place as usize] == 3.0 * QUIET_NS));
}

#[test]
fn if_all_samples_are_dropped_sampling_ends_without_a_figure() {
    let mut machine = Scripted::new(|_, _| (QUIET_NS, Some(Disturbance::ClockStep)));
    let answer = asked(&mut machine, &[4096], &Effort::default()).pop().unwrap().unwrap();
    assert_eq!(answer.delivered_rate_bytes_per_s, None);
    assert_eq!(kinds(&answer), [DoubtKind::NoSamples]);
    assert!(answer.dropped.unwrap().clock_steps > 0);
    assert!(machine.played < 100_000, "{}", machine.played);
}

#[test]
fn one_refused_case_does_not_affect_the_others() {
    let mut machine = Scripted::new(|_, _| (QUIET_NS, None));
    machine.refused_bytes = Some(128);
    let answers = asked(&mut machine, &[64, 128, 256], &Effort::default());
    assert!(matches!(answers[1], Err(BenchError::Machine(MachineError::Unsupported(_)))));
    assert!(answers[0].is_ok() && answers[2].is_ok());
    assert_eq!(machine.runs.iter().filter(|bytes| **bytes == 128).count(), 1);
}

#[test]
fn an_interrupted_round_keeps_its_samples() {
    let mut machine = Scripted::new(|_, _| (QUIET_NS, None));
    machine.interrupted_at_run = Some(5);
    let answers = asked(&mut machine, &[64, 128, 256], &Effort::default());
    // Five runs are a trial and a visit of two cases each, and a trial of the third.
    let kept = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(kept, 2);
    let ended = |answer: &Result<_, _>| matches!(answer, Err(BenchError::Machine(MachineError::Interrupted { .. })));
    assert_eq!(answers.iter().filter(|answer| ended(answer)).count(), 1);

    let mut machine = Scripted::new(|_, _| (QUIET_NS, None));
    let cases = cases(&machine, &[64, 128, 256]);
    let mut visits = 0;
    let mut once = |_| {
        visits += 1;
        visits <= 1
    };
    let question = question("mmio_write_bandwidth").unwrap();
    let answers = measure_all(question, &mut machine, &cases, &Effort::default(), &mut once);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
}

#[test]
fn pointer_and_driver_samples_alternate() {
    let question = question("driver_call_overhead").unwrap();
    let is_driver =
        |plan: &lanemark_machine::Plan| matches!(plan.work.steps().next(), Some(lanemark_machine::Step::Driver(_)));
    // A common slow-down does not change the difference.
    let mut machine = Scripted::new(move |plan, n| {
        let pass = if is_driver(plan) { 20_000.0 } else { 10_000.0 } + 100.0 * (n / 12) as f64;
        (pass * plan.passes as f64, None)
    });
    let cases = (question.cases)(machine.facts(), &Axes { sizes: Some(vec![64]), ..Axes::default() });
    let answer = measure_all(question, &mut machine, &cases, &Effort::default(), &mut |_| true).remove(0).unwrap();
    let overhead = answer.latency_ns.unwrap();
    assert!((overhead.median - 10_000.0).abs() <= 100.0, "{overhead:?}");
    assert_eq!(answer.raw.iter().map(|raw| raw.plan.as_str()).collect::<Vec<_>>(), ["driver", "pointer"]);
}
