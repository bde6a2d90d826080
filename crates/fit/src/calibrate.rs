//! Search for the unknown numbers of a platform: by formulas from many starting points, then by simulation from the
//! best.

use crate::least_squares::{FIRST_GAIN, judge, scout, sum_of_squares};
use crate::parameter::{NEARLY_NOTHING, may_be_nothing};
use crate::whole::{Grid, nearest, neighbours};
use crate::{Fit, FitData, FitError, Parameter, fit_many};

/// Residuals at some values, or the reason why there are none.
type Residuals = Result<Vec<f64>, String>;

/// Starting points at which formulas are evaluated.
const PLACES: u32 = 64;

/// Searches by formulas: from so many of the best points, so many steps each, one after the other.
const STARTS: [(usize, usize); 3] = [(64, 3), (12, 6), (3, 30)];

/// Starting points of a count, and the steps of a search from each.
const PLACES_OF_COUNT: u32 = 8;
const STEPS_OF_COUNT: usize = 6;

/// Factor between two counts from which on both are simulated, and the most that are.
const OTHER_COUNT: f64 = 1.25;
const MOST_OF_COUNTS: usize = 3;

/// Strength of the pull of a parameter: a factor of ten weighs as an error of 0.5 % in one
/// datum.
const PULL: f64 = 2e-3;

/// Finds the values with the least sum of squares, integers where the key requires them, and their confidence.
///
/// With `start`, the search begins there; without, at the best of many places by formulas. Formulas guide the search. They
/// are corrected by the simulation at the values reached, until both agree (output space mapping: Bandler and others,
/// "Space mapping: the state of the art", 2004). Data without a formula are simulated at every step.
///
/// # Errors
/// [`FitError`].
pub(crate) fn calibrate(problem: &FitData, start: Option<&[f64]>) -> Result<Fit, FitError> {
    let mut parameters = problem.parameters();
    if !problem.is_about_transfers() && problem.grids().iter().all(Option::is_none) {
        return fit_many(&parameters, |values| problem.residuals(values));
    }
    if let Some(best) = start.map(<[f64]>::to_vec).or_else(|| by_formulas(problem)) {
        for (parameter, value) in parameters.iter_mut().zip(best) {
            parameter.start = value.clamp(parameter.low, parameter.high);
        }
    }
    // Between two counts there is nothing to simulate.
    for (parameter, grid) in parameters.iter_mut().zip(problem.grids()) {
        parameter.start = grid.as_ref().map_or(parameter.start, |grid| nearest(grid, parameter.start));
    }
    let mut values: Vec<f64> = parameters.iter().map(|parameter| parameter.start).collect();
    let facts = problem.facts().ok();
    let formulas = |values: &[f64]| {
        let facts = facts.as_ref().ok_or_else(|| "the platform cannot be simulated".to_owned())?;
        problem.formula_residuals(facts, values)
    };
    if formulas(&values).is_err() {
        let mut ask = |values: &[f64]| problem.residuals(values);
        values = settled(problem, &parameters, &values, &mut ask)?;
        return judge(&parameters, &values, |values| problem.residuals(values));
    }
    for _ in 0..CORRECTIONS {
        let mut ask = corrected(problem, &formulas, &values)?;
        let next = settled(problem, &parameters, &values, &mut ask)?;
        let moved = |(next, value): (&f64, &f64)| (next / value - 1.0).abs() > SETTLED;
        let has_moved = next.iter().zip(&values).any(moved);
        values = next;
        if !has_moved {
            break;
        }
    }
    judge(&parameters, &values, corrected(problem, &formulas, &values)?)
}

/// Most corrections of the formulas by the simulation.
const CORRECTIONS: usize = 3;

/// Relative change of a value below which the search has settled.
const SETTLED: f64 = 1e-3;

/// The residuals of the formulas, shifted so that they equal those of the simulation at `values`.
///
/// # Errors
/// [`FitError::Evaluation`].
fn corrected<'a>(
    problem: &FitData,
    formulas: &'a dyn Fn(&[f64]) -> Residuals,
    values: &[f64],
) -> Result<impl FnMut(&[f64]) -> Result<Vec<f64>, String> + use<'a>, FitError> {
    let failed = |because| FitError::Evaluation { at: format!("{values:?}"), because };
    let formula = formulas(values).map_err(failed)?;
    let simulated = problem.residuals_of_both(values).map_err(failed)?;
    let shift: Vec<f64> = simulated.iter().zip(&formula).map(|(simulated, formula)| simulated - formula).collect();
    Ok(move |values: &[f64]| {
        let mut left = formulas(values)?;
        left.iter_mut().zip(&shift).for_each(|(left, shift)| *left += shift);
        Ok(left)
    })
}

/// The best values from `start`, with an allowed value of each count.
fn settled(
    problem: &FitData,
    parameters: &[Parameter],
    start: &[f64],
    ask: &mut dyn FnMut(&[f64]) -> Residuals,
) -> Result<Vec<f64>, FitError> {
    let mut search = |values: &[f64], is_set: &[bool]| with_some_set(problem, parameters, values, is_set, ask);
    Ok(rounded(problem.grids(), start, &mut search)?.0)
}

/// Best values, and their sum of squares.
pub(crate) type Best = (Vec<f64>, f64);

/// The best values from `start`. Counts get allowed values one by one: the better of both
/// neighbours, after the numbers that are not set have been searched again with each. `search` finds the best values of those
/// that are not set, and their sum of squares.
///
/// # Errors
/// The error of the first search; that of a neighbour, if neither can be searched.
pub(crate) fn rounded<E>(
    grids: &[Grid],
    start: &[f64],
    search: &mut impl FnMut(&[f64], &[bool]) -> Result<Best, E>,
) -> Result<Best, E> {
    let mut is_set = vec![false; start.len()];
    let (mut values, mut left) = search(start, &is_set)?;
    for (place, grid) in grids.iter().enumerate() {
        let Some(grid) = grid else { continue };
        is_set[place] = true;
        let (below, above) = neighbours(grid, values[place]);
        if values[place] == below {
            continue;
        }
        let mut at = |count: f64| {
            let mut start = values.clone();
            start[place] = count;
            search(&start, &is_set)
        };
        (values, left) = match (at(below), at(above)) {
            (Ok(lower), Ok(upper)) => {
                if lower.1 <= upper.1 {
                    lower
                } else {
                    upper
                }
            }
            (lower, upper) => lower.or(upper)?,
        };
    }
    Ok((values, left))
}

/// The residuals, followed by a weak pull of each parameter: of a count to its upper bound, of a time whose default is 0 to
/// its lower bound, of others to the middle of their bounds.
///
/// A latency that the data leave open then stays in the middle instead of drifting to a bound, which would look like a
/// result. A count or an engine time that limits no figure of the fit limits none that it predicts.
pub(crate) fn pulled(mut left: Vec<f64>, problem: &FitData, parameters: &[Parameter], values: &[f64]) -> Vec<f64> {
    let pull = |(parameter, grid): (&Parameter, &Grid)| match grid {
        Some(_) => (PULL, parameter.high),
        // Farther from most values than a middle is, and so as strong as that with a part of it.
        None if may_be_nothing(&parameter.name) => (PULL / 4.0, parameter.low),
        None => (PULL, middle(parameter)),
    };
    let pulls = parameters.iter().zip(problem.grids()).map(pull);
    left.extend(pulls.zip(values).map(|((pull, target), value)| pull * (value / target).ln()));
    left
}

/// Searches the parameters that are not set, and returns the values of all and the sum of squares.
fn with_some_set(
    problem: &FitData,
    parameters: &[Parameter],
    values: &[f64],
    is_set: &[bool],
    ask: &mut dyn FnMut(&[f64]) -> Residuals,
) -> Result<Best, FitError> {
    let (searched, all) = of_free(parameters, values, is_set);
    let mut ask = |some: &[f64]| ask(&all(some)).map(|left| pulled(left, problem, parameters, &all(some)));
    if searched.is_empty() {
        let left = ask(&[]).map_err(|because| FitError::Evaluation { at: format!("{values:?}"), because })?;
        return Ok((values.to_vec(), sum_of_squares(&left, None)));
    }
    let fit = fit_many(&searched, ask)?;
    let found: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
    Ok((all(&found), sum_of_squares(&fit.residuals, None)))
}

/// The parameters that are not set, from `values`; and a function from their values to those of all.
pub(crate) fn of_free(
    parameters: &[Parameter],
    values: &[f64],
    is_set: &[bool],
) -> (Vec<Parameter>, impl Fn(&[f64]) -> Vec<f64> + use<>) {
    let free: Vec<usize> = (0..values.len()).filter(|place| !is_set[*place]).collect();
    let searched = free.iter().map(|place| Parameter { start: values[*place], ..parameters[*place].clone() }).collect();
    let start = values.to_vec();
    let all = move |some: &[f64]| {
        let mut all = start.clone();
        free.iter().zip(some).for_each(|(place, value)| all[*place] = *value);
        all
    };
    (searched, all)
}

/// The best end point of the searches by formulas; `None` if a datum has no formula.
pub(crate) fn by_formulas(problem: &FitData) -> Option<Vec<f64>> {
    let parameters = &problem.parameters();
    let facts = problem.facts().ok()?;
    let mut ask = |values: &[f64]| {
        problem.formula_residuals(&facts, values).map(|left| pulled(left, problem, parameters, values))
    };
    let place = |nth: u32| {
        let from = started(parameters, nth);
        let values: Vec<f64> = from.iter().map(|parameter| parameter.start).collect();
        Some((sum_of_squares(&ask(&values).ok()?, None), from))
    };
    let mut places: Vec<(f64, Vec<Parameter>)> = (0..PLACES).filter_map(place).collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    // The worse ones are given up early.
    for (kept, steps) in STARTS {
        places.truncate(kept);
        places = places.into_iter().filter_map(|(_, from)| searched(from, steps, &mut ask)).collect();
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    places.first().map(|(_, at)| at.iter().map(|parameter| parameter.start).collect())
}

/// The best end points of searches by formulas from `values`, and from the same with another count: a small count limits the
/// rate like a long time. Their counts differ clearly, because a formula may not see where a count becomes the limit. None if a
/// datum has no formula.
pub(crate) fn by_counts(problem: &FitData, values: &[f64]) -> Vec<Vec<f64>> {
    let parameters = &problem.parameters();
    let Ok(facts) = problem.facts() else { return Vec::new() };
    let mut ask = |values: &[f64]| {
        problem.formula_residuals(&facts, values).map(|left| pulled(left, problem, parameters, values))
    };
    let at: Vec<Parameter> = parameters
        .iter()
        .zip(values)
        .map(|(parameter, value)| Parameter { start: value.clamp(parameter.low, parameter.high), ..parameter.clone() })
        .collect();
    let counts: Vec<usize> =
        problem.grids().iter().enumerate().filter(|(_, grid)| grid.is_some()).map(|(place, _)| place).collect();
    let mut ends: Vec<(f64, Vec<Parameter>)> = searched(at.clone(), STARTS[2].1, &mut ask).into_iter().collect();
    for place in &counts {
        for nth in 0..PLACES_OF_COUNT {
            let share = (f64::from(nth) + 0.5) / f64::from(PLACES_OF_COUNT);
            let mut from = at.clone();
            let Parameter { low, high, .. } = from[*place];
            from[*place].start = low * (high / low).powf(share);
            ends.extend(searched(from, STEPS_OF_COUNT, &mut ask));
        }
    }
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let differs = |one: &[Parameter], other: &[Parameter]| {
        counts.iter().any(|place| (one[*place].start / other[*place].start).ln().abs() > OTHER_COUNT.ln())
    };
    let mut kept: Vec<Vec<Parameter>> = Vec::new();
    for (_, end) in ends {
        if kept.len() < MOST_OF_COUNTS && kept.iter().all(|other| differs(&end, other)) {
            kept.push(end);
        }
    }
    let longer = kept.into_iter().filter_map(|from| searched(from, STARTS[2].1, &mut ask));
    longer.map(|(_, end)| end.iter().map(|parameter| parameter.start).collect()).collect()
}

/// The sum of squares after some steps from the start, and the parameters that start at the values reached.
fn searched(
    mut from: Vec<Parameter>,
    steps: usize,
    ask: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
) -> Option<(f64, Vec<Parameter>)> {
    let (values, left) = scout(&from, (steps, FIRST_GAIN), ask).ok()?;
    from.iter_mut().zip(values).for_each(|(parameter, value)| parameter.start = value);
    Some((left, from))
}

/// Lower end of the values at which a search starts.
fn likely_low(parameter: &Parameter) -> f64 {
    if may_be_nothing(&parameter.name) { parameter.low / NEARLY_NOTHING } else { parameter.low }
}

/// Middle of the values at which a search starts, on a logarithmic scale.
fn middle(parameter: &Parameter) -> f64 {
    (likely_low(parameter) * parameter.high).sqrt()
}

/// The parameters with the `nth` starting point: number 0 is the middle of the bounds, the others fill the space evenly
/// on a logarithmic scale.
///
/// Source: additive recurrence with powers of the root of x^(d+1) = x + 1, Roberts, "The unreasonable effectiveness of
/// quasirandom sequences", 2018.
pub(crate) fn started(parameters: &[Parameter], nth: u32) -> Vec<Parameter> {
    let mut root = 2.0_f64;
    for _ in 0..50 {
        root = (1.0 + root).powf(1.0 / (parameters.len() as f64 + 1.0));
    }
    let place = |power: i32| (0.5 + f64::from(nth) * root.powi(-power)).fract();
    let moved = |(power, parameter): (i32, &Parameter)| Parameter {
        start: (likely_low(parameter) * (parameter.high / likely_low(parameter)).powf(place(power)))
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

    #[test]
    fn a_count_gets_the_better_neighbour_which_may_be_the_farther_one() {
        // The second number follows the count; without a count of exactly 3, nothing fits well.
        let grids: [Grid; 2] = [Some(vec![2.0, 3.0]), None];
        let mut search = |values: &[f64], is_set: &[bool]| -> Result<Best, ()> {
            let count = if is_set[0] { values[0] } else { 2.4 };
            Ok((vec![count, 10.0 * count], if is_set[0] { (3.0 - count).abs() } else { 0.0 }))
        };
        assert_eq!(rounded(&grids, &[2.2, 1.0], &mut search), Ok((vec![3.0, 30.0], 0.0)));
        let mut fails_above = |values: &[f64], is_set: &[bool]| match (is_set[0], values[0]) {
            (true, 3.0) => Err("above"),
            _ => search(values, is_set).map_err(|()| "never"),
        };
        assert_eq!(rounded(&grids, &[2.2, 1.0], &mut fails_above), Ok((vec![2.0, 20.0], 1.0)));
    }
}
