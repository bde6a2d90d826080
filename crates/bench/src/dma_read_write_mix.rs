//! At which rate does a device move data in both directions concurrently?
//!
//! Traffic: `MWr` and `MRd` upstream, alternating, `CplD` downstream.
//!
//! Unit: bytes per second in both directions together, until the last byte arrives.
//!
//! Spoiled by: read requests, acknowledgments and credits, which share a direction with data; an
//! engine that issues requests in order, whose writes wait while its reads have no tag.
//!
//! Method: a write of one size and a read of as many other bytes, with alternating requests; the
//! device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_read_write_mix",
    summary: "rate of concurrent DMA writes and reads of host memory, by size",
    quantity: Quantity::Bandwidth,
    cases: |facts, axes| dma::both_ways(facts, axes, None, &dma::SIZES),
    plan: |case, passes| dma::write_read_plan(case, dma::transfers(case), false, passes),
    simulated_passes: dma::long_run,
    most_passes: |_| 4096,
    accesses_per_pass: |case| 2 * dma::transfers(case),
    ask: None,
    is_usual: true,
    left_out: needs::dma_engine,
};
