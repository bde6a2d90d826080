//! The bottleneck that an answer names: the critical path adds up, and it names what the sensitivities name.
//!
//! The exceptions are listed in `docs/bottlenecks.md`, which this test compares; `LANEMARK_BLESS=1` rewrites it.

mod random_platform;

use lanemark_bench::{Axes, CATALOGUE, Case, Effort, plan_for};
use lanemark_checks::on_all_cores;
use lanemark_machine::{Cause, Facts, Machine, Samples, TimeBase};
use lanemark_platform::{Origin, PRESETS, Platform, preset};
use lanemark_record::{Answer, Sensitivity};
use lanemark_report::acts_on_bottleneck;
use lanemark_runner::{Cancel, OpenTarget, question, sensitivities};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::Random;

/// The smallest and the largest case of each method of a question.
fn ends(question: &lanemark_bench::Question, facts: &Facts) -> Vec<Case> {
    let cases = (question.cases)(facts, &Axes::default());
    let mut ends: Vec<Case> = Vec::new();
    for case in &cases {
        let same = || cases.iter().filter(|other| other.method == case.method);
        let is_end = |size: Option<u64>| size == Some(case.size);
        if is_end(same().map(|other| other.size).min()) || is_end(same().map(|other| other.size).max()) {
            ends.push(case.clone());
        }
    }
    ends
}

#[test]
fn the_critical_path_of_every_question_adds_up_to_its_time_with_and_without_fast_forward() {
    let effort = Effort { simulated_passes: Some(3), ..Effort::default() };
    let runs = on_all_cores(PRESETS.iter().map(|preset| preset.name), |name| {
        let mut runs = 0;
        let platform = preset(name).unwrap().unwrap();
        for question in CATALOGUE.iter().filter(|question| question.ask.is_none()) {
            let Ok(mut quick) = SimulatedMachine::new(&platform) else { continue };
            let mut detailed = SimulatedMachine::new(&platform).unwrap().in_detail();
            for case in ends(question, quick.facts()).iter().filter(|case| case.size <= 64 << 10) {
                let plan = plan_for(question, case, TimeBase::Simulated, &effort);
                let mut samples = [Samples::wanted(2), Samples::wanted(2)];
                let [first, second] = &mut samples;
                if quick.run(&plan, first).is_err() {
                    continue;
                }
                detailed.run(&plan, second).unwrap();
                for samples in &samples {
                    let path: Ticks = samples.path.iter().map(|share| share.span).sum();
                    let time: Ticks = samples.taken.iter().map(|sample| sample.delivered).sum();
                    assert_eq!(path, time, "{} on {name}, {case:?}: {:?}", question.name, samples.path);
                }
                let what = format!("{} on {name}, {case:?}", question.name);
                assert_uses_fit(&samples[0], &what);
                assert_uses_fit(&samples[1], &what);
                assert_eq!(samples[0].resources, samples[1].resources, "{what}");
                assert_eq!(samples[0].path, samples[1].path, "{} on {name}, {case:?}", question.name);
                runs += 1;
            }
        }
        runs
    });
    let runs: usize = runs.iter().sum();
    assert!(runs > 300, "{runs} runs");
}

#[test]
fn a_difference_of_two_plans_has_the_difference_of_their_critical_paths() {
    let mut with_path = 0;
    for name in PRESETS.iter().map(|preset| preset.name) {
        let mut target = OpenTarget::of_platform(&preset(name).unwrap().unwrap()).unwrap();
        for question in ["interrupt_latency", "descriptor_overhead", "driver_call_overhead", "fence_cost"]
            .map(|name| question(name).unwrap())
        {
            for case in ends(question, target.facts()).iter().filter(|case| case.size <= 64 << 10) {
                let answer = target.ask(question, case, &Effort::default()).unwrap();
                let what = format!("{} on {name}, {case:?}: {:?}", question.name, answer.critical_path);
                if answer.critical_path.is_empty() {
                    // Posted stores end after their instructions, so a fence behind them has no path of its own; nor
                    // has a line through several plans.
                    assert!(["fence_cost", "driver_call_overhead"].contains(&question.name), "{what}");
                    continue;
                }
                let sum: f64 = answer.critical_path.iter().map(|part| part.share_percent).sum();
                assert!((sum - 100.0).abs() < 1e-6, "{what}");
                // What calls and interrupts add is work of the driver, of the card and of the core; no data move.
                if question.name == "interrupt_latency" {
                    assert_eq!(answer.waits[0].cause, "driver", "{what}");
                }
                if answer.is_difference() {
                    let formula = answer.formula.as_ref();
                    assert!(formula.is_none_or(|formula| formula.bound.is_none()), "{what}");
                }
                with_path += 1;
            }
        }
    }
    assert!(with_path > 60, "{with_path} with a path");
}

/// Asserts that no resource is in use for longer than the samples.
fn assert_uses_fit(samples: &Samples, what: &str) {
    for used in &samples.resources {
        assert!(used.share() <= 1.0 && used.busy > Ticks::ZERO, "{what}: {used:?}");
    }
}

/// One answer on a simulated platform.
fn answer(platform: &Platform, name: &str, axes: &Axes) -> (Answer, Case) {
    let mut target = OpenTarget::of_platform(platform).unwrap();
    let question = question(name).unwrap();
    let case = target.cases(question, axes).pop().unwrap();
    (target.ask(question, &case, &Effort::default()).unwrap(), case)
}

fn with(platform: &Platform, changes: &[(&str, f64)]) -> Platform {
    let origin = || Origin::Assumed("of the test".to_owned());
    changes.iter().fold(platform.clone(), |platform, (key, value)| platform.with(key, *value, origin()).unwrap())
}

fn rate(platform: &Platform, axes: &Axes) -> f64 {
    answer(platform, "dma_read_bandwidth", axes).0.delivered_rate_bytes_per_s.unwrap().median
}

#[test]
fn tags_are_named_where_more_of_them_help_and_the_data_path_where_it_is_the_limit() {
    let axes = Axes { sizes: Some(vec![1 << 20]), ..Axes::default() };
    let card = with(
        &preset("card-gen5-x16").unwrap().unwrap(),
        &[("link.generation", 3.0), ("dma.beat_bytes", 16.0), ("dma.beat_ns", 1.215)],
    );
    let mut named = Vec::new();
    for tags in [8.0, 16.0, 32.0, 64.0, 128.0, 256.0] {
        for mrrs in [128.0, 512.0, 1024.0, 4096.0] {
            let card = with(&card, &[("dma.tags", tags), ("link.mrrs_bytes", mrrs)]);
            let before = rate(&card, &axes);
            let more_tags = rate(&with(&card, &[("dma.tags", tags * 2.0)]), &axes) / before - 1.0;
            let faster_path = rate(&with(&card, &[("dma.beat_ns", 1.215 / 2.0)]), &axes) / before - 1.0;
            let (answer, _) = answer(&card, "dma_read_bandwidth", &axes);
            let cause = Cause::named(&answer.waits[0].cause).unwrap();
            let what =
                format!("{tags} tags, MRRS {mrrs}: {:?}; tags {more_tags:.3}, path {faster_path:.3}", answer.waits);
            assert_eq!(cause, if more_tags > faster_path { Cause::Tag } else { Cause::DataPath }, "{what}");
            named.push(cause);
        }
    }
    let tags = named.iter().filter(|cause| **cause == Cause::Tag).count();
    assert!((5..=15).contains(&tags), "{tags} of {} points are limited by tags", named.len());
}

#[test]
fn readers_behind_one_uplink_wait_for_the_link_and_not_for_tags() {
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    let flows = (0..8).map(|card| format!("host:{card}").parse().unwrap()).collect();
    let axes = Axes { sizes: Some(vec![1 << 20]), flows: Some(flows), ..Axes::default() };
    let (answer, _) = answer(&rosta, "shared_link", &axes);
    assert_eq!(answer.waits[0].cause, "link_busy", "{:?}", answer.waits);
    assert!(answer.waits[0].share_percent > 90.0, "{:?}", answer.waits);
}

/// The largest improvement of the figure.
fn best(sensitivities: &[Sensitivity]) -> Option<&Sensitivity> {
    sensitivities.first().filter(|best| best.change_percent.abs() >= 1.0)
}

#[test]
fn the_first_cause_of_the_critical_path_is_changed_by_the_parameter_with_the_largest_effect() {
    let mut random = Random(22);
    let cases: Vec<_> = (0..60)
        .map(|number| {
            let platform = random_platform::platform(&mut random);
            (number, platform, random.pick(&["dma_read_bandwidth", "dma_write_bandwidth"]))
        })
        .collect();
    let exceptions: Vec<String> = on_all_cores(cases, |(number, platform, name)| {
        let axes = Axes { sizes: Some(vec![64 << 10]), ..Axes::default() };
        let (answer, case) = answer(&platform, name, &axes);
        let (question, effort) = (question(name).unwrap(), Effort::default());
        let found = sensitivities(&platform, question, &case, &answer, &effort, &Cancel::new());
        let bottleneck = Cause::named(&answer.waits[0].cause).unwrap().name();
        let share = answer.waits[0].share_percent;
        best(&found).filter(|best| acts_on_bottleneck(&answer, &best.key) != Some(true)).map(|best| {
            let Sensitivity { key, change_percent, .. } = best;
            format!("| {number} | `{name}` | `{bottleneck}` {share:.0} % | `{key}` {change_percent:+.1} % |\n")
        })
    })
    .into_iter()
    .flatten()
    .collect();
    let (agreeing, exceptions) = (60 - exceptions.len(), exceptions.concat());
    let page = format!(
        "# Bottlenecks that sensitivities contradict\n\n\
         Generated by `checks/tests/bottlenecks.rs`. On {} random platforms, the first cause of the critical\n\
         path is one that the parameter with the largest effect acts on, in {agreeing} cases. The others:\n\n\
         | platform | question | critical path | largest effect |\n| --- | --- | --- | --- |\n{exceptions}",
        60
    );
    let path = lanemark_checks::root().join("docs/bottlenecks.md");
    if std::env::var_os("LANEMARK_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), page, "run this test with LANEMARK_BLESS=1");
    assert!(agreeing * 100 >= 95 * 60, "{agreeing} of 60 agree:\n{exceptions}");
}
