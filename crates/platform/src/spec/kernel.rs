//! Keys of kernels on a card.

use crate::key::Kind;
use lanemark_units::Ticks;

section! {
    /// Kernels that the card runs: pipelined loops with load and store units.
    Kernel ["kernel"] {
        /// Clock of the kernels.
        clock_ghz: f64 = Kind::Number(0.01, 10.0), unknown 0.05 to 5.0;
        /// Cycles between the starts of two loop iterations (initiation interval).
        interval_cycles: u32 = Kind::Count(1, 1000), default "1" because "pipelines are designed to start an iteration each cycle";
        /// Cycles from the last operand of an iteration to its store (pipeline depth).
        pipeline_cycles: u32 = Kind::Count(0, 100_000), default "100" because "the order of magnitude that compilers report";
        /// Cycles between two additions to the same sum; rows are summed in order.
        addition_cycles: u32 = Kind::Count(1, 1000), default "1" because "partial sums in a shift register, as vendors advise";
        /// Maximum number of words that a load unit has requested and not yet consumed.
        unit_words: u32 = Kind::Count(1, 1 << 16), default "512" because "the depth of a common on-chip memory block";
        /// Consecutive words that a unit combines into one burst.
        burst_words: u32 = Kind::Count(1, 4096), default "16" because "typical for bursting load and store units";
        /// Whether a unit that accesses an array in order uses all bytes of a word. If not, each access transfers a
        /// whole word and discards the bytes that it does not need.
        keeps_words: bool = Kind::Flag, default "false" because "bytes that were not requested are discarded";
        /// Maximum number of kernels on the card.
        most_kernels: u32 = Kind::Count(1, 1024), default "32" because "the area is unknown";
    }
}

impl Kernel {
    /// Duration of this many cycles.
    #[must_use]
    pub fn cycles(&self, count: u32) -> Ticks {
        Ticks::from_ns(1.0 / self.clock_ghz.value).map_or(Ticks::NEVER, |cycle| cycle * u64::from(count))
    }
}
