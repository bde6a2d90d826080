//! At which rate does a card read from another card?
//!
//! Traffic: `MRd` up from one card and down to the other, `CplD` back on the same path, through the
//! lowest switch above both, or through the root complex.
//!
//! Unit: bytes per second, until the last byte is in the requesting card.
//!
//! Spoiled by: too few tags or too small requests for the latency; slow storage of the other card;
//! ACS redirect.
//!
//! Method: back-to-back transfers of one size through the other card's storage, with as many
//! outstanding reads as there are tags; the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "p2p_read_bandwidth",
    "rate of reads by one card from another, by size",
    |facts, axes| dma::with_peers(facts, axes, Verb::Load, &dma::SIZES),
    needs::peer_access,
);
