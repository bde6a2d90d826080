//! Operations of a core that are timed alone.

use crate::{BufferHandoff, Clock, Handshake, KernelCall, LineSource, MapUnmap};

/// An operation that one core repeats and that is timed alone, without steps before or after it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operation {
    /// Reads a clock and discards the time.
    Clock(Clock),
    /// Makes a system call that does almost nothing.
    KernelCall(KernelCall),
    /// Maps memory for DMA and unmaps it.
    MapUnmap(MapUnmap),
    /// Hands a buffer of ordinary memory over to a device, or takes one over.
    BufferHandoff(BufferHandoff),
    /// Loads from a line of ordinary memory held elsewhere, and waits for the data.
    LineLoad(LineSource),
    /// Pushes data to a device, polls its status register, and fetches the result.
    Handshake(Handshake),
}

impl Operation {
    /// Bytes moved by one operation.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        match self {
            Operation::BufferHandoff(handoff) => handoff.bytes,
            Operation::LineLoad(_) => LineSource::LOAD_BYTES,
            Operation::Handshake(handshake) => handshake.data.len.saturating_mul(2),
            Operation::Clock(_) | Operation::KernelCall(_) | Operation::MapUnmap(_) => 0,
        }
    }
}
