//! A structure during the search: its problem, its fitted values, and its errors at figures that were not fitted.

use crate::calibrate::{of_free, pulled, rounded};
use crate::contender::Contender;
use crate::distinction::Fitted;
use crate::fit_data::FitData;
use crate::least_squares::{FIRST_GAIN, scout, sum_of_squares};
use crate::mechanism::{BEAT_BYTES, BEAT_NS, PASS_THROUGH, is_choice, is_of_iommu};
use lanemark_machine::Facts;

/// Predictions by formulas after which no more structures are tried: several times those of a usual search. A time would
/// make the result depend on the machine.
pub const MOST_PREDICTIONS: u64 = 1_500_000;

/// Most steps of a fit.
pub(crate) const STEPS_OF_FIT: usize = 30;

/// Relative gain of the sum of squares below which a fit ends: far below the differences by which structures are chosen.
pub(crate) const GAIN_OF_FIT: f64 = 1e-4;

/// Most steps of a fit after a count was rounded.
const STEPS_OF_REST: usize = 6;

/// Structures with one more mechanism: about as many combinations as [`MECHANISMS`] have, without those of an IOMMU.
const STRUCTURES: f64 = 150.0;

/// A mechanism must reduce the sum of squares to this share, or it is not tried.
pub(crate) const PROMISING: f64 = 0.97;

/// Logarithm of the ratio of two figures below which they are the same: a tenth of the noise of most measurements.
const SAME_FIGURE: f64 = 1e-3;

/// Ratio of the counts that are tried one after the other.
const HALF_AN_OCTAVE: f64 = std::f64::consts::SQRT_2;

/// A mechanism that a trial has in addition to those of the file.
#[derive(Clone)]
pub(crate) struct Added {
    pub(crate) set: Vec<(&'static str, f64)>,
    pub(crate) time: Option<&'static str>,
}

/// A structure during the search.
#[derive(Clone)]
pub(crate) struct Trial {
    pub(crate) added: Vec<Added>,
    /// Trials whose last mechanism had the same effect in a short fit: no candidates.
    pub(crate) instead: Vec<Trial>,
    pub(crate) problem: FitData,
    pub(crate) facts: Facts,
    /// Start, or best values, of the keys of `problem`.
    pub(crate) values: Vec<f64>,
}

impl Trial {
    /// Whether the search has used its predictions.
    pub(crate) fn is_at_end(&self) -> bool {
        self.problem.predictions() >= MOST_PREDICTIONS
    }

    /// Whether a mechanism of this trial is an IOMMU. One that the file has is none.
    pub(crate) fn has_added_iommu(&self) -> bool {
        self.added.iter().flat_map(|added| &added.set).any(|(key, _)| is_of_iommu(key))
    }

    /// This trial for figures whose formulas are quick behind an IOMMU, with values fitted to these.
    pub(crate) fn for_quick_figures(&self, needs_windows: bool) -> Trial {
        let quick = Trial { problem: self.problem.of_quick_figures(needs_windows), ..self.clone() };
        if quick.problem.data().count() == self.problem.data().count() {
            return quick;
        }
        match quick.fitted_whole(&quick.problem, &quick.values) {
            Some((values, _)) => Trial { values, ..quick },
            None => quick,
        }
    }

    /// This trial for the figures of `problem`.
    pub(crate) fn for_figures_of(&self, problem: &FitData) -> Trial {
        let instead = self.instead.iter().map(|trial| trial.for_figures_of(problem)).collect();
        Trial { problem: self.problem.with_data_of(problem), instead, ..self.clone() }
    }

    /// Whether the formulas give all figures with these residuals.
    pub(crate) fn gives(&self, residuals: &[f64]) -> bool {
        let own = self.residuals(&self.problem, &self.values);
        own.is_ok_and(|own| own.iter().zip(residuals).all(|(one, other)| (one - other).abs() < SAME_FIGURE))
    }

    /// This trial as a contender, with the errors of held-out figures; `errors` also has those of the ends of curves.
    pub(crate) fn contender(&self, errors: &[f64]) -> Contender {
        let of_halves =
            |of: fn(&FitData, bool) -> Vec<usize>| [false, true].map(|half| of(&self.problem, half)).concat();
        let (mut counted, held_out) = (of_halves(FitData::half), of_halves(FitData::inner_half));
        counted.sort_unstable();
        let held_out = errors.iter().zip(counted).filter(|(_, place)| held_out.contains(place));
        let errors_percent = held_out.map(|(error, _)| *error).collect();
        let mut set: Vec<(String, f64)> = Vec::new();
        let all = self.added.iter().flat_map(|added| &added.set);
        // The other keys of an IOMMU say that it translates.
        for (key, value) in all.filter(|(key, _)| *key != PASS_THROUGH) {
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
    pub(crate) fn is_more_than_chance(&self, before: &Trial) -> bool {
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
    pub(crate) fn is_as_likely(&self, chosen: &Trial, of_chosen: &[f64]) -> bool {
        const CHI_SQUARED_95: f64 = 3.841;
        // Residuals below the noise of most measurements do not tell either.
        let squares = |left: &[f64]| sum_of_squares(left, None).max(left.len() as f64 * SAME_FIGURE * SAME_FIGURE);
        let own = self.residuals(&self.problem, &self.values);
        let is_close =
            own.is_ok_and(|own| own.len() as f64 * (squares(&own) / squares(of_chosen)).ln() < CHI_SQUARED_95);
        is_close && self.values.len() <= chosen.values.len()
    }

    pub(crate) fn fitted(&self) -> Fitted<'_> {
        Fitted { problem: &self.problem, facts: &self.facts, values: &self.values }
    }

    /// This trial with beats of half and of twice the width, if the width is not known: sizes that are multiples of both do
    /// not tell them apart, and so a search does not try them.
    pub(crate) fn with_other_beats(&self) -> Vec<(Trial, Vec<f64>)> {
        let set = self.added.iter().rev().flat_map(|added| &added.set);
        let set = set.into_iter().find(|(key, _)| *key == BEAT_BYTES).map(|(_, value)| *value);
        let Some(now) = set.or_else(|| self.problem.before(BEAT_BYTES)) else { return Vec::new() };
        let others = [now / 2.0, 2.0 * now].into_iter().filter(|width| is_choice(BEAT_BYTES, *width));
        let allowed = others.filter(|width| self.problem.allows(BEAT_BYTES, *width));
        allowed.filter_map(|width| self.with(&[(BEAT_BYTES, width)], None)?.judged()).collect()
    }

    /// Number of keys that the added mechanisms state or fit.
    pub(crate) fn numbers(&self) -> usize {
        self.added.iter().map(|added| added.set.len() + usize::from(added.time.is_some())).sum()
    }

    /// Residuals of the formulas at `values` of the keys of `problem`, this trial's or a part of it.
    pub(crate) fn residuals(&self, problem: &FitData, values: &[f64]) -> Result<Vec<f64>, String> {
        problem.formula_residuals(&self.facts, values)
    }

    /// Approximate best values for `problem`, this trial's or a part of it, from `start`, and the sum of squares.
    pub(crate) fn fitted_to(&self, problem: &FitData, start: &[f64], steps: (usize, f64)) -> Option<(Vec<f64>, f64)> {
        let mut parameters = problem.parameters();
        for (parameter, value) in parameters.iter_mut().zip(start) {
            parameter.start = value.clamp(parameter.low, parameter.high);
        }
        let ask =
            |values: &[f64]| self.residuals(problem, values).map(|left| pulled(left, problem, &parameters, values));
        scout(&parameters, steps, ask).ok()
    }

    /// As [`fitted_to`](Trial::fitted_to), with allowed values of counts.
    pub(crate) fn fitted_whole(&self, problem: &FitData, start: &[f64]) -> Option<(Vec<f64>, f64)> {
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
    pub(crate) fn after_steps(self, steps: usize) -> Option<(f64, Trial)> {
        let (values, left) = self.fitted_to(&self.problem, &self.values, (steps, FIRST_GAIN))?;
        Some((left, Trial { values, ..self }))
    }

    /// This trial with values fitted to all figures, and its held-out errors.
    pub(crate) fn judged(mut self) -> Option<(Trial, Vec<f64>)> {
        // A count that seemed to be the limit may not be it with this mechanism; a search does not leave such a place.
        let mut without_limit = self.values.clone();
        for ((value, parameter), grid) in
            without_limit.iter_mut().zip(self.problem.parameters()).zip(self.problem.grids())
        {
            if grid.is_some() {
                *value = parameter.high;
            }
        }
        let others = Some(without_limit).filter(|start| *start != self.values);
        let starts: Vec<Vec<f64>> = [self.values.clone()].into_iter().chain(others).collect();
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
    pub(crate) fn with_other_count(&self, values: &[f64]) -> Option<Vec<f64>> {
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
    pub(crate) fn corrected(&self) -> Option<(Trial, Vec<f64>)> {
        self.problem.correct_both_again(&self.facts, &self.values).ok().filter(|is_new| *is_new)?;
        self.clone().judged()
    }

    /// Absolute errors of the figures in halves, in percent: each half of the inner sizes is predicted by a fit to the other
    /// figures. The ends of curves are always fitted, and count with the errors that this fit leaves.
    pub(crate) fn counted_errors(&self) -> Option<Vec<f64>> {
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
    pub(crate) fn without(&self, place: usize) -> Option<Trial> {
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
    pub(crate) fn with(&self, set: &[(&'static str, f64)], time: Option<(&'static str, f64)>) -> Option<Trial> {
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

    /// Changes the time of a beat, if it is fitted, so that beats of `beat_bytes` have the rate of those before.
    pub(crate) fn keep_rate(&mut self, beat_bytes: f64) {
        let set = self.added.iter().rev().flat_map(|added| &added.set);
        let set = set.into_iter().find(|(key, _)| *key == BEAT_BYTES).map(|(_, value)| *value);
        let Some(before) = set.or_else(|| self.problem.before(BEAT_BYTES)) else { return };
        let all = self.values.iter_mut().zip(self.problem.parameters());
        for (value, parameter) in all.filter(|(_, parameter)| parameter.name == BEAT_NS) {
            *value = (*value * beat_bytes / before).clamp(parameter.low, parameter.high);
        }
    }
}
