//! How hard to try.

use lanemark_units::Ticks;

/// How hard to try.
///
/// Where time is real, the variants of a question are visited in rounds, several samples a visit, until the interval of
/// each variant's median is as narrow as wanted or the budget is spent. So quiet variants end early, noisy ones get more
/// samples, and a disturbance that lasts meets all of them alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The wanted length of one sample; passes are added until it is reached.
    pub sample_length: Ticks,
    /// Samples of one visit. One more is taken before them that warms up and does not count.
    pub visit_samples: usize,
    /// The longest that a visit's samples should take together; three are taken at the least.
    pub visit_length: Ticks,
    /// The fewest rounds, if the budget allows; one is always gone.
    pub least_rounds: u64,
    /// The most samples of one variant.
    pub most_samples: usize,
    /// The longest that one question should take of one target, in that machine's time.
    pub budget: Ticks,
    /// How wide the 95 % interval of a median should be at most, in percent of the median.
    pub interval_percent: f64,
    /// Passes where time is virtual, instead of the question's own choice. There a variant is run once, for every run is
    /// the same.
    pub simulated_passes: Option<u64>,
    /// Whether a question that takes a part of something long for the whole takes all of it.
    pub is_whole: bool,
}

impl Default for Effort {
    /// Visits of five samples of 20 us, three rounds and more, a second for a question, and intervals of 2 %.
    fn default() -> Effort {
        Effort {
            sample_length: Ticks::whole_ns(20_000),
            visit_samples: 5,
            visit_length: Ticks::whole_ns(5_000_000),
            least_rounds: 3,
            most_samples: 1000,
            budget: Ticks::whole_ns(1_000_000_000),
            interval_percent: 2.0,
            simulated_passes: None,
            is_whole: false,
        }
    }
}

impl Effort {
    /// The fewest samples of a visit: three rounds of them have an interval.
    const LEAST_VISIT: usize = 3;

    /// Samples of one visit where one takes `sample`.
    pub(crate) fn samples_of(&self, sample: Ticks) -> usize {
        let affordable = self.visit_length.0.checked_div(sample.0).unwrap_or(u64::MAX);
        self.visit_samples.min(affordable.max(Effort::LEAST_VISIT as u64) as usize)
    }

    /// The same with `share` of the budget, for one of as many.
    pub(crate) fn share(self, of: usize) -> Effort {
        Effort { budget: Ticks(self.budget.0 / of.max(1) as u64), ..self }
    }
}
