//! How many bytes a second does a card read from another card?
//!
//! Traffic: `MRd` up from one card and down to the other, `CplD` the same way back, by the lowest switch above both, or by the root
//! complex.
//! Unit: bytes per second, until the last byte is in the card that asked.
//! Spoiled by: too few tags or too small requests for the latency; a card that reads its own storage slowly; ACS redirect.
//! Method: transfers of one size, one behind the other through the other's storage, as many under way as there are tags; the
//! device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "p2p_read_bandwidth",
    "bytes per second a card reads from another card, by size",
    |facts, axes| dma::with_peers(facts, axes, Verb::Load, &dma::SIZES),
    needs::peers,
);
