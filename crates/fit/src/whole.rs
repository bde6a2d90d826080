//! Integer parameters, made continuous for the search by interpolation.

use lanemark_platform::{Origin, Platform};

/// Allowed values of a parameter; `None` if it is continuous.
pub(crate) type Grid = Option<Vec<f64>>;

/// The allowed integers of a key between its bounds.
pub(crate) fn grid(platform: &Platform, key: &str, (low, high): (f64, f64)) -> Vec<f64> {
    let origin = Origin::Assumed("tried by the search".to_owned());
    let whole = (low.ceil() as u64..=high.floor() as u64).map(|whole| whole as f64);
    whole.filter(|value| platform.with(key, *value, origin.clone()).is_ok()).collect()
}

/// Evaluates `ask` at `values` by interpolation between allowed values, so that a search sees a slope.
///
/// The interpolation runs along the edges of a simplex. At allowed values it equals `ask`. Source: Kuhn's
/// triangulation, with one more corner than there are parameters between two allowed values.
///
/// # Errors
/// The first error of `ask`.
pub(crate) fn between(
    grids: &[Grid],
    values: &[f64],
    mut ask: impl FnMut(&[f64]) -> Result<Vec<f64>, String>,
) -> Result<Vec<f64>, String> {
    let mut corner = values.to_vec();
    // Index of the parameter, the allowed value above, and the fraction of the way towards it.
    let mut parts: Vec<(usize, f64, f64)> = Vec::new();
    for (place, grid) in grids.iter().enumerate() {
        let Some(grid) = grid else { continue };
        let (below, above) = neighbours(grid, values[place]);
        corner[place] = below;
        if above > below && values[place] > below {
            parts.push((place, above, ((values[place] - below) / (above - below)).min(1.0)));
        }
    }
    parts.sort_by(|one, other| other.2.total_cmp(&one.2));
    let share = |step: usize| parts.get(step).map_or(0.0, |part| part.2);
    let weigh = |found: Vec<f64>, weight: f64| found.into_iter().map(move |value| value * weight);
    let mut sum: Vec<f64> = weigh(ask(&corner)?, 1.0 - share(0)).collect();
    for (step, (place, above, part)) in parts.iter().enumerate() {
        corner[*place] = *above;
        let next = weigh(ask(&corner)?, part - share(step + 1));
        sum.iter_mut().zip(next).for_each(|(sum, next)| *sum += next);
    }
    Ok(sum)
}

/// The neighbours of `value` in a grid; twice the end value outside of it. A grid is sorted and not empty.
pub(crate) fn neighbours(grid: &[f64], value: f64) -> (f64, f64) {
    let after = grid.partition_point(|one| *one <= value);
    let below = grid[after.saturating_sub(1)];
    (below, grid.get(after).copied().filter(|_| after > 0).unwrap_or(below))
}

/// The nearest value of a grid.
pub(crate) fn nearest(grid: &[f64], value: f64) -> f64 {
    let (below, above) = neighbours(grid, value);
    if value - below <= above - value { below } else { above }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRIDS: [Grid; 3] = [None, None, None];

    fn grids() -> Vec<Grid> {
        let mut grids = GRIDS.to_vec();
        (grids[0], grids[2]) = (Some(vec![1.0, 2.0, 3.0]), Some(vec![4.0, 8.0, 16.0]));
        grids
    }

    #[test]
    fn linear_functions_are_exact_and_evaluated_at_allowed_values_only() {
        let plane = |at: &[f64]| {
            assert!([1.0, 2.0, 3.0].contains(&at[0]) && [4.0, 8.0, 16.0].contains(&at[2]), "{at:?}");
            Ok(vec![2.0 * at[0] - at[1] + 0.5 * at[2]])
        };
        for at in [[1.0, 0.3, 4.0], [1.25, 0.3, 15.0], [2.5, 7.0, 5.0], [3.0, 0.0, 16.0], [2.5, 0.0, 6.0]] {
            let found = between(&grids(), &at, plane).unwrap()[0];
            assert!((found - plane_of(&at)).abs() < 1e-12, "{at:?}: {found}");
        }
    }

    fn plane_of(at: &[f64]) -> f64 {
        2.0 * at[0] - at[1] + 0.5 * at[2]
    }

    #[test]
    fn allowed_values_need_one_evaluation() {
        let mut asked = 0;
        between(&grids(), &[2.0, 0.1, 8.0], |_| {
            asked += 1;
            Ok(vec![0.0])
        })
        .unwrap();
        assert_eq!(asked, 1);
    }

    #[test]
    fn neighbours_outside_a_grid_are_its_ends() {
        assert_eq!(neighbours(&[4.0, 8.0], 3.0), (4.0, 4.0));
        assert_eq!(neighbours(&[4.0, 8.0], 4.0), (4.0, 8.0));
        assert_eq!(neighbours(&[4.0, 8.0], 9.0), (8.0, 8.0));
    }
}
