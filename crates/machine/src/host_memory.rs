//! Initial state of the host memory that devices access.

use crate::Socket;

/// Cache state and placement of the host memory that is mapped for devices, at the start of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostMemory {
    /// Last writer of each window; it wrote the whole window, from start to end.
    pub written_by: Writer,
    /// Socket that the memory belongs to.
    pub socket: Socket,
}

/// Last writer of a window, which determines the initial cache state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Writer {
    /// No writer since the lines left all caches: the window is cold.
    Nobody,
    /// A core, as is usual for data that a device reads.
    #[default]
    Core,
    /// A device, after the lines had left all caches.
    Device,
}
