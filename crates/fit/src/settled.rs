//! A fit to data that leave some numbers open: these are fixed at a default or a usual value, one after the other.

use crate::calibrate::{by_counts, calibrate, pulled};
use crate::least_squares::scout;
use crate::trial::{GAIN_OF_FIT, STEPS_OF_FIT};
use crate::{FillError, Fit, FitData, FitError, Found, Undetermined};
use lanemark_platform::{default_of, preset};

/// The platform whose values are assumed for numbers that the data leave open.
pub(crate) const USUAL: &str = "card-gen5-x16";

/// A fit in which no number is open that could be fixed.
pub(crate) struct Settled {
    pub(crate) problem: FitData,
    pub(crate) fit: Fit,
    /// Keys fixed at their default.
    pub(crate) at_default: Vec<String>,
    /// Keys fixed at a usual value.
    pub(crate) assumed: Vec<(String, f64)>,
    /// Keys whose values depend on keys that were fixed, and these keys.
    pub(crate) conditional: Vec<(String, Vec<String>)>,
}

/// Fits, fixes numbers that the data leave open, and fits the rest again.
///
/// A number is fixed only if the rest then follows the data as well as before: far from its best value, a number may
/// matter that does not matter there.
pub(crate) fn settled(mut problem: FitData, start: Option<&[f64]>, assume_rest: bool) -> Result<Settled, FillError> {
    let (mut at_default, mut assumed, mut conditional) = (Vec::new(), Vec::new(), Vec::new());
    let mut fit = match start {
        None => calibrate(&problem, None)?,
        Some(values) => best_of_counts(&problem, values)?,
    };
    // All are compared with the first fit, so that small losses do not add up.
    let most = most_error(mean_error(&fit));
    // Loads and stores depend on sums of many latencies: a usual value of one leaves no room for the others.
    while problem.is_about_transfers() {
        let values: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
        let open = to_fix(&problem, &fit, assume_rest);
        if let Some((keys, rest, values)) = without_effect(&problem, &fit, &values, &open, most) {
            let fit_of_rest = calibrate(&rest, Some(&values))?;
            if mean_error(&fit_of_rest) <= most && simulated_error(&rest, &fit_of_rest)? <= most {
                for key in &keys {
                    conditional.extend(determined_with(&fit, key));
                }
                (problem, fit) = (rest, fit_of_rest);
                at_default.extend(keys);
                continue;
            }
        }
        let without = |(key, value): &(String, Option<f64>)| {
            let (rest, place) = problem.without_free(key, *value).map_err(FillError::Simulation)?;
            let mut values = values.clone();
            values.remove(place);
            if is_hopeless(&problem, &fit, &rest, &values, most) {
                return Ok(None);
            }
            let fit_of_rest = calibrate(&rest, Some(&values))?;
            let error = mean_error(&fit_of_rest);
            let error = if error <= most { error.max(simulated_error(&rest, &fit_of_rest)?) } else { error };
            Ok(Some(((rest, fit_of_rest), error)))
        };
        let next = first_fixable(open, most, without)?;
        let Some(((key, value), (rest, fit_of_rest))) = next else { break };
        conditional.extend(determined_with(&fit, &key));
        (problem, fit) = (rest, fit_of_rest);
        match value {
            Some(value) => assumed.push((key, value)),
            None => at_default.push(key),
        }
    }
    Ok(Settled { problem, fit, at_default, assumed, conditional })
}

/// The other keys of the undetermined set that contains `key`, each with `key`.
fn determined_with(fit: &Fit, key: &str) -> Vec<(String, Vec<String>)> {
    let set = fit.loose.iter().find(|set| set.names.iter().any(|name| name == key));
    let others = set.into_iter().flat_map(|set| &set.names).filter(|other| *other != key);
    others.map(|other| (other.clone(), vec![key.to_owned()])).collect()
}

/// Those of the numbers `open` whose defaults leave a mean error of at most `most` while the others have `values`, the problem
/// with these defaults, and the rest of the values. `None` if there are none.
///
/// A fit of the others after each would hardly change them. No more numbers of a set are fixed than the figures leave free.
fn without_effect(
    problem: &FitData,
    fit: &Fit,
    values: &[f64],
    open: &[(String, Option<f64>)],
    most: f64,
) -> Option<(Vec<String>, FitData, Vec<f64>)> {
    let (mut keys, mut rest, mut values): (Vec<String>, FitData, Vec<f64>) =
        (Vec::new(), problem.clone(), values.to_vec());
    for (key, _) in open.iter().filter(|(_, value)| value.is_none()) {
        let set = fit.loose.iter().find(|set| set.names.contains(key));
        let is_left = |set: &Undetermined| keys.iter().filter(|fixed| set.names.contains(fixed)).count() < set.free;
        if !set.is_some_and(is_left) {
            continue;
        }
        let Ok((next, place)) = rest.without_free(key, None) else { continue };
        let mut others = values.clone();
        others.remove(place);
        if mean_error_at(&next, &others).is_ok_and(|error| error <= most) {
            keys.push(key.clone());
            (rest, values) = (next, others);
        }
    }
    (!keys.is_empty()).then_some((keys, rest, values))
}

/// The best fit from `values`, with the same and with other counts, by the simulation.
///
/// A correction of a formula by the simulation at one count does not show where another count is the limit.
///
/// # Errors
/// That of the first fit.
fn best_of_counts(problem: &FitData, values: &[f64]) -> Result<Fit, FitError> {
    let mut starts = by_counts(problem, values).into_iter();
    let mut best = calibrate(problem, Some(&starts.next().unwrap_or_else(|| values.to_vec())))?;
    for start in starts {
        if let Ok(fit) = calibrate(problem, Some(&start))
            && squares(&fit) < squares(&best)
        {
            best = fit;
        }
    }
    Ok(best)
}

/// Sum of the squares of the residuals.
fn squares(fit: &Fit) -> f64 {
    fit.residuals.iter().map(|left| left * left).sum()
}

/// Whether `rest`, fitted from `start` by corrected formulas, has a mean error far above `most`. The correction is simulation
/// minus formula at the best values of `fit`.
fn is_hopeless(problem: &FitData, fit: &Fit, rest: &FitData, start: &[f64], most: f64) -> bool {
    let left = || -> Result<f64, String> {
        let best: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
        let of_best = problem.formula_residuals(&problem.facts()?, &best)?;
        let shift: Vec<f64> =
            fit.residuals.iter().zip(of_best).map(|(simulated, formula)| simulated - formula).collect();
        let facts = rest.facts()?;
        let shifted = |values: &[f64]| -> Result<Vec<f64>, String> {
            let of_formulas = rest.formula_residuals(&facts, values)?;
            Ok(of_formulas.into_iter().zip(&shift).map(|(left, shift)| left + shift).collect())
        };
        let mut parameters = rest.parameters();
        for (parameter, value) in parameters.iter_mut().zip(start) {
            parameter.start = value.clamp(parameter.low, parameter.high);
        }
        let ask = |values: &[f64]| shifted(values).map(|left| pulled(left, rest, &parameters, values));
        let (values, _) = scout(&parameters, (STEPS_OF_FIT, GAIN_OF_FIT), ask).map_err(|error| error.to_string())?;
        Ok(mean(&shifted(&values)?))
    };
    left().is_ok_and(|left| is_far_above(left, most))
}

/// Whether the mean error `left` is so far above `most` that another correction of the formulas will not change that.
fn is_far_above(left: f64, most: f64) -> bool {
    const RATIO: f64 = 2.0;
    left > (RATIO * most).max(HARDLY_CORRECTED)
}

/// Mean residual far above what another correction of the formulas changes: with one, they follow simulations within some
/// 0.2 %.
const HARDLY_CORRECTED: f64 = 0.01;

/// The first of the numbers without which the others have a mean error of at most `most`, and the fit of these; `without`
/// gives both, or `None` if it is clear that the error is larger. One at a time is fixed, because a number that is fixed may
/// decide which limit holds.
///
/// # Errors
/// The error of `without`.
fn first_fixable<N, F>(
    numbers: Vec<N>,
    most: f64,
    mut without: impl FnMut(&N) -> Result<Option<(F, f64)>, FillError>,
) -> Result<Option<(N, F)>, FillError> {
    for number in numbers {
        if let Some((fit, error)) = without(&number)?
            && error <= most
        {
            return Ok(Some((number, fit)));
        }
    }
    Ok(None)
}

/// Mean absolute residual of a fit.
fn mean_error(fit: &Fit) -> f64 {
    mean(&fit.residuals)
}

/// Mean absolute residual of the simulation at the best values of a fit. A number may have an effect there that the leading
/// term of a formula hides.
///
/// # Errors
/// That of the platform or of the simulation.
fn simulated_error(problem: &FitData, fit: &Fit) -> Result<f64, FillError> {
    let values: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
    Ok(mean(&problem.residuals(&values).map_err(FillError::Simulation)?))
}

/// Mean absolute residual of the formulas at `values`, as simulations correct them.
///
/// # Errors
/// That of the platform or of the simulation for these values.
fn mean_error_at(problem: &FitData, values: &[f64]) -> Result<f64, String> {
    problem.formula_residuals(&problem.facts()?, values)?;
    Ok(mean(&problem.residuals_of_both(values)?))
}

fn mean(residuals: &[f64]) -> f64 {
    residuals.iter().map(|left| left.abs()).sum::<f64>() / residuals.len().max(1) as f64
}

/// Largest mean error after numbers were fixed, if it was `first` before.
fn most_error(first: f64) -> f64 {
    first.max(NOISE) * HARDLY_WORSE
}

/// Numbers are fixed while the mean error grows by less than this factor in all.
const HARDLY_WORSE: f64 = 1.03;

/// Mean absolute residual below which a difference is none.
const NOISE: f64 = 1e-3;

/// The numbers to fix: their keys, and their values if these are not the defaults.
///
/// Of a set that the data determine up to some free numbers, those with a default come first, the last ones first. With
/// `assume_rest`, others follow.
fn to_fix(problem: &FitData, fit: &Fit, assume_rest: bool) -> Vec<(String, Option<f64>)> {
    let of_usual = preset(USUAL).and_then(Result::ok);
    let parameters = problem.parameters();
    let usual = |key: &str| {
        let parameter = parameters.iter().find(|parameter| parameter.name == key)?;
        let number = of_usual.as_ref().and_then(|platform| platform.number(key));
        // The file may limit it more closely than the preset has it: 32 tags without extended ones.
        Some(number.map_or(parameter.start, |number| number.0.clamp(parameter.low, parameter.high)))
    };
    let mut fixed: Vec<(String, Option<f64>)> = Vec::new();
    for set in &fit.loose {
        let with_default =
            set.names.iter().rev().filter(|key| default_of(key).is_some()).map(|key| (key.clone(), None));
        let others = set.names.iter().rev().filter(|key| assume_rest && default_of(key).is_none());
        let others = others.filter_map(|key| Some((key.clone(), Some(usual(key)?))));
        fixed.extend(with_default.chain(others));
    }
    let is_loose = |found: &Found| fit.loose.iter().any(|set| set.names.contains(&found.name));
    for found in fit.found.iter().filter(|found| found.at_bound && !is_loose(found)) {
        // A time of nearly nothing: the mechanism is not there.
        if default_of(&found.name).is_some_and(|default| default < found.value) {
            fixed.push((found.name.clone(), None));
        }
    }
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_whose_default_makes_the_others_worse_is_not_fixed() {
        let most = most_error(0.01);
        let fixed = |errors: &[f64]| first_fixable(errors.to_vec(), most, |error| Ok(Some(((), *error)))).unwrap();
        assert_eq!(fixed(&[0.01029]), Some((0.01029, ())));
        assert_eq!(fixed(&[0.01031]), None);
        assert_eq!(fixed(&[0.01031, 0.02, 0.005, 0.001]), Some((0.005, ())));
        assert_eq!(fixed(&[]), None);
    }

    #[test]
    fn a_fit_of_the_others_is_given_up_above_twice_the_error_and_one_percent() {
        assert!(!is_far_above(0.01, 0.001) && is_far_above(0.0101, 0.001));
        assert!(!is_far_above(0.06, 0.03) && is_far_above(0.0601, 0.03));
    }

    #[test]
    fn errors_far_below_those_of_measurements_count_as_none() {
        assert!((most_error(1e-6) - 1.03e-3).abs() < 1e-12 && (most_error(2e-3) - 2.06e-3).abs() < 1e-12);
    }

    #[test]
    fn an_error_of_a_fit_without_a_number_is_not_hidden() {
        let failed = |_: &u8| Err::<Option<((), f64)>, FillError>(FillError::Simulation("no figure".to_owned()));
        assert!(first_fixable(vec![1_u8], 1.0, failed).is_err());
    }
}
