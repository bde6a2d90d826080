//! The parameters of a DMA engine, which its channels see too.

use crate::device::{atc, interconnect};
use crate::fabric::pace::Pace;
use lanemark_platform::{Mailbox, VectorTable};
use lanemark_units::Ticks;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its number as a requester.
    pub requester: u16,
    /// Reads that may be under way.
    pub tags: u16,
    /// Most bytes of a read.
    pub read_bytes: u32,
    /// Most bytes of a write.
    pub write_bytes: u32,
    /// Bytes of its data path, a power of two.
    pub beat_bytes: u32,
    /// Time between two beats.
    pub beat: Ticks,
    /// What a read takes besides its beats.
    pub read: Pace,
    /// What a write takes besides its beats.
    pub write: Pace,
    /// Bytes of host memory of one descriptor.
    pub descriptor_bytes: u64,
    /// What a descriptor takes before its first request.
    pub descriptor: Ticks,
    /// From the command to the first request.
    pub start: Ticks,
    /// Requests that may wait for the link.
    pub send_buffers: usize,
    /// Whether its requests for data have relaxed ordering, and ID-based ordering; its notices never do.
    pub relaxed: bool,
    /// See `relaxed`.
    pub id_based: bool,
    /// From the engine to the link.
    pub egress: Ticks,
    /// From the link to the engine.
    pub ingress: Ticks,
    /// Where its channels meet their drivers: all of them, or none.
    pub mailboxes: Vec<Mailbox>,
    /// Bytes of a descriptor that it fetches.
    pub descriptor_entry_bytes: u64,
    /// Descriptors fetched ahead.
    pub prefetch_descriptors: u16,
    /// Jobs that it can have at once.
    pub channels: usize,
    /// One tick of the card's clock.
    pub tick: Ticks,
    /// What lies between it and the user's circuit, if anything does.
    pub queues: Option<interconnect::Spec>,
    /// Where its vectors lie, if it interrupts by MSI-X.
    pub vectors: Option<VectorTable>,
    /// The translations that it keeps, if it has ATS.
    pub atc: Option<atc::Spec>,
}
