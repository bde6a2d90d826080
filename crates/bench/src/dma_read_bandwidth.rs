//! How many bytes a second does a device read from host memory?
//!
//! Traffic: `MRd` upstream, `CplD` downstream.
//! Unit: bytes per second, until the last byte is in the device.
//! Spoiled by: too few tags or too small requests for the latency; completions in pieces of one RCB; other traffic.
//! Method: transfers of one size, one behind the other through a window, as many under way as the device has tags for;
//! the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "dma_read_bandwidth",
    "bytes per second a device reads from host memory by itself, by size",
    |facts, axes| dma::with_host(facts, axes, Verb::Load, None, &dma::SIZES),
    needs::an_engine,
);
