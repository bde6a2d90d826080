//! How hard to try.

use lanemark_units::Ticks;

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Samples where time is real.
    pub samples: usize,
    /// The wanted length of one sample where time is real; passes are added until it is reached.
    pub sample_length: Ticks,
    /// The longest that the samples of one plan should take together; at least three are taken.
    pub plan_length: Ticks,
    /// Passes where time is virtual, instead of the question's own choice.
    pub simulated_passes: Option<u64>,
}

impl Default for Effort {
    /// 15 samples of 20 us, but no more than 15 ms together.
    fn default() -> Effort {
        Effort {
            samples: 15,
            sample_length: Ticks::whole_ns(20_000),
            plan_length: Ticks::whole_ns(15_000_000),
            simulated_passes: None,
        }
    }
}
