//! Accesses to a controller: its registers, and host memory that both sides use.

use super::error::NvmeError;
use rustix::io::Errno;

/// Bytes of a page: CC.MPS is 0.
pub(crate) const PAGE: u64 = 4096;

/// Bytes of a submission and of a completion. Source: NVM Express Base Specification 2.0, 3.3.3.1 and 3.3.3.2.
pub(super) const SUBMISSION: u64 = 64;
/// See [`SUBMISSION`].
pub(super) const COMPLETION: u64 = 16;

/// Most entries of a queue: so many submissions fill a page.
pub(super) const ENTRIES: u16 = 64;

/// The registers of a controller.
pub(crate) trait Bar {
    /// A doorbell, ready to be rung.
    type Doorbell<'a>: Doorbell
    where
        Self: 'a;

    /// Loads `width` (4 or 8) bytes.
    fn load(&self, offset: u64, width: u8) -> Result<u64, Errno>;
    /// Stores `width` (4 or 8) bytes.
    fn store(&self, offset: u64, width: u8, value: u64) -> Result<(), Errno>;
    /// The doorbell at this offset.
    fn doorbell(&self, offset: u64) -> Result<Self::Doorbell<'_>, Errno>;
}

/// A register of 4 B by which a controller learns of new entries of a queue.
pub(crate) trait Doorbell {
    /// Stores the number of the first entry that the controller must leave alone.
    fn ring(&self, value: u32) -> Result<(), Errno>;
}

/// Host memory that the controller can read and write.
///
/// Loads and stores are volatile, and stores are visible to the controller before a later store to a register.
pub(crate) trait DmaMemory {
    /// A page with entries of a queue.
    type Slots<'a>: Slots
    where
        Self: 'a;

    /// Loads 8 B at a multiple of 8.
    fn load(&self, offset: u64) -> u64;
    /// Stores 8 B at a multiple of 8.
    fn store(&self, offset: u64, value: u64);
    /// Address of a byte for the controller.
    fn iova(&self, offset: u64) -> u64;
    /// The page at this offset.
    fn slots(&self, offset: u64) -> Self::Slots<'_>;
}

/// A page with entries of a queue, as [`DmaMemory`] is accessed. An index counts modulo [`ENTRIES`], so every one is in the page.
pub(crate) trait Slots {
    /// Stores a submission, and the identifier `id` in it, which is 0 in `words`.
    fn submit(&self, index: u32, words: &[u64; 8], id: u16) -> Result<(), NvmeError>;
    /// Loads dwords 2 and 3 of a completion.
    fn completion(&self, index: u32) -> Result<u64, NvmeError>;
}

/// The interrupts of completion queues.
pub(crate) trait Interrupt: std::fmt::Debug {
    /// Waits for an interrupt, for at most 100 ms; returns the vectors of which one has arrived since the last call, a bit each.
    fn wait(&self) -> Result<u64, Errno>;
}

/// An interrupt vector of a completion queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector<'a> {
    pub(super) number: u16,
    pub(super) event: &'a dyn Interrupt,
}

impl Vector<'_> {
    /// Whether it is one of those that have arrived.
    pub(super) const fn is_in(self, arrived: u64) -> bool {
        arrived >> self.number & 1 == 1
    }
}
