//! Numbers of requesters on a board: cores, cards, the root complex, and what is injected from outside.
//!
//! Cores have the numbers from 0 on.

/// Requester of injected TLPs: nobody on a board has this number.
pub const OUTSIDE: u16 = u16::MAX;

/// The requester of reads that the root complex makes for cards.
pub(crate) const ROOT_COMPLEX: u16 = u16::MAX - 1;

/// The number of the first card as a requester; cores are below it.
pub(crate) const FIRST_CARD: u16 = 0x8000;
