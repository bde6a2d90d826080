//! Typed indices of a board: which card, root port, switch port, link, or direction of a link.
//!
//! Each index has a type of its own, so that a card cannot be used in place of a root port, and index arithmetic (the
//! opposite direction, the downstream direction of a root port) is in one place. There is no cost at run time.
//!
//! Link `n` is the directions `2 n`, downstream, and `2 n + 1`, upstream. The links of the root ports are the first ones, in the order
//! of the root ports.

use crate::requester::FIRST_CARD;
use std::ops::{Index, IndexMut};

/// A card of a board, by its position in the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardIndex(pub usize);

impl CardIndex {
    /// The first card.
    pub const FIRST: CardIndex = CardIndex(0);

    /// Returns the requester ID of this card.
    #[inline]
    #[must_use]
    pub(crate) const fn requester(self) -> u16 {
        FIRST_CARD + self.0 as u16
    }

    /// Returns the card with this requester ID; for a requester that is not a card, an index that no board has.
    #[inline]
    #[must_use]
    pub(crate) const fn of_requester(requester: u16) -> CardIndex {
        CardIndex(requester.wrapping_sub(FIRST_CARD) as usize)
    }
}

impl From<u32> for CardIndex {
    #[inline]
    fn from(number: u32) -> CardIndex {
        CardIndex(number as usize)
    }
}

/// A root port, by its position in the root complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RootPortIndex(pub(crate) usize);

impl RootPortIndex {
    /// The first root port.
    pub(crate) const FIRST: RootPortIndex = RootPortIndex(0);

    /// Returns the direction that leaves this root port.
    #[inline]
    pub(crate) const fn down(self) -> DirectionIndex {
        LinkIndex(self.0).down()
    }

    /// Returns the direction that arrives at this root port.
    #[inline]
    pub(crate) const fn up(self) -> DirectionIndex {
        LinkIndex(self.0).up()
    }
}

/// A port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortIndex(pub(crate) usize);

impl PortIndex {
    /// The upstream port; the others are downstream ports.
    pub(crate) const UPSTREAM: PortIndex = PortIndex(0);
}

/// A link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkIndex(pub(crate) usize);

impl LinkIndex {
    /// Returns the downstream direction of this link.
    #[inline]
    pub(crate) const fn down(self) -> DirectionIndex {
        DirectionIndex(2 * self.0)
    }

    /// Returns the upstream direction of this link.
    #[inline]
    pub(crate) const fn up(self) -> DirectionIndex {
        DirectionIndex(2 * self.0 + 1)
    }
}

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DirectionIndex(pub(crate) usize);

impl DirectionIndex {
    /// Returns the other direction of the same link.
    #[inline]
    pub(crate) const fn opposite(self) -> DirectionIndex {
        DirectionIndex(self.0 ^ 1)
    }

    /// Returns the link of this direction.
    #[inline]
    pub(crate) const fn link(self) -> LinkIndex {
        LinkIndex(self.0 / 2)
    }

    /// Returns whether this direction leads away from the root complex.
    #[inline]
    pub(crate) const fn is_downstream(self) -> bool {
        self.0.is_multiple_of(2)
    }

    /// Returns every direction of a board with `count` directions.
    pub(crate) fn all(count: usize) -> impl DoubleEndedIterator<Item = DirectionIndex> {
        (0..count).map(DirectionIndex)
    }
}

/// An end of a direction; lists of two have the sender first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The port that sends.
    Sender,
    /// The port that receives.
    Receiver,
}

impl<T> Index<Side> for [T; 2] {
    type Output = T;

    #[inline]
    fn index(&self, side: Side) -> &T {
        let [sender, receiver] = self;
        match side {
            Side::Sender => sender,
            Side::Receiver => receiver,
        }
    }
}

macro_rules! indexes_lists {
    ($($index:ident)+) => {$(
        impl<T> Index<$index> for Vec<T> {
            type Output = T;

            #[inline]
            fn index(&self, at: $index) -> &T {
                &self[at.0]
            }
        }

        impl<T> IndexMut<$index> for Vec<T> {
            #[inline]
            fn index_mut(&mut self, at: $index) -> &mut T {
                &mut self[at.0]
            }
        }
    )+};
}

indexes_lists!(CardIndex RootPortIndex PortIndex DirectionIndex);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_of_a_link_are_opposite_and_root_ports_have_the_first_links() {
        for number in [0, 1, 7] {
            let (link, port) = (LinkIndex(number), RootPortIndex(number));
            assert_eq!((link.down().opposite(), link.up().opposite()), (link.up(), link.down()));
            assert_eq!((link.down().link(), link.up().link()), (link, link));
            assert!(link.down().is_downstream() && !link.up().is_downstream());
            assert_eq!((port.down(), port.up()), (link.down(), link.up()));
        }
    }

    #[test]
    fn card_index_and_requester_id_convert_both_ways() {
        assert_eq!(CardIndex::of_requester(CardIndex(3).requester()), CardIndex(3));
        assert!(CardIndex::of_requester(0).0 > usize::from(FIRST_CARD) - 1, "a core is not a card");
    }
}
