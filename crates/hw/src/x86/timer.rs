//! Cycles of the time-stamp counter to ticks, and what the timestamps themselves cost.

use super::sample::{Limits, Stamps, stamp_before, timed};
use lanemark_machine::Sample;
use lanemark_units::Ticks;
use std::time::{Duration, Instant};

/// The time-stamp counter of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timer {
    hz: u64,
}

/// The median sample with nothing in it, in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EmptySample {
    /// From the first stamp to the second.
    issue: u64,
    /// From the first to the third, a drain with nothing to drain between.
    delivered: u64,
}

const TICKS_PER_S: u128 = 1_000_000_000 * Ticks::PER_NS as u128;

impl Timer {
    /// How far the counter's told rate may lie from what the system's clock says: 200 in a million. The clock is
    /// steered by up to 500, mostly far less, and reading it costs about 10 in 20 ms.
    const AGREEMENT_PER_MILLION: u64 = 200;

    /// A timer whose counter makes `told` cycles a second, if the system's clock agrees; else what the clock says,
    /// for a virtual machine may run on another processor than the one that told.
    pub(crate) fn checked(told: Option<u64>) -> Timer {
        Timer { hz: agreed(told, calibrated_hz(Duration::from_millis(20))) }
    }

    /// The nearest tick.
    pub(crate) fn ticks(self, cycles: u64) -> Ticks {
        let hz = u128::from(self.hz);
        let ticks = (u128::from(cycles) * TICKS_PER_S + hz / 2) / hz;
        Ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }

    /// The cycles that certainly last as long as `span`.
    pub(crate) fn cycles(self, span: Ticks) -> u64 {
        let cycles = (u128::from(span.0) * u128::from(self.hz)).div_ceil(TICKS_PER_S);
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    /// The two times of a sample, without what the timestamps cost; neither is negative, and what is delivered was
    /// issued before.
    pub(crate) fn sample(self, stamps: &Stamps, empty: EmptySample) -> Sample {
        let issue = self.ticks(stamps.issued.saturating_sub(stamps.start).saturating_sub(empty.issue));
        let delivered = self.ticks(stamps.delivered.saturating_sub(stamps.start).saturating_sub(empty.delivered));
        Sample { issue, delivered: delivered.max(issue) }
    }

    /// What an empty sample takes from its first timestamp to its second.
    pub(crate) fn cost(self, empty: EmptySample) -> Ticks {
        self.ticks(empty.issue)
    }
}

impl EmptySample {
    const TRIES: usize = 1001;

    /// Takes empty samples and keeps the median of each time.
    pub(crate) fn measured(limits: &Limits<'_>) -> EmptySample {
        let mut issue = Vec::with_capacity(Self::TRIES);
        let mut delivered = Vec::with_capacity(Self::TRIES);
        for _ in 0..Self::TRIES {
            let stamps = timed(limits, 0, 1, |_| Ok(()));
            issue.push(stamps.issued.saturating_sub(stamps.start));
            delivered.push(stamps.delivered.saturating_sub(stamps.start));
        }
        let median = |mut cycles: Vec<u64>| *cycles.select_nth_unstable(Self::TRIES / 2).1;
        EmptySample { issue: median(issue), delivered: median(delivered) }
    }
}

fn agreed(told: Option<u64>, calibrated: u64) -> u64 {
    let near = |told: &u64| {
        u128::from(told.abs_diff(calibrated)) * 1_000_000
            <= u128::from(calibrated) * u128::from(Timer::AGREEMENT_PER_MILLION)
    };
    told.filter(near).unwrap_or(calibrated)
}

/// Cycles a second by the system's monotonic clock; at least 1.
fn calibrated_hz(window: Duration) -> u64 {
    let (first, first_cycles) = reading();
    std::thread::sleep(window);
    let (last, last_cycles) = reading();
    let ns = last.duration_since(first).as_nanos().max(1);
    let cycles = u128::from(last_cycles.saturating_sub(first_cycles));
    u64::try_from(cycles * 1_000_000_000 / ns).unwrap_or(u64::MAX).max(1)
}

/// The clock and the counter at the same instant: the closest of several pairs.
fn reading() -> (Instant, u64) {
    let pair = || {
        let before = stamp_before();
        let now = Instant::now();
        let after = stamp_before();
        (after.saturating_sub(before), now, before + after.saturating_sub(before) / 2)
    };
    let mut best = pair();
    for _ in 0..31 {
        let next = pair();
        if next.0 < best.0 {
            best = next;
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::sample::Ending;

    const EMPTY: EmptySample = EmptySample { issue: 80, delivered: 150 };

    fn stamps(issued: u64, delivered: u64) -> Stamps {
        Stamps { start: 1000, issued: 1000 + issued, delivered: 1000 + delivered, ending: Ending::Done }
    }

    #[test]
    fn cycles_become_the_nearest_tick_and_a_second_is_exact() {
        for hz in [1_000_000, 2_294_608_123, 2_300_000_000, 5_999_999_999] {
            let timer = Timer { hz };
            assert_eq!(timer.ticks(hz), Ticks::whole_ns(1_000_000_000));
            for cycles in [0, 1, 2, 3, 1000, 123_456_789, 4_000_000_000_000] {
                // |ticks - exact| <= 1/2, without a rounding of its own: 2 |ticks x hz - cycles x 4096e9| <= hz.
                let ticks = u128::from(timer.ticks(cycles).0);
                let error = (ticks * u128::from(hz)).abs_diff(u128::from(cycles) * TICKS_PER_S);
                assert!(2 * error <= u128::from(hz), "{cycles} cycles at {hz} Hz");
            }
        }
        assert_eq!(Timer { hz: 1 }.ticks(u64::MAX), Ticks::NEVER);
    }

    #[test]
    fn a_timeout_in_cycles_is_never_shorter_than_in_ticks() {
        let timer = Timer { hz: 2_300_000_001 };
        for ticks in [0, 1, 2, 4096, 1 << 40] {
            assert!(timer.ticks(timer.cycles(Ticks(ticks))) >= Ticks(ticks), "{ticks}");
        }
        assert_eq!(Timer { hz: u64::MAX }.cycles(Ticks::NEVER), u64::MAX);
    }

    #[test]
    fn the_cost_of_the_timer_is_subtracted_and_never_goes_below_zero() {
        let timer = Timer { hz: 1_000_000_000 };
        let sample = timer.sample(&stamps(81, 152), EMPTY);
        assert_eq!((sample.issue, sample.delivered), (Ticks::whole_ns(1), Ticks::whole_ns(2)));
        for (issued, delivered) in [(80, 150), (79, 149), (0, 0)] {
            assert_eq!(timer.sample(&stamps(issued, delivered), EMPTY), Sample::default());
        }
        assert_eq!(timer.cost(EMPTY), Ticks::whole_ns(80));
    }

    #[test]
    fn nothing_is_delivered_before_it_is_issued() {
        let sample = Timer { hz: 1_000_000_000 }.sample(&stamps(180, 200), EMPTY);
        assert_eq!((sample.issue, sample.delivered), (Ticks::whole_ns(100), Ticks::whole_ns(100)));
    }

    #[test]
    fn a_told_rate_is_taken_up_to_200_in_a_million_off_and_no_further() {
        assert_eq!(agreed(None, 2_000_000_000), 2_000_000_000);
        assert_eq!(agreed(Some(2_000_400_000), 2_000_000_000), 2_000_400_000);
        assert_eq!(agreed(Some(2_000_400_001), 2_000_000_000), 2_000_000_000);
        assert_eq!(agreed(Some(1_999_600_000), 2_000_000_000), 1_999_600_000);
        assert_eq!(agreed(Some(0), 2_000_000_000), 2_000_000_000);
    }

    #[test]
    fn a_calibrated_second_is_a_second_by_the_system_clock() {
        let timer = Timer::checked(None);
        let (first, first_cycles) = reading();
        std::thread::sleep(Duration::from_millis(50));
        let (last, last_cycles) = reading();
        let by_clock = last.duration_since(first).as_secs_f64() * 1e9;
        let by_counter = timer.ticks(last_cycles - first_cycles).as_ns();
        // Two clocks on a busy machine, not a claim of speed: 1 in 100 would still show a wrong unit or factor.
        assert!((by_counter / by_clock - 1.0).abs() < 0.01, "{by_counter} ns by the counter, {by_clock} by the clock");
    }
}
