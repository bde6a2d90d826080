//! Search for the unknown numbers of a platform: by formulas from many starting points, then by simulation from the
//! best.

use crate::least_squares::{judge, scout, sum_of_squares};
use crate::whole::neighbours;
use crate::{Fit, FitData, FitError, Parameter, fit_many};

/// Starting points at which formulas are evaluated.
const PLACES: u32 = 64;

/// Number of the best starting points from which a search by formulas begins.
const STARTS: usize = 12;

/// Strength of the pull towards the middle of a parameter's bounds: a factor of ten weighs as an error of 0.5 % in one
/// datum.
const PULL: f64 = 2e-3;

/// Finds the values with the least sum of squares, integers where the key requires them, and their confidence.
///
/// # Errors
/// [`FitError`].
pub(crate) fn calibrate(problem: &FitData) -> Result<Fit, FitError> {
    let mut parameters = problem.parameters();
    if !problem.is_about_transfers() && problem.grids().iter().all(Option::is_none) {
        return fit_many(&parameters, |values| problem.residuals(values));
    }
    if let Some(best) = by_formulas(problem, &parameters) {
        parameters.iter_mut().zip(best).for_each(|(parameter, value)| parameter.start = value);
    }
    let searched =
        fit_many(&parameters, |values| problem.residuals(values).map(|left| pulled(left, &parameters, values)))?;
    let mut values: Vec<f64> = searched.found.iter().map(|found| found.value).collect();
    // Integers are rounded one by one; after each, the remaining parameters are searched again.
    let mut is_set = vec![false; values.len()];
    for (place, grid) in problem.grids().iter().enumerate() {
        let Some(grid) = grid else { continue };
        is_set[place] = true;
        let (below, above) = neighbours(grid, values[place]);
        if values[place] == below {
            continue;
        }
        values[place] = if values[place] * 2.0 < below + above { below } else { above };
        values = with_some_set(problem, &parameters, &values, &is_set)?;
    }
    judge(&parameters, &values, |values| problem.residuals(values))
}

/// The residuals, followed by a weak pull of each parameter to the middle of its bounds.
///
/// A parameter that the data leave open then stays in the middle instead of drifting to a bound, which would look like
/// a result.
fn pulled(mut left: Vec<f64>, parameters: &[Parameter], values: &[f64]) -> Vec<f64> {
    let middle = |parameter: &Parameter| (parameter.low * parameter.high).sqrt();
    left.extend(parameters.iter().zip(values).map(|(parameter, value)| PULL * (value / middle(parameter)).ln()));
    left
}

/// Searches the parameters that are not set, and returns the values of all.
fn with_some_set(
    problem: &FitData,
    parameters: &[Parameter],
    values: &[f64],
    is_set: &[bool],
) -> Result<Vec<f64>, FitError> {
    let free: Vec<usize> = (0..values.len()).filter(|place| !is_set[*place]).collect();
    let all = |some: &[f64]| {
        let mut all = values.to_vec();
        free.iter().zip(some).for_each(|(place, value)| all[*place] = *value);
        all
    };
    let searched: Vec<Parameter> =
        free.iter().map(|place| Parameter { start: values[*place], ..parameters[*place].clone() }).collect();
    let fit =
        fit_many(&searched, |some| problem.residuals(&all(some)).map(|left| pulled(left, parameters, &all(some))))?;
    let found: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
    Ok(all(&found))
}

/// The best end point of the searches by formulas; `None` if a datum has no formula.
fn by_formulas(problem: &FitData, parameters: &[Parameter]) -> Option<Vec<f64>> {
    let facts = problem.facts().ok()?;
    let mut ask =
        |values: &[f64]| problem.formula_residuals(&facts, values).map(|left| pulled(left, parameters, values));
    let place = |nth: u32| {
        let from = started(parameters, nth);
        let values: Vec<f64> = from.iter().map(|parameter| parameter.start).collect();
        Some((sum_of_squares(&ask(&values).ok()?, None), from))
    };
    let mut places: Vec<(f64, Vec<Parameter>)> = (0..PLACES).filter_map(place).collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ends = places.iter().take(STARTS).filter_map(|(_, from)| scout(from, &mut ask).ok());
    ends.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(values, _)| values)
}

/// The parameters with the `nth` starting point: number 0 is the middle of the bounds, the others fill the space evenly
/// on a logarithmic scale.
///
/// Source: additive recurrence with powers of the root of x^(d+1) = x + 1, Roberts, "The unreasonable effectiveness of
/// quasirandom sequences", 2018.
fn started(parameters: &[Parameter], nth: u32) -> Vec<Parameter> {
    let mut root = 2.0_f64;
    for _ in 0..50 {
        root = (1.0 + root).powf(1.0 / (parameters.len() as f64 + 1.0));
    }
    let place = |power: i32| (0.5 + f64::from(nth) * root.powi(-power)).fract();
    let moved = |(power, parameter): (i32, &Parameter)| Parameter {
        start: (parameter.low * (parameter.high / parameter.low).powf(place(power)))
            .clamp(parameter.low, parameter.high),
        ..parameter.clone()
    };
    (1..).zip(parameters).map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_points_cover_every_quarter_of_the_bounds() {
        let parameters: Vec<Parameter> = ["a", "b", "c"]
            .map(|name| Parameter { name: name.to_owned(), start: 10.0, low: 1.0, high: 100.0, step_share: 1e-4 })
            .to_vec();
        assert!((started(&parameters, 0)[1].start - 10.0).abs() < 1e-9);
        for place in 0..3 {
            let quarters: Vec<u8> =
                (0..PLACES).map(|nth| (started(&parameters, nth)[place].start.log10() * 2.0) as u8).collect();
            assert!((0..4).all(|quarter| quarters.contains(&quarter)), "{quarters:?}");
        }
    }
}
