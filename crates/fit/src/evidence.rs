//! Comparison of structures by their errors at figures that were not fitted.

/// A structure must reduce the mean error of the held-out figures to this share.
pub(crate) const BETTER: f64 = 0.85;

/// Error of a held-out figure from which on it is not predicted.
const MISSED_PERCENT: f64 = 10.0;

/// Ratio of two such errors up to which chance decides which one is larger.
const ALIKE: f64 = 2.0;

pub(crate) fn mean(errors: &[f64]) -> f64 {
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

/// Whether the errors `found` are clearly smaller than `before`, figure by figure: their mean is at most this share, and the
/// mean of the differences is more than its standard error.
///
/// A figure that alone determines a number is predicted by neither structure when it is held out, and chance decides which
/// one misses it by more: without it, the others are compared, if they are most.
pub(crate) fn is_better(before: &[f64], found: &[f64], share: f64) -> bool {
    let told: (Vec<f64>, Vec<f64>) =
        before.iter().zip(found).filter(|(before, found)| !is_of_neither(**before, **found)).unzip();
    let (before, found) = if 2 * told.0.len() > before.len() { (&told.0[..], &told.1[..]) } else { (before, found) };
    let (gain, error) = difference(before, found);
    mean(found) <= share * mean(before) && gain > error
}

/// Whether a figure is predicted by neither of two structures, and clearly better by none.
fn is_of_neither(before_percent: f64, found_percent: f64) -> bool {
    let (less, more) = (before_percent.min(found_percent), before_percent.max(found_percent));
    less > MISSED_PERCENT && more < ALIKE * less
}

/// Mean of the differences between the errors of the same figures, and its standard error.
fn difference(one: &[f64], other: &[f64]) -> (f64, f64) {
    let all: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    let middle = mean(&all);
    let spread = all.iter().map(|one| (one - middle).powi(2)).sum::<f64>() / all.len().saturating_sub(1).max(1) as f64;
    (middle, (spread / all.len().max(1) as f64).sqrt())
}

/// The trial with the fewest `numbers` among those whose errors exceed the smallest ones by no more than the standard error of
/// the difference.
///
/// Source: the rule of one standard error, Breiman and others, "Classification and Regression Trees", 1984, section 3.4.3.
pub(crate) fn simplest<T>(tried: Vec<(T, Vec<f64>)>, numbers: impl Fn(&T) -> usize) -> Option<(T, Vec<f64>)> {
    let least = tried.iter().map(|(_, errors)| errors).min_by(|one, other| mean(one).total_cmp(&mean(other)))?.clone();
    let is_as_good = |errors: &[f64]| {
        let (excess, error) = difference(errors, &least);
        excess <= error
    };
    let as_good = tried.into_iter().filter(|(_, errors)| is_as_good(errors));
    as_good.min_by(|one, other| {
        numbers(&one.0).cmp(&numbers(&other.0)).then_with(|| mean(&one.1).total_cmp(&mean(&other.1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the simplest of these: name, number of keys, errors.
    fn chosen(tried: &[(&'static str, usize, [f64; 4])]) -> Option<&'static str> {
        let tried = tried.iter().map(|(name, numbers, errors)| ((*name, *numbers), errors.to_vec())).collect();
        simplest(tried, |(_, numbers)| *numbers).map(|((name, _), _)| name)
    }

    #[test]
    fn the_simplest_within_one_standard_error_of_the_best_is_chosen() {
        let best = ("best", 3, [1.0; 4]);
        // Differences of 0, 0, 0 and x have the mean x / 4 and the standard error x / 4.
        assert_eq!(chosen(&[best, ("simple", 1, [1.0, 1.0, 1.0, 1.5])]), Some("simple"));
        assert_eq!(chosen(&[best, ("simple", 1, [1.01, 1.0, 1.0, 1.5])]), Some("best"));
        // A small difference that all figures have is clear.
        assert_eq!(chosen(&[best, ("simple", 1, [1.001, 1.002, 1.001, 1.002])]), Some("best"));
        // Of equally simple ones, the better one.
        assert_eq!(chosen(&[("worse", 3, [1.0, 1.0, 1.0, 1.5]), best]), Some("best"));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_structure_is_better_by_fifteen_percent_and_by_more_than_the_standard_error() {
        let before = [1.0, 1.0, 1.0, 1.0];
        assert!(is_better(&before, &[0.849, 0.85, 0.85, 0.85], BETTER));
        assert!(!is_better(&before, &[0.851, 0.85, 0.85, 0.85], BETTER));
        // Figures that both miss by more than 10 %, one by less than twice the other, are no evidence.
        let missed = [30.0, 1.0, 1.0, 1.0, 1.0];
        assert!(is_better(&missed, &[59.9, 0.849, 0.85, 0.85, 0.85], BETTER));
        assert!(!is_better(&missed, &[60.0, 0.849, 0.85, 0.85, 0.85], BETTER));
        assert!(!is_better(&missed, &[15.1, 1.0, 1.0, 1.0, 1.0], BETTER));
        // They are, if they are half of all.
        assert!(!is_better(&[30.0, 30.0, 1.0, 1.0], &[59.0, 59.0, 0.8, 0.79], BETTER));
        assert!(is_better(&[30.0, 30.0, 1.0, 1.0, 1.0], &[59.0, 59.0, 0.8, 0.79, 0.8], BETTER));
        assert!(!is_better(&[9.0, 1.0, 1.0, 1.0, 1.0], &[9.0, 0.849, 0.85, 0.85, 0.85], BETTER));
        // One figure alone: the mean difference is its standard error.
        assert!(!is_better(&before, &[1.0, 1.0, 1.01, 0.0], BETTER));
        assert!(is_better(&before, &[0.99, 0.99, 1.0, 0.0], BETTER));
    }
}
