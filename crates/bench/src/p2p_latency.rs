//! What is the latency of a write from one card to another?
//!
//! Traffic: the `MWr`s of one transfer, and nothing else.
//!
//! Unit: nanoseconds, one way, from the engine of one card until the other has accepted the last
//! byte.
//!
//! Spoiled by: other users of the links; ACS redirect; ASPM.
//!
//! Method: a single transfer. If no clock covers both ends, half of the round trip stands in.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "p2p_latency",
    summary: "one-way latency of a write from one card to another, by size",
    quantity: Quantity::OneWayLatency,
    cases: |facts, axes| dma::with_peers(facts, axes, Verb::Store, &[8, 64, 128, 4096]),
    plan: |case, passes| dma::plan(case, 1, passes),
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: needs::peer_access,
};
