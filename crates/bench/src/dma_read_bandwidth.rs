//! How many bytes a second does a device read from host memory?
//!
//! Traffic: `MRd` upstream, `CplD` downstream.
//! Unit: bytes per second, until the last byte is in the device.
//! Spoiled by: too few tags or too small requests for the latency; completions in pieces of one RCB; other traffic.
//! Method: transfers of one size, one behind the other through a window, as many under way as the device has tags for;
//! the device keeps the time.

use crate::dma;
use crate::question::Question;
use lanemark_machine::Verb;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_read_bandwidth",
    summary: "bytes per second a device reads from host memory by itself, by size",
    quantity: Quantity::Bandwidth,
    cases: |facts, axes| dma::with_host(facts, axes, Verb::Load, None, &dma::SIZES),
    plan: |case, passes| dma::plan(case, dma::transfers(case), passes),
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: dma::transfers,
    ask: None,
    is_usual: true,
    left_out: |_| None,
};
