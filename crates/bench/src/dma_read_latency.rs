//! What is the latency of a DMA read from host memory?
//!
//! Traffic: the `MRd`s of one transfer upstream, their `CplD`s downstream, nothing else in flight.
//!
//! Unit: nanoseconds, round trip, from the device's engine until the last byte is in it.
//!
//! Spoiled by: other users of links or memory; ASPM; an IOTLB miss.
//!
//! Method: each transfer begins when the last byte of the previous one has arrived; the device
//! keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;
use lanemark_record::Quantity;

/// Transfers per iteration.
const TRANSFERS: u64 = 16;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_read_latency",
    summary: "round-trip latency of DMA reads from host memory, by size",
    quantity: Quantity::RoundTripLatency,
    cases: |facts, axes| dma::with_host_of_both_sockets(facts, axes, Verb::Load, Some(1), &[8, 64, 256, 512, 4096]),
    plan: |case, passes| dma::plan(case, TRANSFERS, passes),
    simulated_passes: |case| dma::all_of_window(case, TRANSFERS),
    most_passes: |_| 4096,
    accesses_per_pass: |_| TRANSFERS,
    ask: None,
    is_usual: true,
    left_out: needs::dma_engine,
};
