//! How many bytes a second does a device write to host memory?
//!
//! Traffic: `MWr` upstream, nothing downstream but credits and acknowledgments.
//! Unit: bytes per second; *delivered* until a core would see the last byte, *issue* until the last request.
//! Spoiled by: payloads smaller than MPS; an engine that takes its time between packets; other traffic.
//! Method: transfers of one size, one behind the other through a window; the device keeps the time.

use crate::dma;
use crate::question::Question;
use lanemark_machine::Verb;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_write_bandwidth",
    summary: "bytes per second a device writes to host memory by itself, by size",
    quantity: Quantity::Bandwidth,
    cases: |facts, axes| dma::with_host(facts, axes, Verb::Store, None, &dma::SIZES),
    plan: |case, passes| dma::plan(case, dma::transfers(case), passes),
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: dma::transfers,
    ask: None,
    is_usual: true,
    left_out: |_| None,
};
