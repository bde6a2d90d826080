//! How many bytes a second does a card write to another card?
//!
//! Traffic: `MWr` up from one card and down to the other, by the lowest switch above both, or by the root complex.
//! Unit: bytes per second, until the last byte is accepted by the other card.
//! Spoiled by: ACS redirect, which sends the packets up to the root complex; a receiver that accepts no faster.
//! Method: transfers of one size, one behind the other into the other's storage; the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "p2p_write_bandwidth",
    "bytes per second a card writes to another card, by size",
    |facts, axes| dma::with_peers(facts, axes, Verb::Store, &dma::SIZES),
    needs::peers,
);
