//! How long does a device wait for bytes that it has just written?
//!
//! Traffic: the `MWr`s of one transfer upstream, then `MRd`s of the same bytes, which pass no write; `CplD`s downstream.
//! Unit: nanoseconds, round trip, from the first write in the device's engine to the last byte that is read back.
//! Spoiled by: whatever else uses links or memory; memory that answers reads from elsewhere than where it puts writes.
//! Method: the next write begins when the last byte has come back; the device keeps the time. Less `dma_read_latency`, it is what the
//! write adds.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_record::Quantity;

/// Pairs of one pass.
const PAIRS: u64 = 16;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_write_read_latency",
    summary: "time a device waits for bytes that it has just written to host memory, round trip, by size",
    quantity: Quantity::RoundTripLatency,
    cases: |facts, axes| dma::both_ways(facts, axes, Some(1), &[8, 64, 256, 512, 4096]),
    plan: |case, passes| dma::write_read_plan(case, PAIRS, true, passes),
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: |_| PAIRS,
    ask: None,
    is_usual: true,
    left_out: needs::an_engine,
};
