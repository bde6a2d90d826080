//! Parameters of [`Domain::map`](crate::Domain::map), and how much of a buffer one call maps.

use crate::allocator::{Align, Device};
use crate::attributes::{ATOMIC, Attributes, PREFETCH, Permission, SAFE};
use std::ops::BitOr;

/// Options of a mapping beyond the permission. Combined by `|`.
///
/// ```
/// use lanemark_dma::Hints;
/// let hints = Hints::SAFE | Hints::NO_PREFETCH;
/// assert!(hints.contains(Hints::SAFE) && !hints.contains(Hints::ATOMIC));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints(u8);

impl Hints {
    /// No option: prefetch, fast half-line writes where whole lines are mapped, as many pieces as needed.
    pub const NONE: Hints = Hints(0);
    /// Safe half-line writes: a device's write of half a line preserves the other half. `map` applies it by itself at
    /// the ends of a buffer that does not fill its cache lines.
    pub const SAFE: Hints = Hints(SAFE);
    /// Atomic transfers: a transfer locks all of memory (a locked bus).
    pub const ATOMIC: Hints = Hints(ATOMIC);
    /// No prefetch: for memory that the device reads out of order, or that the CPU writes meanwhile.
    pub const NO_PREFETCH: Hints = Hints(PREFETCH);
    /// The ends of the buffer share no cache line with other data, so they need no safe writes.
    pub const ANY_ALIGNMENT: Hints = Hints(1 << 5);
    /// Maps the whole buffer by one call, or fails. Implies [`Hints::ANY_ALIGNMENT`], because one mapping has the same
    /// attributes at its ends and in its middle.
    pub const ONE_PIECE: Hints = Hints(1 << 6);

    /// The hints that need an [`Ability`](crate::Ability) of the backend; the bits are the same.
    pub(crate) const fn promises(self) -> u16 {
        (self.0 & (SAFE | ATOMIC | PREFETCH)) as u16
    }

    /// Whether all of `others` are set.
    #[must_use]
    pub const fn contains(self, others: Hints) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether any of `others` is set.
    #[must_use]
    pub const fn intersects(self, others: Hints) -> bool {
        self.0 & others.0 != 0
    }
}

impl BitOr for Hints {
    type Output = Hints;
    fn bitor(self, other: Hints) -> Hints {
        Hints(self.0 | other.0)
    }
}

/// Request to map memory: for which device, with which permission, options and alignment.
///
/// ```
/// # use lanemark_dma::{Align, Device, Hints, MapRequest, Permission};
/// # let disk = Device::default();
/// let request = MapRequest::new(disk, Permission::Read).hints(Hints::ONE_PIECE).aligned(Align::MIB_2);
/// assert_eq!(request.align.bytes(), 2 << 20);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapRequest {
    /// The device that gets access.
    pub device: Device,
    /// Whether the device reads, writes or both.
    pub permission: Permission,
    /// Options.
    pub hints: Hints,
    /// Alignment of the first IOVA of each piece.
    pub align: Align,
}

impl MapRequest {
    /// A request for `device` with `permission`, no hints and page alignment.
    #[must_use]
    pub const fn new(device: Device, permission: Permission) -> MapRequest {
        MapRequest { device, permission, hints: Hints::NONE, align: Align::PAGE }
    }

    /// Replaces the hints.
    #[must_use]
    pub const fn hints(self, hints: Hints) -> MapRequest {
        MapRequest { hints, ..self }
    }

    /// Replaces the alignment.
    #[must_use]
    pub const fn aligned(self, align: Align) -> MapRequest {
        MapRequest { align, ..self }
    }

    /// The attributes of a page whose cache lines all belong to the buffer.
    #[must_use]
    pub const fn attributes(self) -> Attributes {
        Attributes::from_bits(self.permission as u8 | (self.hints.0 ^ PREFETCH) & (SAFE | ATOMIC | PREFETCH))
    }
}

/// The part of a buffer that one call of `map` maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes from the start of the first page to the end of the piece; no multiple of a page where the buffer ends.
    pub reach_bytes: u64,
    /// Whether an end of the buffer in this piece shares a cache line with other data.
    pub is_safe: bool,
}

/// The piece that one call maps of a buffer whose first or last cache line holds other data too.
///
/// The buffer starts `offset` bytes into a page and ends `whole_bytes` after the start of that page. If its first line
/// is shared, the piece is its first page; else all up to its last page; else the last page. So at most one page at
/// each end is safe, and the middle is fast.
pub(crate) fn piece_with_shared_lines(
    offset: u64,
    whole_bytes: u64,
    longest_bytes: u64,
    page_bytes: u64,
    line_bytes: u64,
) -> Piece {
    if offset & (line_bytes - 1) != 0 {
        return Piece { reach_bytes: whole_bytes.min(page_bytes), is_safe: true };
    }
    match (whole_bytes - 1) & !(page_bytes - 1) {
        0 => Piece { reach_bytes: whole_bytes, is_safe: true },
        last_page => Piece { reach_bytes: last_page.min(longest_bytes), is_safe: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;
    const LONGEST: u64 = 8 * PAGE;

    fn piece(offset: u64, len: u64) -> (u64, bool) {
        let piece = piece_with_shared_lines(offset, offset + len, LONGEST, PAGE, 32);
        (piece.reach_bytes, piece.is_safe)
    }

    #[test]
    fn a_shared_first_line_makes_its_page_safe_and_ends_the_piece() {
        assert_eq!(piece(31, 3 * PAGE), (PAGE, true));
        assert_eq!(piece(31, 1), (32, true), "the buffer ends in its first page");
    }

    #[test]
    fn a_shared_last_line_makes_its_page_safe_and_a_separate_piece() {
        assert_eq!(piece(32, 2 * PAGE), (2 * PAGE, false));
        assert_eq!(piece(0, 33), (33, true));
        assert_eq!(piece(0, PAGE - 1), (PAGE - 1, true));
        assert_eq!(piece(0, PAGE + 1), (PAGE, false));
        assert_eq!(piece(0, LONGEST + 1), (LONGEST, false));
        assert_eq!(piece(0, LONGEST + PAGE + 1), (LONGEST, false));
    }

    #[test]
    fn hints_remove_or_add_attributes() {
        let plain = MapRequest::new(Device::default(), Permission::Read);
        let bits = |hints| {
            let attributes = plain.hints(hints).attributes();
            (attributes.may_prefetch(), attributes.is_atomic(), attributes.is_safe())
        };
        assert_eq!(bits(Hints::NONE), (true, false, false));
        assert_eq!(bits(Hints::NO_PREFETCH), (false, false, false));
        assert_eq!(bits(Hints::ATOMIC), (true, true, false));
        assert_eq!(bits(Hints::SAFE), (true, false, true));
        assert_eq!(bits(Hints::ANY_ALIGNMENT | Hints::ONE_PIECE), (true, false, false));
        for permission in [Permission::Read, Permission::Write, Permission::ReadWrite] {
            assert_eq!(MapRequest { permission, ..plain }.attributes().permission(), permission);
        }
    }

    proptest! {
        #[test]
        fn pieces_cover_the_buffer_and_only_pages_with_shared_lines_are_safe(
            offset in 0..PAGE, len in 1..20 * PAGE, line in prop::sample::select(vec![32_u64, 64, 128]),
        ) {
            let end = offset + len;
            let (mut at, mut pieces) = (offset, 0);
            while at < end {
                let start = at & !(PAGE - 1);
                prop_assume!((at | end) & (line - 1) != 0);
                let piece = piece_with_shared_lines(at - start, end - start, LONGEST, PAGE, line);
                let reach = start + piece.reach_bytes;
                prop_assert!(reach > at && reach <= end && piece.reach_bytes <= LONGEST);
                prop_assert!(reach == end || reach.is_multiple_of(PAGE));
                let pages_with_shared_lines = |shared: u64| shared & (line - 1) != 0 && start <= shared && shared <= reach;
                prop_assert_eq!(piece.is_safe, pages_with_shared_lines(at) || pages_with_shared_lines(end));
                prop_assert!(!piece.is_safe || piece.reach_bytes <= PAGE);
                at = reach;
                pieces += 1;
            }
            prop_assert!(pieces <= 3 + len / LONGEST);
        }
    }
}
