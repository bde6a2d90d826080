//! Reads of host memory whose latencies differ (`memory.read_spread_ns`).
//!
//! Each line takes an exponential time with mean `s` longer, and a read waits for the slowest of its `k` lines: its
//! mean is `s H(k)`, `H(k) = 1 + 1/2 + .. + 1/k`, which the path of each request includes (`root_complex.rs`). Two
//! effects remain for `n` requests at once:
//!
//! | effect | time |
//! | --- | --- |
//! | the last data wait for the slowest line of all | `s (H(k m) - H(k))` later, for requests at intervals of `t`, `m = (1 - e^(-n t / s)) / (1 - e^(-t / s))` |
//! | a serial resource behind memory starts with the first data | earlier, see [`Spread::early`] |
//!
//! Source: the maximum of `n` exponential times has the mean `s H(n)`; the tail of several that start one after the
//! other is approximately the sum of their tails.

use super::sum::Sum;
use super::way::Way;
use lanemark_platform::Memory;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Spread of the latencies of reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// Mean of the additional time of a line.
    mean_ns: f64,
    /// Lines of a request.
    lines: f64,
}

impl Way<'_> {
    /// Mean of the additional time of a read from DRAM of these lines.
    pub(super) fn mean_spread(&self, lines: u64) -> Ticks {
        let mean = self.memory().map_or(Ticks::ZERO, |memory| memory.read_spread_ns.value);
        if mean == Ticks::ZERO { mean } else { Ticks((mean.0 as f64 * harmonic(lines as f64)).round() as u64) }
    }

    /// Lines that a request reads from DRAM, if their latencies are spread.
    pub(super) fn spread_lines(&self, chunk: Chunk) -> u64 {
        let is_spread = self.memory().is_some_and(|memory| memory.read_spread_ns.value > Ticks::ZERO);
        if !is_spread || self.is_cached(chunk) {
            return 0;
        }
        // A request has whole DWs.
        let start = chunk.address / 4 * 4;
        Memory::lines(start, (chunk.address + u64::from(chunk.bytes)).next_multiple_of(4) - start)
    }

    /// The spread of these requests; `None` if their latencies are the same, or there is one of them.
    pub(super) fn spread(&self, sum: &Sum, times: f64) -> Option<Spread> {
        let mean_ns = self.memory()?.read_spread_ns.value.as_ns();
        let is_one = sum.requests as f64 * times <= 1.0;
        let lines = sum.spread_lines as f64 / sum.requests as f64;
        (sum.spread_lines > 0 && !is_one).then_some(Spread { mean_ns, lines })
    }
}

impl Spread {
    /// Time by which the last data of `requests` at intervals of `interval_ns` are later than those of a single request.
    pub(super) fn late(&self, requests: f64, interval_ns: f64) -> f64 {
        let part = interval_ns.max(0.0) / self.mean_ns;
        let at_once = if part * requests < 1e-9 { requests } else { (-requests * part).exp_m1() / (-part).exp_m1() };
        self.mean_ns * (harmonic(self.lines * at_once) - harmonic(self.lines))
    }

    /// Time by which a resource behind memory is done earlier than if all reads had the mean latency. It takes
    /// `busy_ns` for a request; requests arrive at memory at intervals of `arrival_ns`.
    ///
    /// With `r` the ratio of both, the data of a share `r` of the requests let it start: `e^(-u)` is
    /// `1 - r^(1/k)`, and the resource lags by `s (u - (u - sum of (1 - e^-u)^j / j, j up to k) / r)`, the largest
    /// difference between the requests that it could have served and those that have their data.
    pub(super) fn early(&self, arrival_ns: f64, busy_ns: f64) -> f64 {
        let ratio = arrival_ns / busy_ns;
        if busy_ns <= 0.0 || ratio >= 1.0 {
            return 0.0;
        }
        let lines = self.lines.round().max(1.0);
        let mean = harmonic(lines);
        if ratio < 1e-6 {
            return self.mean_ns * mean;
        }
        let share = ratio.powf(1.0 / lines);
        // Of nearly equal times, the root is rounded to 1.
        if share >= 1.0 {
            return 0.0;
        }
        let until = -(-share).ln_1p();
        let (mut power, mut sum) = (1.0, 0.0);
        for nth in 1..=lines as u32 {
            power *= share;
            sum += power / f64::from(nth);
        }
        let lag = until - (until - sum) / ratio;
        self.mean_ns * (mean - lag.max(0.0))
    }
}

/// The harmonic number of `x`, also between whole numbers, from 1 on; smaller ones count as 1.
///
/// Source: `H(x) = ln x + 0.5772... + 1/(2x) - 1/(12 x^2) + 1/(120 x^4)`, after `H(x) = H(x + 1) - 1/(x + 1)` for small `x`.
fn harmonic(x: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    let mut x = x.max(1.0);
    let mut before = 0.0;
    while x < 16.0 {
        x += 1.0;
        before += 1.0 / x;
    }
    let square = x * x;
    x.ln() + EULER + 0.5 / x - 1.0 / (12.0 * square) + 1.0 / (120.0 * square * square) - before
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPREAD: Spread = Spread { mean_ns: 60.0, lines: 2.0 };

    #[test]
    fn harmonic_numbers_are_the_sums_of_their_terms() {
        let mut sum = 0.0;
        for nth in 1..=100 {
            sum += 1.0 / f64::from(nth);
            assert!((harmonic(f64::from(nth)) - sum).abs() < 1e-8, "{nth}");
        }
        assert!((harmonic(0.0) - 1.0).abs() < 1e-8);
    }

    #[test]
    fn the_last_of_simultaneous_requests_is_the_slowest_of_all_their_lines() {
        assert!((SPREAD.late(4.0, 0.0) - 60.0 * (harmonic(8.0) - harmonic(2.0))).abs() < 1e-6);
        // Of requests far apart, the last one is the last.
        assert!(SPREAD.late(4.0, 1e4).abs() < 1e-6);
        assert!(SPREAD.late(1.0, 5.0).abs() < 1e-6);
    }

    #[test]
    fn a_resource_lags_by_the_mean_if_requests_arrive_no_faster_than_it_serves_them() {
        assert_eq!(SPREAD.early(5.0, 5.0).to_bits(), 0.0_f64.to_bits());
        assert!(SPREAD.early(4.999, 5.0) < 0.5);
        assert!(SPREAD.early(5.0 * (1.0 - f64::EPSILON), 5.0) < 0.5);
        // If they arrive at once, it starts with the first.
        assert!((SPREAD.early(0.0, 5.0) - 90.0).abs() < 1e-6);
        // One line each, half the time: u = ln 2, a lag of s (1 - ln 2).
        let of_a_line = Spread { lines: 1.0, ..SPREAD };
        assert!((of_a_line.early(2.0, 4.0) - 60.0 * 2.0_f64.ln()).abs() < 1e-6);
    }
}
