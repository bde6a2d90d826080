//! How many bytes a second does a device write to host memory?
//!
//! Traffic: `MWr` upstream, nothing downstream but credits and acknowledgments.
//! Unit: bytes per second; *delivered* until a core would see the last byte, *issue* until the last request.
//! Spoiled by: payloads smaller than MPS; an engine that takes its time between packets; other traffic.
//! Method: transfers of one size, one behind the other through a window; the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "dma_write_bandwidth",
    "bytes per second a device writes to host memory by itself, by size",
    |facts, axes| dma::with_host(facts, axes, Verb::Store, None, &dma::SIZES),
    needs::an_engine,
);
