//! How long does a device take to write to host memory and read the same bytes back?
//!
//! Traffic: the `MWr`s of one transfer upstream, then `MRd`s of the same bytes, which never pass a
//! write; `CplD`s downstream.
//!
//! Unit: nanoseconds, round trip, from the first write in the device's engine to the last byte that
//! is read back.
//!
//! Spoiled by: other users of links or memory; memory that serves reads from a different place than
//! it accepts writes.
//!
//! Method: each write begins when the last byte of the previous read has arrived; the device keeps
//! the time. The write's share is this figure minus `dma_read_latency`.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_record::Quantity;

/// Pairs per iteration.
const PAIRS: u64 = 16;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_write_read_latency",
    summary: "round-trip latency of a DMA write to host memory and a read of the same bytes, by size",
    quantity: Quantity::RoundTripLatency,
    cases: |facts, axes| dma::both_ways(facts, axes, Some(1), &[8, 64, 256, 512, 4096]),
    plan: |case, passes| dma::write_read_plan(case, PAIRS, true, passes),
    simulated_passes: |case| dma::all_of_window(case, PAIRS),
    most_passes: |_| 4096,
    accesses_per_pass: |_| PAIRS,
    ask: None,
    is_usual: true,
    left_out: needs::dma_engine,
};
