//! Search over structures: which mechanisms a card has, chosen by the error of figures that were not fitted.
//!
//! The search starts with the structure of the file. In each round, short fits of every mechanism select a few, which are
//! fitted to each half of the figures. A structure counts by its errors at the other half. Of those that are clearly
//! better, the simplest one near the best is accepted. At the end, mechanisms are removed that are not clearly needed.

mod contender;
mod windows;

pub use contender::Contender;

use crate::calibrate::{by_formulas, of_free, pulled, rounded};
use crate::distinction::{Fitted, distinction};
use crate::evidence::{BETTER, is_better, mean, simplest};
use crate::fit_data::FitData;
use crate::least_squares::{FIRST_GAIN, Rows, derivatives, scout, solve, sum_of_squares};
use crate::mechanism::{BEAT_BYTES, BEAT_NS, MECHANISMS, Mechanism, is_choice, only_of};
use lanemark_machine::{Facts, Verb};

/// Most mechanisms that are added.
const MOST_ROUNDS: usize = 4;

/// Predictions by formulas after which no more structures are tried: several times those of a usual search. A time would
/// make the result depend on the machine.
pub const MOST_PREDICTIONS: u64 = 1_500_000;

/// Number of mechanisms that are fitted in a round; the others promise less.
const TRIED: usize = 8;

/// Most combinations of one mechanism among them.
const OF_A_MECHANISM: usize = 2;

/// Most steps of a fit.
const STEPS_OF_FIT: usize = 30;

/// Relative gain of the sum of squares below which a fit ends: far below the differences by which structures are chosen.
const GAIN_OF_FIT: f64 = 1e-4;

/// Most steps of a fit after a count was rounded.
const STEPS_OF_REST: usize = 6;

/// Short fits of trials with one more mechanism: of so many, so many steps each, one after the other.
const SCREENING: [(usize, usize); 3] = [(usize::MAX, 1), (48, 2), (24, 4)];

/// Structures with one more mechanism: about as many combinations as [`MECHANISMS`] have.
const STRUCTURES: f64 = 150.0;

/// A mechanism must reduce the sum of squares to this share, or it is not tried.
const PROMISING: f64 = 0.97;

/// Logarithm of the ratio of two figures below which they are the same: a tenth of the noise of most measurements.
const SAME_FIGURE: f64 = 1e-3;

/// Ratio of the counts that are tried one after the other.
const HALF_AN_OCTAVE: f64 = std::f64::consts::SQRT_2;

/// Relative difference of two sums of squares below which two mechanisms have the same effect.
const SAME: f64 = 1e-9;

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
    /// Trials whose last mechanism had the same effect in a short fit: no candidates.
    instead: Vec<Trial>,
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
    let mut contenders: Vec<Contender> = Vec::new();
    compared.sort_by(|one, other| mean(&one.1).total_cmp(&mean(&other.1)));
    for (trial, errors) in compared {
        // Two orders of adding mechanisms can give the same structure.
        let mut contender = trial.contender(&errors);
        contender.is_chosen = (&contender.set, &contender.fitted) == (&chosen.set, &chosen.fitted);
        contender.is_like_chosen = !contender.is_chosen && trial.gives(&of_chosen);
        contender.is_as_likely = !contender.is_chosen && trial.is_as_likely(&best, &of_chosen);
        if contender.is_like_chosen || contender.is_as_likely {
            contender.distinction = distinction(&best.fitted(), &trial.fitted());
        }
        if contenders.iter().all(|other| (&other.set, &other.fitted) != (&contender.set, &contender.fitted)) {
            contenders.push(contender);
        }
    }
    contenders.sort_by(|one, other| one.mean_percent().total_cmp(&other.mean_percent()));
    let is_cut_short = best.is_at_end();
    Some(Structure { problem: best.problem, values: best.values, contenders, is_cut_short })
}

impl Trial {
    /// Whether the search has used its predictions.
    fn is_at_end(&self) -> bool {
        self.problem.predictions() >= MOST_PREDICTIONS
    }

    /// Whether the formulas give all figures with these residuals.
    fn gives(&self, residuals: &[f64]) -> bool {
        let own = self.residuals(&self.problem, &self.values);
        own.is_ok_and(|own| own.iter().zip(residuals).all(|(one, other)| (one - other).abs() < SAME_FIGURE))
    }

    /// This trial as a contender, with the errors of held-out figures; `errors` also has those of the ends of curves.
    fn contender(&self, errors: &[f64]) -> Contender {
        let of_halves =
            |of: fn(&FitData, bool) -> Vec<usize>| [false, true].map(|half| of(&self.problem, half)).concat();
        let (mut counted, held_out) = (of_halves(FitData::half), of_halves(FitData::inner_half));
        counted.sort_unstable();
        let held_out = errors.iter().zip(counted).filter(|(_, place)| held_out.contains(place));
        let errors_percent = held_out.map(|(error, _)| *error).collect();
        let mut set: Vec<(String, f64)> = Vec::new();
        for (key, value) in self.added.iter().flat_map(|added| &added.set) {
            set.retain(|(other, _)| other != key);
            set.push(((*key).to_owned(), *value));
        }
        let fitted = self.added.iter().filter_map(|added| Some(added.time?.to_owned())).collect();
        Contender {
            set,
            fitted,
            errors_percent,
            is_chosen: false,
            is_like_chosen: false,
            is_as_likely: false,
            distinction: None,
        }
    }

    /// Whether this trial follows all figures better than `before` by more than the best of many structures would by
    /// chance: `(n - p - 1/2) ln(S0 / S1) > k ln(n) + 2 ln(m)` for `n` figures, `p` fitted numbers, the sums of squares `S0`
    /// and `S1`, `k` more numbers, and `m` structures tried.
    ///
    /// Sources: the extended Bayesian information criterion, Chen and Chen, Biometrika 95, 2008, equation 3; for few figures,
    /// the likelihood ratio is reduced as Bartlett did, Proc. Royal Society A 160, 1937: with `n` alone, one number more
    /// halves the squares of 18 figures by chance too often.
    fn is_more_than_chance(&self, before: &Trial) -> bool {
        let squares = |trial: &Trial| {
            trial.residuals(&trial.problem, &trial.values).map_or(f64::NAN, |left| sum_of_squares(&left, None))
        };
        let figures = self.problem.points().len() as f64;
        let more = self.numbers().saturating_sub(before.numbers()) as f64;
        let left = (figures - self.values.len() as f64 - 0.5).max(0.0);
        left * (squares(before) / squares(self)).ln() > more * figures.ln() + 2.0 * STRUCTURES.ln()
    }

    /// Whether this trial has no more fitted numbers than the chosen one, with these residuals, and chance may have decided
    /// between them: `n ln(S / S0)` is below the 95 % quantile of chi-squared with one degree of freedom.
    ///
    /// Source: the likelihood ratio, any textbook.
    fn is_as_likely(&self, chosen: &Trial, of_chosen: &[f64]) -> bool {
        const CHI_SQUARED_95: f64 = 3.841;
        // Residuals below the noise of most measurements do not tell either.
        let squares = |left: &[f64]| sum_of_squares(left, None).max(left.len() as f64 * SAME_FIGURE * SAME_FIGURE);
        let own = self.residuals(&self.problem, &self.values);
        let is_close =
            own.is_ok_and(|own| own.len() as f64 * (squares(&own) / squares(of_chosen)).ln() < CHI_SQUARED_95);
        is_close && self.values.len() <= chosen.values.len()
    }

    fn fitted(&self) -> Fitted<'_> {
        Fitted { problem: &self.problem, facts: &self.facts, values: &self.values }
    }

    /// This trial with beats of half and of twice the width, if the width is not known: sizes that are multiples of both do
    /// not tell them apart, and so a search does not try them.
    fn with_other_beats(&self) -> Vec<(Trial, Vec<f64>)> {
        let set = self.added.iter().rev().flat_map(|added| &added.set);
        let set = set.into_iter().find(|(key, _)| *key == BEAT_BYTES).map(|(_, value)| *value);
        let Some(now) = set.or_else(|| self.problem.before(BEAT_BYTES)) else { return Vec::new() };
        let others = [now / 2.0, 2.0 * now].into_iter().filter(|width| is_choice(BEAT_BYTES, *width));
        let allowed = others.filter(|width| self.problem.allows(BEAT_BYTES, *width));
        allowed.filter_map(|width| self.with(&[(BEAT_BYTES, width)], None)?.judged()).collect()
    }

    /// Number of keys that the added mechanisms state or fit.
    fn numbers(&self) -> usize {
        self.added.iter().map(|added| added.set.len() + usize::from(added.time.is_some())).sum()
    }

    /// Residuals of the formulas at `values` of the keys of `problem`, this trial's or a part of it.
    fn residuals(&self, problem: &FitData, values: &[f64]) -> Result<Vec<f64>, String> {
        problem.formula_residuals(&self.facts, values)
    }

    /// Approximate best values for `problem`, this trial's or a part of it, from `start`, and the sum of squares.
    fn fitted_to(&self, problem: &FitData, start: &[f64], steps: (usize, f64)) -> Option<(Vec<f64>, f64)> {
        let mut parameters = problem.parameters();
        for (parameter, value) in parameters.iter_mut().zip(start) {
            parameter.start = value.clamp(parameter.low, parameter.high);
        }
        let ask =
            |values: &[f64]| self.residuals(problem, values).map(|left| pulled(left, problem, &parameters, values));
        scout(&parameters, steps, ask).ok()
    }

    /// As [`fitted_to`](Trial::fitted_to), with allowed values of counts.
    fn fitted_whole(&self, problem: &FitData, start: &[f64]) -> Option<(Vec<f64>, f64)> {
        let parameters = problem.parameters();
        let mut search = |values: &[f64], is_set: &[bool]| {
            if !is_set.contains(&true) {
                return self.fitted_to(problem, values, (STEPS_OF_FIT, GAIN_OF_FIT)).ok_or(());
            }
            let (searched, all) = of_free(&parameters, values, is_set);
            let ask = |some: &[f64]| {
                let values = all(some);
                self.residuals(problem, &values).map(|left| pulled(left, problem, &parameters, &values))
            };
            let (some, left) = scout(&searched, (STEPS_OF_REST, GAIN_OF_FIT), ask).map_err(|_| ())?;
            Ok((all(&some), left))
        };
        rounded(problem.grids(), start, &mut search).ok()
    }

    /// This trial after some steps of a fit to all figures, with the sum of squares.
    fn after_steps(self, steps: usize) -> Option<(f64, Trial)> {
        let (values, left) = self.fitted_to(&self.problem, &self.values, (steps, FIRST_GAIN))?;
        Some((left, Trial { values, ..self }))
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
        let fitted = |trial: &Trial| {
            let ends = starts.iter().filter_map(|start| trial.fitted_whole(&trial.problem, start));
            let (values, left) = ends.min_by(|one, other| one.1.total_cmp(&other.1))?;
            let other = trial.with_other_count(&values).and_then(|start| trial.fitted_whole(&trial.problem, &start));
            Some(other.filter(|(_, other)| *other < left).map_or(values, |(values, _)| values))
        };
        self.values = fitted(&self)?;
        if self.problem.correct_both(&self.facts, &self.values).ok()? {
            self.values = fitted(&self)?;
        }
        let errors = self.counted_errors()?;
        Some((self, errors))
    }

    /// `values` with another value of one count that clearly reduces the sum of squares, the others unchanged.
    ///
    /// A count that is not the limit of any figure has no effect, so that a search does not change it.
    fn with_other_count(&self, values: &[f64]) -> Option<Vec<f64>> {
        let left = |values: &[f64]| {
            self.residuals(&self.problem, values).map_or(f64::INFINITY, |left| sum_of_squares(&left, None))
        };
        let of_keys = self.problem.parameters().into_iter().zip(self.problem.grids()).enumerate();
        let counts = of_keys.filter(|(_, (_, grid))| grid.is_some()).flat_map(|(place, (parameter, _))| {
            let smaller = std::iter::successors(Some(parameter.high), |count| Some(count / HALF_AN_OCTAVE));
            smaller.take_while(move |count| *count >= parameter.low).map(move |count| (place, count))
        });
        let tried = counts.map(|(place, count)| {
            let mut other = values.to_vec();
            other[place] = count;
            (left(&other), other)
        });
        let (least, other) = tried.min_by(|one, other| one.0.total_cmp(&other.0))?;
        (least < PROMISING * left(values)).then_some(other)
    }

    /// This trial with figures of both directions corrected by the simulation at its own values, and its held-out errors; `None`
    /// without such figures.
    fn corrected(&self) -> Option<(Trial, Vec<f64>)> {
        self.problem.correct_both_again(&self.facts, &self.values).ok().filter(|is_new| *is_new)?;
        self.clone().judged()
    }

    /// Absolute errors of the figures in halves, in percent: each half of the inner sizes is predicted by a fit to the other
    /// figures. The ends of curves are always fitted, and count with the errors that this fit leaves.
    fn counted_errors(&self) -> Option<Vec<f64>> {
        let mut errors: Vec<(usize, f64)> = Vec::new();
        for half in [false, true] {
            let (places, held_out) = (self.problem.half(half), self.problem.inner_half(half));
            let test = self.problem.part(|place| places.contains(&place));
            let train = self.problem.part(|place| !held_out.contains(&place));
            let (values, _) = self.fitted_whole(&train, &self.values)?;
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
        trial.instead.clear();
        for (key, _) in removed.set {
            // Another mechanism may have set the key before.
            let set = trial.added.iter().rev().flat_map(|added| &added.set);
            let before = set.into_iter().find(|(other, _)| *other == key).map(|(_, value)| *value);
            trial.problem = match before {
                Some(value) => trial.problem.with_value(key, value).ok()?,
                None => trial.problem.with_value_before(key).ok()?,
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
            if *key == BEAT_BYTES {
                next.keep_rate(*value);
            }
            next.problem = next.problem.with_value(key, *value).ok()?;
        }
        if let Some((key, value)) = time {
            next.problem = next.problem.with_free(key, value).ok()?;
            next.values.push(value);
        }
        next.added.push(Added { set: set.to_vec(), time: time.map(|(key, _)| key) });
        next.instead.clear();
        next.facts = next.problem.facts().ok()?;
        Some(next)
    }
}

impl Trial {
    /// Changes the time of a beat, if it is fitted, so that beats of `beat_bytes` have the rate of those before.
    fn keep_rate(&mut self, beat_bytes: f64) {
        let set = self.added.iter().rev().flat_map(|added| &added.set);
        let set = set.into_iter().find(|(key, _)| *key == BEAT_BYTES).map(|(_, value)| *value);
        let Some(before) = set.or_else(|| self.problem.before(BEAT_BYTES)) else { return };
        let all = self.values.iter_mut().zip(self.problem.parameters());
        for (value, parameter) in all.filter(|(_, parameter)| parameter.name == BEAT_NS) {
            *value = (*value * beat_bytes / before).clamp(parameter.low, parameter.high);
        }
    }
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
    let Some((_, before)) = best.fitted_to(&best.problem, &best.values, (1, FIRST_GAIN)) else { return Vec::new() };
    let ask = |values: &[f64]| best.residuals(&best.problem, values).map_err(|_| ());
    let Ok(left) = ask(&best.values) else { return Vec::new() };
    let Ok(jacobian) = derivatives(&best.problem.parameters(), &best.values, &left, &mut |values: &[f64]| ask(values))
    else {
        return Vec::new();
    };
    let here = (left, jacobian);
    let mut tried: Vec<(f64, usize, Trial)> = Vec::new();
    let is_seen = |mechanism: &Mechanism| mechanism.replaces.is_none() || best.problem.has_windows();
    for (number, mechanism) in MECHANISMS.iter().enumerate().filter(|(_, mechanism)| is_seen(mechanism)) {
        for set in combinations(best, mechanism) {
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
