//! Conversion of time-stamp counter cycles to ticks, and the cost of the timestamps.

use super::sample::{Limits, Stamps, stamp_before, timed};
use lanemark_machine::Sample;
use lanemark_units::Ticks;
use std::time::{Duration, Instant};

/// Time-stamp counter of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timer {
    hz: u64,
}

/// Median duration of an empty sample, in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct EmptySample {
    /// From the first timestamp to the second.
    issue: u64,
    /// From the first timestamp to the third, with an empty drain in between.
    delivered: u64,
}

const TICKS_PER_S: u128 = 1_000_000_000 * Ticks::PER_NS as u128;

impl Timer {
    /// Permitted difference between the reported rate of the counter and the rate by the system clock: 200 ppm. NTP adjusts
    /// the clock by up to 500 ppm, usually far less, and reading it costs about 10 ppm of 20 ms.
    const AGREEMENT_PER_MILLION: u64 = 200;

    /// Creates a timer with the rate `reported` in Hz if the system clock agrees, otherwise with the rate by the clock: a
    /// virtual machine may have moved to a processor with another rate.
    pub(crate) fn checked(reported: Option<u64>) -> Timer {
        Timer { hz: agreed(reported, calibrated_hz(Duration::from_millis(20))) }
    }

    /// Converts cycles to the nearest tick.
    pub(crate) fn ticks(self, cycles: u64) -> Ticks {
        let hz = u128::from(self.hz);
        let ticks = (u128::from(cycles) * TICKS_PER_S + hz / 2) / hz;
        Ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }

    /// Smallest number of cycles that lasts at least `span`.
    pub(crate) fn cycles(self, span: Ticks) -> u64 {
        let cycles = (u128::from(span.0) * u128::from(self.hz)).div_ceil(TICKS_PER_S);
        u64::try_from(cycles).unwrap_or(u64::MAX)
    }

    /// Both times of a sample without the cost of the timestamps; neither is negative, and `delivered` is not before
    /// `issue`.
    pub(crate) fn sample(self, stamps: &Stamps, empty: EmptySample) -> Sample {
        let issue = self.ticks(stamps.issued.saturating_sub(stamps.start).saturating_sub(empty.issue));
        let delivered = self.ticks(stamps.delivered.saturating_sub(stamps.start).saturating_sub(empty.delivered));
        Sample { issue, delivered: delivered.max(issue) }
    }

    /// Duration of an empty sample from its first timestamp to its second.
    pub(crate) fn cost(self, empty: EmptySample) -> Ticks {
        self.ticks(empty.issue)
    }
}

impl EmptySample {
    const TRIES: usize = 1001;

    /// Takes empty samples and returns the median of each time.
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

fn agreed(reported: Option<u64>, calibrated: u64) -> u64 {
    let near = |reported: &u64| {
        u128::from(reported.abs_diff(calibrated)) * 1_000_000
            <= u128::from(calibrated) * u128::from(Timer::AGREEMENT_PER_MILLION)
    };
    reported.filter(near).unwrap_or(calibrated)
}

/// Measures the rate in Hz by the system's monotonic clock; at least 1.
fn calibrated_hz(window: Duration) -> u64 {
    let (first, first_cycles) = reading();
    std::thread::sleep(window);
    let (last, last_cycles) = reading();
    let ns = last.duration_since(first).as_nanos().max(1);
    let cycles = u128::from(last_cycles.saturating_sub(first_cycles));
    u64::try_from(cycles * 1_000_000_000 / ns).unwrap_or(u64::MAX).max(1)
}

/// Reads clock and counter at the same instant: the closest of several pairs.
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
    fn cycles_are_rounded_to_the_nearest_tick_and_a_second_is_exact() {
        for hz in [1_000_000, 2_294_608_123, 2_300_000_000, 5_999_999_999] {
            let timer = Timer { hz };
            assert_eq!(timer.ticks(hz), Ticks::whole_ns(1_000_000_000));
            for cycles in [0, 1, 2, 3, 1000, 123_456_789, 4_000_000_000_000] {
                // |ticks - exact| <= 1/2 in integers, without further rounding: 2 |ticks x hz - cycles x 4096e9| <= hz.
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
    fn the_timer_cost_is_subtracted_without_going_below_zero() {
        let timer = Timer { hz: 1_000_000_000 };
        let sample = timer.sample(&stamps(81, 152), EMPTY);
        assert_eq!((sample.issue, sample.delivered), (Ticks::whole_ns(1), Ticks::whole_ns(2)));
        for (issued, delivered) in [(80, 150), (79, 149), (0, 0)] {
            assert_eq!(timer.sample(&stamps(issued, delivered), EMPTY), Sample::default());
        }
        assert_eq!(timer.cost(EMPTY), Ticks::whole_ns(80));
    }

    #[test]
    fn delivered_is_never_before_issue() {
        let sample = Timer { hz: 1_000_000_000 }.sample(&stamps(180, 200), EMPTY);
        assert_eq!((sample.issue, sample.delivered), (Ticks::whole_ns(100), Ticks::whole_ns(100)));
    }

    #[test]
    fn a_reported_rate_is_accepted_up_to_200_ppm_off() {
        assert_eq!(agreed(None, 2_000_000_000), 2_000_000_000);
        assert_eq!(agreed(Some(2_000_400_000), 2_000_000_000), 2_000_400_000);
        assert_eq!(agreed(Some(2_000_400_001), 2_000_000_000), 2_000_000_000);
        assert_eq!(agreed(Some(1_999_600_000), 2_000_000_000), 1_999_600_000);
        assert_eq!(agreed(Some(0), 2_000_000_000), 2_000_000_000);
    }

    #[test]
    fn a_calibrated_second_agrees_with_the_system_clock() {
        let timer = Timer::checked(None);
        let (first, first_cycles) = reading();
        std::thread::sleep(Duration::from_millis(50));
        let (last, last_cycles) = reading();
        let by_clock = last.duration_since(first).as_secs_f64() * 1e9;
        let by_counter = timer.ticks(last_cycles - first_cycles).as_ns();
        // Two clocks on a busy machine, no claim about speed: 1 % would still reveal a wrong unit or factor.
        assert!((by_counter / by_clock - 1.0).abs() < 0.01, "{by_counter} ns by the counter, {by_clock} by the clock");
    }
}
