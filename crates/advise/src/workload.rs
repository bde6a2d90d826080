//! Advice for a workload on a simulated platform: methods, changes of the machine, goals.
//!
//! Every method of a direction is predicted by its formula. The best of each kind is simulated, which also gives its
//! critical path. Changes of the machine are simulated with the same methods.

mod candidates;
mod changes;
mod goals;

use crate::conditions::conditions;
use crate::methods::plainness;
use candidates::{Candidate, Kind, candidates};
use lanemark_method::CopyDirection;
use lanemark_platform::Platform;
use lanemark_record::guidance::{Choice, Guidance, Ranked, SCHEMA, Traffic, Workload};
use lanemark_record::{Answer, Origins, Quantity, Tool};
use lanemark_runner::{Cancel, Changes, OpenTarget, RunError, platform};
use lanemark_units::{MemoryType, format_size};

/// Largest number of sizes, each of which takes seconds and a column.
const MOST_SIZES: usize = 12;

/// Largest transfer, in bytes. Every method has reached its final rate below it.
const LONGEST: u64 = 16 << 20;

/// Kinds of methods that are slower than the best by more than this factor are counted and not simulated.
const FAR_SLOWER: f64 = 20.0;

/// A workload, and the platform to run it on.
pub struct WorkloadRequest {
    /// Name of a preset, or path of a platform file.
    pub platform: String,
    /// Changed keys of the platform.
    pub with: Vec<(String, String)>,
    /// The workload and its goals.
    pub workload: Workload,
    /// The command line.
    pub command: Vec<String>,
}

/// Finds the best methods for a workload, the effect of changes of the machine, and whether the goals are met.
///
/// # Errors
/// [`RunError`] if the platform cannot be opened or changed, no method has an answer, or `cancel` is set.
pub fn advise(request: &WorkloadRequest, cancel: &Cancel) -> Result<Guidance, RunError> {
    if request.workload.sizes_bytes.len() > MOST_SIZES {
        let because =
            format!("--sizes: {} sizes are too many: use at most {MOST_SIZES}", request.workload.sizes_bytes.len());
        return Err(RunError::NothingToAsk { because });
    }
    if let Some(size) = request.workload.sizes_bytes.iter().find(|size| **size > LONGEST) {
        let (size, longest) = (format_size(*size), format_size(LONGEST));
        let because = format!(
            "--sizes: {size} is above the maximum of {longest}: use {longest}; the rate of longer transfers is the same, and \
             their latency grows with the size"
        );
        return Err(RunError::NothingToAsk { because });
    }
    let changes = Changes { with: request.with.clone(), ..Changes::default() };
    let (platform, warnings) = changes.apply(&platform(&request.platform)?)?;
    let mut target = OpenTarget::of_platform(&platform)?;
    let faults = platform.faults.iter().map(|fault| format!("{}: {fault} is simulated in every method", platform.name));
    let warnings: Vec<String> = warnings.into_iter().chain(faults).collect();
    let mut unanswered = Vec::new();
    let mut compared = Vec::new();
    for direction in &request.workload.directions {
        for traffic in traffics(&request.workload) {
            for size in &request.workload.sizes_bytes {
                let found = candidates(&target, *direction, traffic, *size, &mut unanswered);
                let of =
                    Compared::of(&platform, &mut target, *direction, traffic, *size, found, &mut unanswered, cancel);
                compared.extend(of?);
            }
        }
    }
    if compared.is_empty() {
        let because = if unanswered.is_empty() {
            let sizes: Vec<String> = request.workload.sizes_bytes.iter().map(|size| format_size(*size)).collect();
            format!("no method of {} moves transfers of {}: use other --sizes", platform.name, sizes.join(", "))
        } else {
            unanswered.join("; ")
        };
        return Err(RunError::NothingToAsk { because });
    }
    let mut changes = changes::changes(&platform, &compared, cancel)?;
    let without_effect = changes::without_effect(&mut changes);
    let [given, assumed, fitted] = platform.origins();
    let choices: Vec<Choice> = compared.into_iter().map(|compared| compared.choice).collect();
    Ok(Guidance {
        schema: SCHEMA,
        tool: Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        command: request.command.clone(),
        target: platform.name.clone(),
        summary: platform.summary.clone(),
        origins: Origins { given, assumed, fitted, unknown: 0 },
        warnings,
        goals: goals::goals(&request.workload, &choices, &changes),
        workload: request.workload.clone(),
        choices,
        changes,
        without_effect,
        unanswered,
    })
}

/// The traffic that a workload is about: that of its goals, or both.
fn traffics(workload: &Workload) -> Vec<Traffic> {
    match (workload.latency_below_ns, workload.rate_bytes_per_s) {
        (Some(_), None) => vec![Traffic::Single],
        (None, Some(_)) => vec![Traffic::Stream],
        _ => vec![Traffic::Single, Traffic::Stream],
    }
}

/// A choice, with the cases that were simulated for it, in the same order.
struct Compared {
    choice: Choice,
    simulated: Vec<Candidate>,
}

impl Compared {
    /// Ranks the methods of each kind by formula, simulates the best ones, and ranks the best of each kind. `None` if no
    /// method has an answer; reasons of kinds without an answer are added to `unanswered`.
    fn of(
        platform: &Platform,
        target: &mut OpenTarget,
        direction: CopyDirection,
        traffic: Traffic,
        size_bytes: u64,
        found: Vec<Candidate>,
        unanswered: &mut Vec<String>,
        cancel: &Cancel,
    ) -> Result<Option<Compared>, RunError> {
        let memcpy = target.facts().memcpy.clone();
        let mut kinds: Vec<(Kind, Vec<(Candidate, Option<f64>)>)> = Vec::new();
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
        let of_kind = |all: &[(Candidate, Option<f64>)]| all.first().and_then(|(_, formula)| *formula);
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
                match candidate.simulate(platform) {
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

/// The fastest of the methods of a choice; the first one may be plainer and up to 2 % slower.
fn fastest(choice: &Choice) -> Option<&Ranked> {
    choice.ranked.iter().min_by(|one, other| order(choice.traffic, one.figure, other.figure))
}

/// The better of two figures.
fn better(traffic: Traffic, one: f64, other: f64) -> f64 {
    match traffic {
        Traffic::Single => one.min(other),
        Traffic::Stream => one.max(other),
    }
}

fn order(traffic: Traffic, one: f64, other: f64) -> std::cmp::Ordering {
    match traffic {
        Traffic::Single => one.total_cmp(&other),
        Traffic::Stream => other.total_cmp(&one),
    }
}

/// The factor by which `best` is faster than `figure`.
fn times_slower(traffic: Traffic, best: f64, figure: f64) -> f64 {
    match traffic {
        Traffic::Single => figure / best,
        Traffic::Stream => best / figure,
    }
}

/// The figure of an answer: the rate of a stream, or the time of one transfer of `size_bytes`.
fn figure(traffic: Traffic, answer: &Answer, size_bytes: u64) -> Option<f64> {
    let rate = answer.delivered_rate_bytes_per_s.map(|rate| rate.median);
    let figure = match (traffic, answer.quantity) {
        (Traffic::Stream, _) => rate,
        (Traffic::Single, Quantity::Bandwidth) => rate.map(|rate| size_bytes as f64 * 1e9 / rate),
        (Traffic::Single, _) => answer.latency_ns.map(|latency| latency.median),
    };
    figure.filter(|figure| figure.is_finite() && *figure > 0.0)
}
