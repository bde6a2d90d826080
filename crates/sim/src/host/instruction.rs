//! The instructions that a core executes for a program, a driver or a runtime.

use crate::host::coherent_memory::BufferOp;
use lanemark_machine::{Cause, Fence, Verb};
use lanemark_units::Ticks;

/// An instruction, or the piece of one within a 64 B line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A load or store.
    Touch(Touch),
    /// An ordering instruction.
    Fence(Fence),
    /// Time in the kernel, which orders memory accesses.
    Kernel(Ticks),
    /// Idle time.
    Pause(Ticks),
    /// A load of a line from another cache or memory, with its latency.
    LoadFrom(Ticks),
    /// A flush of a cached line.
    FlushLine(u64),
    /// An operation on memory shared with a device.
    Own(BufferOp),
    /// Driver time without memory ordering.
    Work(Ticks),
    /// Runtime library time without memory ordering.
    Library(Ticks),
    /// A copy of host memory by the core.
    Copy {
        /// Source bus address.
        from: u64,
        /// Destination bus address.
        to: u64,
        /// Length in bytes.
        bytes: u64,
        /// Duration.
        span: Ticks,
    },
    /// A timestamp: the end of the program's work, as far as it can observe.
    Stamp,
    /// A sleep until a notification reports a number of completed transfers.
    Sleep {
        /// The number of transfers.
        until: u64,
        /// Behaviour on wake-up.
        wake: Wake,
        /// Stall cause.
        reason: Cause,
    },
    /// A wait until notifications report a number of completed transfers of a channel.
    Await {
        /// The number of transfers.
        until: u64,
    },
    /// A polling loop on a register until it shows a number of completed transfers.
    Poll {
        /// The load.
        touch: Touch,
        /// The number of transfers.
        until: u64,
    },
}

impl Instruction {
    /// Returns what the time of executing it is spent for.
    #[inline]
    pub(crate) const fn cause(&self) -> Cause {
        match self {
            Instruction::Kernel(_) | Instruction::Work(_) | Instruction::Sleep { .. } => Cause::Driver,
            Instruction::Library(_) | Instruction::Copy { .. } => Cause::Runtime,
            Instruction::LoadFrom(_) => Cause::ReadRoundTrip,
            Instruction::Touch(_)
            | Instruction::Fence(_)
            | Instruction::Pause(_)
            | Instruction::Stamp
            | Instruction::Own(_)
            | Instruction::Await { .. }
            | Instruction::Poll { .. }
            | Instruction::FlushLine(_) => Cause::Issue,
        }
    }
}

/// Costs of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Time after which a sleeping core enters an idle state.
    pub idle_entry: Ticks,
    /// Latency of leaving the idle state.
    pub idle_exit: Ticks,
    /// Time of the interrupt handler and of waking the thread.
    pub woken: Ticks,
}

/// A load or store, or the piece of one within a 64 B line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Load or store.
    pub verb: Verb,
    /// How the core executes it.
    pub manner: Manner,
    /// Bus address.
    pub address: u64,
    /// Length in bytes.
    pub len: u64,
    /// Number of the repetition of its stream, which determines the stored bytes.
    pub turn: u64,
    /// Time until the next instruction can issue.
    pub pace: Ticks,
}

impl Touch {
    /// Returns the bus address of its line.
    #[inline]
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.address & !63
    }

    /// Returns the mask of its bytes in the line.
    #[inline]
    #[must_use]
    pub const fn mask(&self) -> u64 {
        if self.len == 64 { u64::MAX } else { ((1 << self.len) - 1) << (self.address % 64) }
    }

    /// Returns its bytes, from those of its line.
    #[must_use]
    pub fn of<'a>(&self, line: &'a [u8; 64]) -> &'a [u8] {
        &line[(self.address % 64) as usize..][..self.len as usize]
    }
}

/// The combination of memory type and instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Uncached: one at a time, with its exact width, after everything before it.
    Uncached,
    /// Write-combining: stores gather in buffers; loads are single and uncached.
    Combining,
    /// Direct store: weakly ordered and never gathered.
    Direct,
    /// A load from a streaming buffer.
    Streaming,
    /// Write-through: loads are cached; stores update the cached line.
    Through,
    /// Write-protected: loads are cached; stores drop the cached line.
    Protected,
}
