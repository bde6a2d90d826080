//! Machines of a corpus by their distance to a record, and the differences from the nearest.
//!
//! The distance is a factor between times, so that twice and half are equally far. Each question counts once, however many
//! cases it has: of its cases the median is taken, of the questions the geometric mean. Machines with few common cases have
//! no distance, because distances over different cases cannot be ranked.

use crate::compare::Named;
use lanemark_record::corpus::{
    Corpus, CorpusMachine, Differences, FactDifference, MachineFacts, Neighbour, Neighbourhood, QuestionDifference,
    TargetNeighbours, TimedCase, TooFew,
};
use lanemark_record::{Target, TargetKind};

/// Least number of common cases of a neighbour.
pub const LEAST_CASES: usize = 5;

/// Least share of the common cases that the machine of the same kind with the most has. With fewer, the distance is that of
/// other questions.
const LEAST_SHARE: f64 = 0.5;

/// A record that cannot be compared with a corpus.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoNeighbours {
    /// Times of a target are not those of a machine.
    #[error("'{target}' of {record}: {because}")]
    NotTimes {
        /// The target.
        target: String,
        /// Name of the record.
        record: String,
        /// The reason, and what to use instead.
        because: &'static str,
    },
    /// No answer has a time.
    #[error("{record} has no answer with a time above 0: measure or simulate with `lanemark bench`")]
    Empty {
        /// Name of the record.
        record: String,
    },
}

/// The corpus of this program: the records in `records/` in compact form.
///
/// # Errors
/// The position and the problem; a test reads it, so that it cannot occur in a program that passed its tests.
pub fn built_in_corpus() -> Result<Corpus, String> {
    Corpus::from_text(include_str!("../../../records/corpus.json"))
}

/// Finds the machines of `corpus` that are nearest to each target of a record.
///
/// Machines of the same kind come first, then measured ones, then simulated ones: a simulation follows from a platform's parameters, a measurement from a machine.
/// A machine of the corpus that is the record itself is none of its neighbours.
///
/// # Errors
/// [`NoNeighbours`] for a target whose times are not those of a machine, and without times.
pub fn neighbours(record: &Named<'_>, corpus: &Corpus) -> Result<Neighbourhood, NoNeighbours> {
    let mut targets = Vec::new();
    for target in &record.record.targets {
        if let Some(because) = not_times(target) {
            let (target, record) = (target.name.clone(), record.name.to_owned());
            return Err(NoNeighbours::NotTimes { target, record, because });
        }
        let own = CorpusMachine::of(record.name, record.record, target);
        if !own.cases.is_empty() {
            targets.push(of_target(&own, corpus));
        }
    }
    if targets.is_empty() {
        return Err(NoNeighbours::Empty { record: record.name.to_owned() });
    }
    Ok(Neighbourhood { machines: corpus.machines.len() as u64, least_cases: LEAST_CASES as u64, targets })
}

/// Reason why the times of a target are not those of a machine, if any.
fn not_times(target: &Target) -> Option<&'static str> {
    match target.kind {
        TargetKind::Emulated => Some("timings in an emulator are not meaningful; measure on a real machine"),
        TargetKind::Formula => {
            Some("it has formulas only and no samples: measure or simulate it with `lanemark bench`")
        }
        TargetKind::Simulated | TargetKind::Real | TargetKind::Imported => target.runtime.as_ref()?.no_card_because(),
    }
}

/// A common case: the record's and that of the machine, with the logarithm of the ratio of the times.
struct Common<'a> {
    here: &'a TimedCase,
    there: &'a TimedCase,
    log_ratio: f64,
}

fn of_target(own: &CorpusMachine, corpus: &Corpus) -> TargetNeighbours {
    let (mut itself, mut too_few) = (Vec::new(), Vec::new());
    let mut shared: Vec<(&CorpusMachine, Vec<Common<'_>>)> = Vec::new();
    for machine in &corpus.machines {
        if is_itself(own, machine) {
            itself.push(machine.file.clone());
            continue;
        }
        let common = common(&own.cases, &machine.cases);
        if !common.is_empty() {
            shared.push((machine, common));
        }
    }
    let needed = |kind: TargetKind| {
        let of_kind = shared.iter().filter(|(machine, _)| machine.kind == kind);
        let most = of_kind.map(|(_, common)| common.len()).max().unwrap_or(0);
        LEAST_CASES.max((most as f64 * LEAST_SHARE).ceil() as usize)
    };
    let mut ranked = Vec::new();
    for (machine, common) in &shared {
        let needed = needed(machine.kind);
        if common.len() < needed {
            let (cases, needed) = (common.len() as u64, needed as u64);
            too_few.push(TooFew { file: machine.file.clone(), kind: machine.kind, cases, needed });
        } else {
            ranked.push((neighbour(machine, common), *machine, common));
        }
    }
    // The order of the corpus decides between equal distances.
    ranked.sort_by(|(one, ..), (other, ..)| {
        let order = |kind| (kind != own.kind, kind != TargetKind::Real);
        order(one.kind).cmp(&order(other.kind)).then(one.distance.total_cmp(&other.distance))
    });
    let differences = ranked.first().map(|(_, machine, common)| Differences {
        file: machine.file.clone(),
        questions: question_differences(common),
        facts: fact_differences(&own.facts, &machine.facts),
    });
    TargetNeighbours {
        target: own.target.clone(),
        kind: own.kind,
        facts: own.facts.clone(),
        cases: own.cases.len() as u64,
        itself,
        neighbours: ranked.into_iter().map(|(neighbour, ..)| neighbour).collect(),
        too_few,
        differences,
    }
}

/// Whether the record is that machine: written in the same second, or both simulated, with the same times.
fn is_itself(own: &CorpusMachine, machine: &CorpusMachine) -> bool {
    own.kind == machine.kind && own.written_unix_s == machine.written_unix_s && own.cases == machine.cases
}

/// The cases of both, repeated ones in order.
fn common<'a>(here: &'a [TimedCase], there: &'a [TimedCase]) -> Vec<Common<'a>> {
    let mut free: Vec<&TimedCase> = there.iter().collect();
    let mut found = Vec::new();
    for case in here {
        if let Some(place) = free.iter().position(|other| other.is_same_case(case)) {
            let there = free.remove(place);
            found.push(Common { here: case, there, log_ratio: (case.median_ns / there.median_ns).ln() });
        }
    }
    found
}

/// The common cases by question, in order of appearance.
fn by_question<'a, 'b>(common: &'b [Common<'a>]) -> Vec<Vec<&'b Common<'a>>> {
    let mut groups: Vec<Vec<&Common<'_>>> = Vec::new();
    for one in common {
        match groups.iter_mut().find(|group| group[0].here.question == one.here.question) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

fn neighbour(machine: &CorpusMachine, common: &[Common<'_>]) -> Neighbour {
    let questions = by_question(common);
    let of_question = |group: &Vec<&Common<'_>>| quantile(group.iter().map(|one| one.log_ratio.abs()), 0.5);
    let distance = questions.iter().map(of_question).sum::<f64>() / questions.len() as f64;
    let ratio = |share: f64| quantile(common.iter().map(|one| one.log_ratio), share).exp();
    Neighbour {
        file: machine.file.clone(),
        target: machine.target.clone(),
        summary: machine.summary.clone(),
        kind: machine.kind,
        cases: common.len() as u64,
        questions: questions.len() as u64,
        distance: distance.exp(),
        ratio_median: ratio(0.5),
        ratio_low: ratio(0.25),
        ratio_high: ratio(0.75),
    }
}

/// The quantile of some values, linear between the nearest two; 0 without values.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let Some(first) = sorted.get(low) else { return 0.0 };
    let next = sorted.get(low + 1).unwrap_or(first);
    first + part * (next - first)
}

fn question_differences(common: &[Common<'_>]) -> Vec<QuestionDifference> {
    let of_question = |group: Vec<&Common<'_>>| {
        let farthest =
            group.iter().max_by(|one, other| one.log_ratio.abs().total_cmp(&other.log_ratio.abs())).copied()?;
        let ratios = || group.iter().map(|one| one.log_ratio);
        Some(QuestionDifference {
            question: farthest.here.question.clone(),
            cases: group.len() as u64,
            ratio_median: quantile(ratios(), 0.5).exp(),
            ratio_min: quantile(ratios(), 0.0).exp(),
            ratio_max: quantile(ratios(), 1.0).exp(),
            farthest: farthest.here.clone(),
            farthest_there_ns: farthest.there.median_ns,
        })
    };
    let mut all: Vec<QuestionDifference> = by_question(common).into_iter().filter_map(of_question).collect();
    all.sort_by(|one, other| other.ratio_median.ln().abs().total_cmp(&one.ratio_median.ln().abs()));
    all
}

/// The facts that differ, or that only one side has.
fn fact_differences(here: &MachineFacts, there: &MachineFacts) -> Vec<FactDifference> {
    let number = |value: Option<u32>, prefix: &str, unit: &str| value.map(|value| format!("{prefix}{value}{unit}"));
    let rows = [
        ("link generation", number(here.generation, "Gen", ""), number(there.generation, "Gen", "")),
        ("link width", number(here.width_lanes, "x", ""), number(there.width_lanes, "x", "")),
        ("MPS", number(here.mps_bytes, "", " B"), number(there.mps_bytes, "", " B")),
        ("MRRS", number(here.mrrs_bytes, "", " B"), number(there.mrrs_bytes, "", " B")),
        ("host", here.host.clone(), there.host.clone()),
        ("card", here.card.clone(), there.card.clone()),
    ];
    let differs = |(_, here, there): &(&str, Option<String>, Option<String>)| here != there;
    let rows = rows.into_iter().filter(differs);
    rows.map(|(name, here, there)| FactDifference { name: name.to_owned(), here, there }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_record::{Answer, DeviceKind, Record, Runtime};

    /// A record with an answer of so many sizes, all with these times.
    fn record(kind: TargetKind, times: &[f64]) -> Record {
        let answer = |(place, time): (usize, &f64)| Answer {
            samples_ns: vec![*time; 3],
            ..fixture::answer("8", 64 << place, Some(1e9))
        };
        let answers = times.iter().enumerate().map(answer).collect();
        Record { targets: vec![fixture::target(kind)], ..fixture::record(answers) }
    }

    fn corpus(records: &[(&str, Record)]) -> Corpus {
        Corpus::of_records(records.iter().map(|(file, record)| (*file, record)))
    }

    fn found(record: &Record, corpus: &Corpus) -> TargetNeighbours {
        let all = neighbours(&Named { name: "my.json", record }, corpus).unwrap();
        let [only] = all.targets.try_into().unwrap();
        only
    }

    fn files(found: &TargetNeighbours) -> Vec<&str> {
        found.neighbours.iter().map(|neighbour| neighbour.file.as_str()).collect()
    }

    const TIMES: [f64; 6] = [100.0, 110.0, 120.0, 130.0, 140.0, 150.0];

    fn times(by: f64) -> Vec<f64> {
        TIMES.iter().map(|time| time * by).collect()
    }

    #[test]
    fn twice_and_half_are_equally_far_and_the_nearest_comes_first() {
        let machines = [("far", 3.0), ("twice", 2.0), ("near", 1.1), ("half", 0.5)];
        let machines = machines.map(|(file, by)| (file, record(TargetKind::Simulated, &times(by))));
        let found = found(&record(TargetKind::Simulated, &TIMES), &corpus(&machines));
        assert_eq!(files(&found), ["near", "twice", "half", "far"]);
        let distances: Vec<f64> = found.neighbours.iter().map(|neighbour| neighbour.distance).collect();
        for (distance, wanted) in distances.iter().zip([1.1, 2.0, 2.0, 3.0]) {
            assert!((distance - wanted).abs() < 1e-9, "{distances:?}");
        }
        assert!((found.neighbours[1].ratio_median - 0.5).abs() < 1e-9, "here half of the time there");
        let differences = found.differences.unwrap();
        assert_eq!((differences.file.as_str(), differences.questions.len()), ("near", 1));
        assert!((differences.questions[0].ratio_max - 1.0 / 1.1).abs() < 1e-9);
    }

    #[test]
    fn each_question_counts_once_however_many_cases_it_has() {
        let mut own = record(TargetKind::Simulated, &TIMES);
        let mut other = record(TargetKind::Simulated, &times(4.0));
        for record in [&mut own, &mut other] {
            let mut one = record.answers[0].clone();
            one.question = "mmio_read_latency".to_owned();
            one.samples_ns = vec![7.0];
            record.answers.push(one);
        }
        let found = found(&own, &corpus(&[("other", other)]));
        let neighbour = &found.neighbours[0];
        assert!((neighbour.distance - 2.0).abs() < 1e-9, "the mean of 4 and 1: {}", neighbour.distance);
        assert_eq!((neighbour.cases, neighbour.questions), (7, 2));
    }

    #[test]
    fn fewer_than_five_common_cases_or_half_of_the_most_are_too_few() {
        let with = |count: usize| record(TargetKind::Simulated, &[10.0; 12][..count]);
        let own = record(TargetKind::Simulated, &[20.0; 12]);
        let alone = |count| found(&own, &corpus(&[("other", with(count))]));
        assert_eq!(files(&alone(5)), ["other"]);
        let few = alone(4);
        assert!(few.neighbours.is_empty() && few.differences.is_none());
        assert_eq!((few.too_few[0].cases, few.too_few[0].needed), (4, 5));
        let both = found(&own, &corpus(&[("all", with(12)), ("half", with(6)), ("less", with(5))]));
        assert_eq!(files(&both), ["all", "half"]);
        assert_eq!((both.too_few[0].file.as_str(), both.too_few[0].needed), ("less", 6));
    }

    #[test]
    fn machines_of_another_kind_come_last_however_near() {
        let machines =
            [("equal", record(TargetKind::Simulated, &TIMES)), ("far", record(TargetKind::Real, &times(9.0)))];
        let found = found(&record(TargetKind::Real, &TIMES), &corpus(&machines));
        assert_eq!(files(&found), ["far", "equal"]);
        assert_eq!(found.differences.unwrap().file, "far");
    }

    #[test]
    fn imported_figures_stand_beside_measured_machines_first() {
        let with = |kind, count: usize, by: f64| record(kind, &[10.0 * by; 12][..count]);
        let machines = [("equal", with(TargetKind::Simulated, 12, 1.0)), ("far", with(TargetKind::Real, 5, 9.0))];
        let found = found(&with(TargetKind::Imported, 12, 1.0), &corpus(&machines));
        assert_eq!(files(&found), ["far", "equal"], "each kind has its own least number of cases");
    }

    #[test]
    fn a_record_is_no_neighbour_of_itself() {
        let dated = |seconds, by| Record { written_unix_s: Some(seconds), ..record(TargetKind::Real, &times(by)) };
        let machines = [("itself", dated(5, 1.0)), ("later", dated(6, 1.0)), ("other", dated(5, 1.1))];
        let found = found(&dated(5, 1.0), &corpus(&machines));
        assert_eq!(found.itself, ["itself"]);
        assert_eq!(files(&found), ["later", "other"]);
    }

    #[test]
    fn records_without_times_of_a_machine_are_refused() {
        let corpus = corpus(&[("other", record(TargetKind::Real, &times(2.0)))]);
        let refused =
            |record: &Record| neighbours(&Named { name: "my.json", record }, &corpus).unwrap_err().to_string();
        assert!(refused(&record(TargetKind::Emulated, &TIMES)).contains("'card' of my.json: timings in an emulator"));
        assert!(refused(&record(TargetKind::Formula, &TIMES)).contains("formulas only"));
        assert!(refused(&record(TargetKind::Real, &[])).contains("no answer with a time"));
        let mut runtime = record(TargetKind::Real, &TIMES);
        let of = |device_kind, is_emulated| Some(Runtime { device_kind, is_emulated, software: None });
        runtime.targets[0].runtime = of(DeviceKind::Gpu, true);
        assert!(refused(&runtime).contains("emulated"));
        runtime.targets[0].runtime = of(DeviceKind::Cpu, false);
        assert!(refused(&runtime).contains("the processor itself"));
        runtime.targets[0].runtime = of(DeviceKind::Gpu, false);
        assert_eq!(files(&found(&runtime, &corpus)), ["other"]);
    }

    #[test]
    fn facts_that_differ_or_are_unknown_on_one_side_are_listed() {
        let here = MachineFacts { generation: Some(5), width_lanes: Some(16), ..MachineFacts::default() };
        let there = MachineFacts { generation: Some(3), mps_bytes: Some(256), ..here.clone() };
        let text = |value: &str| Some(value.to_owned());
        let of = |name: &str, here, there| FactDifference { name: name.to_owned(), here, there };
        assert_eq!(
            fact_differences(&here, &there),
            [of("link generation", text("Gen5"), text("Gen3")), of("MPS", None, text("256 B"))]
        );
    }

    #[test]
    fn the_built_in_corpus_reads() {
        assert!(built_in_corpus().unwrap().machines.len() > 10);
    }
}
