//! Figures that formulas and simulations gave during a fit, by the values on which they depend.

use crate::mechanism::only_of;
use lanemark_machine::Verb;
use lanemark_model::{Bound, Prediction};
use lanemark_runner::Cancel;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Source of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum By {
    Formula,
    Simulation,
}

/// Value of a key that figures may depend on.
#[derive(Clone, Copy)]
pub(crate) struct Valued<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: f64,
    /// Whether it may have any value in its range: it is neither a count nor part of a structure.
    pub(crate) is_continuous: bool,
}

/// Values of keys, in the order of the keys, and their hash.
pub(crate) struct Values<'a> {
    named: Vec<Valued<'a>>,
    hash: u64,
}

impl<'a> Values<'a> {
    fn of(named: Vec<Valued<'a>>) -> Values<'a> {
        let mut hasher = DefaultHasher::new();
        for Valued { key, value, .. } in &named {
            (key, value.to_bits()).hash(&mut hasher);
        }
        Values { named, hash: hasher.finish() }
    }

    /// Largest logarithm of a ratio to `others`; `None` if these are of other keys.
    fn distance(&self, others: &[(String, f64)]) -> Option<f64> {
        let is_same = |(one, other): (&Valued<'_>, &(String, f64))| one.key == other.0;
        let pairs = || self.named.iter().zip(others);
        let has_same = self.named.len() == others.len() && pairs().all(is_same);
        let apart = |(one, other): (&Valued<'_>, &(String, f64))| {
            if one.value.to_bits() == other.1.to_bits() { 0.0 } else { (one.value / other.1).ln().abs() }
        };
        has_same.then(|| pairs().map(apart).fold(0.0, f64::max))
    }

    /// The counts and the parts of the structure.
    fn structure(&self) -> impl Iterator<Item = (&'a str, f64)> {
        self.named.iter().filter(|valued| !valued.is_continuous).map(|valued| (valued.key, valued.value))
    }
}

/// The values on which reads of the card, writes, and both at once may depend.
pub(crate) struct Dependence<'a> {
    reads: Values<'a>,
    writes: Values<'a>,
    both: Values<'a>,
}

impl<'a> Dependence<'a> {
    /// Of these values of keys.
    pub(crate) fn on(mut all: Vec<Valued<'a>>) -> Dependence<'a> {
        all.sort_by(|one, other| one.key.cmp(other.key));
        let of = |verb: Verb| {
            let is_seen = |valued: &Valued<'_>| only_of(valued.key).is_none_or(|of| of == verb);
            Values::of(all.iter().copied().filter(is_seen).collect())
        };
        Dependence { reads: of(Verb::Load), writes: of(Verb::Store), both: Values::of(all.clone()) }
    }

    /// Of transfers of this direction; of both without one.
    pub(crate) fn of(&self, verb: Option<Verb>) -> &Values<'a> {
        match verb {
            Some(Verb::Load) => &self.reads,
            Some(Verb::Store) => &self.writes,
            None => &self.both,
        }
    }
}

/// Something by a key, shared by all copies of a fit.
type SharedMap<K, V> = Rc<RefCell<FxHashMap<K, V>>>;

/// A comparison of simulation and formula.
struct Compared {
    /// Values of keys.
    at: Vec<(String, f64)>,
    /// Those of them that are counts or parts of the structure.
    structure: Vec<(String, f64)>,
    /// The figure of the formula, and its bound.
    formula: f64,
    bound: Option<Bound>,
    /// Logarithm of simulation over formula.
    ratio: f64,
}

/// Figures of a fit by the number of their datum; shared by all its copies.
#[derive(Clone, Default)]
pub(crate) struct Memo {
    figures: SharedMap<(By, usize, u64), f64>,
    predictions: Rc<Cell<u64>>,
    /// Bounds by the hash of the values, and whether they clearly lead.
    bounds: SharedMap<(usize, u64), (Bound, bool)>,
    /// Logarithm of simulation over formula where this bound clearly led.
    ratios: SharedMap<(usize, Bound), f64>,
    /// All comparisons of simulation and formula.
    compared: SharedMap<usize, Vec<Compared>>,
    /// Ends the fit early.
    pub(crate) cancel: Cancel,
}

/// Ratio of the largest bound to the next one from which the formula differs from the simulation by rounding and by a part
/// that hardly depends on the values. `checks/tests/crosscheck.rs` tests the same ratio on random platforms.
const CLEAR: f64 = 1.25;

/// Logarithm of the ratio of values, up to which simulation and formula have the same ratio as before.
pub(crate) const NEAR: f64 = 0.05;

/// As [`NEAR`], for figures of both directions at once: their simulation takes long.
pub(crate) const NEAR_OF_BOTH: f64 = 0.2;

/// Largest logarithm of the ratio of two figures of a formula that count as equal. With the same bound, counts and structure,
/// simulation and formula then have the same ratio: mostly, what changed has no effect on the figure. For example, a time
/// that is free at only one of the two points.
const SAME_FIGURE: f64 = 1e-3;

impl Memo {
    /// One that knows nothing, and is cancelled with this one: for other data.
    pub(crate) fn emptied(&self) -> Memo {
        Memo { cancel: self.cancel.clone(), ..Memo::default() }
    }

    /// The figure of the datum `number` at `values`: a known one, or else what `ask` gives.
    ///
    /// # Errors
    /// The error of `ask`.
    pub(crate) fn figure(
        &self,
        by: By,
        number: usize,
        values: &Values<'_>,
        ask: impl FnOnce() -> Result<Option<f64>, String>,
    ) -> Result<Option<f64>, String> {
        if let Some(known) = self.figures.borrow().get(&(by, number, values.hash)) {
            return Ok(Some(*known));
        }
        if by == By::Formula {
            self.predictions.set(self.predictions.get() + 1);
        }
        let given = ask()?;
        if let Some(given) = given {
            self.figures.borrow_mut().insert((by, number, values.hash), given);
        }
        Ok(given)
    }

    /// Number of predictions by formulas so far.
    pub(crate) fn predictions(&self) -> u64 {
        self.predictions.get()
    }

    /// Keeps the bound of a prediction.
    pub(crate) fn judge(&self, number: usize, values: &Values<'_>, prediction: &Prediction) {
        self.bounds.borrow_mut().insert((number, values.hash), (prediction.bound, prediction.lead >= CLEAR));
    }

    /// The figure of the formula with its ratio to the simulation at other values. These are near ones, or ones where the
    /// formula has the same bound and figure with the same counts and structure, or ones where the same bound clearly leads as
    /// here. None if there are none, so that the simulation is needed.
    pub(crate) fn like_simulated(&self, number: usize, values: &Values<'_>, near: f64) -> Option<f64> {
        let formula = *self.figures.borrow().get(&(By::Formula, number, values.hash))?;
        let compared = self.compared.borrow();
        let of_it = || compared.get(&number).into_iter().flatten();
        let distances = of_it().filter_map(|known| Some((values.distance(&known.at)?, known.ratio)));
        let nearest = distances.min_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((_, ratio)) = nearest.filter(|(distance, _)| *distance <= near) {
            return Some(formula * ratio.exp());
        }
        let (bound, is_clear) = *self.bounds.borrow().get(&(number, values.hash))?;
        let is_same = |known: &&Compared| {
            let is_near = (formula / known.formula).ln().abs() < SAME_FIGURE;
            let structure = known.structure.iter().map(|(key, value)| (key.as_str(), *value));
            is_near && known.bound == Some(bound) && values.structure().eq(structure)
        };
        let ratios = self.ratios.borrow();
        let of_bound = || ratios.get(&(number, bound)).filter(|_| is_clear).copied();
        Some(formula * of_it().find(is_same).map(|known| known.ratio).or_else(of_bound)?.exp())
    }

    /// Keeps the ratio of the simulated figure to the formula's at these values, if both are known.
    pub(crate) fn compare(&self, number: usize, values: &Values<'_>) {
        let figures = self.figures.borrow();
        let of = |by: By| figures.get(&(by, number, values.hash)).copied();
        let (Some(formula), Some(simulated)) = (of(By::Formula), of(By::Simulation)) else { return };
        let ratio = (simulated / formula).ln();
        let at = values.named.iter().map(|valued| (valued.key.to_owned(), valued.value)).collect();
        let structure = values.structure().map(|(key, value)| (key.to_owned(), value)).collect();
        let bound = self.bounds.borrow().get(&(number, values.hash)).copied();
        let of_bound = bound.map(|(bound, _)| bound);
        self.compared.borrow_mut().entry(number).or_default().push(Compared {
            at,
            structure,
            formula,
            bound: of_bound,
            ratio,
        });
        if let Some((bound, true)) = bound {
            self.ratios.borrow_mut().insert((number, bound), ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(key: &str, value: f64) -> Values<'_> {
        Values::of(vec![Valued { key, value, is_continuous: key.ends_with("_ns") }])
    }

    /// A memo with a formula of 100 at `at`, where the simulation gives 110, and a formula of 200 at `other`.
    fn memo(at: &Values<'_>, other: &Values<'_>) -> Memo {
        let memo = Memo::default();
        for (by, values, figure) in [(By::Formula, at, 100.0), (By::Simulation, at, 110.0), (By::Formula, other, 200.0)]
        {
            assert_eq!(memo.figure(by, 0, values, || Ok(Some(figure))), Ok(Some(figure)));
        }
        memo
    }

    fn prediction(bound: Bound, lead: f64) -> Prediction {
        Prediction { issue_ns: 0.0, delivered_ns: 1.0, bound, lead, holds_for: "" }
    }

    #[test]
    fn a_known_figure_is_not_asked_for_again_and_a_prediction_is_counted_once() {
        let at = values("dma.tags", 8.0);
        let memo = memo(&at, &values("dma.tags", 9.0));
        assert_eq!(memo.figure(By::Formula, 0, &at, || Err("asked".to_owned())), Ok(Some(100.0)));
        assert_eq!(memo.predictions(), 2, "the simulation is none");
    }

    #[test]
    fn a_comparison_holds_up_to_a_distance_and_for_the_same_keys() {
        let at = values("dma.beat_ns", 1.0);
        for (key, value, is_known) in [
            ("dma.beat_ns", (NEAR - 1e-9).exp(), true),
            ("dma.beat_ns", (NEAR + 1e-9).exp(), false),
            ("dma.read_ns", 1.0, false),
        ] {
            let other = values(key, value);
            let memo = memo(&at, &other);
            assert_eq!(memo.like_simulated(0, &other, NEAR), None, "not compared yet");
            memo.compare(0, &at);
            let known = memo.like_simulated(0, &other, NEAR);
            assert_eq!(known.map(f64::round), is_known.then_some(220.0), "{key} {value}");
        }
    }

    #[test]
    fn a_comparison_holds_where_the_formula_has_the_same_figure_bound_and_counts() {
        let known = |key: &str, figure: f64, bound_here: Bound| {
            let (at, other) = (values(key, 10.0), values(key, 100.0));
            let memo = Memo::default();
            for (by, values, figure) in
                [(By::Formula, &at, 100.0), (By::Simulation, &at, 110.0), (By::Formula, &other, figure)]
            {
                memo.figure(by, 0, values, || Ok(Some(figure))).unwrap();
            }
            memo.judge(0, &at, &prediction(Bound::Link, 1.0));
            memo.judge(0, &other, &prediction(bound_here, 1.0));
            memo.compare(0, &at);
            memo.like_simulated(0, &other, NEAR).map(|known| known / figure)
        };
        let same = 100.0 * (SAME_FIGURE * (1.0 - 1e-9)).exp();
        assert!(known("memory.read_ns", same, Bound::Link).is_some_and(|ratio| (ratio - 1.1).abs() < 1e-12));
        assert_eq!(known("dma.tags", same, Bound::Link), None);
        assert_eq!(known("memory.read_ns", same, Bound::Engine), None);
        assert_eq!(known("memory.read_ns", 100.0 * (SAME_FIGURE * (1.0 + 1e-9)).exp(), Bound::Link), None);
    }

    #[test]
    fn a_comparison_holds_beside_a_time_that_is_not_fitted_any_more_but_not_beside_another_count() {
        let named = |key: &'static str, value: f64| Valued { key, value, is_continuous: key.ends_with("_ns") };
        let known = |here: Vec<Valued<'static>>| {
            let at = Values::of(vec![named("dma.tags", 8.0), named("memory.read_ns", 10.0)]);
            let (other, memo) = (Values::of(here), Memo::default());
            for (by, values, figure) in
                [(By::Formula, &at, 100.0), (By::Simulation, &at, 110.0), (By::Formula, &other, 100.0)]
            {
                memo.figure(by, 0, values, || Ok(Some(figure))).unwrap();
            }
            memo.judge(0, &at, &prediction(Bound::Link, 1.0));
            memo.judge(0, &other, &prediction(Bound::Link, 1.0));
            memo.compare(0, &at);
            memo.like_simulated(0, &other, NEAR).map(f64::round)
        };
        assert_eq!(known(vec![named("dma.tags", 8.0)]), Some(110.0));
        assert_eq!(known(vec![named("dma.tags", 9.0)]), None);
        assert_eq!(known(vec![named("dma.tags", 8.0), named("dma.send_buffers", 4.0)]), None);
        assert_eq!(known(vec![named("memory.read_ns", 10.0)]), None);
    }

    #[test]
    fn a_comparison_holds_everywhere_for_a_bound_that_clearly_leads() {
        let (at, other) = (values("dma.beat_ns", 1.0), values("dma.beat_ns", 9.0));
        let known = |bound_here: Bound, lead: f64| {
            let memo = memo(&at, &other);
            memo.judge(0, &at, &prediction(Bound::Link, CLEAR));
            memo.judge(0, &other, &prediction(bound_here, lead));
            memo.compare(0, &at);
            memo.like_simulated(0, &other, NEAR).map(f64::round)
        };
        assert_eq!(known(Bound::Link, CLEAR), Some(220.0));
        assert_eq!(known(Bound::Link, CLEAR - 1e-9), None);
        assert_eq!(known(Bound::Engine, CLEAR), None);
    }
}
