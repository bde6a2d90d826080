//! Machines of a fleet whose answers differ from those of the others, and what only they have.
//!
//! The figure of an answer is its median time, as a logarithm, so that twice and half are equally far. A machine is an outlier if
//! its figure is more than 3.5 robust standard deviations from the median of all, and more than the least effect.
//!
//! Source of the limit: Iglewicz, Hoaglin: How to Detect and Handle Outliers, ASQC 1993, the modified z-score with the
//! median absolute deviation.

use lanemark_record::diagnosis::{Diagnosis, Finding};
use lanemark_record::fleet::{Fleet, Machine, OnlyHere, Outlier, SCHEMA};
use lanemark_record::{Answer, Record, Summary, Tool};

/// Modified z-score above which a figure is an outlier.
const MOST_DEVIATIONS: f64 = 3.5;
/// Standard deviations of a normal distribution per median absolute deviation.
const DEVIATION_PER_MAD: f64 = 1.4826;
/// Least number of machines for a judgement: with three, one that differs leaves no majority that agrees closely.
const LEAST_MACHINES: usize = 4;
/// Default of the least effect, in percent.
pub const MIN_EFFECT_PERCENT: f64 = 5.0;

/// A machine, its record, and its diagnosis.
#[derive(Clone, Debug, Default)]
pub struct FleetMember {
    /// Name of the machine.
    pub name: String,
    /// Its record; `None` if there is none.
    pub record: Option<Record>,
    /// Its diagnosis; `None` if there is none.
    pub diagnosis: Option<Diagnosis>,
    /// Reason why answers are missing.
    pub problem: Option<String>,
}

/// Finds the outliers among machines that were asked the same questions. Answers belong together if question, method, size,
/// alignment and cores are the same, and the target has the same place in the record.
///
/// ```
/// use lanemark_advise::{FleetMember, fleet};
/// let member = FleetMember { name: "a".to_owned(), ..FleetMember::default() };
/// assert!(fleet(&[member], 5.0).outliers.is_empty());
/// ```
#[must_use]
pub fn fleet(members: &[FleetMember], min_effect_percent: f64) -> Fleet {
    let (mut judged, mut not_judged, mut outliers) = (0, 0, Vec::new());
    for group in grouped(members) {
        let figures: Vec<f64> = group.iter().map(|(_, _, time_ns)| time_ns.ln()).collect();
        if figures.len() < LEAST_MACHINES {
            not_judged += 1;
            continue;
        }
        judged += 1;
        let Some(all) = Summary::of(&figures) else { continue };
        let deviation = all.mad * DEVIATION_PER_MAD;
        let limit = (MOST_DEVIATIONS * deviation).max((min_effect_percent / 100.0).ln_1p());
        for ((member, answer, time_ns), figure) in group.iter().zip(&figures) {
            let distance = figure - all.median;
            if distance.abs() > limit {
                outliers.push(Outlier {
                    machine: member.name.clone(),
                    question: answer.question.clone(),
                    target: answer.target.clone(),
                    method: answer.method.clone(),
                    size_bytes: answer.size_bytes,
                    alignment_bytes: answer.alignment_bytes,
                    quantity: answer.quantity,
                    machines: group.len() as u64,
                    time_ns: *time_ns,
                    median_ns: all.median.exp(),
                    ratio: distance.exp(),
                    deviations: (deviation > 0.0).then(|| distance.abs() / deviation),
                });
            }
        }
    }
    outliers.sort_by(|one, other| other.ratio.ln().abs().total_cmp(&one.ratio.ln().abs()));
    let machines = members.iter().map(|member| Machine {
        name: member.name.clone(),
        answers: member.record.as_ref().map_or(0, |record| record.answers.len() as u64),
        outliers: outliers.iter().filter(|outlier| outlier.machine == member.name).count() as u64,
        only_here: only_here(member, members),
        problem: member.problem.clone(),
    });
    let machines = machines.collect();
    let tool = Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    Fleet { schema: SCHEMA, tool, machines, judged, not_judged, min_effect_percent, outliers }
}

/// Answers that belong together, each with its machine and its median time in ns.
type Group<'a> = Vec<(&'a FleetMember, &'a Answer, f64)>;

fn grouped(members: &[FleetMember]) -> Vec<Group<'_>> {
    let mut groups: Vec<(usize, Group<'_>)> = Vec::new();
    for member in members {
        for (record, answer) in
            member.record.iter().flat_map(|record| record.answers.iter().map(move |one| (record, one)))
        {
            let place = record.targets.iter().position(|target| target.name == answer.target).unwrap_or(usize::MAX);
            let Some(time) = Summary::of(&answer.samples_ns).map(|all| all.median).filter(|time| *time > 0.0) else {
                continue;
            };
            let is_here = |(other_place, group): &&mut (usize, Group<'_>)| {
                let (last, other, _) = group[group.len() - 1];
                *other_place == place && last.name != member.name && is_same(other, answer)
            };
            match groups.iter_mut().find(is_here) {
                Some((_, group)) => group.push((member, answer, time)),
                None => groups.push((place, vec![(member, answer, time)])),
            }
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn is_same(one: &Answer, other: &Answer) -> bool {
    one.question == other.question
        && one.method == other.method
        && one.size_bytes == other.size_bytes
        && one.alignment_bytes == other.alignment_bytes
        && one.quantity == other.quantity
        && one.cores() == other.cores()
}

/// Findings of a machine of which fewer than half of the other diagnoses have the check.
fn only_here(member: &FleetMember, members: &[FleetMember]) -> Option<Vec<OnlyHere>> {
    let others: Vec<&Diagnosis> =
        members.iter().filter(|other| other.name != member.name).filter_map(|other| other.diagnosis.as_ref()).collect();
    let here = |finding: &Finding| {
        let has = |other: &&&Diagnosis| other.findings.iter().any(|one| one.check == finding.check);
        let count = others.iter().filter(has).count();
        (count * 2 < others.len()).then(|| OnlyHere {
            check: finding.check.clone(),
            functions: finding.functions.clone(),
            reason: finding.reason.clone(),
            others: count as u64,
        })
    };
    Some(member.diagnosis.as_ref()?.findings.iter().filter_map(here).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn members(times_ns: &[f64]) -> Vec<FleetMember> {
        let member = |(place, time): (usize, &f64)| {
            let mut answer = fixture::answer("8", 64, Some(1e9));
            answer.samples_ns = vec![*time; 9];
            let record = fixture::record(vec![answer]);
            FleetMember { name: format!("node{place}"), record: Some(record), ..FleetMember::default() }
        };
        times_ns.iter().enumerate().map(member).collect()
    }

    fn names(times_ns: &[f64]) -> Vec<String> {
        fleet(&members(times_ns), 5.0).outliers.iter().map(|outlier| outlier.machine.clone()).collect()
    }

    #[test]
    fn a_machine_beyond_the_limit_of_deviations_is_an_outlier_and_one_below_is_none() {
        // The median is 100, and the median absolute deviation 1 %: 3.5 deviations are 5.3 %.
        let with = |last: f64| names(&[99.0, 99.0, 100.0, 100.0, 101.0, 101.0, last]);
        assert_eq!((with(105.0), with(106.0)), (vec![], vec!["node6".to_owned()]));
        assert_eq!((with(95.5), with(94.0)), (vec![], vec!["node6".to_owned()]));
    }

    #[test]
    fn machines_without_variation_have_the_least_effect_as_limit() {
        let with = |last: f64| names(&[100.0, 100.0, 100.0, last]);
        assert_eq!((with(104.9), with(105.1)), (vec![], vec!["node3".to_owned()]));
    }

    #[test]
    fn fewer_than_four_machines_are_not_judged() {
        let few = fleet(&members(&[100.0, 100.0, 300.0]), 5.0);
        assert_eq!((few.judged, few.not_judged, few.outliers.len()), (0, 1, 0));
    }

    #[test]
    fn the_largest_difference_comes_first_whether_slower_or_faster() {
        assert_eq!(names(&[100.0, 100.0, 100.0, 100.0, 100.0, 150.0, 50.0]), ["node6", "node5"]);
    }
}
