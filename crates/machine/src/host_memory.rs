//! What devices find of the host memory that is lent to them.

use crate::Socket;

/// Whose caches have it, and where it is, when a sample begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostMemory {
    /// Who wrote each window of a transfer last, all of it from its start to its end.
    pub written_by: Writer,
    /// Which socket it belongs to.
    pub socket: Socket,
}

/// Who wrote a window last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Writer {
    /// Nobody since its lines left every cache.
    Nobody,
    /// A core: the usual case of what a device reads.
    #[default]
    Core,
    /// A device, after its lines had left every cache.
    Device,
}
