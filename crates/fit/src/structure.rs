//! Search over structures: which mechanisms a card has, chosen by the error of figures that were not fitted.
//!
//! The search starts with the structure of the file. In each round it estimates, by linear least squares, how much every
//! mechanism could reduce the errors, and fits the best few to each half of the figures. A structure counts by its errors
//! at the other half. It is accepted if it is clearly better. At the end, mechanisms that have become useless are removed.

use crate::calibrate::{by_formulas, pulled};
use crate::fit_data::FitData;
use crate::least_squares::{Rows, derivatives, scout, solve, sum_of_squares};
use crate::mechanism::MECHANISMS;
use lanemark_machine::Facts;

/// Most mechanisms that are added.
const MOST_ROUNDS: usize = 4;

/// Number of mechanisms that are fitted in a round; the others promise less.
const TRIED: usize = 8;

/// Most combinations of one mechanism among them.
const OF_A_MECHANISM: usize = 2;

/// A structure must reduce the mean error of the held-out figures to this share.
const BETTER: f64 = 0.85;

/// A mechanism is removed if the mean error grows by less than this factor.
const HARDLY_WORSE: f64 = 1.03;

/// A mechanism must reduce the sum of squares to this share in the estimate, or it is not tried.
const PROMISING: f64 = 0.97;

/// A structure with its errors at figures that were not fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Changes to the structure of the file: keys with their values, as numbers; 1 is `true`.
    pub set: Vec<(String, f64)>,
    /// Keys that are fitted in addition to the unknown numbers of the file.
    pub fitted: Vec<String>,
    /// Absolute errors of the held-out figures, in percent, in the order of the data.
    pub errors_percent: Vec<f64>,
    /// Whether it is the chosen structure.
    pub is_chosen: bool,
}

impl Contender {
    /// Median of the absolute errors, in percent.
    #[must_use]
    pub fn median_percent(&self) -> f64 {
        let mut sorted = self.errors_percent.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = |place: usize| sorted.get(place).copied().unwrap_or_default();
        f64::midpoint(middle(sorted.len().saturating_sub(1) / 2), middle(sorted.len() / 2))
    }

    /// Mean of the absolute errors, in percent.
    #[must_use]
    pub fn mean_percent(&self) -> f64 {
        self.errors_percent.iter().sum::<f64>() / self.errors_percent.len().max(1) as f64
    }
}

/// A mechanism that a trial has in addition to those of the file.
#[derive(Clone)]
struct Added {
    set: Vec<(&'static str, f64)>,
    time: Option<&'static str>,
}

/// A structure during the search.
#[derive(Clone)]
struct Trial {
    added: Vec<Added>,
    problem: FitData,
    facts: Facts,
    /// Start, or best values, of the keys of `problem`.
    values: Vec<f64>,
}

/// The result of a search.
pub(crate) struct Structure {
    /// The problem with the chosen structure.
    pub(crate) problem: FitData,
    /// Best values by formulas.
    pub(crate) values: Vec<f64>,
    /// Every structure that was compared, best first.
    pub(crate) contenders: Vec<Contender>,
}

/// Chooses a structure; `None` for data without DMA transfers, if a datum has no formula, or if too few sizes are given to
/// hold any out.
pub(crate) fn search(problem: &FitData) -> Option<Structure> {
    if problem.held_out() == 0 || !problem.is_about_transfers() {
        return None;
    }
    let facts = problem.facts().ok()?;
    let values = by_formulas(problem)?;
    let mut best = Trial { added: Vec::new(), problem: problem.clone(), facts, values };
    let mut errors = best.held_out_errors()?;
    let mut compared = vec![(best.clone(), errors.clone())];
    for _ in 0..MOST_ROUNDS {
        let longer = extended(&best, &mut compared);
        if let Some((trial, found)) = longer.filter(|(_, found)| is_better(&errors, found)) {
            (best, errors) = (trial, found);
        } else if let Some((trial, found)) =
            exchanged(&best, &mut compared).filter(|(_, found)| is_better(&errors, found))
        {
            (best, errors) = (trial, found);
        } else {
            break;
        }
    }
    while let Some((trial, found)) = simpler(&best, &errors) {
        compared.push((trial.clone(), found.clone()));
        (best, errors) = (trial, found);
    }
    let chosen = best.contender(errors, true);
    let mut contenders: Vec<Contender> = Vec::new();
    compared.sort_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)));
    for (trial, errors) in compared {
        // Two orders of adding mechanisms can give the same structure.
        let mut contender = trial.contender(errors, false);
        contender.is_chosen = (&contender.set, &contender.fitted) == (&chosen.set, &chosen.fitted);
        if contenders.iter().all(|other| (&other.set, &other.fitted) != (&contender.set, &contender.fitted)) {
            contenders.push(contender);
        }
    }
    Some(Structure { problem: best.problem, values: best.values, contenders })
}

fn mean(errors: &[f64]) -> f64 {
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

/// Whether the errors `found` are clearly smaller than `before`, figure by figure: their mean by [`BETTER`], and the mean
/// of the differences by more than its standard error.
fn is_better(before: &[f64], found: &[f64]) -> bool {
    let gains: Vec<f64> = before.iter().zip(found).map(|(before, found)| before - found).collect();
    let gain = mean(&gains);
    let spread =
        gains.iter().map(|one| (one - gain).powi(2)).sum::<f64>() / gains.len().saturating_sub(1).max(1) as f64;
    mean(found) <= BETTER * mean(before) && gain > (spread / gains.len() as f64).sqrt()
}

impl Trial {
    fn contender(&self, errors_percent: Vec<f64>, is_chosen: bool) -> Contender {
        let mut set: Vec<(String, f64)> = Vec::new();
        for (key, value) in self.added.iter().flat_map(|added| &added.set) {
            set.retain(|(other, _)| other != key);
            set.push(((*key).to_owned(), *value));
        }
        let fitted = self.added.iter().filter_map(|added| Some(added.time?.to_owned())).collect();
        Contender { set, fitted, errors_percent, is_chosen }
    }

    /// Residuals of the formulas at `values` of the keys of `problem`, this trial's or a part of it.
    fn residuals(&self, problem: &FitData, values: &[f64]) -> Result<Vec<f64>, String> {
        problem.formula_residuals(&self.facts, values)
    }

    /// Approximate best values for `problem`, this trial's or a part of it, from `start`, and the sum of squares.
    fn fitted_to(&self, problem: &FitData, start: &[f64]) -> Option<(Vec<f64>, f64)> {
        let mut parameters = problem.parameters();
        for (parameter, value) in parameters.iter_mut().zip(start) {
            parameter.start = value.clamp(parameter.low, parameter.high);
        }
        let ask = |values: &[f64]| self.residuals(problem, values).map(|left| pulled(left, &parameters, values));
        scout(&parameters, 30, ask).ok()
    }

    /// This trial with values fitted to all figures, and its held-out errors.
    fn judged(mut self) -> Option<(Trial, Vec<f64>)> {
        // A count that seemed to be the limit may not be it with this mechanism; a search does not leave such a place.
        let mut without_limit = self.values.clone();
        for ((value, parameter), grid) in
            without_limit.iter_mut().zip(self.problem.parameters()).zip(self.problem.grids())
        {
            if grid.is_some() {
                *value = parameter.high;
            }
        }
        let starts = [self.values.clone(), without_limit];
        let ends = starts.iter().filter_map(|start| self.fitted_to(&self.problem, start));
        self.values = ends.min_by(|one, other| one.1.total_cmp(&other.1))?.0;
        let errors = self.held_out_errors()?;
        Some((self, errors))
    }

    /// Absolute errors of the held-out figures in percent: each half is predicted by a fit to the other figures.
    fn held_out_errors(&self) -> Option<Vec<f64>> {
        let mut errors: Vec<(usize, f64)> = Vec::new();
        for half in [false, true] {
            let places = self.problem.half(half);
            let test = self.problem.part(|place| places.contains(&place));
            let train = self.problem.part(|place| !places.contains(&place));
            let (values, _) = self.fitted_to(&train, &self.values)?;
            let left = self.residuals(&test, &values).ok()?;
            errors.extend(places.into_iter().zip(left.into_iter().map(|left| 100.0 * (left.exp() - 1.0).abs())));
        }
        errors.sort_by_key(|(place, _)| *place);
        Some(errors.into_iter().map(|(_, error)| error).collect())
    }

    /// This trial without the mechanism that was added as number `place`.
    fn without(&self, place: usize) -> Option<Trial> {
        let mut trial = self.clone();
        let removed = trial.added.remove(place);
        for (key, _) in removed.set {
            // Another mechanism may have set the key before.
            let set = trial.added.iter().rev().flat_map(|added| &added.set);
            let before = set.into_iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
            trial.problem = match before {
                Some(value) => trial.problem.with_value(key, value).ok()?,
                None => trial.problem.with_default(key).ok()?,
            };
        }
        if let Some(key) = removed.time {
            let (problem, at) = trial.problem.without_free(key, None).ok()?;
            trial.problem = problem;
            trial.values.remove(at);
        }
        trial.facts = trial.problem.facts().ok()?;
        Some(trial)
    }

    /// This trial with one more mechanism; its time, if any, has the value `time`.
    fn with(&self, set: &[(&'static str, f64)], time: Option<(&'static str, f64)>) -> Option<Trial> {
        let mut next = self.clone();
        for (key, value) in set {
            next.problem = next.problem.with_value(key, *value).ok()?;
        }
        if let Some((key, value)) = time {
            next.problem = next.problem.with_free(key, value).ok()?;
            next.values.push(value);
        }
        next.added.push(Added { set: set.to_vec(), time: time.map(|(key, _)| key) });
        next.facts = next.problem.facts().ok()?;
        Some(next)
    }
}

/// The best trial with one more mechanism, with its errors; all that are tried are added to `compared`.
fn extended(from: &Trial, compared: &mut Vec<(Trial, Vec<f64>)>) -> Option<(Trial, Vec<f64>)> {
    let tried: Vec<(Trial, Vec<f64>)> = promising(from).into_iter().filter_map(Trial::judged).collect();
    compared.extend(tried.iter().cloned());
    tried.into_iter().min_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))
}

/// The best trial with another mechanism instead of one that was added.
fn exchanged(best: &Trial, compared: &mut Vec<(Trial, Vec<f64>)>) -> Option<(Trial, Vec<f64>)> {
    let others = (0..best.added.len()).filter_map(|place| extended(&best.without(place)?.judged()?.0, compared));
    let others: Vec<(Trial, Vec<f64>)> = others.collect();
    others.into_iter().min_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))
}

/// Trials with one more mechanism that are expected to reduce the errors most, best first.
fn promising(best: &Trial) -> Vec<Trial> {
    let parameters = best.problem.parameters();
    let ask = |values: &[f64]| best.residuals(&best.problem, values).map_err(|_| ());
    let Ok(left) = ask(&best.values) else { return Vec::new() };
    let mut evaluate = |values: &[f64]| ask(values);
    let Ok(jacobian) = derivatives(&parameters, &best.values, &left, &mut evaluate) else { return Vec::new() };
    // Sum of squares that the numbers fitted so far could still reach without another mechanism.
    let before = after_a_step(&jacobian, &left, &solve(&jacobian, &left, None, DAMPING));
    let mut estimates: Vec<(f64, Trial)> = Vec::new();
    for mechanism in MECHANISMS {
        let mut of_it: Vec<(f64, Trial)> = Vec::new();
        let time = mechanism.time.filter(|(key, _)| !best.problem.has_key(key));
        if time.is_some_and(|(key, _)| !best.problem.is_open(key)) || (time.is_none() && mechanism.choices.is_empty()) {
            continue;
        }
        let is_free = mechanism.choices.iter().all(|(key, _)| best.problem.is_open(key));
        let combinations = match (is_free, mechanism.choices) {
            (true, _) => {
                let is_allowed =
                    |set: &Vec<(&str, f64)>| set.iter().all(|(key, value)| best.problem.allows(key, *value));
                mechanism.combinations().into_iter().filter(is_allowed).collect()
            }
            // A given size of chunks, whose time is not known.
            (false, [_]) if time.is_some() => vec![Vec::new()],
            (false, _) => continue,
        };
        for set in combinations {
            let estimate = match time {
                None => {
                    let of = |share: f64| untimed(best, &jacobian, &left, &set, (mechanism.of_requests, share));
                    let shares: &[f64] = if mechanism.of_requests.is_empty() { &[1.0] } else { &SHARES };
                    shares.iter().filter_map(|share| of(*share)).min_by(|one, other| one.0.total_cmp(&other.0))
                }
                Some((key, values)) => {
                    let of = |value: f64| timed(best, &jacobian, &left, &set, (key, value));
                    values.into_iter().filter_map(of).min_by(|one, other| one.0.total_cmp(&other.0))
                }
            };
            of_it.extend(estimate.filter(|(after, _)| *after < PROMISING * before));
        }
        of_it.sort_by(|one, other| one.0.total_cmp(&other.0));
        of_it.truncate(OF_A_MECHANISM);
        estimates.extend(of_it);
    }
    estimates.sort_by(|one, other| one.0.total_cmp(&other.0));
    estimates.into_iter().take(TRIED).map(|(_, trial)| trial).collect()
}

/// Damping of the linear estimates, so that inseparable numbers do not compensate each other with large steps.
const DAMPING: f64 = 1e-4;

/// Sum of squares after a step, linearly.
fn after_a_step(jacobian: &Rows, left: &[f64], step: &[f64]) -> f64 {
    let after = jacobian
        .iter()
        .zip(left)
        .map(|(row, left)| left + row.iter().zip(step).map(|(slope, step)| slope * step).sum::<f64>());
    sum_of_squares(&after.collect::<Vec<f64>>(), None)
}

/// Shares of the time of a request that are tried where requests become smaller.
const SHARES: [f64; 4] = [1.0, 0.5, 0.25, 0.125];

/// Estimate for a mechanism without a time of its own: the sum of squares, and the trial; the times of requests are `share`
/// of those before.
fn untimed(
    best: &Trial,
    jacobian: &Rows,
    left: &[f64],
    set: &[(&'static str, f64)],
    (of_requests, share): (&[&str], f64),
) -> Option<(f64, Trial)> {
    let mut trial = best.with(set, None)?;
    for (value, parameter) in trial.values.iter_mut().zip(trial.problem.parameters()) {
        if of_requests.contains(&parameter.name.as_str()) {
            *value = (*value * share).max(parameter.low);
        }
    }
    let there = trial.residuals(&trial.problem, &trial.values).ok()?;
    let is_seen = there.iter().zip(left).any(|(there, here)| (there - here).abs() > 1e-9);
    is_seen.then(|| (after_a_step(jacobian, &there, &solve(jacobian, &there, None, DAMPING)), trial))
}

/// Estimate for a mechanism with a time: the sum of squares, and the trial with the time that gives it.
fn timed(
    best: &Trial,
    jacobian: &Rows,
    left: &[f64],
    set: &[(&'static str, f64)],
    (key, value): (&'static str, f64),
) -> Option<(f64, Trial)> {
    let mut trial = best.with(set, Some((key, value)))?;
    let there = trial.residuals(&trial.problem, &trial.values).ok()?;
    if there.iter().zip(left).all(|(there, here)| (there - here).abs() <= 1e-9) {
        return None;
    }
    // A column for the share of the time: 0 is without it, 1 is `value`.
    let with_time: Rows = jacobian
        .iter()
        .zip(there.iter().zip(left))
        .map(|(row, (there, here))| row.iter().copied().chain([there - here]).collect())
        .collect();
    let mut step = solve(&with_time, left, None, DAMPING);
    let share = step.last_mut()?;
    *share = share.clamp(0.0, 3.0);
    let wanted = value * *share;
    let after = after_a_step(&with_time, left, &step);
    *trial.values.last_mut()? = wanted.max(value / 10.0);
    Some((after, trial))
}

/// The trial without one of its mechanisms, if that is hardly worse.
fn simpler(best: &Trial, errors: &[f64]) -> Option<(Trial, Vec<f64>)> {
    let others = (0..best.added.len()).filter_map(|place| best.without(place)?.judged());
    let least = others.min_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)))?;
    (mean(&least.1) <= HARDLY_WORSE * mean(errors)).then_some(least)
}
