//! Data rates.

use crate::Ticks;
use std::fmt;
use std::str::FromStr;

/// A data rate in bytes per second. Displayed in GB/s, where GB is 10^9 bytes.
///
/// ```
/// use lanemark_units::{Rate, Ticks};
/// let rate = Rate::over(64, Ticks::whole_ns(16)).unwrap();
/// assert_eq!(rate.bytes_per_s(), 4e9);
/// assert_eq!(rate.to_string(), "4.000 GB/s");
/// ```
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Rate(f64);

impl Rate {
    /// The rate `bytes_per_s`; `None` if it is negative or not finite.
    #[must_use]
    pub fn from_bytes_per_s(bytes_per_s: f64) -> Option<Rate> {
        (bytes_per_s.is_finite() && bytes_per_s >= 0.0).then_some(Rate(bytes_per_s))
    }

    /// The rate of `bytes` in `span`; `None` if the span is zero.
    #[must_use]
    pub fn over(bytes: u64, span: Ticks) -> Option<Rate> {
        (span > Ticks::ZERO).then(|| Rate(bytes as f64 * 1e9 / span.as_ns()))
    }

    /// The rate in bytes per second.
    #[must_use]
    pub const fn bytes_per_s(self) -> f64 {
        self.0
    }
}

/// Units of rates with their bytes per second; the longest spelling is first, so that `b/s` of `GB/s` is not taken.
const UNITS: [(&str, f64); 12] = [
    ("gib/s", 1_073_741_824.0),
    ("mib/s", 1_048_576.0),
    ("kib/s", 1024.0),
    ("tbit/s", 1e12 / 8.0),
    ("gbit/s", 1e9 / 8.0),
    ("mbit/s", 1e6 / 8.0),
    ("kbit/s", 1e3 / 8.0),
    ("tb/s", 1e12),
    ("gb/s", 1e9),
    ("mb/s", 1e6),
    ("kb/s", 1e3),
    ("b/s", 1.0),
];

/// A text that is no rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a rate: write a number and a unit, such as 12GB/s, 800MB/s, 1.5GiB/s or 100Gbit/s")]
pub struct NotARate(String);

impl FromStr for Rate {
    type Err = NotARate;

    /// Reads a positive number with one of the units B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s and kbit/s to
    /// Tbit/s, in any case.
    ///
    /// ```
    /// use lanemark_units::Rate;
    /// let rate = |text: &str| text.parse::<Rate>().unwrap().bytes_per_s();
    /// assert_eq!([rate("12GB/s"), rate("1.5 MiB/s"), rate("100Gbit/s")], [12e9, 1_572_864.0, 12.5e9]);
    /// assert!("12".parse::<Rate>().is_err() && "-1GB/s".parse::<Rate>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Rate, NotARate> {
        let lower = text.trim().to_ascii_lowercase();
        let found = UNITS.iter().find_map(|(unit, factor)| Some((lower.strip_suffix(unit)?, *factor)));
        let rate = found.and_then(|(number, factor)| Some(number.trim().parse::<f64>().ok()? * factor));
        rate.filter(|rate| *rate > 0.0).and_then(Rate::from_bytes_per_s).ok_or_else(|| NotARate(text.to_owned()))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} GB/s", self.0 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_over_zero_time_is_none() {
        assert_eq!(Rate::over(1, Ticks::ZERO), None);
        assert!(Rate::over(0, Ticks(1)).is_some());
    }

    #[test]
    fn a_rate_needs_a_positive_number_and_a_unit() {
        for bad in ["", "GB/s", "12", "0GB/s", "-1GB/s", "nanGB/s", "infGB/s", "12 GB", "1e400GB/s"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
        assert_eq!("64gBIT/s".parse::<Rate>().unwrap().bytes_per_s(), 8e9);
        assert_eq!("2KiB/s".parse::<Rate>().unwrap().bytes_per_s(), 2048.0);
    }

    #[test]
    fn negative_and_non_finite_rates_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Rate::from_bytes_per_s(bad), None);
        }
    }
}
