//! Requests to a board, and their answers.

use crate::adapter_tlb::{PageEntry, TlbCommand};
use crate::io_adapter::{Fault, LEAST_BYTES};
use crate::processor::MOST_UNCACHED_BYTES;
use lanemark_units::{HostPhys, HostVirt, Iova, Ticks};

/// A request. Each processor and device executes its requests in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A load by a processor. The answer is the whole line.
    Load {
        /// Number of the processor.
        processor: usize,
        /// Address of the load.
        at: HostVirt,
    },
    /// A store by a processor, within one line.
    Store {
        /// Number of the processor.
        processor: usize,
        /// Address of the first byte.
        at: HostVirt,
        /// The bytes.
        data: Vec<u8>,
    },
    /// An uncached load by a processor. The answer is the bytes in memory.
    LoadUncached {
        /// Number of the processor.
        processor: usize,
        /// Address of the first byte, a multiple of the length.
        at: HostVirt,
        /// Length in bytes: a power of two up to [`MOST_UNCACHED_BYTES`].
        len_bytes: usize,
    },
    /// An uncached store by a processor. Caches keep their copies.
    StoreUncached {
        /// Number of the processor.
        processor: usize,
        /// Address of the first byte, a multiple of the length.
        at: HostVirt,
        /// The bytes, with the same lengths as an uncached load.
        data: Vec<u8>,
    },
    /// Flushes a line from all caches: dirty data is written back.
    Flush {
        /// Number of the processor.
        processor: usize,
        /// An address in the line.
        at: HostVirt,
    },
    /// Purges a line from all caches: dirty data is lost.
    Purge {
        /// Number of the processor.
        processor: usize,
        /// An address in the line.
        at: HostVirt,
    },
    /// Prefetches a line.
    Prefetch {
        /// Number of the processor.
        processor: usize,
        /// An address in the line.
        at: HostVirt,
    },
    /// Sends a command to the I/O TLB.
    TlbCommand {
        /// Number of the processor.
        processor: usize,
        /// The command.
        command: TlbCommand,
    },
    /// A read by a device, in words. The answer is the bytes.
    DeviceRead {
        /// Number of the device.
        device: usize,
        /// Address of the first byte.
        at: Iova,
        /// Length in bytes.
        len_bytes: usize,
    },
    /// A write by a device, in words.
    DeviceWrite {
        /// Number of the device.
        device: usize,
        /// Address of the first byte.
        at: Iova,
        /// The bytes.
        data: Vec<u8>,
    },
}

/// Identifies a request, to take its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub(super) u64);

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Time of completion.
    pub at: Ticks,
    /// The bytes read: a line by a processor, the uncached bytes by a processor, or words by a device.
    pub bytes: Vec<u8>,
    /// The fault that stopped a device.
    pub fault: Option<Fault>,
}

/// Why a request was refused or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAccess {
    /// The processor or device does not exist.
    #[error("there is no {what} {number}: there are {there_are}, numbered from 0")]
    UnknownRequester {
        /// `processor` or `device`.
        what: &'static str,
        /// The number requested.
        number: usize,
        /// The number that exist.
        there_are: usize,
    },
    /// The length is 0, or more than a request may move.
    #[error("a request of {len_bytes} B: it must be 1 to {most} B")]
    Length {
        /// The length requested.
        len_bytes: usize,
        /// The largest length.
        most: usize,
    },
    /// An access of a processor crosses a line.
    #[error("{len_bytes} B at {at} cross a line; split the access")]
    TwoLines {
        /// Address of the first byte.
        at: HostVirt,
        /// Length in bytes.
        len_bytes: usize,
    },
    /// The length or alignment of an uncached access is not supported.
    #[error(
        "an uncached access of {len_bytes} B at {at}: it must be 1, 2, 4 or {MOST_UNCACHED_BYTES} B, naturally aligned"
    )]
    NoNumber {
        /// Address of the first byte.
        at: HostVirt,
        /// Length in bytes.
        len_bytes: usize,
    },
    /// A transfer of a device is not a whole number of words.
    #[error("a device transfer of {len_bytes} B at {at}: both must be multiples of {LEAST_BYTES}")]
    NoWords {
        /// Address of the first byte.
        at: Iova,
        /// Length in bytes.
        len_bytes: usize,
    },
    /// The physical address is beyond memory.
    #[error("{at} is at {physical}, and memory ends at 2^{} B; map the page lower", PageEntry::PHYSICAL_BITS)]
    NoMemory {
        /// The virtual address.
        at: HostVirt,
        /// Its physical address.
        physical: HostPhys,
    },
    /// Too many requests are outstanding.
    #[error("{what} {number} has {most} outstanding requests; run the board until some have completed")]
    Busy {
        /// `processor` or `device`.
        what: &'static str,
        /// Its number.
        number: usize,
        /// The largest number of outstanding requests.
        most: usize,
    },
    /// Too many answers have not been taken.
    #[error("{most} answers have not been taken; take some (`answer`) before issuing more requests")]
    NotTaken {
        /// The largest number of answers.
        most: usize,
    },
    /// A device access was refused.
    #[error("{0}")]
    Fault(Fault),
    /// A deadlock: no event is due and the request has not completed, which is a defect of this simulator.
    #[error("deadlock at {0:?}: a request is outstanding and no event is due; this is a defect of the simulator")]
    Stuck(Ticks),
}
