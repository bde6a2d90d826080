//! Plans: the work of one measurement, as data.

use crate::{Lane, Work};
use lanemark_units::Ticks;

/// The work between two timestamps, and how often it is repeated.
///
/// One sample is: timestamp, `passes` iterations of the work, timestamp. After the second timestamp, the machine waits
/// until all stored data has been accepted at its destination. A sample therefore has an *issue* time and a
/// *delivered* time.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Work of one iteration.
    pub work: Work,
    /// Iterations within one sample; at least 1.
    pub passes: u64,
    /// Untimed iterations before the first timestamp of each sample.
    pub warmup_passes: u64,
    /// Maximum duration of one sample, on the machine's clock.
    pub timeout: Ticks,
}

impl Plan {
    /// A plan of `passes` iterations of `work` per sample, without warm-up, and with a timeout of one second.
    ///
    /// ```
    /// use lanemark_machine::{Access, Plan, Span, Step, Stream, Verb, Width};
    /// use lanemark_units::{BarOffset, MemoryType};
    /// let span = Span { at: BarOffset { bar: 0, offset: 0 }, len: 4096, memory_type: MemoryType::Wc };
    /// let store = Stream::over(Verb::Store, Access::Plain(Width::B8), span);
    /// let plan = Plan::new(Step::Stream(store), 10);
    /// assert_eq!(plan.bytes_per_sample(), 40_960);
    /// ```
    #[must_use]
    pub fn new(work: impl Into<Work>, passes: u64) -> Plan {
        Plan { work: work.into(), passes, warmup_passes: 0, timeout: Ticks::whole_ns(1_000_000_000) }
    }

    /// A plan without work, which every machine refuses.
    #[must_use]
    pub fn empty() -> Plan {
        Plan::new(Vec::<Lane>::new(), 1)
    }

    /// Bytes moved in one sample.
    #[must_use]
    pub fn bytes_per_sample(&self) -> u64 {
        self.work.bytes().saturating_mul(self.passes)
    }
}
