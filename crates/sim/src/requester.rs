//! Requester IDs on a board (cores, cards, the root complex, and injected TLPs), and the tags of injected reads.
//!
//! Cores are numbered from 0.

/// Requester ID of injected TLPs; no part of a board has it.
pub const OUTSIDE: u16 = u16::MAX;

/// First tag of reads that are injected at a card; its DMA engine uses lower ones.
pub const FIRST_INJECTED_TAG: u16 = 0x8000;

/// Requester ID of peer reads that the root complex issues for cards.
pub(crate) const ROOT_COMPLEX: u16 = u16::MAX - 1;

/// Requester ID of the first card; those of cores are lower.
pub(crate) const FIRST_CARD: u16 = 0x8000;
