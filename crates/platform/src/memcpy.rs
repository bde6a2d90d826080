//! Stores of `memcpy`, by variant.
//!
//! They matter on a BAR, where each store may become a packet. Implementations differ, so that a variant names the
//! library version.

/// A variant of `memcpy`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Variant {
    /// glibc 2.20 to 2.23 on processors with fast unaligned AVX loads (`memcpy-avx-unaligned`).
    ///
    /// | bytes | stores |
    /// | --- | --- |
    /// | 16-31, 32-63, 64-127, 128-255 | the first half and the last half (as if twice as many bytes), 16 B each |
    /// | 256-2047 | 32 B each from the next 32 B boundary, four a turn; then the first 32 B; then the last 128 B, 16 B each |
    /// | 2048 and more | `rep movsb` |
    ///
    /// Source: `sysdeps/x86_64/multiarch/memcpy-avx-unaligned.S` of those versions.
    Glibc220AvxUnaligned,
    /// glibc 2.24 to 2.32 with AVX2 and enhanced `rep movsb` (`memmove-avx-unaligned-erms`), below the
    /// non-temporal threshold.
    ///
    /// | bytes | stores |
    /// | --- | --- |
    /// | 32-64, 65-128, 129-256 | 2, 4, 8 of 32 B, half from the start and half from the end |
    /// | 257-4095 | 32 B each from the next 32 B boundary, four a turn; then the last 128 B; then the first 32 B |
    /// | 4096 and more | `rep movsb` |
    ///
    /// Source: `sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S` of those versions.
    Glibc224AvxErms,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 2] = [Variant::Glibc220AvxUnaligned, Variant::Glibc224AvxErms];
    /// Names of the variants, in the same order.
    pub const NAMES: &'static [&'static str] = &["glibc-2.20-avx-unaligned", "glibc-2.24-avx-unaligned-erms"];

    /// Name in platform files and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Variant::NAMES[self as usize]
    }

    /// The variant of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Variant> {
        Variant::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// The stores of a copy of `len` bytes to an address `misaligned_bytes` after a 64 B boundary, in order. `None`
    /// if the copy uses `rep movsb`, whose stores depend on the core ([`Pieces::of`]).
    ///
    /// ```
    /// use lanemark_platform::memcpy::Variant;
    /// let count = |len| Variant::Glibc220AvxUnaligned.stores(len, 0).map(Iterator::count);
    /// assert_eq!([64, 128, 256, 512, 1024].map(count), [Some(8), Some(16), Some(13), Some(21), Some(37)]);
    /// assert_eq!(count(2048), None);
    /// ```
    #[must_use]
    pub fn stores(self, len: u64, misaligned_bytes: u64) -> Option<Pieces> {
        let to_boundary = 32 - misaligned_bytes % 32;
        match self {
            Variant::Glibc220AvxUnaligned => match len {
                0..16 => Some(Pieces::ends(len, widest_below(len), 1)),
                16..256 => Some(Pieces::ends(len, 16, power_of_two_up_to(len / 16))),
                256..2048 => {
                    let turns = (len - to_boundary).div_ceil(128) - 1;
                    Some(Pieces::new([(to_boundary, turns * 4, 32), (0, 1, 32), (len - 128, 8, 16)]))
                }
                _ => None,
            },
            Variant::Glibc224AvxErms => match len {
                0..16 => Some(Pieces::ends(len, widest_below(len), 1)),
                16..32 => Some(Pieces::ends(len, 16, 1)),
                32..=64 => Some(Pieces::ends(len, 32, 1)),
                65..=128 => Some(Pieces::ends(len, 32, 2)),
                129..=256 => Some(Pieces::ends(len, 32, 4)),
                257..4096 => {
                    let turns = (len - to_boundary).div_ceil(128) - 1;
                    Some(Pieces::new([(to_boundary, turns * 4, 32), (len - 128, 4, 32), (0, 1, 32)]))
                }
                _ => None,
            },
        }
    }
}

/// The largest of 1, 2, 4, 8 B that is not above `len`.
const fn widest_below(len: u64) -> u64 {
    match len {
        0..2 => 1,
        2..4 => 2,
        4..8 => 4,
        _ => 8,
    }
}

/// The largest power of two not above `number`, which is at least 1.
const fn power_of_two_up_to(number: u64) -> u64 {
    1 << number.ilog2()
}

/// One store (or load): its offset in the copy and its width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Offset from the start.
    pub offset: u64,
    /// Width.
    pub bytes: u64,
}

/// The accesses of a copy or a stream, in order, without allocation.
#[derive(Clone, Debug)]
pub struct Pieces {
    runs: [(u64, u64, u64); 8],
    run: usize,
    done: u64,
}

impl Pieces {
    fn new<const N: usize>(given: [(u64, u64, u64); N]) -> Pieces {
        let mut runs = [(0, 0, 0); 8];
        runs[..N].copy_from_slice(&given);
        Pieces { runs, run: 0, done: 0 }
    }

    /// `count` accesses of `width` from the start, and as many that end at `len`; only the first access if it covers
    /// everything.
    fn ends(len: u64, width: u64, count: u64) -> Pieces {
        if len == 0 {
            return Pieces::new([]);
        }
        if len == width && count == 1 && width < 16 {
            return Pieces::new([(0, 1, width)]);
        }
        Pieces::new([(0, count, width), (len - count * width, count, width)])
    }

    /// Accesses of `width` bytes (a power of two up to 64) over `len` bytes; a remainder is accessed with narrower
    /// ones.
    ///
    /// ```
    /// use lanemark_platform::memcpy::Pieces;
    /// assert_eq!(Pieces::of(71, 32).map(|piece| piece.bytes).collect::<Vec<_>>(), [32, 32, 4, 2, 1]);
    /// ```
    #[must_use]
    pub fn of(len: u64, width: u64) -> Pieces {
        let mut runs = [(0, 0, 0); 8];
        let (mut at, mut width) = (0, width.clamp(1, 64));
        for run in &mut runs {
            let count = (len - at) / width;
            *run = (at, count, width);
            at += count * width;
            width = (width / 2).max(1);
        }
        Pieces { runs, run: 0, done: 0 }
    }

    /// Number of remaining accesses.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.runs[self.run.min(8)..].iter().map(|run| run.1).sum::<u64>() - self.done
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            let (start, count, width) = *self.runs.get(self.run)?;
            if self.done < count {
                let offset = start + self.done * width;
                self.done += 1;
                return Some(Piece { offset, bytes: width });
            }
            self.run += 1;
            self.done = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(stores: Pieces, len: u64) -> bool {
        let mut written = vec![false; len as usize];
        for piece in stores {
            written[piece.offset as usize..(piece.offset + piece.bytes) as usize].fill(true);
        }
        written.into_iter().all(|byte| byte)
    }

    #[test]
    fn every_variant_writes_every_byte_exactly() {
        for variant in Variant::ALL {
            for misaligned in [0, 1, 31, 32, 33, 63] {
                for len in (0..2100).chain(4000..4200) {
                    if let Some(stores) = variant.stores(len, misaligned) {
                        assert!(covers(stores, len), "{variant:?} {len} B at {misaligned}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_unrolled_loop_of_a_large_copy_is_aligned() {
        let stores = Variant::Glibc220AvxUnaligned.stores(1000, 20).unwrap();
        assert!(stores.take(4).all(|piece| (piece.offset + 20) % 32 == 0 && piece.bytes == 32));
    }

    #[test]
    fn the_limits_of_the_2_20_variant_are_tight() {
        let count = |len| Variant::Glibc220AvxUnaligned.stores(len, 0).map(Iterator::count);
        assert_eq!([count(31), count(32), count(63), count(64)], [Some(2), Some(4), Some(4), Some(8)]);
        assert_eq!([count(127), count(128), count(255), count(256)], [Some(8), Some(16), Some(16), Some(13)]);
        assert_eq!([count(2047), count(2048)], [Some(69), None]);
    }

    #[test]
    fn streams_use_one_width_and_narrower_accesses_for_the_remainder() {
        for width in [1, 2, 4, 8, 16, 32, 64] {
            for len in [0, 1, 63, 64, 65, 127, 4096 + 63] {
                assert!(covers(Pieces::of(len, width), len), "{len} by {width}");
                assert_eq!(Pieces::of(len, width).map(|piece| piece.bytes).sum::<u64>(), len);
                assert_eq!(Pieces::of(len, width).left(), Pieces::of(len, width).count() as u64);
            }
        }
    }
}
