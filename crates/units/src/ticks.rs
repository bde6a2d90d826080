//! Time: whole ticks of 2^-12 ns.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A span of time, or an instant since the start of a run, in ticks of 2^-12 ns (0.244 ps).
///
/// The time of one DW (4 B) on every PCIe Gen1 to Gen5 link of 1, 2, 4, 8, 16 or 32 lanes is a whole number of ticks,
/// so computed periods and ceilings have no rounding error. A `u64` of ticks covers 52 days.
///
/// ```
/// use lanemark_units::Ticks;
/// // One DW on Gen3 x1: 32 bit x 130/128 / 8 GT/s = 4.0625 ns.
/// assert_eq!(Ticks::from_ns(4.0625), Ok(Ticks(16_640)));
/// assert_eq!(Ticks(16_640).as_ns(), 4.0625);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(pub u64);

/// A number of nanoseconds that [`Ticks`] cannot represent.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{ns} ns is not a span of time: it must be 0 or more and below 4.5e15 ns (52 days)")]
pub struct TicksError {
    /// The value, in nanoseconds.
    pub ns: f64,
}

impl Ticks {
    /// Ticks per nanosecond.
    pub const PER_NS: u64 = 1 << 12;
    /// Zero time.
    pub const ZERO: Ticks = Ticks(0);
    /// Later than any event.
    pub const NEVER: Ticks = Ticks(u64::MAX);

    /// `ns` nanoseconds, rounded to the nearest tick.
    ///
    /// # Errors
    /// [`TicksError`] if `ns` is negative, not a number, or at least 52 days.
    pub fn from_ns(ns: f64) -> Result<Ticks, TicksError> {
        let ticks = (ns * Self::PER_NS as f64).round();
        if ticks >= 0.0 && ticks < u64::MAX as f64 { Ok(Ticks(ticks as u64)) } else { Err(TicksError { ns }) }
    }

    /// `ns` nanoseconds, exactly.
    #[must_use]
    pub const fn whole_ns(ns: u64) -> Ticks {
        Ticks(ns * Self::PER_NS)
    }

    /// The time in nanoseconds, for display.
    #[must_use]
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / Self::PER_NS as f64
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(earlier.0))
    }
}

/// Prints nanoseconds with unit, and with the fewest decimals, at most four, that identify the tick: the text parses
/// back to the same time.
///
/// ```
/// use lanemark_units::Ticks;
/// assert_eq!(Ticks::from_ns(626.7080078125).unwrap().to_string(), "626.708 ns");
/// assert_eq!(Ticks::from_ns(0.1).unwrap().to_string(), "0.1 ns");
/// assert_eq!(Ticks(1).to_string(), "0.0002 ns");
/// ```
impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ticks, per_ns) = (u128::from(self.0), u128::from(Self::PER_NS));
        let nearest = |times: u128, parts: u128| (2 * times + parts) / (2 * parts);
        let (mut decimals, mut scale) = (0, 1);
        while nearest(nearest(ticks * scale, per_ns) * per_ns, scale) != ticks {
            (decimals, scale) = (decimals + 1, scale * 10);
        }
        let written = nearest(ticks * scale, per_ns);
        write!(f, "{}", written / scale)?;
        if decimals > 0 {
            write!(f, ".{:0decimals$}", written % scale)?;
        }
        f.write_str(" ns")
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
    fn every_tick_is_printed_with_at_most_four_decimals_and_parses_back() {
        let around = |ticks: u64| ticks.saturating_sub(3000)..ticks + 3000;
        for ticks in around(0).chain(around(4096 * 17_956)).chain(around(1 << 45)) {
            let text = Ticks(ticks).to_string();
            let number = text.strip_suffix(" ns").unwrap();
            assert_eq!(Ticks::from_ns(number.parse().unwrap()), Ok(Ticks(ticks)), "{text}");
            assert!(number.split_once('.').is_none_or(|(_, decimals)| (1..=4).contains(&decimals.len())), "{text}");
        }
        for (ticks, text) in [(0, "0 ns"), (4096, "1 ns"), (4095, "0.9998 ns"), (u64::MAX, "4503599627370495.9998 ns")]
        {
            assert_eq!(Ticks(ticks).to_string(), text);
        }
    }

    #[test]
    fn times_with_three_decimals_are_printed_as_given() {
        for thousandths in 0..20_000_u32 {
            let given = f64::from(thousandths) / 1000.0;
            assert_eq!(Ticks::from_ns(given).unwrap().to_string(), format!("{given} ns"));
        }
    }

    #[test]
    fn since_saturates_at_zero() {
        assert_eq!(Ticks(5).since(Ticks(3)), Ticks(2));
        assert_eq!(Ticks(3).since(Ticks(5)), Ticks::ZERO);
    }
}
