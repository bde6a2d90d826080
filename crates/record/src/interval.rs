//! Confidence intervals of medians and of ratios of medians.

use crate::percentile::sorted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A 95 % confidence interval (`ci95`), in the unit of its figure.
///
/// Computed by the percentile bootstrap (B. Efron, "Bootstrap methods: another look at the
/// jackknife", 1979). The samples are resampled with replacement, and 2.5 % of the resampled
/// medians lie below the interval and 2.5 % above it. For a median this needs no random numbers:
/// the rank of the median among the sorted samples follows a binomial distribution, so equal
/// samples have exactly equal intervals. For an even number of samples, each of the middle two
/// counts half; between two samples the bounds are interpolated. The interval covers the true
/// median in 92 to 98 % of cases from 15 samples on, and in up to 99 % for fewer
/// (`tests/intervals.rs` counts).
///
/// Samples are assumed to be independent. [`doubts`](crate::doubts) detects drift and two modes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Smallest number of samples with an interval; for seven, it would cover the true median in fewer
/// than 90 % of cases.
pub const LEAST_SAMPLES: usize = 8;

/// Probability beyond each bound.
const BEYOND: f64 = 0.025;

impl Interval {
    /// The interval of the median of `samples`; `None` for fewer than eight samples, or if one is
    /// not finite.
    ///
    /// ```
    /// use lanemark_record::Interval;
    /// let interval = Interval::of_median(&[10.0, 10.1, 9.9, 10.2, 9.8, 10.0, 17.0, 10.1]).unwrap();
    /// assert!(interval.low > 9.8 && interval.high < 17.0);
    /// let level = Interval::of_median(&[7.0; 8]).unwrap();
    /// assert_eq!((level.low, level.high), (7.0, 7.0));
    /// ```
    #[must_use]
    pub fn of_median(samples: &[f64]) -> Option<Interval> {
        Some(Interval::of_drawn(&drawn_medians(samples)?))
    }

    /// The interval of the median of `over` divided by that of `under`, resampled independently.
    /// `None` for fewer than eight samples of either, if one is not finite, or if a resampled
    /// median of `under` is zero.
    ///
    /// ```
    /// use lanemark_record::Interval;
    /// let ratio = Interval::of_ratio(&[6.0; 9], &[4.0; 8]).unwrap();
    /// assert_eq!((ratio.low, ratio.high), (1.5, 1.5));
    /// ```
    #[must_use]
    pub fn of_ratio(over: &[f64], under: &[f64]) -> Option<Interval> {
        let (over, under) = (coarser(drawn_medians(over)?), coarser(drawn_medians(under)?));
        let pairs = over.iter().flat_map(|above| under.iter().map(move |below| (above, below)));
        let mut ratios: Vec<(f64, f64)> = pairs.map(|(above, below)| (above.0 / below.0, above.1 * below.1)).collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        ratios.iter().all(|(ratio, _)| ratio.is_finite()).then(|| Interval::of_drawn(&ratios))
    }

    /// The central 95 % of resampled figures, which ascend, each with its probability.
    fn of_drawn(drawn: &[(f64, f64)]) -> Interval {
        Interval { low: end(drawn.iter()), high: end(drawn.iter().rev()) }
    }

    /// Width in percent of `figure`; `None` if the figure is zero and the width is not.
    #[must_use]
    pub fn width_percent_of(&self, figure: f64) -> Option<f64> {
        let width = self.high - self.low;
        if width == 0.0 { Some(0.0) } else { Some(100.0 * width / figure.abs()).filter(|percent| percent.is_finite()) }
    }
}

/// The figure at which the cumulative probability passes 2.5 %, interpolated.
fn end<'a>(drawn: impl Iterator<Item = &'a (f64, f64)>) -> f64 {
    let (mut passed, mut before) = (0.0, None);
    for (figure, share) in drawn {
        if passed + share > BEYOND {
            let before = before.unwrap_or(*figure);
            return before + (figure - before) * ((BEYOND - passed) / share);
        }
        (passed, before) = (passed + share, Some(*figure));
    }
    before.unwrap_or(f64::NAN)
}

/// Largest number of figures per side of a ratio, which combines all pairs.
const MOST_FIGURES: usize = 1000;

/// Merges neighbours if there are too many figures. Merged figures differ by about a thousandth of
/// the spread of the medians.
fn coarser(drawn: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let together = drawn.len().div_ceil(MOST_FIGURES);
    if together <= 1 {
        return drawn;
    }
    drawn.chunks(together).map(|some| (some[some.len() / 2].0, some.iter().map(|(_, share)| share).sum())).collect()
}

/// The possible medians of a resampling, ascending, each with its probability.
fn drawn_medians(samples: &[f64]) -> Option<Vec<(f64, f64)>> {
    if samples.len() < LEAST_SAMPLES || samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let sorted = sorted(samples.to_vec());
    let count = sorted.len();
    let mut factorials_ln = vec![0.0; count + 1];
    for n in 1..=count {
        factorials_ln[n] = factorials_ln[n - 1] + (n as f64).ln();
    }
    // If at least half of the resampled samples are among the first `place`, the median is too.
    let at_most = |place: usize| {
        let share = place as f64 / count as f64;
        f64::midpoint(
            at_least(count.div_ceil(2), share, &factorials_ln),
            at_least(count / 2 + 1, share, &factorials_ln),
        )
    };
    // Beyond six standard deviations the probability is negligible: 1 in 10^9.
    let reach = (3.0 * (count as f64).sqrt()).ceil() as usize + 1;
    let first = (count / 2).saturating_sub(reach);
    let last = (count / 2 + reach).min(count);
    let (mut medians, mut before) = (Vec::with_capacity(last - first), 0.0);
    for place in first + 1..=last {
        let until = if place == last { 1.0 } else { at_most(place) };
        medians.push((sorted[place - 1], until - before));
        before = until;
    }
    Some(medians)
}

/// The probability that at least `least` of `factorials_ln.len() - 1` trials succeed, each with
/// probability `share`.
fn at_least(least: usize, share: f64, factorials_ln: &[f64]) -> f64 {
    let tries = factorials_ln.len() - 1;
    if share >= 1.0 {
        return 1.0;
    }
    let ways_ln = factorials_ln[tries] - factorials_ln[least] - factorials_ln[tries - least];
    let mut term = (ways_ln + least as f64 * share.ln() + (tries - least) as f64 * (1.0 - share).ln()).exp();
    let mut sum = term;
    for succeed in least..tries {
        term *= (tries - succeed) as f64 / (succeed + 1) as f64 * share / (1.0 - share);
        sum += term;
        // Terms rise up to the most likely number and then fall ever faster, so the rest is
        // negligible.
        if (succeed as f64) > tries as f64 * share && term < sum * 1e-18 {
            break;
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_needs_eight_samples() {
        assert_eq!(Interval::of_median(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), None);
        let interval = Interval::of_median(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        assert!(interval.low < 2.0 && interval.high > 7.0, "{interval:?}");
        assert_eq!(Interval::of_ratio(&[1.0; 8], &[1.0; 7]), None);
        assert_eq!(Interval::of_ratio(&[1.0; 7], &[1.0; 8]), None);
    }

    #[test]
    fn samples_without_spread_have_a_zero_width_interval() {
        assert_eq!(Interval::of_median(&[0.0; 8]), Some(Interval { low: 0.0, high: 0.0 }));
        assert_eq!(Interval { low: 0.0, high: 0.0 }.width_percent_of(0.0), Some(0.0));
        assert_eq!(Interval::of_ratio(&[3.0; 9], &[1.0; 8]), Some(Interval { low: 3.0, high: 3.0 }));
    }

    #[test]
    fn zero_denominators_and_nan_have_no_interval() {
        assert_eq!(Interval::of_ratio(&[1.0; 8], &[0.0; 8]), None);
        assert_eq!(Interval::of_ratio(&[0.0; 8], &[0.0; 8]), None);
        for bad in [f64::NAN, f64::INFINITY] {
            assert_eq!(Interval::of_median(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, bad]), None);
        }
        assert_eq!(Interval { low: -1.0, high: 1.0 }.width_percent_of(0.0), None);
        assert_eq!(Interval { low: -3.0, high: -1.0 }.width_percent_of(-2.0), Some(100.0));
    }

    #[test]
    fn a_ratio_of_very_many_samples_has_nearly_the_interval_of_all_pairs() {
        // 40,000 samples have 1,203 different resampled medians.
        let samples: Vec<f64> = (0..40_000).map(|n| 1000.0 + f64::from(n * 17 % 40_000)).collect();
        let all = drawn_medians(&samples).unwrap();
        assert!(all.len() > MOST_FIGURES && coarser(all.clone()).len() <= MOST_FIGURES);
        let mut pairs: Vec<(f64, f64)> =
            all.iter().flat_map(|over| all.iter().map(move |under| (over.0 / under.0, over.1 * under.1))).collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (of_all, found) = (Interval::of_drawn(&pairs), Interval::of_ratio(&samples, &samples).unwrap());
        let width = of_all.high - of_all.low;
        assert!((of_all.low - found.low).abs() < width / 500.0, "{of_all:?} {found:?}");
        assert!((of_all.high - found.high).abs() < width / 500.0, "{of_all:?} {found:?}");
    }

    #[test]
    fn the_order_of_the_samples_does_not_matter() {
        let samples: Vec<f64> = (0..40).map(|n| f64::from(n * 17 % 40)).collect();
        let mut others = samples.clone();
        others.reverse();
        assert_eq!(Interval::of_median(&samples), Interval::of_median(&others));
    }

    #[test]
    fn probabilities_are_those_of_resampling() {
        // For three samples, the median of a resampling is the first in 7 of 27 cases, the second
        // in 13, the third in 7.
        let factorials_ln = [0.0, 0.0, 2.0_f64.ln(), 6.0_f64.ln()];
        assert!((at_least(2, 1.0 / 3.0, &factorials_ln) - 7.0 / 27.0).abs() < 1e-12);
        assert!((at_least(2, 2.0 / 3.0, &factorials_ln) - 20.0 / 27.0).abs() < 1e-12);
        for count in [8, 9, 100, 1001, 20_000] {
            let samples: Vec<f64> = (0..count).map(f64::from).collect();
            let medians = drawn_medians(&samples).unwrap();
            let (shares, mean) =
                medians.iter().fold((0.0, 0.0), |(a, b), (figure, share)| (a + share, b + figure * share));
            assert!((shares - 1.0).abs() < 1e-9, "{count}: {shares}");
            assert!((mean - f64::from(count - 1) / 2.0).abs() < 1e-6, "{count}: {mean}");
        }
    }
}
