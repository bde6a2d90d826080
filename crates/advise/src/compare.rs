//! Comparison of two records, with confidence intervals.

use lanemark_record::{Alone, Answer, Change, Comparison, Interval, Pair, Record, Runtime, Summary, TargetKind};

/// Two records cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Incomparable {
    /// Their formats differ.
    #[error(
        "the first record has schema {first} and the second {second}: figures of two formats may differ in meaning; measure both again with one version of lanemark"
    )]
    Schemas {
        /// Schema of the first record.
        first: u32,
        /// Schema of the second record.
        second: u32,
    },
    /// A record has no answers.
    #[error("the {record} record has no answers")]
    Empty {
        /// `first` or `second`.
        record: &'static str,
    },
    /// The records have no question in common.
    #[error("the records have no question in common: the first has {first}; the second has {second}")]
    Questions {
        /// Questions of the first record.
        first: String,
        /// Questions of the second record.
        second: String,
    },
    /// The targets are of different kinds.
    #[error("'{first}' is {first_kind} and '{second}' is {second_kind}: {because}")]
    Kinds {
        /// Target of the first record.
        first: String,
        /// Kind of that target.
        first_kind: &'static str,
        /// Target of the second record.
        second: String,
        /// Kind of that target.
        second_kind: &'static str,
        /// Reason why such times cannot be compared.
        because: &'static str,
    },
    /// A target has formulas only.
    #[error(
        "'{target}' of the {record} record has formulas only and no samples: measure or simulate it with `lanemark bench`"
    )]
    FormulasOnly {
        /// The target.
        target: String,
        /// `first` or `second`.
        record: &'static str,
    },
    /// A target that the record does not list.
    #[error("the {record} record does not list its target '{target}'")]
    Unknown {
        /// The target.
        target: String,
        /// `first` or `second`.
        record: &'static str,
    },
    /// No answer has a counterpart in the other record.
    #[error(
        "no answer has a counterpart in the other record: question, method, size and alignment must be equal, and the target's name if a record has several targets; the targets are {first} and {second}"
    )]
    NoPair {
        /// Targets of the first record.
        first: String,
        /// Targets of the second record.
        second: String,
    },
}

/// Pairs the answers of two records by question, method, size, alignment and cores, and by target
/// unless each record has only one. Repeated answers are paired in order.
///
/// The ratio of a pair is that of the median times per iteration, second over first, with its
/// bootstrap interval.
///
/// # Errors
/// [`Incomparable`], with the reason.
pub fn compare(first: &Record, second: &Record) -> Result<Comparison, Incomparable> {
    if first.schema != second.schema {
        return Err(Incomparable::Schemas { first: first.schema, second: second.schema });
    }
    for (record, name) in [(first, "first"), (second, "second")] {
        if record.answers.is_empty() {
            return Err(Incomparable::Empty { record: name });
        }
    }
    let (asked_first, asked_second) = (names(first, question), names(second, question));
    if asked_first.iter().all(|question| !asked_second.contains(question)) {
        let [first, second] = [asked_first, asked_second].map(|names| names.join(", "));
        return Err(Incomparable::Questions { first, second });
    }
    let (targets_first, targets_second) = (names(first, target), names(second, target));
    let are_single = targets_first.len() == 1 && targets_second.len() == 1;
    for name in &targets_first {
        let partner =
            if are_single { targets_second.first() } else { targets_second.iter().find(|other| *other == name) };
        if let Some(partner) = partner {
            same_kind((first, name), (second, partner))?;
        }
    }
    let mut comparison = Comparison { pairs: Vec::new(), alone: Vec::new(), warnings: Vec::new() };
    let mut free: Vec<&Answer> = second.answers.iter().collect();
    for before in &first.answers {
        let is_partner = |after: &&Answer| is_same(before, after) && (are_single || before.target == after.target);
        match free.iter().position(is_partner) {
            Some(place) => {
                let is_simulated = kind(first, &before.target) == Some(TargetKind::Simulated);
                comparison.pairs.push(pair(before, free.remove(place), is_simulated));
            }
            None => comparison.alone.push(alone(before, "first")),
        }
    }
    comparison.alone.extend(free.into_iter().map(|after| alone(after, "second")));
    if comparison.pairs.is_empty() {
        let [first, second] = [targets_first, targets_second].map(|names| names.join(", "));
        return Err(Incomparable::NoPair { first, second });
    }
    for (record, name) in [(first, "first"), (second, "second")] {
        let named = record.targets.iter().filter_map(|target| Some((&target.name, target.runtime.as_ref()?)));
        for (target, because) in named.filter_map(|(target, runtime)| Some((target, runtime.no_card_because()?))) {
            comparison.warnings.push(format!("'{target}' of the {name} record: {because}"));
        }
        if record.interrupted {
            comparison.warnings.push(format!("the {name} record was stopped early: answers may be missing"));
        }
    }
    Ok(comparison)
}

fn question(answer: &Answer) -> &str {
    &answer.question
}

fn target(answer: &Answer) -> &str {
    &answer.target
}

/// Distinct names of questions or targets.
fn names(record: &Record, of: fn(&Answer) -> &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for answer in &record.answers {
        if !names.contains(&of(answer)) {
            names.push(of(answer));
        }
    }
    names
}

fn kind(record: &Record, name: &str) -> Option<TargetKind> {
    record.targets.iter().find(|target| target.name == name).map(|target| target.kind)
}

fn runtime<'a>(record: &'a Record, name: &str) -> Option<&'a Runtime> {
    record.targets.iter().find(|target| target.name == name)?.runtime.as_ref()
}

/// Refuses targets of different kinds, or without samples.
fn same_kind(first: (&Record, &str), second: (&Record, &str)) -> Result<(), Incomparable> {
    let of = |(record, name): (&Record, &str), which: &'static str| match kind(record, name) {
        Some(TargetKind::Formula) => Err(Incomparable::FormulasOnly { target: name.to_owned(), record: which }),
        Some(kind) => Ok(kind),
        None => Err(Incomparable::Unknown { target: name.to_owned(), record: which }),
    };
    let kinds = [of(first, "first")?, of(second, "second")?];
    let runtimes = [runtime(first.0, first.1), runtime(second.0, second.1)];
    if let [Some(before), Some(after)] = runtimes
        && before.no_card_because() != after.no_card_because()
    {
        let because = before.no_card_because().or(after.no_card_because()).unwrap_or_default();
        return Err(Incomparable::Kinds {
            first: first.1.to_owned(),
            first_kind: before.label(),
            second: second.1.to_owned(),
            second_kind: after.label(),
            because,
        });
    }
    if kinds[0] == kinds[1] {
        return Ok(());
    }
    let because = if kinds.contains(&TargetKind::Emulated) {
        "timings in an emulator are not meaningful"
    } else {
        "a simulation follows from a platform's parameters, a measurement from a machine; `lanemark reproduce` and `lanemark fit` relate them"
    };
    let [first_kind, second_kind] = kinds.map(|kind| match kind {
        TargetKind::Simulated => "simulated",
        TargetKind::Real => "real",
        TargetKind::Emulated => "emulated",
        TargetKind::Formula => "formulas only",
    });
    Err(Incomparable::Kinds {
        first: first.1.to_owned(),
        first_kind,
        second: second.1.to_owned(),
        second_kind,
        because,
    })
}

fn is_same(before: &Answer, after: &Answer) -> bool {
    before.question == after.question
        && before.method == after.method
        && before.size_bytes == after.size_bytes
        && before.alignment_bytes == after.alignment_bytes
        && before.quantity == after.quantity
        && before.cores() == after.cores()
}

fn pair(before: &Answer, after: &Answer, is_simulated: bool) -> Pair {
    let median = |answer: &Answer| Summary::of(&answer.samples_ns).map(|summary| summary.median);
    let (before_ns, after_ns) = (median(before), median(after));
    // Differences of two times can be zero or negative, and then have no meaningful ratio.
    let positive = |ns: Option<f64>| ns.filter(|ns| *ns > 0.0);
    let ratio = positive(before_ns).zip(positive(after_ns)).map(|(before, after)| after / before);
    let ratio_ci95 = match ratio {
        Some(ratio) if is_simulated => Some(Interval { low: ratio, high: ratio }),
        Some(_) => Interval::of_ratio(&after.samples_ns, &before.samples_ns).filter(|interval| interval.low > 0.0),
        None => None,
    };
    let are_the_same_samples = !before.samples_ns.is_empty() && before.samples_ns == after.samples_ns;
    let verdict = match ratio_ci95 {
        _ if are_the_same_samples => Change::NoDifferenceSeen,
        None => Change::Undecided,
        Some(interval) if interval.low > 1.0 => Change::Slower,
        Some(interval) if interval.high < 1.0 => Change::Faster,
        Some(_) => Change::NoDifferenceSeen,
    };
    let doubts = [("first", before), ("second", after)].into_iter();
    let doubts = doubts.flat_map(|(record, answer)| answer.doubts.iter().map(move |doubt| (record, doubt)));
    Pair {
        question: before.question.clone(),
        target: before.target.clone(),
        target_after: (after.target != before.target).then(|| after.target.clone()),
        method: before.method.clone(),
        cores: before.cores(),
        size_bytes: before.size_bytes,
        alignment_bytes: before.alignment_bytes,
        quantity: before.quantity,
        before_ns,
        after_ns,
        ratio,
        ratio_ci95,
        verdict,
        doubts: doubts.map(|(record, doubt)| format!("{record}: {}", doubt.text)).collect(),
    }
}

fn alone(answer: &Answer, record: &str) -> Alone {
    Alone {
        record: record.to_owned(),
        question: answer.question.clone(),
        target: answer.target.clone(),
        method: answer.method.clone(),
        cores: answer.cores(),
        size_bytes: answer.size_bytes,
        alignment_bytes: answer.alignment_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_record::{CallerCores, Detail, DeviceKind};

    fn answer(access: &str, samples_ns: &[f64]) -> Answer {
        Answer { samples_ns: samples_ns.to_vec(), ..fixture::answer(access, 64, Some(1e9)) }
    }

    fn record(kind: TargetKind, answers: Vec<Answer>) -> Record {
        Record { targets: vec![fixture::target(kind)], ..fixture::record(answers) }
    }

    fn real(samples_ns: &[f64]) -> Record {
        record(TargetKind::Real, vec![answer("8", samples_ns)])
    }

    fn only_pair(first: &Record, second: &Record) -> Pair {
        let [pair] = compare(first, second).unwrap().pairs.try_into().unwrap();
        pair
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
    fn a_difference_is_reported_if_the_whole_interval_excludes_one() {
        assert_eq!(only_pair(&real(&[5.0; 9]), &real(&[5.001; 9])).verdict, Change::Slower);
        assert_eq!(only_pair(&real(&[5.001; 9]), &real(&[5.0; 9])).verdict, Change::Faster);
        let noisy: Vec<f64> = (0..15).map(|n| 90.0 + 2.0 * f64::from(n)).collect();
        let later: Vec<f64> = noisy.iter().map(|ns| ns * 1.02).collect();
        assert_eq!(only_pair(&real(&noisy), &real(&later)).verdict, Change::NoDifferenceSeen);
    }

    #[test]
    fn a_slow_down_fails_only_if_the_whole_interval_exceeds_the_threshold() {
        let slower = |percent: f64| {
            let after = [100.0 * (1.0 + percent / 100.0); 9];
            compare(&real(&[100.0; 9]), &real(&after)).unwrap().slower_by_more_than(5.0).count()
        };
        assert_eq!((slower(5.0 - 1e-9), slower(5.0 + 1e-9), slower(-50.0)), (0, 1, 0));
        let wide: Vec<f64> = (0..9).map(|n| 100.0 + 3.0 * f64::from(n)).collect();
        assert_eq!(compare(&real(&[100.0; 9]), &real(&wide)).unwrap().slower_by_more_than(5.0).count(), 0);
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
    fn answers_without_a_counterpart_are_listed_by_record() {
        let first = record(TargetKind::Real, vec![answer("8", &[5.0; 9]), answer("4", &[5.0; 9])]);
        let second =
            record(TargetKind::Real, vec![answer("8", &[5.0; 9]), answer("8", &[5.0; 9]), answer("2", &[5.0; 9])]);
        let comparison = compare(&first, &second).unwrap();
        assert_eq!(comparison.pairs.len(), 1);
        let alone: Vec<String> =
            comparison.alone.iter().map(|alone| format!("{}: {}", alone.record, alone.method)).collect();
        assert_eq!(alone, ["first: WC 4", "second: WC 8", "second: WC 2"]);
    }

    #[test]
    fn single_targets_are_paired_under_any_name_and_several_by_name() {
        let renamed = |mut record: Record, name: &str| {
            name.clone_into(&mut record.targets[0].name);
            name.clone_into(&mut record.answers[0].target);
            record
        };
        let other = renamed(real(&[6.0; 9]), "other");
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
        assert!(matches!(compare(&both, &renamed(real(&[6.0; 9]), "third")), Err(Incomparable::NoPair { .. })));
    }

    #[test]
    fn incomparable_records_are_refused_with_a_reason() {
        let of = |kind| record(kind, vec![answer("8", &[5.0; 9])]);
        let refused = |first: &Record, second: &Record| compare(first, second).unwrap_err().to_string();
        let real = of(TargetKind::Real);
        for (kind, reason) in [
            (TargetKind::Simulated, "'card' is real and 'card' is simulated"),
            (TargetKind::Emulated, "timings in an emulator are not meaningful"),
            (TargetKind::Formula, "'card' of the second record has formulas only"),
        ] {
            let message = refused(&real, &of(kind));
            assert!(message.contains(reason), "{message}");
        }
        let emulated = of(TargetKind::Emulated);
        assert!(compare(&emulated, &emulated).is_ok());
        assert!(refused(&real, &Record { schema: 1, ..real.clone() }).contains("schema 3 and the second 1"));
        assert!(refused(&real, &Record { answers: vec![], ..real.clone() }).contains("second record has no answers"));
        let mut asked = real.clone();
        asked.answers[0].question = "mmio_read_latency".to_owned();
        assert!(
            refused(&real, &asked).contains("the first has mmio_write_bandwidth; the second has mmio_read_latency")
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
            assert!(matches!(compare(first, second), Err(Incomparable::Kinds { .. })), "{:?}", second.targets);
        }
        assert!(compare(&card, &card).unwrap().warnings.is_empty());
        let warned = compare(&cpu, &cpu).unwrap().warnings;
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
        let found = compare(&about(&[0, 1]), &about(&[1, 2])).unwrap();
        assert_eq!(found.pairs.iter().map(|pair| &pair.cores[..]).collect::<Vec<_>>(), [[1]]);
        assert_eq!(found.alone.iter().map(|alone| &alone.cores[..]).collect::<Vec<_>>(), [[0], [2]]);
    }
}
