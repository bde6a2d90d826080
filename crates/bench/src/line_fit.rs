//! A straight line through points, by least squares.

use crate::measured::Measured;
use lanemark_record::LineFit;

/// Fits the line `y = fixed + x * per_call` by least squares in y; `None` for fewer than two
/// different x.
///
/// ```
/// let fit = lanemark_bench::line_fit(&[(0.0, 10.0), (2.0, 14.0), (4.0, 18.0)]).unwrap();
/// assert_eq!((fit.per_call_ns, fit.fixed_ns, fit.r_squared), (2.0, 10.0, 1.0));
/// ```
#[must_use]
pub fn line_fit(points: &[(f64, f64)]) -> Option<LineFit> {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    if points.len() < 2 || xx == 0.0 {
        return None;
    }
    let slope = xy / xx;
    // A level line explains its points completely.
    let r_squared = if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) };
    Some(LineFit { per_call_ns: slope, fixed_ns: mean_y - slope * mean_x, r_squared })
}

/// Fits a line through the times of plans, over their numbers of calls or arguments: through the
/// medians of all samples, and through those of each round for the spread of the slope. `None` for
/// fewer than two different numbers.
pub(crate) fn line_of_plans(points: &[(f64, &Measured)]) -> Option<(LineFit, Vec<f64>)> {
    let line = |times: &dyn Fn(&Measured) -> f64| {
        let points = points.iter().map(|(x, measured)| (*x, times(measured)));
        line_fit(&points.filter(|(_, ns)| !ns.is_nan()).collect::<Vec<_>>())
    };
    let fit = line(&Measured::median_issue_ns)?;
    let rounds = points.iter().map(|(_, measured)| measured.rounds()).max().unwrap_or(0);
    let slope = |round: u64| Some(line(&|measured| measured.median_issue_ns_in(round))?.per_call_ns);
    Some((fit, (0..rounds).filter_map(slope).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_point_or_one_x_gives_no_line() {
        assert_eq!(line_fit(&[(1.0, 1.0)]), None);
        assert_eq!(line_fit(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }

    #[test]
    fn points_off_the_line_lower_r_squared() {
        let fit = line_fit(&[(0.0, 0.0), (1.0, 2.0), (2.0, 2.0)]).unwrap();
        assert!((fit.per_call_ns - 1.0).abs() < 1e-12 && (fit.r_squared - 0.75).abs() < 1e-12);
    }

    #[test]
    fn a_level_line_has_an_r_squared_of_one() {
        assert_eq!(line_fit(&[(0.0, 3.0), (1.0, 3.0)]).unwrap().r_squared, 1.0);
    }
}
