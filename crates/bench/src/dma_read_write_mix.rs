//! How many bytes a second does a device move both ways at once?
//!
//! Traffic: `MWr` and `MRd` upstream, in turns, `CplD` downstream.
//! Unit: bytes per second, both ways together, until the last byte is at its end.
//! Spoiled by: read requests, acknowledgments and credits, which take time of the direction that data go in; an engine that makes
//! one request after the other, whose writes wait while its reads have no tag.
//! Method: a write of one size and a read of as many bytes elsewhere, their requests in turns; the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_read_write_mix",
    summary: "bytes per second a device writes to host memory and reads from it at once, by size",
    quantity: Quantity::Bandwidth,
    cases: |facts, axes| dma::both_ways(facts, axes, None, &dma::SIZES),
    plan: |case, passes| dma::write_read_plan(case, dma::transfers(case), false, passes),
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: |case| 2 * dma::transfers(case),
    ask: None,
    is_usual: true,
    left_out: needs::an_engine,
};
