//! Numbers of a formula: known ones, with which it is computed, or symbols, with which it is recorded.

use crate::bound::Bound;
use std::ops::{Add, Div, Mul, Sub};

/// A number or the symbol of one. Comparisons choose between results instead of branching, so that a recorded formula
/// holds for all numbers.
pub(crate) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// A bound, or the symbol of one.
    type Bounds: Copy;

    /// A known number.
    fn all(number: f64) -> Self;

    /// A known bound.
    fn bounds(bound: Bound) -> Self::Bounds;

    /// `yes` if `self` is above `other`, and `no` otherwise.
    fn if_above(self, other: Self, yes: Self, no: Self) -> Self;

    /// As [`if_above`](Number::if_above), for bounds.
    fn bound_if_above(self, other: Self, yes: Self::Bounds, no: Self::Bounds) -> Self::Bounds;

    /// `yes` if two bounds are the same, and `no` otherwise.
    fn if_same(one: Self::Bounds, other: Self::Bounds, yes: Self, no: Self) -> Self;

    /// The largest whole number up to `self`, from 0 to 2^51.
    fn floor(self) -> Self;

    /// A known whole number.
    #[inline]
    fn count(number: u64) -> Self {
        Self::all(number as f64)
    }

    #[inline]
    fn max(self, other: Self) -> Self {
        self.if_above(other, self, other)
    }

    #[inline]
    fn min(self, other: Self) -> Self {
        self.if_above(other, other, self)
    }

    /// Whole quotient and remainder of whole numbers.
    #[inline]
    fn divided(self, by: Self) -> (Self, Self) {
        let quotient = (self / by).floor();
        (quotient, self - quotient * by)
    }
}

impl Number for f64 {
    type Bounds = Bound;

    fn all(number: f64) -> f64 {
        number
    }

    fn bounds(bound: Bound) -> Bound {
        bound
    }

    fn if_above(self, other: f64, yes: f64, no: f64) -> f64 {
        if self > other { yes } else { no }
    }

    fn bound_if_above(self, other: f64, yes: Bound, no: Bound) -> Bound {
        if self > other { yes } else { no }
    }

    fn if_same(one: Bound, other: Bound, yes: f64, no: f64) -> f64 {
        if one == other { yes } else { no }
    }

    fn floor(self) -> f64 {
        floor(self)
    }
}

/// Numbers from here to 2^53 are whole.
pub(crate) const WHOLE: f64 = (1_u64 << 52) as f64;

/// The largest whole number up to `number`, from 0 to 2^51, without a call: baseline x86-64 has no instruction for it.
#[inline]
pub(crate) fn floor(number: f64) -> f64 {
    // The sum is rounded to a whole number.
    let rounded = (number + WHOLE) - WHOLE;
    if rounded > number { rounded - 1.0 } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_down_from_zero_to_two_to_the_51() {
        let largest = (1_u64 << 51) as f64;
        for number in [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 1e9 + 0.5, 1e9 + 0.999_999, largest - 0.5, largest] {
            assert_eq!(floor(number), number.floor(), "{number}");
        }
        let (whole, rest) = 41.0_f64.divided(7.0);
        assert_eq!((whole, rest), (5.0, 6.0));
    }
}
