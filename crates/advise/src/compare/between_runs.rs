//! Variation between runs: the probability and the interval of a ratio.
//!
//! The model is the random-effects model of T. Kalibera and R. Jones, "Rigorous benchmarking in
//! reasonable time", 2013: samples vary within a round, rounds within a run, and runs among each
//! other. The figure of a run is the median of its samples. The variance of these figures between
//! runs contains the variance of all lower levels, so that only the figures of the runs enter, with
//! Student's t distribution. Times are compared by their logarithms: a ratio becomes a difference,
//! and a change in percent has the same meaning for every time.
//!
//! With fewer than [`Criteria::ENOUGH_RECORDS`] records on a side, the standard deviation between
//! runs is also assumed, and the ratio must be improbable by both. With one record on each side
//! there is only the assumption.

use lanemark_record::{Criteria, Interval, Summary};
use statrs::function::beta::{beta_reg, inv_beta_reg};
use statrs::function::erf::erfc;

/// Probability of a false verdict among all answers of a comparison.
pub(crate) const LEVEL: f64 = 0.05;

/// The figures of one side: logarithms of the medians of its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    logs: Vec<f64>,
    /// Median of the first run.
    first_ns: f64,
    /// Largest variance within a run, by the interval of its median; `None` if a run has no interval.
    within: Option<f64>,
}

/// The figures of a side cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// A run has no samples.
    NoSamples,
    /// A median is not positive.
    NotPositive,
}

impl Figures {
    /// The figures of runs with these samples.
    pub(crate) fn of<'a>(runs: impl Iterator<Item = &'a [f64]>) -> Result<Figures, Unusable> {
        let mut figures = Figures { logs: Vec::new(), first_ns: 0.0, within: Some(0.0) };
        for samples in runs {
            let summary = Summary::of(samples).ok_or(Unusable::NoSamples)?;
            if summary.median <= 0.0 || !summary.median.is_finite() {
                return Err(Unusable::NotPositive);
            }
            if figures.logs.is_empty() {
                figures.first_ns = summary.median;
            }
            figures.logs.push(summary.median.ln());
            let width = summary.ci95.filter(|interval| interval.low > 0.0).map(|ci| (ci.high / ci.low).ln());
            let variance = width.map(|width| (width / (2.0 * NORMAL_95)).powi(2));
            figures.within = figures.within.zip(variance).map(|(a, b)| a.max(b));
        }
        if figures.logs.is_empty() { Err(Unusable::NoSamples) } else { Ok(figures) }
    }

    fn count(&self) -> usize {
        self.logs.len()
    }

    fn mean(&self) -> f64 {
        self.logs.iter().sum::<f64>() / self.count() as f64
    }

    /// Geometric mean of the medians.
    pub(crate) fn typical_ns(&self) -> f64 {
        // Equal figures are kept exactly, as those of simulations are.
        if self.logs.iter().all(|log| *log == self.logs[0]) { self.first_ns } else { self.mean().exp() }
    }

    /// Standard deviation between these runs, in percent; `None` for one run.
    pub(crate) fn between_runs_percent(&self) -> Option<f64> {
        let freedom = (self.count() - 1) as f64;
        (self.count() > 1).then(|| 100.0 * (self.squares() / freedom).sqrt().exp_m1())
    }

    /// Sum of squared distances from the mean.
    fn squares(&self) -> f64 {
        let mean = self.mean();
        self.logs.iter().map(|log| (log - mean).powi(2)).sum()
    }
}

/// The 97.5 % point of the standard normal distribution.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// The logarithm of a ratio, and its uncertainty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ratio {
    log: f64,
    /// Standard error by the variation among the records, with its degrees of freedom; `None` with
    /// one record a side.
    estimated: Option<(f64, f64)>,
    /// Standard error by the assumed variation; `None` with enough records.
    assumed: Option<f64>,
    /// Estimated standard deviation between runs.
    between: Option<f64>,
}

impl Ratio {
    /// The ratio of `new` to `base`; `None` if a side has one record without an interval, of which
    /// nothing is known.
    pub(crate) fn of(base: &Figures, new: &Figures, criteria: &Criteria) -> Option<Ratio> {
        let (first, second) = (base.count(), new.count());
        let scale = 1.0 / first as f64 + 1.0 / second as f64;
        let freedom = (first + second - 2) as f64;
        let variance = (first + second > 2).then(|| (base.squares() + new.squares()) / freedom);
        let is_assumed = first.min(second) < Criteria::ENOUGH_RECORDS;
        let assumed = if is_assumed {
            let runs = (1.0 + criteria.between_runs_percent / 100.0).ln().powi(2);
            let within = |side: &Figures| match side.within {
                None if side.count() == 1 => None,
                within => Some(within.unwrap_or(0.0) / side.count() as f64),
            };
            Some((runs * scale + within(base)? + within(new)?).sqrt())
        } else {
            None
        };
        Some(Ratio {
            log: new.mean() - base.mean(),
            estimated: variance.map(|variance| ((variance * scale).sqrt(), freedom)),
            assumed,
            between: variance.map(f64::sqrt),
        })
    }

    pub(crate) const fn is_assumed(&self) -> bool {
        self.assumed.is_some()
    }

    /// Estimated standard deviation between runs, in percent.
    pub(crate) fn between_runs_percent(&self) -> Option<f64> {
        self.between.map(|deviation| 100.0 * deviation.exp_m1())
    }

    /// The 95 % interval of the ratio: the wider of the two.
    pub(crate) fn interval(&self) -> Interval {
        let estimated = self.estimated.map(|(error, freedom)| error * student_97_5(freedom));
        let assumed = self.assumed.map(|error| error * NORMAL_95);
        let reach = estimated.into_iter().chain(assumed).fold(0.0, f64::max);
        Interval { low: (self.log - reach).exp(), high: (self.log + reach).exp() }
    }

    /// Two-sided probability of a ratio this far beyond a change of `percent`, if there is no larger
    /// change. A slow-down by `percent` is as far from 1 as the speed-up that takes it back.
    pub(crate) fn probability_beyond(&self, percent: f64) -> f64 {
        let beyond = self.log.abs() - (percent / 100.0).ln_1p();
        let estimated = self.estimated.map(|(error, freedom)| beyond_of(beyond, error, |t| student_tail(t, freedom)));
        let assumed = self.assumed.map(|error| beyond_of(beyond, error, normal_tail));
        let both = estimated.into_iter().chain(assumed).fold(0.0, f64::max);
        (2.0 * both).min(1.0)
    }

    /// Whether the new time is longer.
    pub(crate) fn is_slower(&self) -> bool {
        self.log > 0.0
    }
}

/// The tail above `beyond` of a distribution that `error` scales; without an error it has no width.
fn beyond_of(beyond: f64, error: f64, tail: impl Fn(f64) -> f64) -> f64 {
    if error > 0.0 { tail(beyond / error) } else { f64::from(u8::from(beyond <= 0.0)) }
}

/// Probability of a value above `t` under Student's t distribution.
fn student_tail(t: f64, freedom: f64) -> f64 {
    let both = beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    if t > 0.0 { both / 2.0 } else { 1.0 - both / 2.0 }
}

/// The 97.5 % point of Student's t distribution.
fn student_97_5(freedom: f64) -> f64 {
    (freedom * (1.0 / inv_beta_reg(freedom / 2.0, 0.5, 0.05) - 1.0)).sqrt()
}

/// Probability of a value above `z` under the standard normal distribution.
fn normal_tail(z: f64) -> f64 {
    erfc(z / std::f64::consts::SQRT_2) / 2.0
}

/// Corrects probabilities for their number, in place: S. Holm, "A simple sequentially rejective
/// multiple test procedure", 1979. If nothing changed, one of the results lies below a level with at
/// most that probability, however the answers depend on each other.
pub(crate) fn correct_for_number(probabilities: &mut [f64]) {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut least = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        let remaining = (probabilities.len() - rank) as f64;
        least = least.max(probabilities[place] * remaining).min(1.0);
        probabilities[place] = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(medians: &[f64]) -> Figures {
        let runs: Vec<Vec<f64>> = medians.iter().map(|median| vec![*median; 9]).collect();
        Figures::of(runs.iter().map(Vec::as_slice)).unwrap()
    }

    fn ratio(base: &[f64], new: &[f64]) -> Ratio {
        Ratio::of(&figures(base), &figures(new), &Criteria::default()).unwrap()
    }

    #[test]
    fn tails_are_those_of_the_tables() {
        for (freedom, at) in [(1.0, 12.706), (4.0, 2.776), (8.0, 2.306), (30.0, 2.042)] {
            assert!((student_97_5(freedom) - at).abs() < 1e-3, "{freedom}: {}", student_97_5(freedom));
            assert!((student_tail(at, freedom) - 0.025).abs() < 5e-5);
            assert!((student_tail(-at, freedom) - 0.975).abs() < 5e-5);
        }
        // Far tails are used with a correction for many answers.
        assert!((student_tail(5.041, 8.0) - 5e-4).abs() < 1e-6);
        assert!((normal_tail(NORMAL_95) - 0.025).abs() < 1e-9 && (normal_tail(0.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn corrected_probabilities_are_those_of_holm() {
        let mut probabilities = [0.01, 0.04, 0.03, 0.005];
        correct_for_number(&mut probabilities);
        let wanted = [0.03, 0.06, 0.06, 0.02];
        assert!(probabilities.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{probabilities:?}");
        let mut one = [0.9];
        correct_for_number(&mut one);
        assert_eq!(one, [0.9]);
        correct_for_number(&mut []);
    }

    #[test]
    fn five_records_a_side_use_their_own_variation_only() {
        let (base, new) = ([98.0, 99.0, 100.0, 101.0, 102.0], [108.0, 109.0, 110.0, 111.0, 112.0]);
        let found = ratio(&base, &new);
        assert!(!found.is_assumed());
        // Welch and pooled agree for equal counts: t = 6.0 beyond 2 % with 8 degrees of freedom.
        assert!((found.between_runs_percent().unwrap() - 1.52).abs() < 0.01, "{found:?}");
        let p = found.probability_beyond(2.0);
        assert!((3e-5..1e-3).contains(&p), "{p}");
        let interval = found.interval();
        assert!(interval.low > 1.07 && interval.high < 1.13, "{interval:?}");
        // Beyond 12 % there is nothing.
        assert_eq!(found.probability_beyond(12.0), 1.0);
    }

    #[test]
    fn fewer_records_are_judged_by_the_assumption_too() {
        let three = ratio(&[100.0; 3], &[110.0; 3]);
        assert!(three.is_assumed());
        assert!(three.probability_beyond(2.0) > 0.05, "10 % may be the variation between runs");
        assert!(ratio(&[100.0; 3], &[150.0; 3]).probability_beyond(2.0) < 1e-4);
        let quiet = Criteria { between_runs_percent: 1.0, ..Criteria::default() };
        let told = Ratio::of(&figures(&[100.0; 3]), &figures(&[110.0; 3]), &quiet).unwrap();
        assert!(told.probability_beyond(2.0) < 1e-6, "{told:?}");
        // Records that vary more than assumed count by themselves.
        let varied = ratio(&[100.0, 150.0, 225.0], &[200.0, 300.0, 450.0]);
        assert!(varied.probability_beyond(2.0) > 0.05, "{varied:?}");
    }

    #[test]
    fn one_record_a_side_has_only_the_assumption() {
        let one = ratio(&[100.0], &[130.0]);
        assert_eq!((one.is_assumed(), one.between_runs_percent()), (true, None));
        assert!(one.probability_beyond(2.0) > 0.05);
        assert!(ratio(&[100.0], &[200.0]).probability_beyond(2.0) < 1e-4);
        // The variation within the run is added.
        let wide: Vec<f64> = (0..9).map(|n| 100.0 + 50.0 * f64::from(n)).collect();
        let wide = Figures::of(std::iter::once(&*wide)).unwrap();
        let found = Ratio::of(&figures(&[170.0]), &wide, &Criteria::default()).unwrap();
        assert!(found.probability_beyond(2.0) > 0.05, "{found:?}");
    }

    #[test]
    fn one_record_of_few_samples_has_no_ratio_and_several_have() {
        let few = |runs: usize| Figures::of(std::iter::repeat_n(&[5.0; 7][..], runs)).unwrap();
        let criteria = Criteria::default();
        assert_eq!(Ratio::of(&few(1), &figures(&[5.0; 5]), &criteria), None);
        assert!(Ratio::of(&few(5), &few(5), &criteria).is_some());
        assert_eq!(Figures::of([&[][..]].into_iter()), Err(Unusable::NoSamples));
        assert_eq!(Figures::of([&[0.0; 9][..]].into_iter()), Err(Unusable::NotPositive));
    }

    #[test]
    fn runs_without_any_variation_are_judged_exactly() {
        let same = ratio(&[100.0; 5], &[102.1; 5]);
        assert_eq!((same.probability_beyond(2.0), same.probability_beyond(2.2)), (0.0, 1.0));
        let interval = same.interval();
        assert!((interval.low - 1.021).abs() < 1e-9 && (interval.high - 1.021).abs() < 1e-9);
    }
}
