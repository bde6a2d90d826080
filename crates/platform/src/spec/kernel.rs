//! Keys of kernels on a card.

use super::Kind;
use lanemark_units::Ticks;

section! {
    /// Kernels that a card runs: pipelines which take one step of a loop after the other, with units that load and store.
    Kernel ["kernel"] {
        /// Their clock.
        clock_ghz: f64 = Kind::Number(0.01, 10.0), unknown 0.05 to 5.0;
        /// Cycles from one step of a loop to the next (the initiation interval).
        interval_cycles: u32 = Kind::Count(1, 1000), default "1" because "a step each cycle is what pipelines are built for";
        /// Cycles from the last operand of a step to its store.
        pipeline_cycles: u32 = Kind::Count(0, 100_000), default "100" because "the order of what compilers of pipelines report";
        /// Cycles from an addition to the next one of the same sum; rows are summed in order.
        addition_cycles: u32 = Kind::Count(1, 1000), default "1" because "partial sums in a shift register, as vendors advise";
        /// Words that a unit may have asked for and not used.
        unit_words: u32 = Kind::Count(1, 1 << 16), default "512" because "the depth of a common block of memory on the chip";
        /// Words one behind the other that a unit gathers before it asks for them or stores them.
        burst_words: u32 = Kind::Count(1, 4096), default "16" because "usual of units that gather";
        /// Whether a unit that goes over an array in order uses all of a word it loaded or stores a whole word at once; if not, each access
        /// moves a word of its own, and what it did not ask for is discarded.
        keeps_words: bool = Kind::Flag, default "false" because "what was not asked for is discarded";
        /// Kernels that fit on the card.
        most_kernels: u32 = Kind::Count(1, 1024), default "32" because "nothing is known of its area";
    }
}

impl Kernel {
    /// So many cycles.
    #[must_use]
    pub fn cycles(&self, count: u32) -> Ticks {
        Ticks::from_ns(1.0 / self.clock_ghz.value).map_or(Ticks::NEVER, |cycle| cycle * u64::from(count))
    }
}
