//! Time: whole ticks of 2^-12 ns.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A span of time, or an instant counted from the start of a run, in ticks of 2^-12 ns (0.244 ps).
///
/// One DW (4 B) on every PCIe Gen1-5 link of 1, 2, 4, 8, 16 or 32 lanes is a whole number of ticks,
/// so periods and ceilings carry no rounding. A `u64` of ticks lasts 52 days.
///
/// ```
/// use lanemark_units::Ticks;
/// // One DW on Gen3 x1: 32 bit x 130/128 / 8 GT/s = 4.0625 ns.
/// assert_eq!(Ticks::from_ns(4.0625), Ok(Ticks(16_640)));
/// assert_eq!(Ticks(16_640).as_ns(), 4.0625);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(pub u64);

/// A number of nanoseconds that no [`Ticks`] can hold.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{ns} ns is not a span of time: it must be 0 or more and below 4.5e15 ns (52 days)")]
pub struct TicksError {
    /// What was asked for, in nanoseconds.
    pub ns: f64,
}

impl Ticks {
    /// Ticks in one nanosecond.
    pub const PER_NS: u64 = 1 << 12;
    /// No time at all.
    pub const ZERO: Ticks = Ticks(0);
    /// Later than anything that happens.
    pub const NEVER: Ticks = Ticks(u64::MAX);

    /// The nearest whole tick to `ns` nanoseconds.
    ///
    /// # Errors
    /// [`TicksError`] if `ns` is negative, not a number, or 52 days and more.
    pub fn from_ns(ns: f64) -> Result<Ticks, TicksError> {
        let ticks = (ns * Self::PER_NS as f64).round();
        if ticks >= 0.0 && ticks < u64::MAX as f64 { Ok(Ticks(ticks as u64)) } else { Err(TicksError { ns }) }
    }

    /// Whole nanoseconds, exactly.
    #[must_use]
    pub const fn whole_ns(ns: u64) -> Ticks {
        Ticks(ns * Self::PER_NS)
    }

    /// Nanoseconds, for printing.
    #[must_use]
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / Self::PER_NS as f64
    }

    /// The span from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.as_ns())
    }
}

impl Add for Ticks {
    type Output = Ticks;
    fn add(self, other: Ticks) -> Ticks {
        Ticks(self.0 + other.0)
    }
}

impl AddAssign for Ticks {
    fn add_assign(&mut self, other: Ticks) {
        self.0 += other.0;
    }
}

impl Sub for Ticks {
    type Output = Ticks;
    fn sub(self, other: Ticks) -> Ticks {
        Ticks(self.0 - other.0)
    }
}

impl SubAssign for Ticks {
    fn sub_assign(&mut self, other: Ticks) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Ticks {
    type Output = Ticks;
    fn mul(self, times: u64) -> Ticks {
        Ticks(self.0 * times)
    }
}

impl Div<u64> for Ticks {
    type Output = Ticks;
    fn div(self, parts: u64) -> Ticks {
        Ticks(self.0 / parts)
    }
}

impl Sum for Ticks {
    fn sum<I: Iterator<Item = Ticks>>(spans: I) -> Ticks {
        spans.fold(Ticks::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_round_to_the_nearest_tick() {
        assert_eq!(Ticks::from_ns(0.0), Ok(Ticks(0)));
        assert_eq!(Ticks::from_ns(0.49 / 4096.0), Ok(Ticks(0)));
        assert_eq!(Ticks::from_ns(0.51 / 4096.0), Ok(Ticks(1)));
        assert_eq!(Ticks::whole_ns(3), Ticks::from_ns(3.0).unwrap());
    }

    #[test]
    fn negative_infinite_and_nan_spans_are_refused() {
        for ns in [-0.001, f64::INFINITY, f64::NAN, 4.6e15] {
            assert!(Ticks::from_ns(ns).is_err(), "{ns}");
        }
        assert!(Ticks::from_ns(4.5e15).is_ok());
    }

    #[test]
    fn since_never_goes_below_zero() {
        assert_eq!(Ticks(5).since(Ticks(3)), Ticks(2));
        assert_eq!(Ticks(3).since(Ticks(5)), Ticks::ZERO);
    }
}
