//! Parameters that the data leave open: sets of which only a combination is determined.

use crate::parameter::Parameter;

/// A set of parameters that the data determine only in combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Undetermined {
    /// Names of the parameters, in the order they were given.
    pub names: Vec<String>,
    /// Number of them that must be known from another source before the data determine the rest; all of them if no
    /// datum depends on any.
    pub free: usize,
}

/// Relative standard deviation above which a parameter counts as open.
const OPEN_ABOVE: f64 = 0.25;

/// Relative error of a datum that is assumed even if the residuals are smaller.
const NOISE: f64 = 0.01;

/// Share of a parameter's direction that must lie in open directions for the parameter to be open.
const SHARE: f64 = 0.01;

/// Sensitivity analysis at the best values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sensitivity {
    /// The sets of parameters that the data leave open.
    pub(crate) loose: Vec<Undetermined>,
    /// Half the width of each parameter's 95 % interval; `None` for an open parameter, and where there are no more data
    /// than combinations.
    pub(crate) within: Vec<Option<f64>>,
}

/// Analyses the derivatives at the best values. Steps are relative to a parameter's value, so that large and small
/// parameters are comparable.
///
/// With relative sensitivities J and an error s of each datum, a direction v of the parameters has the standard
/// deviation s / |J v|. Directions with eigenvalues of J^T J below (s / 0.25)^2 are open. The interval of a parameter
/// is Student's t times the root of the sum of `v_i^2 s^2 / eigenvalue`, at most 1 in open directions. Source: linear
/// least squares, any textbook.
pub(crate) fn sensitivity(
    parameters: &[Parameter],
    values: &[f64],
    jacobian: &[Vec<f64>],
    residuals: &[f64],
) -> Sensitivity {
    let count = parameters.len();
    let mut matrix = vec![vec![0.0; count]; count];
    for row in jacobian {
        for i in 0..count {
            for j in 0..count {
                matrix[i][j] += row[i] * values[i] * row[j] * values[j];
            }
        }
    }
    let left_over =
        |spare: usize| (residuals.iter().map(|residual| residual * residual).sum::<f64>() / spare.max(1) as f64).sqrt();
    let left = left_over(residuals.len().saturating_sub(count));
    let least = (left.max(NOISE) / OPEN_ABOVE).powi(2);
    let (eigenvalues, vectors) = eigen(matrix);
    let open: Vec<usize> = (0..count).filter(|k| eigenvalues[*k] < least).collect();
    // The share of each pair of parameters in the open directions; independent of the choice of their basis.
    let shared = |i: usize, j: usize| open.iter().map(|k| vectors[i][*k] * vectors[j][*k]).sum::<f64>();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for i in (0..count).filter(|i| shared(*i, *i) > SHARE) {
        let (mut joined, others): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|set| set.iter().any(|j| shared(i, *j).abs() > SHARE));
        let mut set: Vec<usize> = joined.drain(..).flatten().collect();
        set.push(i);
        set.sort_unstable();
        sets = others;
        sets.push(set);
    }
    sets.sort();
    let named = |set: &Vec<usize>| Undetermined {
        names: set.iter().map(|i| parameters[*i].name.clone()).collect(),
        free: (set.iter().map(|i| shared(*i, *i)).sum::<f64>().round() as usize).clamp(1, set.len()),
    };
    let spare = residuals.len().saturating_sub(count - open.len());
    let is_determined = |i: usize| spare > 0 && sets.iter().all(|set| !set.contains(&i));
    let error = left_over(spare);
    let variance = |i: usize| {
        let of = |k: usize| {
            let along = error * error / eigenvalues[k].max(f64::MIN_POSITIVE);
            // An open direction is limited to a relative error of 1; it widens the intervals of parameters correlated
            // with it.
            vectors[i][k].powi(2) * if open.contains(&k) { along.min(1.0) } else { along }
        };
        (0..count).map(of).sum::<f64>()
    };
    let within = |i: usize| student_95(spare) * variance(i).sqrt() * values[i].abs();
    Sensitivity {
        loose: sets.iter().map(named).collect(),
        within: (0..count).map(|i| is_determined(i).then(|| within(i))).collect(),
    }
}

/// Two-sided 95 % quantile of Student's distribution with `spare` degrees of freedom, within 0.6 %.
///
/// Source: Abramowitz and Stegun, 26.7.5, around the normal distribution's 1.95996, and table 26.10 for the first five.
fn student_95(spare: usize) -> f64 {
    const FIRST: [f64; 5] = [12.706, 4.303, 3.182, 2.776, 2.571];
    const NORMAL: f64 = 1.959_964;
    if let Some(exact) = FIRST.get(spare.saturating_sub(1)) {
        return *exact;
    }
    let (v, power) = (spare as f64, |n: i32| NORMAL.powi(n));
    NORMAL + (power(3) + NORMAL) / (4.0 * v) + (5.0 * power(5) + 16.0 * power(3) + 3.0 * NORMAL) / (96.0 * v * v)
}

/// Eigenvalues of a symmetric matrix, and the eigenvectors as columns, by Jacobi rotations.
fn eigen(mut matrix: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let count = matrix.len();
    let mut vectors: Vec<Vec<f64>> =
        (0..count).map(|i| (0..count).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..64 {
        let off: f64 = (0..count).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| matrix[i][j].powi(2)).sum();
        let on: f64 = (0..count).map(|i| matrix[i][i].powi(2)).sum();
        if off <= on * 1e-30 {
            break;
        }
        for p in 0..count {
            for q in p + 1..count {
                rotate(&mut matrix, &mut vectors, p, q);
            }
        }
    }
    ((0..count).map(|i| matrix[i][i]).collect(), vectors)
}

/// Rotates axes `p` and `q` (`p < q`) so that the matrix elements (p, q) and (q, p) become 0.
fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    if matrix[p][q] == 0.0 {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
    let tangent = if theta == 0.0 { 1.0 } else { theta.signum() / (theta.abs() + theta.hypot(1.0)) };
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    for row in matrix.iter_mut().chain(vectors) {
        (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
    }
    let (upper, lower) = matrix.split_at_mut(q);
    for (above, below) in upper[p].iter_mut().zip(&mut lower[0]) {
        (*above, *below) = (cosine * *above - sine * *below, sine * *above + cosine * *below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(names: &[&str]) -> Vec<Parameter> {
        let of =
            |name: &&str| Parameter { name: (*name).to_owned(), start: 1.0, low: 0.1, high: 10.0, step_share: 1e-4 };
        names.iter().map(of).collect()
    }

    fn open(names: &[&str], rows: &[&[f64]]) -> Vec<(Vec<String>, usize)> {
        let jacobian: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        let values = vec![1.0; names.len()];
        let found = sensitivity(&parameters(names), &values, &jacobian, &vec![0.0; rows.len()]).loose;
        found.into_iter().map(|set| (set.names, set.free)).collect()
    }

    #[test]
    fn eigenvalues_of_a_known_matrix() {
        let (mut values, vectors) = eigen(vec![vec![2.0, 1.0, 0.0], vec![1.0, 2.0, 0.0], vec![0.0, 0.0, 5.0]]);
        values.sort_by(f64::total_cmp);
        assert!(values.iter().zip([1.0, 3.0, 5.0]).all(|(found, wanted)| (found - wanted).abs() < 1e-12));
        let length: f64 = vectors.iter().map(|row| row[0] * row[0]).sum();
        assert!((length - 1.0).abs() < 1e-12);
    }

    #[test]
    fn data_that_determine_every_parameter_leave_none_open() {
        assert_eq!(open(&["a", "b"], &[&[1.0, 0.0], &[0.0, 1.0]]), []);
    }

    #[test]
    fn a_sum_of_three_parameters_leaves_two_free_and_others_determined() {
        let found = open(&["a", "x", "b", "c"], &[&[1.0, 0.0, 1.0, 1.0], &[0.0, 1.0, 0.0, 0.0], &[2.0, 0.0, 2.0, 2.0]]);
        assert_eq!(found, [(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 2)]);
    }

    #[test]
    fn two_independent_sets_are_not_merged() {
        let found = open(&["a", "b", "c", "d"], &[&[1.0, 0.0, 1.0, 0.0], &[0.0, 1.0, 0.0, 1.0]]);
        let names = |one: &str, other: &str| (vec![one.to_owned(), other.to_owned()], 1);
        assert_eq!(found, [names("a", "c"), names("b", "d")]);
    }

    #[test]
    fn a_parameter_is_open_above_a_relative_deviation_of_a_quarter() {
        // One datum, an error of 1 %: a sensitivity of 0.04 gives a deviation of 25 %.
        assert_eq!(open(&["a"], &[&[0.0401]]), []);
        assert_eq!(open(&["a"], &[&[0.0399]]), [(vec!["a".to_owned()], 1)]);
    }

    #[test]
    fn student_quantiles_match_the_tables() {
        for (spare, wanted) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (6, 2.447), (10, 2.228), (30, 2.042), (1000, 1.962)]
        {
            assert!((student_95(spare) / wanted - 1.0).abs() < 0.006, "{spare}: {}", student_95(spare));
        }
    }

    #[test]
    fn the_interval_of_a_mean_matches_the_textbook() {
        // Four data about one value, errors of +-1 %: 3.182 x sqrt(4e-4 / 3) / sqrt(4).
        let rows = vec![vec![0.5]; 4];
        let found = sensitivity(&parameters(&["a"]), &[2.0], &rows, &[0.01, -0.01, 0.01, -0.01]).within[0].unwrap();
        let wanted = 3.182 * (4e-4_f64 / 3.0).sqrt() / 2.0 * 2.0;
        assert!((found / wanted - 1.0).abs() < 0.005, "{found} {wanted}");
    }

    #[test]
    fn open_parameters_and_fits_without_spare_data_have_no_interval() {
        let rows = vec![vec![1.0, 1.0, 0.0], vec![1.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]];
        let found = sensitivity(&parameters(&["a", "b", "c"]), &[1.0; 3], &rows, &[0.01; 3]).within;
        assert!(found[0].is_none() && found[1].is_none() && found[2].is_some(), "{found:?}");
        assert_eq!(sensitivity(&parameters(&["a"]), &[1.0], &[vec![1.0]], &[0.0]).within, [None]);
    }
}
