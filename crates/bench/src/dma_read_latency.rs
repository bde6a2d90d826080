//! How long does a device wait for bytes of host memory?
//!
//! Traffic: the `MRd`s of one transfer upstream, their `CplD`s downstream, nothing else in flight.
//! Unit: nanoseconds, round trip, from the device's engine to the last byte in it.
//! Spoiled by: whatever else uses links or memory; ASPM; an IOTLB miss.
//! Method: the next transfer begins when the last byte of the one before has come; the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;
use lanemark_record::Quantity;

/// Transfers of one pass.
const TRANSFERS: u64 = 16;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_read_latency",
    summary: "time a device waits for bytes of host memory, round trip, by size",
    quantity: Quantity::RoundTripLatency,
    cases: |facts, axes| dma::with_host_of_both_sockets(facts, axes, Verb::Load, Some(1), &[8, 64, 256, 512, 4096]),
    plan: |case, passes| dma::plan(case, TRANSFERS, passes),
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: |_| TRANSFERS,
    ask: None,
    is_usual: true,
    left_out: needs::an_engine,
};
