//! Accesses to a controller: its registers, and host memory that both sides use.

use rustix::io::Errno;

/// Bytes of a page: CC.MPS is 0.
pub(crate) const PAGE: u64 = 4096;

/// The registers of a controller.
pub(crate) trait Bar {
    /// Loads `width` (4 or 8) bytes.
    fn load(&self, offset: u64, width: u8) -> Result<u64, Errno>;
    /// Stores `width` (4 or 8) bytes.
    fn store(&self, offset: u64, width: u8, value: u64) -> Result<(), Errno>;
}

/// Host memory that the controller can read and write.
///
/// Loads and stores are volatile, and stores are visible to the controller before a later store to a register.
pub(crate) trait DmaMemory {
    /// Loads 8 B at a multiple of 8.
    fn load(&self, offset: u64) -> u64;
    /// Stores 8 B at a multiple of 8.
    fn store(&self, offset: u64, value: u64);
    /// Stores 64 B at a multiple of 8.
    #[inline]
    fn store_entry(&self, offset: u64, entry: [u64; 8]) {
        (offset..).step_by(8).zip(entry).for_each(|(to, word)| self.store(to, word));
    }
    /// Address of a byte for the controller.
    fn iova(&self, offset: u64) -> u64;
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
