//! Numbers of a formula: one at a time, or a block of them, for which the formula is computed at once.

use crate::bound::Bound;
use std::ops::{Add, Div, Mul, Sub};

/// A number or a block of numbers. Comparisons choose between results instead of branching, so that a block has one
/// result for each of its numbers.
pub(crate) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The bound of each number.
    type Bounds: Copy;

    /// This number everywhere.
    fn all(number: f64) -> Self;

    /// This bound everywhere.
    fn bounds(bound: Bound) -> Self::Bounds;

    /// `yes` where `self` is above `other`, and `no` elsewhere.
    fn if_above(self, other: Self, yes: Self, no: Self) -> Self;

    /// As [`if_above`](Number::if_above), for bounds.
    fn bound_if_above(self, other: Self, yes: Self::Bounds, no: Self::Bounds) -> Self::Bounds;

    /// `yes` where two bounds are the same, and `no` elsewhere.
    fn if_same(one: Self::Bounds, other: Self::Bounds, yes: Self, no: Self) -> Self;

    /// The largest whole number up to `self`, from 0 to 2^51.
    fn floor(self) -> Self;

    /// A whole number everywhere.
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

/// Numbers of a block: as many as fill a line of the cache.
pub(crate) const LANES: usize = 8;

/// A block of numbers, each of another prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block(pub(crate) [f64; LANES]);

impl Block {
    #[inline]
    fn each(self, other: Block, of: impl Fn(f64, f64) -> f64) -> Block {
        Block(std::array::from_fn(|lane| of(self.0[lane], other.0[lane])))
    }
}

impl Add for Block {
    type Output = Block;
    #[inline]
    fn add(self, other: Block) -> Block {
        self.each(other, |one, other| one + other)
    }
}

impl Sub for Block {
    type Output = Block;
    #[inline]
    fn sub(self, other: Block) -> Block {
        self.each(other, |one, other| one - other)
    }
}

impl Mul for Block {
    type Output = Block;
    #[inline]
    fn mul(self, other: Block) -> Block {
        self.each(other, |one, other| one * other)
    }
}

impl Div for Block {
    type Output = Block;
    #[inline]
    fn div(self, other: Block) -> Block {
        self.each(other, |one, other| one / other)
    }
}

impl Number for Block {
    /// Places in [`Bound::ALL`], as numbers.
    type Bounds = Block;

    #[inline]
    fn all(number: f64) -> Block {
        Block([number; LANES])
    }

    #[inline]
    fn bounds(bound: Bound) -> Block {
        Block([f64::from(bound as u8); LANES])
    }

    #[inline]
    fn if_above(self, other: Block, yes: Block, no: Block) -> Block {
        Block(std::array::from_fn(|lane| if self.0[lane] > other.0[lane] { yes.0[lane] } else { no.0[lane] }))
    }

    #[inline]
    fn bound_if_above(self, other: Block, yes: Block, no: Block) -> Block {
        self.if_above(other, yes, no)
    }

    #[inline]
    fn if_same(one: Block, other: Block, yes: Block, no: Block) -> Block {
        Block(std::array::from_fn(|lane| if one.0[lane] == other.0[lane] { yes.0[lane] } else { no.0[lane] }))
    }

    #[inline]
    fn floor(self) -> Block {
        Block(self.0.map(floor))
    }
}

/// The largest whole number up to `number`, from 0 to 2^51, without a call: baseline x86-64 has no instruction for it.
#[inline]
fn floor(number: f64) -> f64 {
    // Numbers from 2^52 to 2^53 are whole, so the sum is rounded to a whole number.
    const WHOLE: f64 = (1_u64 << 52) as f64;
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

    #[test]
    fn each_number_of_a_block_is_compared_for_itself() {
        let one = Block([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let (yes, no) = (Block::all(1.0), Block::all(0.0));
        let above = one.if_above(Block::all(4.0), yes, no);
        assert_eq!(above.0, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let same = Block::if_same(one, Block::bounds(Bound::ALL[3]), yes, no);
        assert_eq!(same.0, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
