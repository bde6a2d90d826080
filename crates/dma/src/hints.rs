//! What a caller may ask of [`Domain::map`](crate::Domain::map), and how far one call of it goes.

use crate::allocator::{Align, Device};
use crate::attributes::{ATOMIC, Attributes, PREFETCH, Permission, SAFE};
use std::ops::BitOr;

/// How a buffer is to be mapped, beyond who may do what. They are combined by `|`.
///
/// ```
/// use lanemark_dma::Hints;
/// let hints = Hints::SAFE | Hints::NO_PREFETCH;
/// assert!(hints.contains(Hints::SAFE) && !hints.contains(Hints::ATOMIC));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints(u8);

impl Hints {
    /// Nothing: prefetch, fast half-line writes where whole lines are lent, as many pieces as it takes.
    pub const NONE: Hints = Hints(0);
    /// A device's write of half a line keeps the other half. `map` does that by itself at the ends of a buffer that
    /// does not fill its lines.
    pub const SAFE: Hints = Hints(SAFE);
    /// A transfer owns all of memory (a locked bus).
    pub const ATOMIC: Hints = Hints(ATOMIC);
    /// Nobody reads ahead of the device: for memory that it does not read in order, or that the CPU writes meanwhile.
    pub const NO_PREFETCH: Hints = Hints(PREFETCH);
    /// The ends of the buffer share no line with anything that matters: they are not made safe.
    pub const ANY_ALIGNMENT: Hints = Hints(1 << 5);
    /// The whole buffer by one call, or an error. Implies [`Hints::ANY_ALIGNMENT`], for the ends of one mapping
    /// cannot be other than its middle.
    pub const ONE_PIECE: Hints = Hints(1 << 6);

    /// Those that a backend must be able to promise; the bits are those of [`Ability`](crate::Ability).
    pub(crate) const fn promises(self) -> u16 {
        (self.0 & (SAFE | ATOMIC | PREFETCH)) as u16
    }

    /// Are all of `others` among these?
    #[must_use]
    pub const fn contains(self, others: Hints) -> bool {
        self.0 & others.0 == others.0
    }

    /// Is any of `others` among these?
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

/// To whom memory is lent, and how.
///
/// ```
/// # use lanemark_dma::{Align, Device, Hints, MapRequest, Permission};
/// # let disk = Device::default();
/// let lend = MapRequest::new(disk, Permission::Read).hints(Hints::ONE_PIECE).aligned(Align::MIB_2);
/// assert_eq!(lend.align.bytes(), 2 << 20);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapRequest {
    /// To whom.
    pub device: Device,
    /// What it may do.
    pub permission: Permission,
    /// How.
    pub hints: Hints,
    /// What the IOVA of each piece's first page is a multiple of.
    pub align: Align,
}

impl MapRequest {
    /// To `device`, which may do what `permission` says.
    #[must_use]
    pub const fn new(device: Device, permission: Permission) -> MapRequest {
        MapRequest { device, permission, hints: Hints::NONE, align: Align::PAGE }
    }

    /// The same with these hints, in place of those before.
    #[must_use]
    pub const fn hints(self, hints: Hints) -> MapRequest {
        MapRequest { hints, ..self }
    }

    /// The same at multiples of `align`.
    #[must_use]
    pub const fn aligned(self, align: Align) -> MapRequest {
        MapRequest { align, ..self }
    }

    /// The attributes of a page whose lines are all lent.
    #[must_use]
    pub const fn attributes(self) -> Attributes {
        Attributes::from_bits(self.permission as u8 | (self.hints.0 ^ PREFETCH) & (SAFE | ATOMIC | PREFETCH))
    }
}

/// What one call of `map` takes of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// From the start of its first page to its end: not whole pages, where the buffer ends in one.
    pub reach_bytes: u64,
    /// Does an end of the buffer share a line with something else there?
    pub is_safe: bool,
}

/// How far one call goes whose buffer begins `offset` bytes into a page, has its end `whole_bytes` after the start of
/// that page, and does not fill its first or last line: its first page alone where the first line is shared, else
/// up to its last page, else that. So what is safe is one page at each end, and the middle is fast.
pub(crate) fn ragged(offset: u64, whole_bytes: u64, longest_bytes: u64, page_bytes: u64, line_bytes: u64) -> Piece {
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
        let piece = ragged(offset, offset + len, LONGEST, PAGE, 32);
        (piece.reach_bytes, piece.is_safe)
    }

    #[test]
    fn a_first_line_that_is_shared_makes_its_page_safe_and_ends_the_piece() {
        assert_eq!(piece(31, 3 * PAGE), (PAGE, true));
        assert_eq!(piece(31, 1), (32, true), "the buffer ends in that page");
    }

    #[test]
    fn a_last_line_that_is_shared_makes_its_page_safe_and_a_piece_of_its_own() {
        assert_eq!(piece(32, 2 * PAGE), (2 * PAGE, false));
        assert_eq!(piece(0, 33), (33, true));
        assert_eq!(piece(0, PAGE - 1), (PAGE - 1, true));
        assert_eq!(piece(0, PAGE + 1), (PAGE, false));
        assert_eq!(piece(0, LONGEST + 1), (LONGEST, false));
        assert_eq!(piece(0, LONGEST + PAGE + 1), (LONGEST, false));
    }

    #[test]
    fn the_attributes_are_licences_that_hints_take_back() {
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
        fn pieces_cover_a_buffer_and_only_pages_with_shared_lines_are_safe(
            offset in 0..PAGE, len in 1..20 * PAGE, line in prop::sample::select(vec![32_u64, 64, 128]),
        ) {
            let end = offset + len;
            let (mut at, mut pieces) = (offset, 0);
            while at < end {
                let start = at & !(PAGE - 1);
                prop_assume!((at | end) & (line - 1) != 0);
                let piece = ragged(at - start, end - start, LONGEST, PAGE, line);
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
