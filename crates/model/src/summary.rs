//! Summaries of arrays, which show whether all their values are valid.

#![expect(clippy::inline_always, reason = "only what is inlined into a function for AVX2 is compiled for it")]

use crate::number::WHOLE;
use crate::vector::{Vectorized, vectorized};
use fearless_simd::prelude::*;
use fearless_simd::{Simd, f64x8};

/// Smallest and largest number of an array, their sum, and whether one has a fraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    /// Infinity if the array is empty, or has no number.
    pub(crate) low: f64,
    /// Minus infinity if the array is empty, or has no number.
    pub(crate) high: f64,
    /// Sum of the numbers, which is not a number if one of them is not.
    pub(crate) sum: f64,
    /// Above 0 if one of them is not whole, for numbers from 0 to 2^51.
    pub(crate) fractions: f64,
}

impl Summary {
    pub(crate) fn of(values: &[f64]) -> Summary {
        vectorized(Values(values))
    }
}

struct Values<'a>(&'a [f64]);

impl Vectorized for Values<'_> {
    type Output = Summary;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Summary {
        let splat = |number| f64x8::splat(simd, number);
        let (mut low, mut high, mut sum, mut fractions) =
            (splat(f64::INFINITY), splat(f64::NEG_INFINITY), splat(0.0), splat(0.0));
        let (groups, rest) = self.0.as_chunks::<8>();
        // The last value fills the last group, which has none if there is no rest.
        let filled = rest.last().map(|last| std::array::from_fn(|lane| *rest.get(lane).unwrap_or(last)));
        for group in groups.iter().chain(&filled) {
            let values = f64x8::load_array_ref(simd, group);
            low = low.simd_gt(values).select(values, low);
            high = values.simd_gt(high).select(values, high);
            sum += values;
            let rounded = (values + splat(WHOLE)) - splat(WHOLE);
            fractions += rounded.simd_eq(values).select(splat(0.0), splat(1.0));
        }
        Summary {
            low: low.to_array().into_iter().fold(f64::INFINITY, f64::min),
            high: high.to_array().into_iter().fold(f64::NEG_INFINITY, f64::max),
            sum: sum.to_array().into_iter().sum(),
            fractions: fractions.to_array().into_iter().sum(),
        }
    }
}
