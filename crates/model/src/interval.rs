//! Intervals: values that a number of a recorded formula can have.

use crate::number::Number;
use crate::operation::{Binary, Comparison};

/// An interval of finite numbers. A result is rounded in the direction of its bounds, because rounding is monotone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Whether the number may be a zero with a minus sign.
    pub(crate) has_minus_zero: bool,
}

impl Interval {
    /// The interval from `low` to `high`, with zeros of both signs; `None` for other than finite bounds.
    pub(crate) fn new(low: f64, high: f64) -> Option<Interval> {
        Interval::signed(low, high, true)
    }

    /// The interval of a single number; `None` unless it is finite.
    pub(crate) fn of(number: f64) -> Option<Interval> {
        Interval::signed(number, number, number.is_sign_negative())
    }

    fn signed(low: f64, high: f64, has_minus_zero: bool) -> Option<Interval> {
        let has_minus_zero = has_minus_zero && low <= 0.0 && high >= 0.0;
        (low.is_finite() && high.is_finite()).then_some(Interval { low, high, has_minus_zero })
    }

    /// Whether no number is below zero or has a minus sign.
    fn is_positive(&self) -> bool {
        self.low >= 0.0 && !self.has_minus_zero
    }

    /// The interval of results of an operation.
    pub(crate) fn of_binary(binary: Binary, one: &Interval, other: &Interval) -> Option<Interval> {
        let corners = |of: fn(f64, f64) -> f64| {
            let all =
                [of(one.low, other.low), of(one.low, other.high), of(one.high, other.low), of(one.high, other.high)];
            (all.into_iter().fold(f64::INFINITY, f64::min), all.into_iter().fold(f64::NEG_INFINITY, f64::max))
        };
        let signs = !one.is_positive() || !other.is_positive();
        let ((low, high), has_minus_zero) = match binary {
            Binary::Add => ((one.low + other.low, one.high + other.high), one.has_minus_zero && other.has_minus_zero),
            Binary::Sub => ((one.low - other.high, one.high - other.low), one.has_minus_zero),
            Binary::Mul => (corners(|one, other| one * other), signs),
            Binary::Div if other.low > 0.0 => (corners(|one, other| one / other), signs),
            Binary::Quotient if other.low > 0.0 => {
                return Interval::of_binary(Binary::Div, one, other)?.floor();
            }
            Binary::Div | Binary::Quotient => return None,
            Binary::Max => {
                ((one.low.max(other.low), one.high.max(other.high)), one.has_minus_zero || other.has_minus_zero)
            }
            Binary::Min => {
                ((one.low.min(other.low), one.high.min(other.high)), one.has_minus_zero || other.has_minus_zero)
            }
        };
        Interval::signed(low, high, has_minus_zero)
    }

    /// The interval of numbers that are rounded down.
    pub(crate) fn floor(&self) -> Option<Interval> {
        const MOST: f64 = (1_u64 << 51) as f64;
        // Rounding down adds a number, so that a zero has no minus sign.
        let is_exact = self.low >= 0.0 && self.high <= MOST;
        if is_exact { Interval::signed(Number::floor(self.low), Number::floor(self.high), false) } else { None }
    }

    /// The interval of remainders of whole numbers, `one` by `other`.
    pub(crate) fn remainder(one: &Interval, other: &Interval) -> Option<Interval> {
        // Up to 2^51 the quotient is not rounded up to a whole number.
        let is_exact = one.floor().is_some() && other.low >= 1.0;
        if is_exact { Interval::signed(0.0, one.high.min(other.high - 1.0), false) } else { None }
    }

    /// The interval of numbers of either.
    pub(crate) fn or(&self, other: &Interval) -> Option<Interval> {
        let has_minus_zero = self.has_minus_zero || other.has_minus_zero;
        Interval::signed(self.low.min(other.low), self.high.max(other.high), has_minus_zero)
    }

    /// Whether a comparison holds for all numbers of two intervals, or for none; `None` if it depends.
    pub(crate) fn decides(comparison: Comparison, one: &Interval, other: &Interval) -> Option<bool> {
        match comparison {
            Comparison::Above if one.low > other.high => Some(true),
            Comparison::Above if one.high <= other.low => Some(false),
            Comparison::Same if one.low > other.high || one.high < other.low => Some(false),
            Comparison::Above | Comparison::Same => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: f64, high: f64) -> Interval {
        Interval::new(low, high).unwrap()
    }

    #[test]
    fn results_of_numbers_in_intervals_are_in_the_interval_of_the_result() {
        let numbers = [-3.5, -1.0, -0.0, 0.0, 0.25, 1.0, 7.0, 1e9];
        let binaries = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Quotient, Binary::Max, Binary::Min];
        let intervals = || {
            let pairs = numbers.iter().flat_map(|low| numbers.iter().map(move |high| (*low, *high)));
            pairs.filter(|(low, high)| low <= high).map(|(low, high)| interval(low, high)).collect::<Vec<_>>()
        };
        let within = |number: f64, interval: &Interval| {
            let is_minus_zero = number == 0.0 && number.is_sign_negative();
            (interval.low..=interval.high).contains(&number) && (interval.has_minus_zero || !is_minus_zero)
        };
        let mut compared = 0;
        for (one, other) in intervals().iter().flat_map(|one| intervals().into_iter().map(move |other| (*one, other))) {
            for first in numbers.into_iter().filter(|number| within(*number, &one)) {
                for second in numbers.into_iter().filter(|number| within(*number, &other)) {
                    for binary in binaries {
                        let Some(result) = Interval::of_binary(binary, &one, &other) else { continue };
                        let number = binary.of(first, second);
                        assert!(within(number, &result), "{binary:?} of {first} and {second}: {number}, {result:?}");
                        compared += 1;
                    }
                    for comparison in [Comparison::Above, Comparison::Same] {
                        if let Some(holds) = Interval::decides(comparison, &one, &other) {
                            assert_eq!(comparison.holds(first, second), holds, "{comparison:?}: {first}, {second}");
                        }
                    }
                }
            }
        }
        assert!(compared > 10_000, "{compared}");
    }

    #[test]
    fn remainders_of_whole_numbers_are_below_the_divisor() {
        let all = Interval::remainder(&interval(0.0, 100.0), &interval(1.0, 9.0)).unwrap();
        assert_eq!((all.low, all.high, all.has_minus_zero), (0.0, 8.0, false));
        for (one, by) in (0..=100).flat_map(|one| (1..=9).map(move |by| (f64::from(one), f64::from(by)))) {
            let (_, rest) = one.divided(by);
            assert!((all.low..=all.high).contains(&rest) && rest.is_sign_positive(), "{one} by {by}: {rest}");
        }
        assert_eq!(Interval::remainder(&interval(0.0, 100.0), &interval(0.0, 9.0)), None, "by zero");
        assert_eq!(Interval::remainder(&interval(-1.0, 100.0), &interval(1.0, 9.0)), None, "of less than zero");
    }
}
