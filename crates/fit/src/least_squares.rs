//! Least squares within bounds by Levenberg-Marquardt, with confidence and sensitivity of the result.

use crate::parameter::Parameter;
use crate::undetermined::{Undetermined, sensitivity};

/// Result for one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Name of the parameter.
    pub name: String,
    /// The best value.
    pub value: f64,
    /// Whether the value is at a bound, so that the best value lies outside.
    pub at_bound: bool,
    /// Smallest and largest value when any one datum is left out.
    pub leave_one_out: (f64, f64),
    /// The 95 % confidence interval, if the errors of the data are independent and equally distributed; `None` if the
    /// data leave the parameter open, or if there are no spare data.
    pub within_95: Option<(f64, f64)>,
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Results, in the order of the parameters.
    pub found: Vec<Found>,
    /// Remaining residuals, in the order of the data.
    pub residuals: Vec<f64>,
    /// Pairs of parameters that the data do not determine separately.
    pub inseparable: Vec<(String, String)>,
    /// Parameters without effect on any datum.
    pub unseen: Vec<String>,
    /// Sets of parameters that the data leave open, those above among them.
    pub loose: Vec<Undetermined>,
}

/// Reasons why a fit fails.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Fewer data than parameters.
    #[error("{data} data cannot determine {parameters} parameters: give at least as many data")]
    TooFewData {
        /// Number of residuals.
        data: usize,
        /// Number of parameters.
        parameters: usize,
    },
    /// Bounds that exclude each other or the start.
    #[error("{name}: the start value {start} must be between the bounds {low} and {high}")]
    Bounds {
        /// Name of the parameter.
        name: String,
        /// Its start value.
        start: f64,
        /// Its lower bound.
        low: f64,
        /// Its upper bound.
        high: f64,
    },
    /// The residuals cannot be evaluated at these values.
    #[error("at {at}: {because}")]
    Evaluation {
        /// The values.
        at: String,
        /// Error of the evaluation.
        because: String,
    },
}

/// Relative gain of the sum of squares below which a search ends.
const GAIN: f64 = 1e-6;

/// Average relative error below which a search over many data ends too: no measurement is better.
const SMALL: f64 = 1e-4;

/// As [`GAIN`], for a first search.
pub(crate) const FIRST_GAIN: f64 = 0.005;

/// Cosine between two columns of sensitivities above which the data do not determine the parameters separately.
const INSEPARABLE: f64 = 0.999;

/// Finds the values with the least sum of squared residuals.
///
/// Levenberg-Marquardt with derivatives from differences; steps are clamped to the bounds. The best choice for
/// `residuals` are logarithms of calculated over measured values: large and small data, and too large and too small
/// values, then have the same weight.
///
/// ```
/// use lanemark_fit::{Parameter, fit};
/// let slope = Parameter { name: "slope".into(), start: 1.0, low: 0.1, high: 10.0, step_share: 1e-4 };
/// let data = [(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)];
/// let found = fit(&[slope], |p| Ok(data.iter().map(|(x, y)| (p[0] * x / y).ln()).collect())).unwrap();
/// assert!((found.found[0].value - 2.0).abs() < 1e-9);
/// ```
///
/// # Errors
/// [`FitError`]; an evaluation error is returned with the values at which it occurred.
pub fn fit(
    parameters: &[Parameter],
    residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
) -> Result<Fit, FitError> {
    fit_with_progress(parameters, residuals, &mut |_, _| {})
}

/// As [`fit`], with progress: `on_progress` is called with the numbers of finished and of all searches, at the start
/// and after each search.
///
/// # Errors
/// As [`fit`].
pub fn fit_with_progress(
    parameters: &[Parameter],
    residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
    on_progress: &mut dyn FnMut(usize, usize),
) -> Result<Fit, FitError> {
    solve_within(parameters, residuals, LeaveOneOut::Searched, on_progress)
}

/// As [`fit`], for many data: leaving out a datum takes one step from the best values instead of a new search.
///
/// # Errors
/// As [`fit`].
pub fn fit_many(
    parameters: &[Parameter],
    residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
) -> Result<Fit, FitError> {
    solve_within(parameters, residuals, LeaveOneOut::OneStep, &mut |_, _| {})
}

/// Method to find the values without one datum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeaveOneOut {
    Searched,
    OneStep,
}

fn solve_within(
    parameters: &[Parameter],
    mut residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
    leave_one_out: LeaveOneOut,
    on_progress: &mut dyn FnMut(usize, usize),
) -> Result<Fit, FitError> {
    for parameter in parameters {
        if !(parameter.low <= parameter.start && parameter.start <= parameter.high) {
            let Parameter { name, start, low, high, .. } = parameter.clone();
            return Err(FitError::Bounds { name, start, low, high });
        }
    }
    let mut evaluate = |values: &[f64]| {
        residuals(values).map_err(|because| FitError::Evaluation { at: format!("{values:?}"), because })
    };
    let start: Vec<f64> = parameters.iter().map(|parameter| parameter.start).collect();
    let data = evaluate(&start)?.len();
    if data < parameters.len() {
        return Err(FitError::TooFewData { data, parameters: parameters.len() });
    }
    // One search for the values, and one without each datum.
    let searches = if data > parameters.len() { data + 1 } else { 1 };
    on_progress(0, searches);
    let least = if leave_one_out == LeaveOneOut::OneStep { data as f64 * SMALL * SMALL } else { 0.0 };
    let (values, left, jacobian) =
        search(parameters, start, &mut evaluate, None, Ends { gain: GAIN, least, steps: STEPS })?;
    let without = |skipped: usize| {
        on_progress(skipped + 1, searches);
        match leave_one_out {
            LeaveOneOut::Searched => {
                let ends = Ends { gain: GAIN, least: 0.0, steps: STEPS };
                search(parameters, values.clone(), &mut evaluate, Some(skipped), ends).map(|found| found.0)
            }
            LeaveOneOut::OneStep => Ok(one_step(parameters, &values, &left, &jacobian, skipped)),
        }
    };
    let ranges = ranges(&values, left.len(), without)?;
    Ok(judged(parameters, &values, left, &jacobian, ranges))
}

/// Approximate end point of a search of at most `steps` steps, and its sum of squares. The search ends at a relative gain
/// below `gain`.
///
/// # Errors
/// As [`fit`].
pub(crate) fn scout(
    parameters: &[Parameter],
    (steps, gain): (usize, f64),
    mut residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
) -> Result<(Vec<f64>, f64), FitError> {
    let mut evaluate = |values: &[f64]| {
        residuals(values).map_err(|because| FitError::Evaluation { at: format!("{values:?}"), because })
    };
    let start: Vec<f64> = parameters.iter().map(|parameter| parameter.start).collect();
    let ends = Ends { gain, least: 0.0, steps };
    let (values, left, _) = search(parameters, start, &mut evaluate, None, ends)?;
    let left = sum_of_squares(&left, None);
    Ok((values, left))
}

/// As [`fit_many`], for given `values`.
///
/// # Errors
/// As [`fit`].
pub(crate) fn judge(
    parameters: &[Parameter],
    values: &[f64],
    mut residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
) -> Result<Fit, FitError> {
    let mut evaluate = |values: &[f64]| {
        residuals(values).map_err(|because| FitError::Evaluation { at: format!("{values:?}"), because })
    };
    let left = evaluate(values)?;
    if left.len() < parameters.len() {
        return Err(FitError::TooFewData { data: left.len(), parameters: parameters.len() });
    }
    let jacobian = derivatives(parameters, values, &left, &mut evaluate)?;
    let without = |skipped: usize| Ok(one_step(parameters, values, &left, &jacobian, skipped));
    let ranges = ranges(values, left.len(), without)?;
    Ok(judged(parameters, values, left, &jacobian, ranges))
}

/// Smallest and largest value of each parameter when any one of `data` data is left out.
fn ranges(
    values: &[f64],
    data: usize,
    mut without: impl FnMut(usize) -> Result<Vec<f64>, FitError>,
) -> Result<Vec<(f64, f64)>, FitError> {
    let mut ranges: Vec<(f64, f64)> = values.iter().map(|value| (*value, *value)).collect();
    if data > values.len() {
        for skipped in 0..data {
            for (range, value) in ranges.iter_mut().zip(without(skipped)?) {
                *range = (range.0.min(value), range.1.max(value));
            }
        }
    }
    Ok(ranges)
}

/// The values after one step from the best values, without the datum `skipped`.
fn one_step(parameters: &[Parameter], values: &[f64], left: &[f64], jacobian: &Rows, skipped: usize) -> Vec<f64> {
    moved(parameters, values, &solve(jacobian, left, Some(skipped), 1e-6))
}

/// Builds the result from the values and their derivatives.
fn judged(
    parameters: &[Parameter],
    values: &[f64],
    residuals: Vec<f64>,
    jacobian: &Rows,
    ranges: Vec<(f64, f64)>,
) -> Fit {
    let (inseparable, unseen) = separability(parameters, values, jacobian);
    let sensitivity = sensitivity(parameters, values, jacobian, &residuals);
    let found = parameters
        .iter()
        .zip(values)
        .zip(ranges)
        .zip(&sensitivity.within)
        .map(|(((parameter, value), leave_one_out), within)| Found {
            name: parameter.name.clone(),
            value: *value,
            at_bound: *value <= parameter.low || *value >= parameter.high,
            leave_one_out,
            within_95: within.map(|within| (value - within, value + within)),
        })
        .collect();
    Fit { found, residuals, inseparable, unseen, loose: sensitivity.loose }
}

/// Derivatives: a row per datum, a column per parameter.
pub(crate) type Rows = Vec<Vec<f64>>;

/// Sum of squares of the residuals without the one at `skipped`.
pub(crate) fn sum_of_squares(residuals: &[f64], skipped: Option<usize>) -> f64 {
    residuals.iter().enumerate().filter(|(place, _)| Some(*place) != skipped).map(|(_, r)| r * r).sum()
}

/// Conditions that end a search.
#[derive(Clone, Copy)]
struct Ends {
    /// Relative gain of the sum of squares.
    gain: f64,
    /// Sum of squares.
    least: f64,
    /// Number of steps.
    steps: usize,
}

/// Most steps of a search.
const STEPS: usize = 50;

fn search(
    parameters: &[Parameter],
    mut values: Vec<f64>,
    evaluate: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, FitError>,
    skipped: Option<usize>,
    ends: Ends,
) -> Result<(Vec<f64>, Vec<f64>, Rows), FitError> {
    let mut left = evaluate(&values)?;
    let mut damping = 1e-3;
    let mut jacobian = Rows::new();
    for _ in 0..ends.steps {
        jacobian = derivatives(parameters, &values, &left, evaluate)?;
        let before = sum_of_squares(&left, skipped);
        let mut better = false;
        let (mut failure, mut is_possible) = (None, false);
        while damping < 1e12 {
            let step = solve(&jacobian, &left, skipped, damping);
            let next = moved(parameters, &values, &step);
            // Values that are not possible together, such as a cache slower than its memory, are no better ones.
            match evaluate(&next) {
                Ok(residuals) if sum_of_squares(&residuals, skipped) < before => {
                    (values, left) = (next, residuals);
                    damping /= 10.0;
                    better = true;
                    break;
                }
                Ok(_) => is_possible = true,
                Err(error) => failure = Some(error),
            }
            damping *= 10.0;
        }
        if let Some(error) = failure.filter(|_| !better && !is_possible) {
            return Err(error);
        }
        let after = sum_of_squares(&left, skipped);
        if !better || after <= ends.least || before - after <= ends.gain * before.max(f64::MIN_POSITIVE) {
            break;
        }
    }
    Ok((values, left, jacobian))
}

/// The values after a step, clamped to the bounds.
fn moved(parameters: &[Parameter], values: &[f64], step: &[f64]) -> Vec<f64> {
    let of =
        |((value, step), parameter): ((&f64, &f64), &Parameter)| (value + step).clamp(parameter.low, parameter.high);
    values.iter().zip(step).zip(parameters).map(of).collect()
}

/// Jacobian: a row per datum, a column per parameter.
pub(crate) fn derivatives<E>(
    parameters: &[Parameter],
    values: &[f64],
    left: &[f64],
    evaluate: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Rows, E> {
    let mut rows = vec![vec![0.0; parameters.len()]; left.len()];
    for (column, parameter) in parameters.iter().enumerate() {
        let scale = if values[column] == 0.0 { parameter.high - parameter.low } else { values[column].abs() };
        let mut step = scale * parameter.step_share;
        if values[column] + step > parameter.high {
            step = -step;
        }
        let mut there = evaluate(&stepped(values, column, step));
        let is_within = (parameter.low..=parameter.high).contains(&(values[column] - step));
        if there.is_err() && is_within {
            step = -step;
            there = evaluate(&stepped(values, column, step));
        }
        for (row, (there, here)) in rows.iter_mut().zip(there?.iter().zip(left)) {
            row[column] = (there - here) / step;
        }
    }
    Ok(rows)
}

/// The values with one of them moved by `step`.
fn stepped(values: &[f64], column: usize, step: f64) -> Vec<f64> {
    let mut moved = values.to_vec();
    moved[column] += step;
    moved
}

/// Step from the damped normal equations.
pub(crate) fn solve(jacobian: &Rows, left: &[f64], skipped: Option<usize>, damping: f64) -> Vec<f64> {
    let count = jacobian.first().map_or(0, Vec::len);
    let mut matrix = vec![vec![0.0; count + 1]; count];
    for (_, (row, residual)) in jacobian.iter().zip(left).enumerate().filter(|(place, _)| Some(*place) != skipped) {
        for i in 0..count {
            for j in 0..count {
                matrix[i][j] += row[i] * row[j];
            }
            matrix[i][count] -= row[i] * residual;
        }
    }
    for (i, row) in matrix.iter_mut().enumerate() {
        row[i] += damping * row[i].max(1e-300);
    }
    eliminate(matrix)
}

/// Gaussian elimination with partial pivoting; a column without a pivot gives 0.
fn eliminate(mut matrix: Rows) -> Vec<f64> {
    let count = matrix.len();
    for column in 0..count {
        let largest = (column..count).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()));
        let Some(pivot) = largest.filter(|row| matrix[*row][column] != 0.0) else { continue };
        matrix.swap(column, pivot);
        let pivot_row = matrix[column].clone();
        for (place, row) in matrix.iter_mut().enumerate() {
            if place != column {
                let factor = row[column] / pivot_row[column];
                row.iter_mut().zip(&pivot_row).for_each(|(value, above)| *value -= factor * above);
            }
        }
    }
    (0..count).map(|i| if matrix[i][i] == 0.0 { 0.0 } else { matrix[i][count] / matrix[i][i] }).collect()
}

fn separability(parameters: &[Parameter], values: &[f64], jacobian: &Rows) -> (Vec<(String, String)>, Vec<String>) {
    let column = |place: usize| -> Vec<f64> {
        // Relative sensitivities make parameters of different magnitude comparable.
        jacobian.iter().map(|row| row[place] * values[place].abs().max(1e-300)).collect()
    };
    let norm = |column: &[f64]| column.iter().map(|value| value * value).sum::<f64>().sqrt();
    let mut inseparable = Vec::new();
    let mut unseen = Vec::new();
    for i in 0..parameters.len() {
        let first = column(i);
        if norm(&first) < 1e-9 {
            unseen.push(parameters[i].name.clone());
            continue;
        }
        for j in i + 1..parameters.len() {
            let second = column(j);
            let dot: f64 = first.iter().zip(&second).map(|(a, b)| a * b).sum();
            if norm(&second) >= 1e-9 && (dot / norm(&first) / norm(&second)).abs() > INSEPARABLE {
                inseparable.push((parameters[i].name.clone(), parameters[j].name.clone()));
            }
        }
    }
    (inseparable, unseen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, start: f64, low: f64, high: f64) -> Parameter {
        Parameter { name: name.to_owned(), start, low, high, step_share: 1e-4 }
    }

    /// y = fixed + slope * x
    fn line(data: &'static [(f64, f64)]) -> impl FnMut(&[f64]) -> Result<Vec<f64>, String> {
        move |p| Ok(data.iter().map(|(x, y)| (p[0] + p[1] * x) / y - 1.0).collect())
    }

    #[test]
    fn two_known_parameters_are_recovered() {
        let data = &[(1.0, 13.0), (2.0, 16.0), (5.0, 25.0), (9.0, 37.0)];
        let start = [parameter("fixed", 1.0, 0.0, 100.0), parameter("slope", 1.0, 0.0, 100.0)];
        let fit = fit(&start, line(data)).unwrap();
        assert!((fit.found[0].value - 10.0).abs() < 1e-6 && (fit.found[1].value - 3.0).abs() < 1e-6, "{fit:?}");
        assert!(fit.inseparable.is_empty() && fit.unseen.is_empty());
        assert!(fit.residuals.iter().all(|residual| residual.abs() < 1e-6));
    }

    #[test]
    fn progress_is_reported_after_each_search() {
        let data = &[(1.0, 13.0), (2.0, 16.0), (5.0, 25.0), (9.0, 37.0)];
        let progress_of = |start: &[Parameter], data| {
            let mut seen = Vec::new();
            fit_with_progress(start, line(data), &mut |done, of| seen.push((done, of))).unwrap();
            seen
        };
        let two = [parameter("fixed", 1.0, 0.0, 100.0), parameter("slope", 1.0, 0.0, 100.0)];
        assert_eq!(progress_of(&two, data), [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5)]);
        assert_eq!(
            progress_of(&two, &data[..2]),
            [(0, 1)],
            "two data determine two parameters exactly, so none can be left out"
        );
    }

    #[test]
    fn a_parameter_beyond_its_bound_is_clamped_and_flagged() {
        let data = &[(1.0, 13.0), (2.0, 16.0), (5.0, 25.0)];
        let start = [parameter("fixed", 1.0, 0.0, 5.0), parameter("slope", 1.0, 0.0, 100.0)];
        let fit = fit(&start, line(data)).unwrap();
        assert!(fit.found[0].at_bound && fit.found[0].value == 5.0);
        assert!(!fit.found[1].at_bound);
    }

    #[test]
    fn a_search_goes_round_values_that_are_not_possible_together() {
        // A linear step from the start leaves the wedge `b <= a`, and a derivative at its edge does.
        let start = [parameter("a", 1.0, 0.1, 100.0), parameter("b", 1.0, 0.1, 100.0)];
        let data = [(1.0, 0.0, 9.0), (0.0, 1.0, 8.0), (1.0, 3.0, 33.0)];
        let left = |p: &[f64]| {
            if p[1] > p[0] {
                return Err("b is above a".to_owned());
            }
            Ok(data.iter().map(|(of_a, of_b, y)| (of_a * p[0] + of_b * p[1]) / y - 1.0).collect())
        };
        let (values, _) = scout(&start, (50, GAIN), left).unwrap();
        assert!((values[0] - 9.0).abs() < 0.01 && (values[1] - 8.0).abs() < 0.01, "{values:?}");
        let outside = [parameter("a", 1.0, 0.1, 100.0), parameter("b", 2.0, 0.1, 100.0)];
        assert!(scout(&outside, (50, GAIN), left).is_err(), "a start that is not possible is an error");
    }

    #[test]
    fn parameters_that_only_occur_as_a_sum_are_inseparable() {
        let start = [parameter("a", 1.0, 0.0, 10.0), parameter("b", 1.0, 0.0, 10.0)];
        let fit = fit(&start, |p| Ok(vec![(p[0] + p[1]) / 7.0 - 1.0, 2.0 * (p[0] + p[1]) / 14.0 - 1.0])).unwrap();
        assert_eq!(fit.inseparable, [("a".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn a_parameter_without_effect_is_unseen() {
        let start = [parameter("a", 1.0, 0.0, 10.0), parameter("idle", 1.0, 0.0, 10.0)];
        let fit = fit(&start, |p| Ok(vec![p[0] / 2.0 - 1.0, p[0] / 2.0 - 1.0])).unwrap();
        assert_eq!(fit.unseen, ["idle"]);
    }

    #[test]
    fn leave_one_out_shows_the_influence_of_a_datum() {
        let fit =
            fit(&[parameter("a", 1.0, 0.0, 10.0)], |p| Ok(vec![p[0] / 2.0 - 1.0, p[0] / 2.0 - 1.0, p[0] / 3.0 - 1.0]))
                .unwrap();
        let (least, most) = fit.found[0].leave_one_out;
        assert!((least - 2.0).abs() < 1e-6 && most > fit.found[0].value, "{fit:?}");
    }

    #[test]
    fn one_step_equals_a_search_for_linear_problems() {
        let data = &[(1.0, 13.1), (2.0, 16.0), (5.0, 24.8), (9.0, 37.0)];
        let start = [parameter("fixed", 1.0, 0.0, 100.0), parameter("slope", 1.0, 0.0, 100.0)];
        let (searched, stepped) = (fit(&start, line(data)).unwrap(), fit_many(&start, line(data)).unwrap());
        for (one, other) in searched.found.iter().zip(&stepped.found) {
            assert!((one.value - other.value).abs() < 1e-9);
            assert!((one.leave_one_out.0 - other.leave_one_out.0).abs() < 1e-3, "{one:?} {other:?}");
            assert!((one.leave_one_out.1 - other.leave_one_out.1).abs() < 1e-3, "{one:?} {other:?}");
        }
    }

    #[test]
    fn fewer_data_than_parameters_are_rejected() {
        let start = [parameter("a", 1.0, 0.0, 10.0), parameter("b", 1.0, 0.0, 10.0)];
        assert!(fit(&start, |p| Ok(vec![p[0] - 1.0, p[1] - 2.0])).is_ok());
        assert_eq!(fit(&start, |p| Ok(vec![p[0] + p[1]])), Err(FitError::TooFewData { data: 1, parameters: 2 }));
    }

    #[test]
    fn a_start_outside_the_bounds_is_rejected() {
        assert!(matches!(fit(&[parameter("a", 11.0, 0.0, 10.0)], |_| Ok(vec![0.0])), Err(FitError::Bounds { .. })));
        assert!(fit(&[parameter("a", 10.0, 0.0, 10.0)], |p| Ok(vec![p[0] - 10.0])).is_ok());
    }
}
