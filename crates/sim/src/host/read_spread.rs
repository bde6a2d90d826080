//! Spread of the latency of DRAM: an additional time for each 64 B line that a device reads.
//!
//! The times are the expected order statistics of 1024 exponential times, in a fixed shuffled order. So their mean is exact, a
//! run is repeatable, and repetitions of the same reads reach a steady state. The root port waits for the slowest line
//! of a read before it sends the first completion, because completions of a read are in the order of addresses.

use crate::steady::Survey;
use lanemark_units::Ticks;
use std::sync::Arc;

/// Number of times.
const TIMES: usize = 1 << 10;
/// Seed of the order. Of the seeds up to a million, the one whose slowest of 1, 2, 4, .., 64 adjacent times have a mean
/// nearest to that of independent times, both for the first 16 reads and for all of them: within 1.5 %, of 64 within 3 %.
const SEED: u64 = 34_710;

/// Additional times of the lines that a root port reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadSpread {
    /// In order of the lines read; none without a spread.
    times: Arc<[Ticks]>,
    next: usize,
}

impl ReadSpread {
    /// Creates a spread with this mean.
    pub(crate) fn new(mean: Ticks) -> ReadSpread {
        if mean == Ticks::ZERO {
            return ReadSpread { times: Arc::new([]), next: 0 };
        }
        // Order statistic i of n exponential times of mean 1: the sum of 1 / (n - j) for j up to i.
        let mut sum = 0.0;
        let in_order = (0..TIMES).map(|below| {
            sum += 1.0 / (TIMES - below) as f64;
            Ticks((mean.0 as f64 * sum).round() as u64)
        });
        let mut times: Vec<Ticks> = in_order.collect();
        // Fisher and Yates, with the generator of Knuth's MMIX.
        let mut state = SEED;
        for last in (1..TIMES).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            times.swap(last, (state >> 33) as usize % (last + 1));
        }
        ReadSpread { times: times.into(), next: 0 }
    }

    /// Returns whether latencies differ.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        !self.times.is_empty()
    }

    /// Returns the longest possible additional time.
    pub(crate) fn longest(&self) -> Ticks {
        self.times.iter().copied().max().unwrap_or(Ticks::ZERO)
    }

    /// Returns the additional time of the slowest of the next `lines` lines.
    pub(crate) fn slowest(&mut self, lines: u64) -> Ticks {
        let mut slowest = Ticks::ZERO;
        for _ in 0..lines {
            slowest = slowest.max(self.times[self.next]);
            self.next = (self.next + 1) % TIMES;
        }
        slowest
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        view.state(self.next as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of the slowest of `lines` adjacent lines over some reads, of a mean of 1000 ticks.
    fn mean_of_slowest(lines: u64, reads: u64) -> f64 {
        let mut spread = ReadSpread::new(Ticks(1000));
        let sum: u64 = (0..reads).map(|_| spread.slowest(lines).0).sum();
        sum as f64 / reads as f64
    }

    #[test]
    fn the_mean_is_exact_and_the_slowest_of_several_lines_is_as_late_as_of_independent_ones() {
        assert!((mean_of_slowest(1, 1024) - 1000.0).abs() < 0.5, "{}", mean_of_slowest(1, 1024));
        for (lines, reads) in
            [(1, 16), (2, 16), (4, 16), (8, 16), (16, 16), (32, 16), (2, 512), (4, 256), (8, 128), (16, 64)]
        {
            let harmonic: f64 = (1..=lines).map(|nth| 1.0 / nth as f64).sum();
            let found = mean_of_slowest(lines, reads) / 1000.0;
            assert!((found / harmonic - 1.0).abs() < 0.016, "{reads} x {lines} lines: {found} instead of {harmonic}");
        }
    }

    #[test]
    fn without_a_spread_no_line_takes_longer() {
        let spread = ReadSpread::new(Ticks::ZERO);
        assert!(!spread.is_there());
        assert_eq!(spread.longest(), Ticks::ZERO);
        // 7.5 times the mean: the sum of 1 / i up to 1024.
        assert_eq!(ReadSpread::new(Ticks(1000)).longest(), Ticks(7509));
    }
}
