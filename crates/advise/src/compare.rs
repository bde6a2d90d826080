//! Comparison of base records with new records.

mod between_runs;
mod group;
mod incomparable;
mod named;

use between_runs::{Figures, LEVEL, Ratio, Unusable, correct_for_number};
pub(crate) use group::is_same;
use group::{Group, grouped};
pub use incomparable::Incomparable;
use incomparable::{check, refuse_twice, same_kind};
use lanemark_record::{Change, Comparison, Criteria, Interval, Pair, Repeated, Side, Summary};
pub use named::Named;
use named::{names, question, target};

/// Pairs the answers of both sides by question, method, size, alignment and cores, and by target
/// unless each side has only one. Repeated answers of a record are paired in order.
///
/// The figure of a side is the geometric mean of the median times of its records, and a ratio is
/// that of the new figure to the base figure. It has a verdict by the variation between the
/// records, corrected for the number of answers: without any change, one comparison in twenty has a
/// verdict *slower* or *faster* at most. Simulations have no variation and are compared exactly.
///
/// # Errors
/// [`Incomparable`], with the reason.
pub fn compare(base: &[Named<'_>], new: &[Named<'_>], criteria: &Criteria) -> Result<Comparison, Incomparable> {
    check(base, new)?;
    let (asked_base, asked_new) = (names(base, question), names(new, question));
    if asked_base.iter().all(|question| !asked_new.contains(question)) {
        let [base, new] = [asked_base, asked_new].map(|names| names.join(", "));
        return Err(Incomparable::Questions { base, new });
    }
    let (targets_base, targets_new) = (names(base, target), names(new, target));
    let are_single = targets_base.len() == 1 && targets_new.len() == 1;
    let Some((first, others)) = base.split_first() else { return Err(Incomparable::NoRecords { side: "base" }) };
    for other in others.iter().chain(new) {
        for name in names(std::slice::from_ref(first), target) {
            let theirs = names(std::slice::from_ref(other), target);
            let partner = if are_single { theirs.first() } else { theirs.iter().find(|theirs| **theirs == name) };
            if let Some(partner) = partner {
                same_kind((first, name), (other, partner))?;
            }
        }
    }
    let mut comparison = Comparison {
        base_records: base.len() as u64,
        new_records: new.len() as u64,
        criteria: *criteria,
        judged: 0,
        pairs: Vec::new(),
        alone: Vec::new(),
        warnings: Vec::new(),
    };
    let is_same_side = base.len() == new.len() && base.iter().zip(new).all(|(base, new)| base.record == new.record);
    if !is_same_side {
        refuse_twice(&base.iter().chain(new).copied().collect::<Vec<_>>())?;
    }
    let mut free = grouped(new, are_single);
    let mut ratios = Vec::new();
    for before in grouped(base, are_single) {
        match free.iter().position(|after| before.is_same(after, are_single)) {
            Some(place) => {
                let after = free.remove(place);
                let (pair, ratio) = pair(&before, &after, criteria, is_same_side);
                comparison.pairs.push(pair);
                ratios.push(ratio);
            }
            None => comparison.alone.push(before.alone(Side::Base)),
        }
    }
    comparison.alone.extend(free.iter().map(|after| after.alone(Side::New)));
    if comparison.pairs.is_empty() {
        let [base, new] = [targets_base, targets_new].map(|names| names.join(", "));
        return Err(Incomparable::NoPair { base, new });
    }
    judge(&mut comparison, &ratios);
    comparison.warnings = warnings(base, new);
    Ok(comparison)
}

/// The answers of several records, each with its variation between them, in order of appearance.
#[must_use]
pub fn repeated(records: &[Named<'_>]) -> Vec<Repeated> {
    let are_single = names(records, target).len() == 1;
    let of_group = |group: &Group<'_>| {
        let answer = group.answer();
        let medians: Vec<f64> =
            group.runs.iter().filter_map(|(_, answer)| Some(Summary::of(&answer.samples_ns)?.median)).collect();
        let summary = Summary::of(&medians);
        let between = group.figures().ok().filter(|_| !group.is_simulated);
        Repeated {
            question: answer.question.clone(),
            target: answer.target.clone(),
            method: answer.method.clone(),
            cores: answer.cores(),
            size_bytes: answer.size_bytes,
            alignment_bytes: answer.alignment_bytes,
            quantity: answer.quantity,
            records: medians.len() as u64,
            median_ns: summary.map(|summary| summary.median),
            shortest_ns: summary.map(|summary| summary.min),
            longest_ns: summary.map(|summary| summary.max),
            between_runs_percent: between.and_then(|figures| figures.between_runs_percent()),
        }
    };
    grouped(records, are_single).iter().map(of_group).collect()
}

/// Facts about the records that a reader needs before using the verdicts.
fn warnings(base: &[Named<'_>], new: &[Named<'_>]) -> Vec<String> {
    let mut warnings = Vec::new();
    for one in base.iter().chain(new) {
        let named = one.record.targets.iter().filter_map(|target| Some((&target.name, target.runtime.as_ref()?)));
        for (target, because) in named.filter_map(|(target, runtime)| Some((target, runtime.no_card_because()?))) {
            warnings.push(format!("'{target}' of {}: {because}", one.name));
        }
        if one.record.interrupted {
            warnings.push(format!("{} was stopped early: answers may be missing", one.name));
        }
    }
    let processor = |one: &Named<'_>| Some(one.record.host.as_ref()?.processor.clone());
    if let Some((first, other)) = base.first().and_then(|first| {
        let here = processor(first)?;
        Some((first, new.iter().find(|other| processor(other).is_some_and(|there| there != here))?))
    }) {
        warnings.push(format!(
            "{} and {} were measured on different processors: the ratios compare machines",
            first.name, other.name
        ));
    }
    warnings
}

/// A pair without its probability, and the ratio of a measurement, which gives it.
fn pair(before: &Group<'_>, after: &Group<'_>, criteria: &Criteria, is_same_side: bool) -> (Pair, Option<Ratio>) {
    let (first, figures) = (before.answer(), [before.figures(), after.figures()]);
    let typical = |figures: &Result<Figures, Unusable>| figures.as_ref().ok().map(Figures::typical_ns);
    let (before_ns, after_ns) = (typical(&figures[0]), typical(&figures[1]));
    let mut pair = Pair {
        question: first.question.clone(),
        target: first.target.clone(),
        target_after: Some(after.answer().target.clone()).filter(|after| *after != first.target),
        method: first.method.clone(),
        cores: first.cores(),
        size_bytes: first.size_bytes,
        alignment_bytes: first.alignment_bytes,
        quantity: first.quantity,
        base_records: before.measured(),
        new_records: after.measured(),
        before_ns,
        after_ns,
        ratio: before_ns.zip(after_ns).map(|(before, after)| after / before),
        ratio_ci95: None,
        between_runs_percent: None,
        is_variation_assumed: false,
        p_corrected: None,
        verdict: Change::NoDifferenceSeen,
        undecided_because: None,
        exceeds_limit: false,
        doubts: [before.doubts("base"), after.doubts("new")].concat(),
    };
    let undecided = |pair: Pair, because: &str| {
        let pair = Pair { verdict: Change::Undecided, undecided_because: Some(because.to_owned()), ..pair };
        (pair, None)
    };
    let are_same = is_same_side || before.is_simulated && before.answer().samples_ns == after.answer().samples_ns;
    if are_same && before.measured() > 0 {
        let at_one = Interval { low: 1.0, high: 1.0 };
        let ratio_ci95 = pair.ratio.map(|_| at_one);
        return (Pair { ratio_ci95, ..pair }, None);
    }
    let [base, new] = match figures {
        [Ok(base), Ok(new)] => [base, new],
        [Err(Unusable::NoSamples), _] | [_, Err(Unusable::NoSamples)] => return undecided(pair, "no samples"),
        _ => return undecided(pair, "times that are not positive"),
    };
    if before.is_simulated {
        let differ = |group: &Group<'_>| group.runs.iter().any(|run| run.1.samples_ns != group.answer().samples_ns);
        if differ(before) || differ(after) {
            return undecided(pair, "simulations of one side differ, so they are of different platforms");
        }
        let ratio = pair.ratio.unwrap_or(1.0);
        pair.ratio_ci95 = Some(Interval { low: ratio, high: ratio });
        let is_beyond = |percent: f64| ratio > 1.0 + percent / 100.0;
        pair.verdict = match criteria.min_effect_percent_of(true) {
            percent if is_beyond(percent) => Change::Slower,
            percent if ratio < 1.0 / (1.0 + percent / 100.0) => Change::Faster,
            _ => Change::NoDifferenceSeen,
        };
        pair.exceeds_limit = criteria.fail_above_percent.is_some_and(is_beyond);
        return (pair, None);
    }
    let Some(ratio) = Ratio::of(&base, &new, criteria) else { return undecided(pair, "too few samples") };
    pair.ratio_ci95 = Some(ratio.interval());
    pair.between_runs_percent = ratio.between_runs_percent();
    pair.is_variation_assumed = ratio.is_assumed();
    (pair, Some(ratio))
}

/// Adds the verdicts of measurements, whose probabilities are corrected for their number.
fn judge(comparison: &mut Comparison, ratios: &[Option<Ratio>]) {
    let criteria = comparison.criteria;
    let corrected = |percent: f64| -> Vec<f64> {
        let mut all: Vec<f64> = ratios.iter().flatten().map(|ratio| ratio.probability_beyond(percent)).collect();
        correct_for_number(&mut all);
        all
    };
    let of_interest = corrected(criteria.min_effect_percent_of(false));
    let above_limit = criteria.fail_above_percent.map(corrected);
    comparison.judged = of_interest.len() as u64;
    let measured = comparison.pairs.iter_mut().zip(ratios).filter_map(|(pair, ratio)| Some((pair, ratio.as_ref()?)));
    for (place, (pair, ratio)) in measured.enumerate() {
        pair.p_corrected = Some(of_interest[place]);
        pair.verdict = match (of_interest[place] < LEVEL, ratio.is_slower()) {
            (false, _) => Change::NoDifferenceSeen,
            (true, true) => Change::Slower,
            (true, false) => Change::Faster,
        };
        pair.exceeds_limit = ratio.is_slower() && above_limit.as_ref().is_some_and(|all| all[place] < LEVEL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_record::{Answer, CallerCores, Detail, DeviceKind, Record, Runtime, TargetKind};

    fn answer(access: &str, samples_ns: &[f64]) -> Answer {
        Answer { samples_ns: samples_ns.to_vec(), ..fixture::answer(access, 64, Some(1e9)) }
    }

    fn record(kind: TargetKind, answers: Vec<Answer>) -> Record {
        Record { targets: vec![fixture::target(kind)], ..fixture::record(answers) }
    }

    fn real(samples_ns: &[f64]) -> Record {
        record(TargetKind::Real, vec![answer("8", samples_ns)])
    }

    /// Records with names by their place.
    fn named<'a>(names: &'a [String], records: &'a [Record]) -> Vec<Named<'a>> {
        names.iter().zip(records).map(|(name, record)| Named { name, record }).collect()
    }

    fn judged(base: &[Record], new: &[Record], criteria: &Criteria) -> Result<Comparison, Incomparable> {
        let names = |side: &str| (1..=9).map(|n| format!("{side}{n}.json")).collect::<Vec<String>>();
        compare(&named(&names("base"), base), &named(&names("new"), new), criteria)
    }

    /// One record a side.
    fn compared(first: &Record, second: &Record) -> Result<Comparison, Incomparable> {
        judged(std::slice::from_ref(first), std::slice::from_ref(second), &Criteria::default())
    }

    fn only_pair(first: &Record, second: &Record) -> Pair {
        let [pair] = compared(first, second).unwrap().pairs.try_into().unwrap();
        pair
    }

    /// Five records a side, without variation within a run.
    fn five(base: [f64; 5], new: [f64; 5], criteria: &Criteria) -> Pair {
        let records = |medians: [f64; 5]| medians.map(|median| real(&[median; 9]));
        let [pair] = judged(&records(base), &records(new), criteria).unwrap().pairs.try_into().unwrap();
        pair
    }

    const QUIET: [f64; 5] = [99.8, 99.9, 100.0, 100.1, 100.2];

    fn times(by: f64) -> [f64; 5] {
        QUIET.map(|median| median * by)
    }

    #[test]
    fn a_record_is_as_fast_as_itself() {
        let samples: Vec<f64> = (0..15).map(|n| 100.0 + f64::from(n)).collect();
        let pair = only_pair(&real(&samples), &real(&samples));
        assert_eq!((pair.ratio, pair.verdict), (Some(1.0), Change::NoDifferenceSeen));
        let level = only_pair(&real(&[5.0; 9]), &real(&[5.0; 9]));
        assert_eq!(level.verdict, Change::NoDifferenceSeen, "the interval from 1 to 1 holds 1");
    }

    #[test]
    fn samples_without_a_ratio_are_no_different_from_themselves() {
        for samples in [&[5.0; 7][..], &[-5.0; 9], &[0.0; 9]] {
            assert_eq!(only_pair(&real(samples), &real(samples)).verdict, Change::NoDifferenceSeen, "{samples:?}");
        }
        assert_eq!(only_pair(&real(&[]), &real(&[])).verdict, Change::Undecided, "nothing was measured");
    }

    #[test]
    fn a_change_beyond_the_smallest_of_interest_is_reported_in_both_directions() {
        let verdict = |by, min_effect_percent| {
            five(QUIET, times(by), &Criteria { min_effect_percent, ..Criteria::default() }).verdict
        };
        assert_eq!((verdict(1.03, None), verdict(1.0 / 1.03, None)), (Change::Slower, Change::Faster));
        assert_eq!(
            (verdict(1.02, None), verdict(1.0 / 1.02, None)),
            (Change::NoDifferenceSeen, Change::NoDifferenceSeen)
        );
        assert_eq!((verdict(1.01, Some(0.5)), verdict(1.03, Some(5.0))), (Change::Slower, Change::NoDifferenceSeen));
        let noisy = [80.0, 90.0, 100.0, 110.0, 120.0];
        let pair = five(noisy, noisy.map(|median| median * 1.1), &Criteria::default());
        assert_eq!(pair.verdict, Change::NoDifferenceSeen);
        assert!(pair.ratio_ci95.is_some_and(|interval| interval.low < 0.95 && interval.high > 1.2), "{pair:?}");
        assert!((pair.ratio.unwrap() - 1.1).abs() < 1e-9 && !pair.is_variation_assumed);
        assert_eq!((pair.base_records, pair.new_records), (5, 5));
    }

    #[test]
    fn a_slow_down_fails_only_if_it_certainly_exceeds_the_threshold() {
        let fails = |by: f64| {
            five(QUIET, times(by), &Criteria { fail_above_percent: Some(5.0), ..Criteria::default() }).exceeds_limit
        };
        assert_eq!((fails(1.045), fails(1.05), fails(1.06), fails(1.0 / 1.06)), (false, false, true, false));
        assert!(!five(QUIET, times(2.0), &Criteria::default()).exceeds_limit, "no limit was given");
    }

    #[test]
    fn the_number_of_answers_is_corrected_for() {
        // Beyond 2 %, t is 3 with 8 degrees of freedom: 0.017 for one answer, and 0.69 for forty.
        let (low, high) = ([97.0, 98.5, 100.0, 101.5, 103.0], [103.6, 105.2, 106.8, 108.4, 110.0]);
        let answers = |changed: f64, count: u64| {
            let of =
                |size: u64| Answer { size_bytes: size, ..answer("8", &[if size == 1 { changed } else { 50.0 }; 9]) };
            record(TargetKind::Real, (1..=count).map(of).collect())
        };
        let verdict = |count| {
            let [base, new] = [low, high].map(|side| side.map(|median| answers(median, count)));
            let found = judged(&base, &new, &Criteria::default()).unwrap();
            assert_eq!(found.judged, count);
            found.pairs[0].verdict
        };
        assert_eq!((verdict(1), verdict(40)), (Change::Slower, Change::NoDifferenceSeen));
    }

    #[test]
    fn with_one_record_a_side_only_a_change_beyond_the_assumption_is_reported() {
        let pair = only_pair(&real(&[100.0; 9]), &real(&[115.0; 9]));
        assert_eq!((pair.verdict, pair.is_variation_assumed), (Change::NoDifferenceSeen, true));
        assert_eq!(pair.between_runs_percent, None);
        assert_eq!(only_pair(&real(&[100.0; 9]), &real(&[150.0; 9])).verdict, Change::Slower);
        let quiet = Criteria { between_runs_percent: 1.0, ..Criteria::default() };
        let told = judged(&[real(&[100.0; 9])], &[real(&[115.0; 9])], &quiet).unwrap();
        assert_eq!(told.pairs[0].verdict, Change::Slower);
    }

    #[test]
    fn a_measurement_that_counts_twice_is_refused() {
        let written = |written_unix_s, ns| Record { written_unix_s: Some(written_unix_s), ..real(&[ns; 9]) };
        let (first, second, third) = (written(1, 5.0), written(2, 5.0), written(3, 5.0));
        let criteria = Criteria::default();
        let twice = judged(&[first.clone(), first.clone()], std::slice::from_ref(&second), &criteria);
        let message = twice.unwrap_err().to_string();
        assert!(message.starts_with("base1.json and base2.json are the same record"), "{message}");
        assert!(judged(&[first.clone(), second.clone()], &[third.clone(), first.clone()], &criteria).is_err());
        assert!(judged(&[first.clone(), second], &[third], &criteria).is_ok());
        let itself = judged(std::slice::from_ref(&first), std::slice::from_ref(&first), &criteria).unwrap();
        assert_eq!(itself.pairs[0].verdict, Change::NoDifferenceSeen);
    }

    #[test]
    fn an_answer_that_some_records_lack_is_judged_by_the_others() {
        let both = record(TargetKind::Real, vec![answer("8", &[5.0; 9]), answer("4", &[5.0; 9])]);
        let base = [both.clone(), real(&[5.0; 9]), both.clone(), both.clone()];
        let found = judged(&base, &[both.clone(), both], &Criteria::default()).unwrap();
        assert_eq!(found.pairs.iter().map(|pair| pair.base_records).collect::<Vec<_>>(), [4, 3]);
        assert!(found.alone.is_empty());
    }

    #[test]
    fn repeated_answers_have_their_variation_between_runs() {
        let records = [99.0, 100.0, 101.0].map(|median| real(&[median; 9]));
        let names = ["a", "b", "c"].map(str::to_owned);
        let [found] = repeated(&named(&names, &records)).try_into().unwrap();
        assert_eq!((found.records, found.median_ns), (3, Some(100.0)));
        assert_eq!((found.shortest_ns, found.longest_ns), (Some(99.0), Some(101.0)));
        assert!((found.between_runs_percent.unwrap() - 1.0).abs() < 0.01, "{found:?}");
        let [one] = repeated(&named(&names[..1], &records[..1])).try_into().unwrap();
        assert_eq!(one.between_runs_percent, None);
    }

    #[test]
    fn simulations_of_one_side_must_agree() {
        let simulated = |ns| record(TargetKind::Simulated, vec![answer("8", &[ns])]);
        let found = judged(&[simulated(5.0), simulated(5.0)], &[simulated(6.0)], &Criteria::default()).unwrap();
        assert_eq!((found.pairs[0].verdict, found.judged), (Change::Slower, 0));
        let found = judged(&[simulated(5.0), simulated(5.1)], &[simulated(6.0)], &Criteria::default()).unwrap();
        assert_eq!(found.pairs[0].verdict, Change::Undecided);
    }

    #[test]
    fn too_few_samples_and_times_that_are_not_positive_are_undecided() {
        for (before, after) in
            [(&[5.0; 7][..], &[9.0; 9][..]), (&[], &[9.0; 9]), (&[-5.0; 9], &[9.0; 9]), (&[0.0; 9], &[9.0; 9])]
        {
            assert_eq!(only_pair(&real(before), &real(after)).verdict, Change::Undecided, "{before:?}");
        }
    }

    #[test]
    fn one_sample_of_a_simulation_is_enough() {
        let simulated = |ns| record(TargetKind::Simulated, vec![answer("8", &[ns])]);
        let pair = only_pair(&simulated(100.0), &simulated(103.0));
        assert_eq!((pair.ratio_ci95, pair.verdict), (Some(Interval { low: 1.03, high: 1.03 }), Change::Slower));
        assert_eq!(only_pair(&simulated(100.0), &simulated(100.0)).verdict, Change::NoDifferenceSeen);
    }

    #[test]
    fn answers_without_a_counterpart_are_listed_by_side() {
        let first = record(TargetKind::Real, vec![answer("8", &[5.0; 9]), answer("4", &[5.0; 9])]);
        let second =
            record(TargetKind::Real, vec![answer("8", &[5.0; 9]), answer("8", &[5.0; 9]), answer("2", &[5.0; 9])]);
        let comparison = compared(&first, &second).unwrap();
        assert_eq!(comparison.pairs.len(), 1);
        let alone: Vec<String> =
            comparison.alone.iter().map(|alone| format!("{:?}: {}", alone.side, alone.method)).collect();
        assert_eq!(alone, ["Base: WC 4", "New: WC 8", "New: WC 2"]);
    }

    #[test]
    fn single_targets_are_paired_under_any_name_and_several_by_name() {
        let renamed = |mut record: Record, name: &str| {
            name.clone_into(&mut record.targets[0].name);
            name.clone_into(&mut record.answers[0].target);
            record
        };
        let other = renamed(real(&[9.0; 9]), "other");
        let pair = only_pair(&real(&[5.0; 9]), &other);
        assert_eq!(
            (pair.verdict, &pair.target[..], pair.target_after),
            (Change::Slower, "card", Some("other".to_owned()))
        );
        let mut both = real(&[5.0; 9]);
        both.targets.extend(other.targets.clone());
        both.answers.extend(other.answers.clone());
        let pair = only_pair(&both, &other);
        assert_eq!((pair.verdict, pair.target_after), (Change::NoDifferenceSeen, None));
        assert!(matches!(compared(&both, &renamed(real(&[9.0; 9]), "third")), Err(Incomparable::NoPair { .. })));
    }

    #[test]
    fn incomparable_records_are_refused_with_a_reason() {
        let of = |kind| record(kind, vec![answer("8", &[5.0; 9])]);
        let refused = |first: &Record, second: &Record| compared(first, second).unwrap_err().to_string();
        let real = of(TargetKind::Real);
        for (kind, reason) in [
            (TargetKind::Simulated, "'card' of base1.json is real and 'card' of new1.json is simulated"),
            (TargetKind::Emulated, "timings in an emulator are not meaningful"),
            (TargetKind::Formula, "'card' of new1.json has formulas only"),
        ] {
            let message = refused(&real, &of(kind));
            assert!(message.contains(reason), "{message}");
        }
        let emulated = of(TargetKind::Emulated);
        assert!(compared(&emulated, &emulated).is_ok());
        assert!(
            refused(&real, &Record { schema: 1, ..real.clone() })
                .contains("base1.json has schema 4 and new1.json has schema 1")
        );
        assert!(refused(&real, &Record { answers: vec![], ..real.clone() }).contains("new1.json has no answers"));
        let mut asked = real.clone();
        asked.answers[0].question = "mmio_read_latency".to_owned();
        assert!(
            refused(&real, &asked).contains("the base has mmio_write_bandwidth; the new side has mmio_read_latency")
        );
        let mut larger = real.clone();
        larger.answers[0].size_bytes = 128;
        assert!(refused(&real, &larger).contains("no answer has a counterpart"));
        assert!(refused(&real, &Record { targets: vec![], ..real.clone() }).contains("does not list its target"));
    }

    fn behind(device_kind: DeviceKind, is_emulated: bool) -> Record {
        let mut record = real(&[1.0, 1.1, 0.9, 1.0, 1.0, 1.0]);
        record.targets[0].runtime = Some(Runtime { device_kind, is_emulated, software: None });
        record
    }

    #[test]
    fn a_card_is_not_compared_with_a_device_that_is_not_a_card() {
        let (cpu, card) = (behind(DeviceKind::Cpu, false), behind(DeviceKind::Accelerator, false));
        let emulated = behind(DeviceKind::Accelerator, true);
        for (first, second) in [(&cpu, &card), (&card, &cpu), (&emulated, &card), (&cpu, &emulated)] {
            assert!(matches!(compared(first, second), Err(Incomparable::Kinds { .. })), "{:?}", second.targets);
        }
        assert!(compared(&card, &card).unwrap().warnings.is_empty());
        let warned = compared(&cpu, &cpu).unwrap().warnings;
        assert_eq!(warned.len(), 2);
        assert!(warned[0].contains("the device is the processor itself"), "{warned:?}");
    }

    #[test]
    fn answers_are_paired_by_core() {
        let about = |cores: &[u32]| {
            let detail = |core| Detail::Caller(CallerCores { core: Some(core), cpus: vec![] });
            let answers = cores.iter().map(|core| Answer { detail: Some(detail(*core)), ..answer("8", &[1.0; 6]) });
            record(TargetKind::Real, answers.collect())
        };
        let found = compared(&about(&[0, 1]), &about(&[1, 2])).unwrap();
        assert_eq!(found.pairs.iter().map(|pair| &pair.cores[..]).collect::<Vec<_>>(), [[1]]);
        assert_eq!(found.alone.iter().map(|alone| &alone.cores[..]).collect::<Vec<_>>(), [[0], [2]]);
    }
}
