//! Many samples as a few numbers that say which they are.

use crate::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The spread of a set of samples; the unit is that of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// How many samples.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The value 1 % of the samples lie below.
    pub p1: f64,
    /// The middle one, or the mean of the two middle ones.
    pub median: f64,
    /// The value 99 % of the samples lie below.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The median distance from the median.
    pub mad: f64,
    /// The 95 % interval of the median; absent where there are fewer than eight samples, as of a simulation.
    pub ci95: Option<Interval>,
}

impl Summary {
    /// The summary of `samples`; `None` if there are none or one is not a number.
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

    /// The median distance of `samples` from their median; not a number if there are none.
    pub(crate) fn mad_of(samples: &[f64]) -> f64 {
        let middle = median(samples.to_vec());
        median(samples.iter().map(|sample| (sample - middle).abs()).collect())
    }
}

/// The middle one, or the mean of the two middle ones; not a number if there are none.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    if values.is_empty() { f64::NAN } else { percentile(&sorted(values), 50.0) }
}

pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// What `percent` of the values lie below, between the two nearest.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let place = percent / 100.0 * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_spread_have_none() {
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
