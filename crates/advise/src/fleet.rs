//! Machines of a fleet whose answers differ from those of the others, and what only they have.
//!
//! The figure of an answer is its median time, as a logarithm, so that twice and half are equally far. Outliers are those of the
//! generalized extreme Studentized deviate test: the machine that is farthest from the mean is compared with the spread of the
//! others, then taken away, and so on, for less than half of the machines. So two slow machines do not hide each other. Of a
//! fleet of equal machines with normal figures, one answer among *all* is an outlier in one of twenty runs.
//!
//! Source: Rosner, Percentage Points for a Generalized ESD Many-Outlier Procedure, Technometrics 25 (1983); the limit is
//! written here as that of the distance from the mean of the others, which is the same test.

use crate::compare::is_same;
use lanemark_record::diagnosis::{Diagnosis, Finding, Function};
use lanemark_record::fleet::{Fleet, Machine, OnlyHere, Outlier, SCHEMA};
use lanemark_record::{Answer, Record, Summary, Tool};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Probability that a fleet of equal machines has any outlier.
pub(crate) const FALSE_ALARM: f64 = 0.05;
/// Least number of machines for a judgement: of three, the spread of the other two says nearly nothing.
pub(crate) const LEAST_MACHINES: usize = 4;
/// Default of the least effect, in percent.
pub const MIN_EFFECT_PERCENT: f64 = 5.0;

/// A machine, its record, and its diagnosis.
#[derive(Clone, Debug, Default)]
pub struct FleetMember {
    /// Name of the machine.
    pub name: String,
    /// Its record; `None` if there is none.
    pub record: Option<Record>,
    /// Its diagnosis, or the reason why there is none.
    pub diagnosis: Option<Result<Diagnosis, String>>,
    /// Reason why answers are missing.
    pub problem: Option<String>,
}

/// Finds the outliers among machines that were asked the same questions. Answers belong together if question, method, size,
/// alignment, quantity and cores are the same, and the target has the same place in the record.
///
/// ```
/// use lanemark_advise::{FleetMember, fleet};
/// let member = FleetMember { name: "a".to_owned(), ..FleetMember::default() };
/// assert!(fleet(&[member], 5.0).outliers.is_empty());
/// ```
#[must_use]
pub fn fleet(members: &[FleetMember], min_effect_percent: f64) -> Fleet {
    let groups = grouped(members);
    let judged = groups.iter().filter(|group| group.len() >= LEAST_MACHINES).count();
    let not_judged = groups.len() - judged;
    let least = (min_effect_percent / 100.0).ln_1p();
    let mut outliers = Vec::new();
    for group in groups.iter().filter(|group| group.len() >= LEAST_MACHINES) {
        let figures: Vec<f64> = group.iter().map(|(_, _, time_ns)| time_ns.ln()).collect();
        let found = extreme(&figures, FALSE_ALARM / judged as f64);
        let is_found = |place: &usize| found.iter().any(|(other, _)| other == place);
        let others: Vec<f64> =
            (0..figures.len()).filter(|place| !is_found(place)).map(|place| figures[place]).collect();
        let Some(middle) = Summary::of(&others).map(|others| others.median) else { continue };
        for (place, deviations) in found {
            let (member, answer, time_ns) = group[place];
            let distance = figures[place] - middle;
            if distance.abs() > least {
                outliers.push(Outlier {
                    machine: member.name.clone(),
                    question: answer.question.clone(),
                    target: answer.target.clone(),
                    method: answer.method.clone(),
                    size_bytes: answer.size_bytes,
                    alignment_bytes: answer.alignment_bytes,
                    quantity: answer.quantity,
                    machines: group.len() as u64,
                    time_ns,
                    others_ns: middle.exp(),
                    ratio: distance.exp(),
                    deviations,
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
        no_diagnosis: member.diagnosis.as_ref().and_then(|diagnosis| diagnosis.as_ref().err().cloned()),
        problem: member.problem.clone(),
    });
    let machines = machines.collect();
    let tool = Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let (judged, not_judged) = (judged as u64, not_judged as u64);
    Fleet { schema: SCHEMA, tool, machines, judged, not_judged, min_effect_percent, outliers }
}

/// Places of the outliers, each with its distance from the mean of those that were left, in standard deviations of these;
/// `None` if these do not vary. `false_alarm`: probability of any outlier among equal figures.
pub(crate) fn extreme(figures: &[f64], false_alarm: f64) -> Vec<(usize, Option<f64>)> {
    let mut left: Vec<usize> = (0..figures.len()).collect();
    let (mut candidates, mut outliers) = (Vec::new(), 0);
    for _ in 0..(figures.len() - 1) / 2 {
        let mean = left.iter().map(|place| figures[*place]).sum::<f64>() / left.len() as f64;
        let distance = |place: usize| (figures[place] - mean).abs();
        let Some(farthest) =
            (0..left.len()).max_by(|one, other| distance(left[*one]).total_cmp(&distance(left[*other])))
        else {
            break;
        };
        let place = left.swap_remove(farthest);
        let count = left.len() as f64;
        let mean = left.iter().map(|place| figures[*place]).sum::<f64>() / count;
        let squares = left.iter().map(|place| (figures[*place] - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (count - 1.0)).sqrt();
        let distance = (figures[place] - mean).abs();
        // Equal figures differ by rounding only.
        let varies = deviation > distance * 1e-9;
        let is_beyond = if varies {
            let limit =
                StudentsT::new(0.0, 1.0, count - 1.0).map(|t| t.inverse_cdf(1.0 - false_alarm / (2.0 * (count + 1.0))));
            limit.is_ok_and(|limit| distance / (deviation * (1.0 + 1.0 / count).sqrt()) > limit)
        } else {
            distance > 1e-9
        };
        candidates.push((place, varies.then(|| distance / deviation)));
        if is_beyond {
            outliers = candidates.len();
        }
    }
    candidates.truncate(outliers);
    candidates
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

/// Findings of a machine of which fewer than half of the other diagnoses have the check, at a function of the same class;
/// `None` without a diagnosis, or without one of another machine.
fn only_here(member: &FleetMember, members: &[FleetMember]) -> Option<Vec<OnlyHere>> {
    let of = |member: &FleetMember| member.diagnosis.as_ref().and_then(|diagnosis| diagnosis.as_ref().ok().cloned());
    let others: Vec<Diagnosis> = members.iter().filter(|other| other.name != member.name).filter_map(of).collect();
    let own = of(member).filter(|_| !others.is_empty())?;
    let here = |finding: &Finding| {
        let classes = classes(&own, finding);
        let is_same = |there: &Diagnosis, other: &Finding| {
            other.check == finding.check
                && (classes.is_empty() || self::classes(there, other).iter().any(|one| classes.contains(one)))
        };
        let has = |there: &&Diagnosis| there.findings.iter().any(|other| is_same(there, other));
        let count = others.iter().filter(has).count();
        (count * 2 < others.len()).then(|| OnlyHere {
            check: finding.check.clone(),
            functions: finding.functions.clone(),
            reason: finding.reason.clone(),
            others: count as u64,
        })
    };
    Some(own.findings.iter().filter_map(here).collect())
}

/// Class codes of the functions of a finding.
fn classes(diagnosis: &Diagnosis, finding: &Finding) -> Vec<u32> {
    let is_of = |function: &&Function| finding.functions.contains(&function.address);
    diagnosis.functions.iter().filter(is_of).filter_map(|function| function.class_code.value().copied()).collect()
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
    fn a_machine_beyond_the_limit_of_the_test_is_an_outlier_and_one_below_is_none() {
        // Of the six others, the standard deviation is 0.9 %, and the limit 5.3 of their deviations: Student's t of five degrees
        // of freedom at 1 - 0.05 / 14, 4.2, times the root of 7/6, is 4.6.
        let with = |last: f64| names(&[99.0, 99.0, 100.0, 100.0, 101.0, 101.0, last]);
        assert_eq!((with(105.0), with(106.0)), (vec![], vec!["node6".to_owned()]));
        assert_eq!((with(95.5), with(94.0)), (vec![], vec!["node6".to_owned()]));
    }

    #[test]
    fn two_slow_machines_do_not_hide_each_other() {
        let times = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 400.0, 390.0];
        assert_eq!(names(&times), ["node8", "node9"]);
    }

    #[test]
    fn equal_noisy_machines_have_outliers_in_one_of_twenty_fleets_at_most() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut alarms = 0;
        for _ in 0..400 {
            // Sums of twelve uniform numbers are nearly normal: a deviation of 10 % between machines.
            let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            let figures: Vec<Vec<f64>> = (0..20).map(|_| (0..5).map(|_| normal() * 0.1).collect()).collect();
            alarms += u32::from(figures.iter().any(|figures| !extreme(figures, FALSE_ALARM / 20.0).is_empty()));
        }
        // 20 are expected of 400, and the standard deviation is 4.
        assert!((4..=36).contains(&alarms), "{alarms} of 400");
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
