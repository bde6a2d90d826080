//! Vectors: the widest that this processor has, up to AVX2.

#![allow(clippy::inline_always, reason = "only what is inlined into a function for AVX2 is compiled for it")]

use fearless_simd::{Level, Simd};

/// Work on vectors, compiled for each of their widths.
pub(crate) trait Vectorized {
    type Output;

    /// Does the work. Inlined into a function for the instructions of `simd`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Does `work` with AVX2 if the processor has it, which computes four numbers per instruction instead of the two of
/// baseline x86-64.
///
/// The compiler does not fuse multiplications and additions, so that the results are the same.
pub(crate) fn vectorized<W: Vectorized>(work: W) -> W::Output {
    let level = Level::new();
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = level.as_avx2() {
        return vectorized_for(avx2, work);
    }
    on_baseline(level, work)
}

/// Does `work` with what every processor of this architecture has.
pub(crate) fn on_baseline<W: Vectorized>(level: Level, work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(sse2) = level.as_sse2() {
        return vectorized_for(sse2, work);
    }
    fearless_simd::dispatch!(level, simd => work.run(simd))
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn vectorized_for<S: Simd, W: Vectorized>(simd: S, work: W) -> W::Output {
    simd.vectorize(
        #[inline(always)]
        || work.run(simd),
    )
}
