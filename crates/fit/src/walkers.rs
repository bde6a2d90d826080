//! The number of concurrent page walks that a fit writes: the fewest that give the same figures.

use crate::fit_data::FitData;
use crate::mechanism::{NUMBERS_OF_WALKERS, WALKERS};

/// Logarithm of the ratio of two figures below which they are the same: far below the effect of a walker more.
const SAME: f64 = 1e-9;

/// The fit with the fewest walkers whose formulas give the same figures at `values` of its keys, and their number; `None` if
/// a formula has no figure.
///
/// Above some number, walks never wait: a larger one is as good, and says nothing of the card.
pub(crate) fn fewest(problem: &FitData, values: &[f64]) -> Option<(FitData, f64)> {
    let residuals = |problem: &FitData| problem.formula_residuals(&problem.facts().ok()?, values).ok();
    let (now, here) = (problem.number(WALKERS)?, residuals(problem)?);
    let is_like = |there: &[f64]| there.iter().zip(&here).all(|(there, here)| (there - here).abs() <= SAME);
    let smaller = NUMBERS_OF_WALKERS.iter().copied().take_while(|number| *number < now);
    let with = |number: f64| Some((problem.with_value(WALKERS, number).ok()?, number));
    let mut alike = smaller.filter_map(with).filter(|(other, _)| residuals(other).is_some_and(|there| is_like(&there)));
    Some(alike.next().unwrap_or_else(|| (problem.clone(), now)))
}
