//! Effort of a measurement.

use lanemark_units::Ticks;

/// Effort of a measurement.
///
/// In real time, the variants of a question are visited in rounds, with several samples per visit.
/// Sampling ends when the interval of each variant's median is narrow enough or the budget is
/// spent. So quiet variants end early, noisy ones get more samples, and a lasting disturbance
/// affects all variants alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Target length of one sample; iterations are added until it is reached.
    pub sample_length: Ticks,
    /// Samples per visit, after one warm-up sample that is discarded.
    pub visit_samples: usize,
    /// Longest total time of a visit's samples; a visit has at least three samples.
    pub visit_length: Ticks,
    /// Smallest number of rounds if the budget allows; there is always one.
    pub least_rounds: u64,
    /// Largest number of samples per variant.
    pub most_samples: usize,
    /// Time budget per question and target, in the machine's own time.
    pub budget: Ticks,
    /// Longest extension of the budget, if `has_default_sizes` and all sizes get their least rounds and
    /// the samples of an interval within it, in the machine's own time. Sizes are left out only if
    /// they do not.
    pub extension: Ticks,
    /// Target width of the 95 % interval of a median, in percent of the median.
    pub interval_percent: f64,
    /// Iterations in virtual time, in place of the question's own number. Virtual time needs one
    /// run per variant, because all runs are equal.
    pub simulated_passes: Option<u64>,
    /// Whether the sizes are defaults, so that some may be left out. If the budget does not suffice for
    /// the least rounds of all sizes, it is spent on fewer. Those left get their least rounds and the
    /// samples of an interval, even if that exceeds the budget. Sizes that a user named are all
    /// measured, within the budget: then this is false.
    pub has_default_sizes: bool,
    /// Whether every variant gets its least rounds and the samples of an interval even if that exceeds
    /// the budget, whether a user named its size or not.
    pub needs_interval: bool,
    /// Whether a question that usually measures a part of a long operation measures all of it.
    pub is_whole: bool,
}

impl Default for Effort {
    /// Visits of five samples of 20 us, at least three rounds, one second per question, and
    /// intervals of 2 %.
    fn default() -> Effort {
        Effort {
            sample_length: Ticks::whole_ns(20_000),
            visit_samples: 5,
            visit_length: Ticks::whole_ns(5_000_000),
            least_rounds: 3,
            most_samples: 1000,
            budget: Ticks::whole_ns(1_000_000_000),
            extension: Ticks::ZERO,
            interval_percent: 2.0,
            simulated_passes: None,
            has_default_sizes: false,
            needs_interval: false,
            is_whole: false,
        }
    }
}

impl Effort {
    /// Smallest number of samples per visit; three such rounds give an interval.
    const LEAST_VISIT: usize = 3;

    /// Number of samples per visit if one sample takes `sample`.
    pub(crate) fn samples_of(&self, sample: Ticks) -> usize {
        let affordable = self.visit_length.0.checked_div(sample.0).unwrap_or(u64::MAX);
        self.visit_samples.min(affordable.max(Effort::LEAST_VISIT as u64) as usize)
    }

    /// The same effort with an equal share of the budget, divided by `of`.
    pub(crate) fn share(self, of: usize) -> Effort {
        Effort { budget: Ticks(self.budget.0 / of.max(1) as u64), ..self }
    }
}
