//! What the data leave open: sets of parameters of which only a combination is known.

use crate::Parameter;

/// Parameters of which the data fix fewer combinations than there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Loose {
    /// Their names, in the order they were given.
    pub names: Vec<String>,
    /// How many of them must be known from elsewhere before the data fix the rest; all of them, if no datum
    /// depends on any.
    pub free: usize,
}

/// Standard deviation of a parameter, as a share of it, above which the data do not tell it.
const TOLD: f64 = 0.25;

/// Error of a datum that is expected even where the residuals are smaller, as a share.
const NOISE: f64 = 0.01;

/// Share of a parameter's own direction that must lie open for the parameter to be open.
const SHARE: f64 = 0.01;

/// The sets, from the derivatives at the best values. Steps are relative to a parameter's value, so that
/// large and small ones compare.
///
/// With relative sensitivities J and an error s of each datum, a direction v of the parameters has the
/// standard deviation s / |J v|; the directions of eigenvalues of J^T J below (s / 0.25)^2 are open. Source:
/// linear least squares, any textbook.
pub(crate) fn loose(parameters: &[Parameter], values: &[f64], jacobian: &[Vec<f64>], residuals: &[f64]) -> Vec<Loose> {
    let count = parameters.len();
    let mut matrix = vec![vec![0.0; count]; count];
    for row in jacobian {
        for i in 0..count {
            for j in 0..count {
                matrix[i][j] += row[i] * values[i] * row[j] * values[j];
            }
        }
    }
    let spare = residuals.len().saturating_sub(count).max(1) as f64;
    let left = (residuals.iter().map(|residual| residual * residual).sum::<f64>() / spare).sqrt();
    let least = (left.max(NOISE) / TOLD).powi(2);
    let (eigenvalues, vectors) = eigen(matrix);
    let open: Vec<usize> = (0..count).filter(|k| eigenvalues[*k] < least).collect();
    // How much of each pair of parameters lies in the open directions, whichever way those are turned.
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
    let named = |set: &Vec<usize>| Loose {
        names: set.iter().map(|i| parameters[*i].name.clone()).collect(),
        free: (set.iter().map(|i| shared(*i, *i)).sum::<f64>().round() as usize).clamp(1, set.len()),
    };
    sets.iter().map(named).collect()
}

/// Eigenvalues of a symmetric matrix, and the eigenvectors as columns: Jacobi's rotations.
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

/// Turns axes `p` and `q`, which is the later one, so that the matrix has 0 where they meet.
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
        let of = |name: &&str| Parameter { name: (*name).to_owned(), start: 1.0, low: 0.1, high: 10.0 };
        names.iter().map(of).collect()
    }

    fn open(names: &[&str], rows: &[&[f64]]) -> Vec<(Vec<String>, usize)> {
        let jacobian: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        let values = vec![1.0; names.len()];
        let found = loose(&parameters(names), &values, &jacobian, &vec![0.0; rows.len()]);
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
    fn data_that_tell_every_parameter_leave_nothing_open() {
        assert_eq!(open(&["a", "b"], &[&[1.0, 0.0], &[0.0, 1.0]]), []);
    }

    #[test]
    fn a_sum_leaves_one_of_its_terms_open_and_the_rest_of_the_parameters_alone() {
        let found = open(&["a", "x", "b", "c"], &[&[1.0, 0.0, 1.0, 1.0], &[0.0, 1.0, 0.0, 0.0], &[2.0, 0.0, 2.0, 2.0]]);
        assert_eq!(found, [(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 2)]);
    }

    #[test]
    fn two_sets_stay_two_however_their_directions_are_turned() {
        let found = open(&["a", "b", "c", "d"], &[&[1.0, 0.0, 1.0, 0.0], &[0.0, 1.0, 0.0, 1.0]]);
        let names = |one: &str, other: &str| (vec![one.to_owned(), other.to_owned()], 1);
        assert_eq!(found, [names("a", "c"), names("b", "d")]);
    }

    #[test]
    fn a_parameter_is_told_from_a_quarter_of_it_on() {
        // One datum, an error of 1 %: a sensitivity of 0.04 gives a deviation of 25 %.
        assert_eq!(open(&["a"], &[&[0.0401]]), []);
        assert_eq!(open(&["a"], &[&[0.0399]]), [(vec!["a".to_owned()], 1)]);
    }
}
