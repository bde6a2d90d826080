//! At which rate does a device write to host memory?
//!
//! Traffic: `MWr` upstream; downstream only credits and acknowledgments.
//!
//! Unit: bytes per second; *delivered* until a core would see the last byte, *issue* until the last
//! request.
//!
//! Spoiled by: payloads smaller than MPS; an engine with gaps between packets; other traffic.
//!
//! Method: back-to-back transfers of one size through a window; the device keeps the time.

use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::Verb;

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "dma_write_bandwidth",
    "rate of DMA writes to host memory, by size",
    |facts, axes| dma::with_host(facts, axes, Verb::Store, None, &dma::SIZES),
    needs::dma_engine,
);
