//! Constants of a DMA engine and its channels.

use crate::device::job::RequestLimits;
use crate::device::{atc, interconnect};
use crate::fabric::pace::Pace;
use lanemark_machine::Verb;
use lanemark_platform::{Mailbox, ReadData, VectorTable};
use lanemark_units::Ticks;

/// Constants of a DMA engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Requester ID of the device.
    pub requester: u16,
    /// Number of tags for reads.
    pub tags: u16,
    /// Limits of its requests.
    pub requests: RequestLimits,
    /// Width of its data path in bytes, a power of two.
    pub beat_bytes: u32,
    /// Time of a beat.
    pub beat: Ticks,
    /// Cost of a read besides its beats.
    pub read: Pace,
    /// Cost of a write besides its beats.
    pub write: Pace,
    /// Costs of the data of reads besides their beats, if there are any.
    pub read_data: Option<ReadData>,
    /// Bytes of host memory that a descriptor covers.
    pub descriptor_bytes: u64,
    /// Time of a descriptor before its first request.
    pub descriptor: Ticks,
    /// From the start command to the first request.
    pub start: Ticks,
    /// Send buffers: requests that may wait for the link.
    pub send_buffers: usize,
    /// Whether data requests set the Relaxed Ordering and ID-Based Ordering attributes; notifications never do.
    pub relaxed: bool,
    /// See `relaxed`.
    pub id_based: bool,
    /// Latency from the engine to the link.
    pub egress: Ticks,
    /// Latency from the link to the engine.
    pub ingress: Ticks,
    /// Driver interfaces of its channels: of all or of none.
    pub mailboxes: Vec<Mailbox>,
    /// Size of a fetched descriptor, in bytes.
    pub descriptor_entry_bytes: u64,
    /// Number of prefetched descriptors.
    pub prefetch_descriptors: u16,
    /// Number of channels.
    pub channels: usize,
    /// Whether requests of each direction have a data path of their own; there is one more channel then.
    pub full_duplex: bool,
    /// Time for which a request occupies the part that both directions share; zero if there is none.
    pub shared_request: Ticks,
    /// Period of the card's clock.
    pub tick: Ticks,
    /// The queues between the engine and the user circuit, if there are any.
    pub queues: Option<interconnect::Spec>,
    /// The MSI-X table, if it uses MSI-X.
    pub vectors: Option<VectorTable>,
    /// The ATC, if it has ATS.
    pub atc: Option<atc::Spec>,
}

impl Spec {
    /// Returns the time from the start command to the first request of this direction.
    #[must_use]
    pub fn start_of(&self, verb: Verb) -> Ticks {
        self.start + if verb == Verb::Load { self.queue() } else { Ticks::ZERO }
    }

    /// Returns the time in the queue before a read takes its tag.
    #[inline]
    #[must_use]
    pub fn queue(&self) -> Ticks {
        self.read_data.as_ref().map_or(Ticks::ZERO, |data| data.queue)
    }

    /// Returns the number of its channels, with the one for the second direction of a full-duplex engine.
    #[must_use]
    pub fn all_channels(&self) -> usize {
        self.channels.max(1) + usize::from(self.full_duplex)
    }
}
