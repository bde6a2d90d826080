//! Search over structures: which mechanisms a card has, chosen by the error of figures that were not fitted.
//!
//! The search starts with the structure of the file. In each round, short fits of every mechanism select a few, which are
//! fitted to each half of the figures. A structure counts by its errors at the other half. Of those that are clearly
//! better, the simplest one near the best is accepted. At the end, mechanisms are removed that are not clearly needed.

use crate::calibrate::by_formulas;
use crate::contender::Contender;
use crate::distinction::Next;
use crate::evidence::{BETTER, is_better, mean, simplest};
use crate::fit_data::FitData;
use crate::least_squares::{FIRST_GAIN, Rows, derivatives, solve, sum_of_squares};
use crate::mechanism::{MECHANISMS, Mechanism, only_of};
use crate::trial::{PROMISING, Trial};
use crate::{translated, windows};
use lanemark_machine::Verb;

/// Most mechanisms that are added.
const MOST_ROUNDS: usize = 4;

/// Number of mechanisms that are fitted in a round; the others promise less.
const TRIED: usize = 8;

/// Most combinations of one mechanism among them.
const OF_A_MECHANISM: usize = 2;

/// Short fits of trials with one more mechanism: of so many, so many steps each, one after the other.
const SCREENING: [(usize, usize); 3] = [(usize::MAX, 1), (48, 2), (24, 4)];

/// Relative difference of two sums of squares below which two mechanisms have the same effect.
const SAME: f64 = 1e-9;

/// The result of a search.
pub(crate) struct Structure {
    /// The problem with the chosen structure.
    pub(crate) problem: FitData,
    /// Best values by formulas.
    pub(crate) values: Vec<f64>,
    /// Every structure that was compared, best first.
    pub(crate) contenders: Vec<Contender>,
    /// Whether the search ended because of its number of predictions.
    pub(crate) is_cut_short: bool,
}

/// Chooses a structure; `None` for data without DMA transfers, if a datum has no formula, or if too few sizes are given to
/// hold any out.
pub(crate) fn search(problem: &FitData) -> Option<Structure> {
    if problem.held_out() == 0 || !problem.is_about_transfers() {
        return None;
    }
    let facts = problem.facts().ok()?;
    let values = by_formulas(problem)?;
    let (mut best, mut errors) =
        Trial { added: Vec::new(), instead: Vec::new(), problem: problem.clone(), facts, values }.judged()?;
    let mut compared = vec![(best.clone(), errors.clone())];
    for _ in 0..MOST_ROUNDS {
        let better_by = |share: f64, tried: Vec<(Trial, Vec<f64>)>| {
            let is_accepted = |(trial, found): &(Trial, Vec<f64>)| {
                is_better(&errors, found, share) && trial.is_more_than_chance(&best)
            };
            simplest(tried.into_iter().filter(is_accepted).collect(), Trial::numbers)
        };
        let better = |tried| better_by(BETTER, tried);
        let tried = extended(&best, &mut compared);
        // Two mechanisms may hide each other: what is a little better with one may be clearly better with both.
        let halfway = tried.iter().min_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)));
        let halfway = halfway.filter(|(_, found)| mean(found) < mean(&errors)).map(|(trial, _)| trial.clone());
        let next = better(tried)
            .or_else(|| better_by(BETTER * BETTER, extended(&halfway?, &mut compared)))
            .or_else(|| better(exchanged(&best, &mut compared)));
        let Some(next) = next else { break };
        (best, errors) = next.0.corrected().unwrap_or(next);
    }
    // Each removal is compared with the errors before the first one, so that they do not add up.
    let before = errors.clone();
    while let Some((trial, found)) = simpler(&best, &before) {
        compared.push((trial.clone(), found.clone()));
        (best, errors) = (trial, found);
    }
    compared.extend(best.with_other_beats());
    let chosen = best.contender(&errors);
    let of_chosen = best.residuals(&best.problem, &best.values).ok()?;
    let (mut contenders, mut next): (Vec<Contender>, Option<Option<Next>>) = (Vec::new(), None);
    compared.sort_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)));
    for (trial, errors) in compared {
        // Two orders of adding mechanisms can give the same structure.
        let mut contender = trial.contender(&errors);
        contender.is_chosen = (&contender.set, &contender.fitted) == (&chosen.set, &chosen.fitted);
        contender.is_like_chosen = !contender.is_chosen && trial.gives(&of_chosen);
        contender.is_as_likely = !contender.is_chosen && trial.is_as_likely(&best, &of_chosen);
        if contenders.iter().any(|other| (&other.set, &other.fitted) == (&contender.set, &contender.fitted)) {
            continue;
        }
        if contender.is_like_chosen || contender.is_as_likely {
            let next = next.get_or_insert_with(|| Next::of(&best.fitted()));
            contender.distinction = next.as_ref().and_then(|next| next.distinction(&trial.fitted()));
        }
        contenders.push(contender);
    }
    contenders.sort_by(|one, other| one.mean_percent().total_cmp(&other.mean_percent()));
    let is_cut_short = best.is_at_end();
    Some(Structure { problem: best.problem, values: best.values, contenders, is_cut_short })
}

/// Trials with one more mechanism, with their errors; all are added to `compared`.
fn extended(from: &Trial, compared: &mut Vec<(Trial, Vec<f64>)>) -> Vec<(Trial, Vec<f64>)> {
    if from.is_at_end() {
        return Vec::new();
    }
    let tried: Vec<(Trial, Vec<f64>)> = promising(from).into_iter().filter_map(Trial::judged).collect();
    for (trial, errors) in &tried {
        compared.push((trial.clone(), errors.clone()));
        compared.extend(trial.instead.iter().cloned().filter_map(Trial::judged));
    }
    tried
}

/// Trials with another mechanism instead of one that was added.
fn exchanged(best: &Trial, compared: &mut Vec<(Trial, Vec<f64>)>) -> Vec<(Trial, Vec<f64>)> {
    // Without its last mechanism it is a trial that was extended before.
    let places = 0..best.added.len().saturating_sub(1);
    let others = places.filter_map(|place| Some(extended(&best.without(place)?.judged()?.0, compared)));
    others.flatten().collect()
}

/// Trials with one more mechanism that reduce the errors most, best first: after short fits, of which the worse ones are
/// given up early.
fn promising(best: &Trial) -> Vec<Trial> {
    if !best.has_added_iommu() {
        return promising_for(best);
    }
    // With the many figures of windows that show an IOMMU, each judgement takes long: only of what chance does not explain.
    let quick = best.for_quick_figures(false);
    let found = promising_for(&quick).into_iter().filter(|trial| trial.is_more_than_chance(&quick));
    found.map(|trial| trial.for_figures_of(&best.problem)).collect()
}

/// As [`promising`], for the figures of this trial.
fn promising_for(best: &Trial) -> Vec<Trial> {
    let Some((_, before)) = best.fitted_to(&best.problem, &best.values, (1, FIRST_GAIN)) else { return Vec::new() };
    let ask = |values: &[f64]| best.residuals(&best.problem, values).map_err(|_| ());
    let Ok(left) = ask(&best.values) else { return Vec::new() };
    let Ok(jacobian) = derivatives(&best.problem.parameters(), &best.values, &left, &mut |values: &[f64]| ask(values))
    else {
        return Vec::new();
    };
    let here = (left, jacobian);
    let mut tried: Vec<(f64, usize, Trial)> = Vec::new();
    let is_of_windows = |mechanism: &Mechanism| mechanism.replaces.is_some() || mechanism.is_iommu;
    let is_seen = |mechanism: &Mechanism| !is_of_windows(mechanism) || best.problem.has_windows();
    for (number, mechanism) in MECHANISMS.iter().enumerate().filter(|(_, mechanism)| is_seen(mechanism)) {
        let sets = combinations(best, mechanism);
        if mechanism.is_iommu {
            let starts = translated::started(best, mechanism, &sets).into_iter();
            let ends = starts.filter_map(|start| start.after_steps(SCREENING[0].1));
            tried.extend(ends.map(|(left, trial)| (left, number, trial)));
            continue;
        }
        for set in sets {
            let starts = started(best, &here, mechanism, &set).into_iter();
            let ends = starts.filter_map(|start| start.after_steps(SCREENING[0].1));
            tried
                .extend(ends.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(left, trial)| (left, number, trial)));
        }
    }
    let order = |tried: &mut Vec<(f64, usize, Trial)>| tried.sort_by(|one, other| one.0.total_cmp(&other.0));
    order(&mut tried);
    for (kept, steps) in &SCREENING[1..] {
        tried.truncate(*kept);
        let longer = |(_, number, trial): (f64, usize, Trial)| {
            let (left, trial) = trial.after_steps(*steps)?;
            Some((left, number, trial))
        };
        tried = tried.into_iter().filter_map(longer).collect();
        order(&mut tried);
    }
    // Two mechanisms with the same effect on all figures cannot be told apart by them: the first one stands for both.
    tried.dedup_by(|later, first| {
        let is_same = later.1 != first.1 && (later.0 - first.0).abs() <= SAME * first.0;
        if is_same {
            first.2.instead.push(later.2.clone());
        }
        is_same
    });
    let mut of_mechanism = [0; MECHANISMS.len()];
    tried.retain(|(left, number, _)| {
        of_mechanism[*number] += 1;
        *left < PROMISING * before && of_mechanism[*number] <= OF_A_MECHANISM
    });
    tried.into_iter().take(TRIED).map(|(_, _, trial)| trial).collect()
}

/// The combinations of values of a mechanism that may be added; an empty one if only its time is missing.
fn combinations(best: &Trial, mechanism: &Mechanism) -> Vec<Vec<(&'static str, f64)>> {
    let time = mechanism.time.filter(|(key, _)| !best.problem.has_key(key));
    if mechanism.is_iommu && best.problem.translates() {
        return Vec::new();
    }
    if time.is_some_and(|(key, _)| !best.problem.is_open(key)) || (time.is_none() && mechanism.choices.is_empty()) {
        return Vec::new();
    }
    let is_free = mechanism.choices.iter().all(|(key, _)| best.problem.is_open(key));
    let is_allowed = |set: &Vec<(&str, f64)>| set.iter().all(|(key, value)| best.problem.allows(key, *value));
    match (is_free, mechanism.choices) {
        (true, _) => mechanism.combinations().into_iter().filter(is_allowed).collect(),
        // A given size of chunks, whose time is not known.
        (false, [_]) if time.is_some() => vec![Vec::new()],
        (false, _) => Vec::new(),
    }
}

/// Starts of a trial with one more mechanism; none if it has no effect.
///
/// What the mechanism adds, the numbers fitted so far have replaced: a long time, or a small count. It is invisible while
/// these are the limit. So the trial also starts with the best of some shorter times and larger counts of its direction. The
/// time of the mechanism is the best of a few; at the best values without it, by a linear estimate.
fn started(
    best: &Trial,
    (left, jacobian): &(Vec<f64>, Rows),
    mechanism: &Mechanism,
    set: &[(&'static str, f64)],
) -> Vec<Trial> {
    if let Some(replaced) = mechanism.replaces {
        return windows::started(best, mechanism, replaced, set).into_iter().collect();
    }
    let time = mechanism.time.filter(|(key, _)| !best.problem.has_key(key));
    let keys = mechanism.choices.iter().map(|(key, _)| *key).chain(time.map(|(key, _)| key));
    let directions: Vec<Option<Verb>> = keys.map(only_of).collect();
    let is_of_it = |key: &str| only_of(key).is_none_or(|of| directions.contains(&Some(of)));
    let start = |share: f64, time: Option<(&'static str, f64)>| {
        let mut without = best.clone();
        let of_keys = best.problem.parameters().into_iter().zip(best.problem.grids());
        for (value, (parameter, grid)) in without.values.iter_mut().zip(of_keys) {
            let is_latency = ["queue_ns", "signal_ns"].iter().any(|end| parameter.name.ends_with(end));
            let is_engine_time = parameter.name.ends_with("_request_ns") || parameter.name.starts_with("dma_");
            let is_engine_time = is_engine_time && !is_latency;
            if is_of_it(&parameter.name) && (grid.is_some() || is_engine_time) {
                let moved = if grid.is_some() { *value / share } else { *value * share };
                *value = moved.clamp(parameter.low, parameter.high);
            }
        }
        let here = without.residuals(&without.problem, &without.values).ok()?;
        let trial = without.with(set, time)?;
        let there = trial.residuals(&trial.problem, &trial.values).ok()?;
        let is_seen = there.iter().zip(&here).any(|(there, here)| (there - here).abs() > 1e-9);
        let at_best = share == 1.0;
        let linear = time.filter(|_| at_best).map(|(_, value)| timed(&trial, jacobian, left, &there, value));
        is_seen.then(|| linear.unwrap_or_else(|| (sum_of_squares(&there, None), trial)))
    };
    let of_shares = |shares: &[f64]| {
        let times: Vec<Option<(&'static str, f64)>> = match time {
            Some((key, values)) => values.into_iter().map(|value| Some((key, value))).collect(),
            None => vec![None],
        };
        let tried = shares.iter().flat_map(|share| times.iter().filter_map(|time| start(*share, *time)));
        Some(tried.min_by(|one, other| one.0.total_cmp(&other.0))?.1)
    };
    [&SHARES[..1], &SHARES[1..]].into_iter().filter_map(of_shares).collect()
}

/// Sum of squares that `trial` could reach, linearly, and the trial with the time that gives it. `there` are its residuals
/// with the time `value`, `left` and `jacobian` those without the mechanism and their derivatives.
fn timed(trial: &Trial, jacobian: &Rows, left: &[f64], there: &[f64], value: f64) -> (f64, Trial) {
    // A column for the share of the time: 0 is without it, 1 is `value`.
    let with_time: Rows = jacobian
        .iter()
        .zip(there.iter().zip(left))
        .map(|(row, (there, here))| row.iter().copied().chain([there - here]).collect())
        .collect();
    let mut step = solve(&with_time, left, None, DAMPING);
    let mut trial = trial.clone();
    if let (Some(share), Some(time)) = (step.last_mut(), trial.values.last_mut()) {
        *share = share.clamp(0.0, 3.0);
        *time = (value * *share).max(value / 10.0);
    }
    let after = with_time
        .iter()
        .zip(left)
        .map(|(row, left)| left + row.iter().zip(&step).map(|(slope, step)| slope * step).sum::<f64>());
    (sum_of_squares(&after.collect::<Vec<f64>>(), None), trial)
}

/// Damping of the linear estimates, so that inseparable numbers do not compensate each other with large steps.
const DAMPING: f64 = 1e-4;

/// Shares of the times of a direction at which a trial with one more mechanism starts; its counts are divided by them.
const SHARES: [f64; 4] = [1.0, 0.5, 0.25, 0.125];

/// The trial without one of its mechanisms, if it is not clearly better with it.
fn simpler(best: &Trial, errors: &[f64]) -> Option<(Trial, Vec<f64>)> {
    let others = (0..best.added.len()).filter_map(|place| best.without(place)?.judged());
    let not_worse = others.filter(|(_, without)| !is_better(without, errors, BETTER));
    not_worse.min_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))
}
