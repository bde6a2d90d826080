//! How long are bytes on their way from a card to another card?
//!
//! Traffic: the `MWr`s of one transfer, and nothing else.
//! Unit: nanoseconds, one way, from the one's engine until the other has accepted the last byte.
//! Spoiled by: whatever else uses the links; ACS redirect; ASPM.
//! Method: one transfer, alone. Where nobody sees both ends at one time, half of the way there and back stands for it.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "p2p_latency",
    summary: "time that bytes take from a card to another card, one way, by size",
    quantity: Quantity::OneWayLatency,
    cases: |facts, axes| dma::with_peers(facts, axes, Verb::Store, &[8, 64, 128, 4096]),
    plan: |case, passes| dma::plan(case, 1, passes),
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: needs::peers,
};
