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
    /// Address of a byte for the controller.
    fn iova(&self, offset: u64) -> u64;
}

/// The interrupt of a completion queue.
pub(crate) trait Interrupt: std::fmt::Debug {
    /// Waits for the interrupt, for at most 100 ms; returns whether it has arrived since the last call.
    fn wait(&self) -> Result<bool, Errno>;
}
