//! Comparison of the methods for one direction, traffic and size.

use super::candidates::{Candidate, Kind};
use super::figure::{better, order, times_slower};
use crate::conditions::conditions;
use crate::methods::plainness;
use lanemark_method::CopyDirection;
use lanemark_platform::Platform;
use lanemark_record::Answer;
use lanemark_record::guidance::{Choice, Ranked, Traffic};
use lanemark_runner::{Cancel, OpenTarget, RunError};
use lanemark_units::MemoryType;

/// Kinds of methods that are slower than the best by more than this factor are counted and not simulated.
const FAR_SLOWER: f64 = 20.0;

/// A method and its figure by formula.
type Predicted = (Candidate, Option<f64>);

/// A choice, with the cases that were simulated for it, in the same order.
pub(super) struct Compared {
    pub(super) choice: Choice,
    pub(super) simulated: Vec<Candidate>,
}

impl Compared {
    /// Ranks the methods of each kind by formula, simulates the best ones, and ranks the best of each kind. `None` if no
    /// method has an answer; reasons of kinds without an answer are added to `unanswered`.
    pub(super) fn of(
        platform: &Platform,
        target: &mut OpenTarget,
        (direction, traffic, size_bytes): (CopyDirection, Traffic, u64),
        found: Vec<Candidate>,
        unanswered: &mut Vec<String>,
        cancel: &Cancel,
    ) -> Result<Option<Compared>, RunError> {
        let memcpy = target.facts().memcpy.clone();
        let mut kinds: Vec<(Kind, Vec<Predicted>)> = Vec::new();
        for candidate in found {
            let formula = candidate.formula(target);
            match kinds.iter_mut().find(|(kind, _)| *kind == candidate.kind) {
                Some((_, all)) => all.push((candidate, formula)),
                None => kinds.push((candidate.kind, vec![(candidate, formula)])),
            }
        }
        for (_, all) in &mut kinds {
            all.sort_by(|(one, first), (other, second)| by_formula(traffic, (one, *first), (other, *second)));
        }
        let of_kind = |all: &[Predicted]| all.first().and_then(|(_, formula)| *formula);
        let best = kinds.iter().filter_map(|(_, all)| of_kind(all)).reduce(|one, other| better(traffic, one, other));
        let count = kinds.len();
        kinds.retain(|(_, all)| match (best, of_kind(all)) {
            (Some(best), Some(formula)) => times_slower(traffic, best, formula) <= FAR_SLOWER,
            _ => true,
        });
        let far_slower = (count - kinds.len()) as u64;
        let mut ranked: Vec<(Ranked, Candidate)> = Vec::new();
        for (_, all) in kinds {
            let mut of_kind: Option<(Ranked, Candidate)> = None;
            let (mut answers, mut refused) = (0, None);
            for (candidate, formula) in all {
                if cancel.is_cancelled() {
                    return Err(RunError::Interrupted);
                }
                if answers == SIMULATED {
                    break;
                }
                match candidate.simulate(platform, cancel) {
                    Ok((answer, figure)) => {
                        answers += 1;
                        let one = rank(&answer, &candidate, figure, formula, &memcpy);
                        if of_kind.as_ref().is_none_or(|best| is_better(traffic, &one, &best.0)) {
                            of_kind = Some((one, candidate));
                        }
                    }
                    Err(because) => refused = refused.or_else(|| Some(format!("{}: {because}", candidate.case.method))),
                }
            }
            if of_kind.is_none() {
                let refused = refused.filter(|because| !unanswered.contains(because));
                unanswered.extend(refused);
            }
            ranked.extend(of_kind);
        }
        ranked.sort_by(|(one, _), (other, _)| order(traffic, one.figure, other.figure));
        let Some(fastest) = ranked.first().map(|(first, _)| first.figure) else { return Ok(None) };
        drop_needless_caching(traffic, &mut ranked);
        // The plainest of the methods that are as good as the fastest is the first.
        let as_good = |one: &Ranked| times_slower(traffic, fastest, one.figure) <= 1.0 / AS_GOOD;
        let as_good = ranked.iter().take_while(|(one, _)| as_good(one)).count();
        ranked[..as_good].sort_by_key(|(one, _)| (one.rules.len(), plainness(&one.method)));
        for (one, _) in &mut ranked {
            one.times_slower = times_slower(traffic, fastest, one.figure);
        }
        let (ranked, simulated) = ranked.into_iter().unzip();
        Ok(Some(Compared { choice: Choice { direction, traffic, size_bytes, ranked, far_slower }, simulated }))
    }
}

fn rank(answer: &Answer, candidate: &Candidate, figure: f64, formula: Option<f64>, memcpy: &str) -> Ranked {
    let is_stream = candidate.traffic == Traffic::Stream;
    Ranked {
        method: candidate.case.method.clone(),
        question: candidate.question.name.to_owned(),
        figure,
        formula,
        times_slower: 1.0,
        ceiling: is_stream.then(|| answer.ceiling.clone()),
        share_of_ceiling_percent: answer.share_of_ceiling_percent.filter(|_| is_stream),
        bound: answer.waits.first().cloned(),
        rules: conditions(&candidate.case.method, memcpy),
    }
}

/// Removes a cached memory type that is not faster than UC or WC: it has more conditions, and no advantage.
fn drop_needless_caching(traffic: Traffic, ranked: &mut Vec<(Ranked, Candidate)>) {
    let is_cached = |candidate: &Candidate| candidate.kind == Kind::Core(MemoryType::Wt);
    let others =
        ranked.iter().filter(|(_, candidate)| matches!(candidate.kind, Kind::Core(_)) && !is_cached(candidate));
    let Some(best) = others.map(|(one, _)| one.figure).reduce(|one, other| better(traffic, one, other)) else { return };
    ranked.retain(|(one, candidate)| !is_cached(candidate) || times_slower(traffic, one.figure, best) > 1.0 / AS_GOOD);
}

/// Methods from this share of the best figure on count as equal: the one with fewer conditions, and then the plainer
/// memory type and instruction, is listed first.
const AS_GOOD: f64 = 0.98;

/// Number of methods of each kind that are simulated: formulas of nearly equal methods may be in the wrong order.
const SIMULATED: usize = 3;

/// Order of the methods of a kind: the best formula first, of equal ones the plainest, and those without a formula last.
fn by_formula(
    traffic: Traffic,
    (one, first): (&Candidate, Option<f64>),
    (other, second): (&Candidate, Option<f64>),
) -> std::cmp::Ordering {
    let by_plainness = || plainness(&one.case.method).cmp(&plainness(&other.case.method));
    match (first, second) {
        (Some(first), Some(second)) => order(traffic, first, second).then_with(by_plainness),
        (first, second) => second.is_some().cmp(&first.is_some()).then_with(by_plainness),
    }
}

/// Whether `one` replaces `best` of its kind: it is faster, or as fast and plainer.
fn is_better(traffic: Traffic, one: &Ranked, best: &Ranked) -> bool {
    let times = times_slower(traffic, one.figure, best.figure);
    times > 1.0 / AS_GOOD || (times >= AS_GOOD && plainness(&one.method) < plainness(&best.method))
}
