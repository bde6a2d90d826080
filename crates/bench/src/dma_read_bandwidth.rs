//! At which rate does a device read host memory?
//!
//! Traffic: `MRd` upstream, `CplD` downstream.
//!
//! Unit: bytes per second, until the last byte is in the device.
//!
//! Spoiled by: too few tags or too small requests for the latency; completions split at RCB; other
//! traffic.
//!
//! Method: back-to-back transfers of one size through a window, with as many outstanding reads as
//! the device has tags; the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "dma_read_bandwidth",
    "rate of DMA reads from host memory, by size",
    |facts, axes| dma::with_host(facts, axes, Verb::Load, None, &dma::SIZES),
    needs::dma_engine,
);
