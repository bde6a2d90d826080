//! Keys of kernels on a card.

use crate::key::Kind;
use lanemark_units::Ticks;

section! {
    /// Kernels that the card runs: pipelined loops with load and store units.
    Kernel ["kernel"] {
        /// Clock of the kernels.
        clock_ghz: f64 = Kind::Number(0.01, 10.0), unknown 0.05 to 5.0;
        /// Growth of the cycle for each kernel on the card beyond the first, in percent of the cycle of one kernel: a
        /// fuller chip has longer wires and a slower clock.
        cycle_growth_percent: f64 = Kind::Number(0.0, 1000.0), default "0" because "no relation of area and clock is known", unknown 0.1 to 100.0;
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
    /// Duration of this many cycles with `kernels` kernels on the card:
    /// `count / clock_ghz * (1 + cycle_growth_percent / 100 * (kernels - 1))`, with the cycle rounded to ticks.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// use lanemark_units::Ticks;
    /// let given = |why: &str| Origin::Given(why.to_owned());
    /// let card = preset("card-stratix10mx").unwrap()?;
    /// let card = card.with("kernel.clock_ghz", 0.5, given("example"))?;
    /// let card = card.with("kernel.cycle_growth_percent", 25.0, given("example"))?;
    /// let kernel = card.kernel.as_ref().unwrap();
    /// assert_eq!(kernel.cycles(3, 1), Ticks::whole_ns(6));
    /// assert_eq!(kernel.cycles(3, 5), Ticks::whole_ns(12));
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    #[must_use]
    pub fn cycles(&self, count: u32, kernels: u32) -> Ticks {
        let growth = self.cycle_growth_percent.value / 100.0 * f64::from(kernels.saturating_sub(1));
        Ticks::from_ns((1.0 + growth) / self.clock_ghz.value).map_or(Ticks::NEVER, |cycle| cycle * u64::from(count))
    }
}
