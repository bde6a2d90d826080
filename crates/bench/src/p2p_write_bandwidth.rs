//! At which rate does a card write to another card?
//!
//! Traffic: `MWr` up from one card and down to the other, through the lowest switch above both, or
//! through the root complex.
//!
//! Unit: bytes per second, until the last byte is accepted by the other card.
//!
//! Spoiled by: ACS redirect, which sends the packets up to the root complex; a slow receiver.
//!
//! Method: back-to-back transfers of one size into the other card's storage; the device keeps the
//! time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "p2p_write_bandwidth",
    "rate of writes by one card to another, by size",
    |facts, axes| dma::with_peers(facts, axes, Verb::Store, &dma::SIZES),
    needs::peer_access,
);
