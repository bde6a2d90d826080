//! Data rates.

use crate::Ticks;
use std::fmt;

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
    fn negative_and_non_finite_rates_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Rate::from_bytes_per_s(bad), None);
        }
    }
}
