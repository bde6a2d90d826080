//! Reasons to doubt a median: drift, two modes, a wide interval.

use crate::percentile::{median, sorted};
use crate::summary::Summary;
use crate::{Dropped, Interval, LEAST_SAMPLES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason to doubt a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Doubt {
    /// Kind of the reason.
    pub kind: DoubtKind,
    /// The reason with its figures, as a clause.
    pub text: String,
}

/// Kind of a reason to doubt a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoubtKind {
    /// Every sample was dropped, so there is no figure.
    NoSamples,
    /// More than a tenth of the samples were dropped.
    Dropped,
    /// There are too few samples for an interval.
    FewSamples,
    /// The samples become longer or shorter over time.
    Drift,
    /// The samples have two modes.
    TwoHumps,
    /// The interval is wider than the target.
    WideInterval,
    /// Other work used the CPUs.
    BusyMachine,
}

impl DoubtKind {
    /// The kind in one or two words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            DoubtKind::NoSamples => "no samples",
            DoubtKind::Dropped => "samples dropped",
            DoubtKind::FewSamples => "few samples",
            DoubtKind::Drift => "drift",
            DoubtKind::TwoHumps => "two modes",
            DoubtKind::WideInterval => "wide interval",
            DoubtKind::BusyMachine => "busy machine",
        }
    }
}

/// Finds reasons to doubt the median of these samples.
///
/// `samples` are nanoseconds in order; `dropped` counts dropped samples; `wanted_percent` is the
/// target width of the median's interval, in percent of the median.
#[must_use]
pub fn doubts(samples: &[f64], dropped: Dropped, wanted_percent: f64) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let mut doubt = |kind, text| doubts.push(Doubt { kind, text });
    let (thrown, all) = (dropped.count(), dropped.count() + samples.len() as u64);
    let reasons = [(dropped.context_switches, "context switch", "es"), (dropped.clock_steps, "clock step", "s")];
    let reasons =
        reasons.map(|(count, what, plural)| format!("{count} {what}{}", if count == 1 { "" } else { plural }));
    let reasons = reasons.join(", ");
    let Some(summary) = Summary::of(samples) else {
        doubt(DoubtKind::NoSamples, format!("all of {all} samples were dropped: {reasons}"));
        return doubts;
    };
    if thrown as f64 > DROPPED_SHARE * all as f64 {
        doubt(DoubtKind::Dropped, format!("{thrown} of {all} samples were dropped: {reasons}"));
    }
    if let Some(percent) = drift(samples) {
        let way = if percent > 0.0 { "longer" } else { "shorter" };
        let text = format!("the last third of the samples takes {:.0} % {way} than the first", percent.abs());
        doubt(DoubtKind::Drift, text);
    }
    if let Some(humps) = two_humps(samples) {
        let text = format!(
            "{:.0} % of the samples lie around {} ns, the others around {} ns",
            humps.low_percent,
            figure(humps.low),
            figure(humps.high)
        );
        doubt(DoubtKind::TwoHumps, text);
    }
    match summary.ci95.map(|interval| (interval, interval.width_percent_of(summary.median))) {
        None => doubt(
            DoubtKind::FewSamples,
            format!("{} of the {LEAST_SAMPLES} samples that an interval needs", samples.len()),
        ),
        Some((_, Some(percent))) if percent <= wanted_percent => {}
        Some((Interval { low, high }, percent)) => {
            let wide = percent.map_or_else(String::new, |percent| format!(", {} %", figure(percent)));
            let text = format!(
                "the ci95 of the median is {} to {} ns{wide}; {} % is the target",
                figure(low),
                figure(high),
                figure(wanted_percent)
            );
            doubt(DoubtKind::WideInterval, text);
        }
    }
    doubts
}

/// Share of samples that may be dropped without a doubt.
const DROPPED_SHARE: f64 = 0.1;

/// Formats a figure with three significant digits.
fn figure(value: f64) -> String {
    let digits = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let decimals = (2.0 - digits).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

/// Smallest drift that is reported, in percent of the median.
const DRIFT_PERCENT: f64 = 5.0;
/// Standard deviations of Mann's S beyond which the order is significant: 1 in 1000, two-sided.
const DRIFT_DEVIATIONS: f64 = 3.29;

/// Drift of `samples`, if significant: the median of the last third minus that of the first third,
/// in percent of the median of all.
///
/// A drift needs two conditions: the trend test of H. B. Mann ("Nonparametric tests against trend",
/// 1945) is significant at 1 in 1000, and the two thirds differ by at least 5 %. The smallest
/// number of samples with a significant order is nine.
#[must_use]
pub fn drift(samples: &[f64]) -> Option<f64> {
    let (count, third) = (samples.len() as f64, samples.len() / 3);
    if third < 3 {
        return None;
    }
    let mut rising = 0_i64;
    for (place, sample) in samples.iter().enumerate() {
        for later in &samples[place + 1..] {
            rising += i64::from(later > sample) - i64::from(later < sample);
        }
    }
    // Ties are not counted, so they reduce the variance.
    let sorted = sorted(samples.to_vec());
    let ties = sorted.chunk_by(|a, b| a == b).map(|run| run.len() as f64);
    let term = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let variance = (term(count) - ties.map(term).sum::<f64>()) / 18.0;
    // Continuity correction: S is a whole number, and the normal distribution is continuous.
    let deviations = (rising.unsigned_abs().saturating_sub(1)) as f64 / variance.sqrt();
    let ends = [&samples[..third], &samples[samples.len() - third..]].map(|third| median(third.to_vec()));
    let percent = 100.0 * (ends[1] - ends[0]) / median(samples.to_vec()).abs();
    (deviations > DRIFT_DEVIATIONS && percent.is_finite() && percent.abs() >= DRIFT_PERCENT).then_some(percent)
}

/// Two humps of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoHumps {
    /// Median of the lower hump.
    pub low: f64,
    /// Median of the upper hump.
    pub high: f64,
    /// Share of the lower hump, in percent of all samples.
    pub low_percent: f64,
}

/// Smallest share of samples in a hump, which also has at least three samples.
const HUMP_SHARE: f64 = 0.15;
/// Smallest distance of humps, as a share of the median of all samples.
const HUMPS_APART: f64 = 0.1;
/// Smallest distance of humps, in sums of their median absolute deviations.
const HUMPS_OVER_SPREAD: f64 = 4.0;
/// Largest number of samples in the middle half between the humps, as a share of the smaller hump.
const VALLEY: f64 = 0.2;

/// The two modes of `samples`, if there are two.
///
/// The sorted samples are split where the variance between the two parts is largest (N. Otsu, "A
/// threshold selection method from gray-level histograms", 1979), and again half way between the
/// medians of the parts. The parts are humps under three conditions: each has at least 15 % of the
/// samples; their medians differ by at least 10 % of the median of all and by four times both
/// spreads; and there is a valley between them. For 15 samples of a normal, uniform, exponential or
/// log-normal distribution, it finds humps in at most 5 of 100 cases; for 60 samples in fewer than
/// 1 of 100. For two equal humps at a ratio of 1.5 with a spread of 3 %, it finds at least 95 of
/// 100 (`tests/intervals.rs` counts both).
#[must_use]
pub fn two_humps(samples: &[f64]) -> Option<TwoHumps> {
    let sorted = sorted(samples.to_vec());
    let least = ((HUMP_SHARE * sorted.len() as f64).ceil() as usize).max(3);
    if sorted.len() < 2 * least {
        return None;
    }
    let all: f64 = sorted.iter().sum();
    let mut below = sorted[..least - 1].iter().sum::<f64>();
    let mut cut = (f64::NEG_INFINITY, least);
    for place in least..=sorted.len() - least {
        below += sorted[place - 1];
        let (low, high) = (place as f64, (sorted.len() - place) as f64);
        let apart = (all - below) / high - below / low;
        let between = low * high * apart * apart;
        if between > cut.0 {
            cut = (between, place);
        }
    }
    // The first split must leave enough samples on each side and may lie within a hump, so split
    // again half way.
    let (low, high) = sorted.split_at(cut.1);
    let half_way = f64::midpoint(median(low.to_vec()), median(high.to_vec()));
    let (low, high) = sorted.split_at(sorted.partition_point(|sample| *sample < half_way));
    if low.len().min(high.len()) < least {
        return None;
    }
    let middle = |part: &[f64]| (median(part.to_vec()), Summary::mad_of(part));
    let ((low_median, low_mad), (high_median, high_mad)) = (middle(low), middle(high));
    let apart = high_median - low_median;
    let quarter = apart / 4.0;
    let valley = sorted.iter().filter(|sample| (low_median + quarter..high_median - quarter).contains(*sample)).count();
    let are_humps = apart > 0.0
        && apart >= HUMPS_APART * median(samples.to_vec()).abs()
        && apart >= HUMPS_OVER_SPREAD * (low_mad + high_mad)
        && valley as f64 <= VALLEY * low.len().min(high.len()) as f64;
    let low_percent = 100.0 * low.len() as f64 / sorted.len() as f64;
    are_humps.then_some(TwoHumps { low: low_median, high: high_median, low_percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Dropped = Dropped { context_switches: 0, clock_steps: 0 };

    fn kinds(samples: &[f64], dropped: Dropped, wanted_percent: f64) -> Vec<DoubtKind> {
        doubts(samples, dropped, wanted_percent).into_iter().map(|doubt| doubt.kind).collect()
    }

    #[test]
    fn level_samples_have_no_doubt() {
        assert_eq!(kinds(&[5.0; 30], NONE, 0.0), []);
        assert_eq!(kinds(&[0.0; 30], NONE, 0.0), []);
    }

    #[test]
    fn if_all_samples_are_dropped_that_is_the_only_doubt() {
        let dropped = Dropped { context_switches: 7, clock_steps: 1 };
        let found = doubts(&[], dropped, 2.0);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, DoubtKind::NoSamples);
        assert_eq!(found[0].text, "all of 8 samples were dropped: 7 context switches, 1 clock step");
    }

    #[test]
    fn a_doubt_needs_more_than_a_tenth_of_dropped_samples() {
        assert_eq!(kinds(&[5.0; 18], Dropped { context_switches: 2, clock_steps: 0 }, 2.0), []);
        let dropped = Dropped { context_switches: 2, clock_steps: 1 };
        assert_eq!(kinds(&[5.0; 18], dropped, 2.0), [DoubtKind::Dropped]);
    }

    #[test]
    fn seven_samples_are_few() {
        assert_eq!(kinds(&[5.0; 7], NONE, 2.0), [DoubtKind::FewSamples]);
        assert_eq!(kinds(&[5.0; 8], NONE, 2.0), []);
    }

    #[test]
    fn only_an_interval_wider_than_the_target_is_doubtful() {
        let samples: Vec<f64> = (0..21).map(|n| 100.0 + f64::from(n * 8 % 21)).collect();
        let summary = Summary::of(&samples).unwrap();
        let width = summary.ci95.unwrap().width_percent_of(summary.median).unwrap();
        assert!(width > 0.0);
        assert_eq!(kinds(&samples, NONE, width), []);
        assert_eq!(kinds(&samples, NONE, width * 0.999), [DoubtKind::WideInterval]);
    }

    #[test]
    fn a_rise_of_5_percent_is_a_drift_and_a_smaller_one_is_not() {
        // The medians of the thirds of 30 samples are 20 samples apart.
        let rising = |percent: f64| (0..30).map(|n| 100.0 + percent / 20.0 * (f64::from(n) - 14.5)).collect::<Vec<_>>();
        assert!((drift(&rising(5.001)).unwrap() - 5.001).abs() < 1e-9);
        assert_eq!(drift(&rising(4.999)), None);
        let falling: Vec<f64> = rising(5.001).into_iter().rev().collect();
        assert!(drift(&falling).unwrap() < 0.0);
    }

    #[test]
    fn a_rise_that_may_be_chance_is_no_drift() {
        // Eight samples never have a drift; nine strictly rising ones do: S = 36 with a deviation
        // of 9.59.
        assert_eq!(drift(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), None);
        assert!(drift(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).is_some());
        assert_eq!(drift(&[2.0, 1.0, 3.0, 5.0, 4.0, 6.0, 7.0, 9.0, 8.0]), None, "S = 30");
    }

    #[test]
    fn alternating_samples_at_a_ratio_of_three_are_two_humps() {
        let humps = two_humps(&[1.0, 3.0].repeat(8)).unwrap();
        assert_eq!(humps, TwoHumps { low: 1.0, high: 3.0, low_percent: 50.0 });
    }

    #[test]
    fn humps_less_than_a_tenth_apart_are_one() {
        assert_eq!(two_humps(&[100.0, 110.0].repeat(9)), None, "the median of all is 105");
        assert!(two_humps(&[100.0, 111.0].repeat(9)).is_some());
    }

    #[test]
    fn a_few_slow_samples_are_no_hump() {
        let mut samples = vec![1.0; 18];
        samples.extend([3.0, 3.0]);
        assert_eq!(two_humps(&samples), None);
        samples.extend([3.0, 3.0]);
        assert!(two_humps(&samples).is_some(), "four of 22 are 18 %");
    }
}
