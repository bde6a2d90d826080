//! Byte enables of requests.
//!
//! A request covers whole DWs; First DW BE and Last DW BE enable the bytes of the first and the last one. Bit 0 is the
//! byte at the lowest address.
//!
//! Source: PCI Express Base Specification 5.0, section 2.2.5 (enables) and section 2.3.1.1 (Byte Count and Lower
//! Address of completions).

use std::iter::FusedIterator;
use std::ops::Range;

/// First DW BE, Last DW BE and Length (in DW) of a request for `len` bytes from `address`.
///
/// `len` 0 gives the zero-length request: one DW with no byte enabled. Length is correct up to 262 137 bytes, far above
/// the 4096 of a TLP, and saturates at 65 535 beyond.
///
/// ```
/// use lanemark_wire::byte_enable::contiguous;
/// assert_eq!(contiguous(0x1000, 64), (0b1111, 0b1111, 16));
/// assert_eq!(contiguous(0x1003, 6), (0b1000, 0b0001, 3));
/// assert_eq!(contiguous(0x1001, 2), (0b0110, 0, 1));
/// ```
#[inline]
#[must_use]
pub const fn contiguous(address: u64, len: u32) -> (u8, u8, u16) {
    if len == 0 {
        return (0, 0, 1);
    }
    let end = (address & 3) + len as u64;
    let length = end.div_ceil(4);
    let first = 0xf_u8 << (address & 3) & 0xf;
    let last = 0xf_u8 >> (end.wrapping_neg() & 3);
    let (first, last) = if length == 1 { (first & last, 0) } else { (first, last) };
    (first, last, if length > u16::MAX as u64 { u16::MAX } else { length as u16 })
}

/// Address and number of the bytes that a request enables; `None` if the enables leave a hole.
///
/// Inverse of [`contiguous`].
///
/// ```
/// use lanemark_wire::byte_enable::span;
/// assert_eq!(span(0x1000, 0b1000, 0b0001, 3), Some((0x1003, 6)));
/// assert_eq!(span(0x1000, 0b1001, 0, 1), None);
/// ```
#[must_use]
pub const fn span(address: u64, first_be: u8, last_be: u8, length: u16) -> Option<(u64, u32)> {
    if length == 1 && first_be.trailing_zeros() >= 4 {
        return Some((address & !3, 0));
    }
    if has_hole(first_be, last_be, length) {
        return None;
    }
    Some((address & !3 | (first_be.trailing_zeros() & 3) as u64, byte_count(first_be, last_be, length) as u32))
}

/// Whether the enabled bytes of a request of `length` DWs are not contiguous.
#[inline]
pub(crate) const fn has_hole(first_be: u8, last_be: u8, length: u16) -> bool {
    if length == 1 { !is_run(first_be) } else { !reaches_end(first_be) || !reaches_start(last_be) }
}

/// Whether the set bits are contiguous.
const fn is_run(be: u8) -> bool {
    let be = be & 0xf;
    let from_zero = be >> (be.trailing_zeros() & 3);
    from_zero & (from_zero + 1) == 0
}

/// Whether the set bits end at the highest byte of the DW: 1111, 1110, 1100, 1000.
#[inline]
pub(crate) const fn reaches_end(be: u8) -> bool {
    0b1101_0001_0000_0000 >> (be & 0xf) & 1 != 0
}

/// Whether the set bits start at the lowest byte of the DW: 0001, 0011, 0111, 1111.
#[inline]
pub(crate) const fn reaches_start(be: u8) -> bool {
    0b1000_0000_1000_1010 >> (be & 0xf) & 1 != 0
}

/// Byte Count of the first completion of a read: from the first to the last enabled byte, 1 for a zero-length read.
///
/// ```
/// use lanemark_wire::byte_enable::byte_count;
/// assert_eq!(byte_count(0b1111, 0b1111, 16), 64);
/// assert_eq!(byte_count(0b1001, 0, 1), 4); // holes count
/// assert_eq!(byte_count(0, 0, 1), 1);
/// ```
#[must_use]
pub const fn byte_count(first_be: u8, last_be: u8, length: u16) -> u16 {
    let (first, last) = (first_be & 0xf, last_be & 0xf);
    let end = if last == 0 { first } else { last };
    if end == 0 {
        return 1;
    }
    // Length is at most 1024, so this fits; a `Packet` may hold any value, hence the wrapping.
    let skipped_first = first.trailing_zeros() as u16 & 3;
    let skipped_last = end.leading_zeros() as u16 - 4;
    length.wrapping_mul(4).wrapping_sub(skipped_first + skipped_last)
}

/// Lower Address of the first completion of a read: its first enabled byte, modulo 128.
///
/// ```
/// use lanemark_wire::byte_enable::lower_address;
/// assert_eq!(lower_address(0x10fc, 0b1000), 0x7f);
/// ```
#[must_use]
pub const fn lower_address(address: u64, first_be: u8) -> u8 {
    let first = first_be & 0xf;
    let skipped = if first == 0 { 0 } else { first.trailing_zeros() as u8 };
    (address & 0x7c) as u8 | skipped
}

/// The runs of set bits in a 64-bit mask, lowest first: the writes that flush a write-combining buffer of 64 B with one
/// valid bit per byte.
///
/// ```
/// use lanemark_wire::byte_enable::ranges;
/// let runs: Vec<_> = ranges(0xff00_0000_0000_00f1).collect();
/// assert_eq!(runs, [0..1, 4..8, 56..64]);
/// ```
#[must_use]
pub const fn ranges(mask: u64) -> Ranges {
    Ranges { mask }
}

/// Iterator of [`ranges`].
#[derive(Clone, Debug)]
pub struct Ranges {
    mask: u64,
}

impl Iterator for Ranges {
    type Item = Range<u8>;

    fn next(&mut self) -> Option<Range<u8>> {
        if self.mask == 0 {
            return None;
        }
        let start = self.mask.trailing_zeros();
        // Adding the lowest set bit carries through the run, and so clears it.
        let (carried, past_the_top) = self.mask.overflowing_add(1 << start);
        let end = if past_the_top { 64 } else { carried.trailing_zeros() };
        self.mask &= carried;
        Some(start as u8..end as u8)
    }
}

impl FusedIterator for Ranges {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference: offsets of the enabled bytes from the first DW, bit by bit as in the specification.
    fn enabled(first_be: u8, last_be: u8, length: u16) -> Vec<u32> {
        let be_of = |dw: u16| match dw {
            0 => first_be,
            _ if dw + 1 == length => last_be,
            _ => 0xf,
        };
        (0..u32::from(length) * 4).filter(|byte| be_of((byte / 4) as u16) >> (byte % 4) & 1 != 0).collect()
    }

    #[test]
    fn contiguous_enables_exactly_the_requested_bytes() {
        for offset in 0..8_u64 {
            for len in 0..40_u32 {
                let (first, last, length) = contiguous(0x1000 + offset, len);
                let base = (offset & 3) as u32;
                assert_eq!(enabled(first, last, length), (base..base + len).collect::<Vec<_>>(), "{offset} {len}");
                assert_eq!(last == 0, length == 1);
            }
        }
    }

    #[test]
    fn contiguous_saturates_beyond_the_largest_request() {
        assert_eq!(contiguous(0, 4096), (0xf, 0xf, 1024));
        assert_eq!(contiguous(3, 4096), (0b1000, 0b0111, 1025));
        assert_eq!(contiguous(0, u32::MAX), (0xf, 0b0111, u16::MAX));
        assert_eq!(contiguous(u64::MAX, 1), (0b1000, 0, 1));
    }

    #[test]
    fn span_is_the_inverse_of_contiguous() {
        for address in 0x1000..0x1008 {
            for len in 1..40 {
                let (first, last, length) = contiguous(address, len);
                assert_eq!(span(address & !3, first, last, length), Some((address, len)));
            }
        }
        assert_eq!(span(0x1000, 0, 0, 1), Some((0x1000, 0)));
    }

    #[test]
    fn span_exists_exactly_if_the_enabled_bytes_are_contiguous() {
        for length in 1..4 {
            for first in 0..16 {
                for last in 0..16 {
                    if (length == 1) != (last == 0) || (length > 1 && first == 0) {
                        continue;
                    }
                    let bytes = enabled(first, last, length);
                    let one_run = bytes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                    assert_eq!(span(0, first, last, length).is_some(), one_run, "{first:04b} {last:04b} {length}");
                    let spanned = bytes.last().map_or(1, |last| last - bytes[0] + 1);
                    assert_eq!(u32::from(byte_count(first, last, length)), spanned);
                    assert_eq!(u32::from(lower_address(0, first)), bytes.first().copied().unwrap_or(0));
                }
            }
        }
    }

    #[test]
    fn illegal_enables_do_not_overflow() {
        for first in 0..=u8::MAX {
            for length in [0, 1, 2, 1024, u16::MAX] {
                let _ =
                    (byte_count(first, 0xff, length), span(u64::MAX, first, 0x10, length), lower_address(!0, first));
            }
        }
    }

    #[test]
    fn ranges_handles_runs_at_both_ends_of_the_mask() {
        assert_eq!(ranges(0).next(), None);
        for (mask, run) in [(u64::MAX, 0..64), (1 << 63, 63..64), (1, 0..1)] {
            let mut runs = ranges(mask);
            assert_eq!((runs.next(), runs.next()), (Some(run), None));
        }
        assert_eq!(ranges(0x5555_5555_5555_5555).count(), 32);
    }
}
