//! The numbers of concurrent page walks that give the same figures: a fit writes the fewest of them.

use crate::fit_data::FitData;
use crate::mechanism::{NUMBERS_OF_WALKERS, WALKERS};

/// Logarithm of the ratio of two figures below which they are the same: far below the effect of a walker more.
const SAME: f64 = 1e-9;

/// The numbers of walkers with which the formulas give the same figures at `values` of the keys, fewest first, each with its
/// fit; none if a formula has no figure.
///
/// Above some number, walks never wait: a larger one is as good, and says nothing of the card.
pub(crate) fn alike(problem: &FitData, values: &[f64]) -> Vec<(f64, FitData)> {
    let residuals = |problem: &FitData| problem.formula_residuals(&problem.facts().ok()?, values).ok();
    let Some(here) = residuals(problem) else { return Vec::new() };
    let is_like = |there: &[f64]| there.iter().zip(&here).all(|(there, here)| (there - here).abs() <= SAME);
    let with = |number: &f64| Some((*number, problem.with_value(WALKERS, *number).ok()?));
    let all = NUMBERS_OF_WALKERS.iter().filter_map(with);
    all.filter(|(_, other)| residuals(other).is_some_and(|there| is_like(&there))).collect()
}
