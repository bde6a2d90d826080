//! Statistics of samples.

use crate::interval::Interval;
use crate::percentile::{median, percentile, sorted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statistics of a set of samples, in their unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Number of samples.
    pub count: u64,
    /// Minimum.
    pub min: f64,
    /// 1st percentile.
    pub p1: f64,
    /// Median; the mean of the two middle samples for an even number.
    pub median: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
    /// Median absolute deviation.
    pub mad: f64,
    /// The 95 % interval of the median; absent for fewer than eight samples, as in simulations.
    pub ci95: Option<Interval>,
}

impl Summary {
    /// The statistics of `samples`; `None` for no samples, or if one is NaN.
    ///
    /// Percentiles interpolate linearly between the two nearest samples.
    ///
    /// ```
    /// use lanemark_record::Summary;
    /// let summary = Summary::of(&[3.0, 1.0, 2.0, 10.0]).unwrap();
    /// assert_eq!((summary.median, summary.mad), (2.5, 1.0));
    /// ```
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Summary> {
        if samples.is_empty() || samples.iter().any(|sample| sample.is_nan()) {
            return None;
        }
        let sorted = sorted(samples.to_vec());
        Some(Summary {
            count: sorted.len() as u64,
            min: sorted[0],
            p1: percentile(&sorted, 1.0),
            median: percentile(&sorted, 50.0),
            p99: percentile(&sorted, 99.0),
            max: sorted[sorted.len() - 1],
            mad: Summary::mad_of(&sorted),
            ci95: Interval::of_median(&sorted),
        })
    }

    /// Median absolute deviation of `samples`; NaN without samples.
    pub(crate) fn mad_of(samples: &[f64]) -> f64 {
        let middle = median(samples.to_vec());
        median(samples.iter().map(|sample| (sample - middle).abs()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_samples_have_no_spread() {
        let summary = Summary::of(&[7.0; 5]).unwrap();
        assert_eq!(
            (summary.min, summary.p1, summary.median, summary.p99, summary.max, summary.mad),
            (7.0, 7.0, 7.0, 7.0, 7.0, 0.0)
        );
    }

    #[test]
    fn one_sample_is_its_own_median() {
        assert_eq!(Summary::of(&[4.0]).unwrap().median, 4.0);
    }

    #[test]
    fn nothing_and_nan_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn percentiles_lie_between_their_neighbours() {
        let hundred_one: Vec<f64> = (0..=100).map(f64::from).collect();
        let summary = Summary::of(&hundred_one).unwrap();
        assert_eq!((summary.p1, summary.median, summary.p99, summary.mad), (1.0, 50.0, 99.0, 25.0));
    }
}
