//! The instructions that a core executes, each one of a program, a driver or a runtime.

use crate::host::coherent_memory::Deed;
use lanemark_machine::{Cause, Fence, Verb};
use lanemark_units::Ticks;

/// One instruction, or the piece of one that lies in a 64 B line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A load or store.
    Touch(Touch),
    /// An ordering instruction.
    Fence(Fence),
    /// The kernel works; what it did to memory is ordered.
    Kernel(Ticks),
    /// Time passes.
    Pause(Ticks),
    /// A line that somebody else has is loaded, and waited for so long.
    LoadFrom(Ticks),
    /// A cached line is dropped.
    FlushLine(u64),
    /// Something on memory that is shared with a device.
    Own(Deed),
    /// The driver computes, and orders nothing.
    Work(Ticks),
    /// The runtime computes, and orders nothing.
    Library(Ticks),
    /// The core copies host memory, in so long.
    Copy {
        /// Bus address of the first byte.
        from: u64,
        /// Where that goes.
        to: u64,
        /// How many.
        bytes: u64,
        /// How long it takes.
        span: Ticks,
    },
    /// The program looks at the time: what it was to do is done, as far as it knows.
    Stamp,
    /// The core waits for a message that says that a card has done so much; it sleeps, if it has to.
    Sleep {
        /// How much.
        until: u64,
        /// What it does when it is told.
        wake: Wake,
        /// For what it waits.
        reason: Cause,
    },
    /// The core waits until it is told that a channel of a card has done so many transfers.
    Await {
        /// How many.
        until: u64,
    },
    /// A register is loaded until it says that a channel of a card has done so many transfers.
    Poll {
        /// The load.
        touch: Touch,
        /// How many.
        until: u64,
    },
}

/// What a core does that is told of what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// After so long it is in an idle state.
    pub idle_entry: Ticks,
    /// What leaving that takes.
    pub idle_exit: Ticks,
    /// Handler and woken thread together.
    pub woken: Ticks,
}

/// A load or store, or the piece of one, that lies in a 64 B line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Load or store.
    pub verb: Verb,
    /// How the core treats it.
    pub manner: Manner,
    /// Bus address.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    /// Which repetition of its stream this is: stored bytes depend on it.
    pub turn: u64,
    /// Time until the next instruction can issue.
    pub pace: Ticks,
}

impl Touch {
    /// Bus address of its line.
    #[inline]
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.address & !63
    }

    /// Its bytes of the line.
    #[inline]
    #[must_use]
    pub const fn mask(&self) -> u64 {
        if self.len == 64 { u64::MAX } else { ((1 << self.len) - 1) << (self.address % 64) }
    }

    /// Its bytes, out of those of its line.
    #[must_use]
    pub fn of<'a>(&self, line: &'a [u8; 64]) -> &'a [u8] {
        &line[(self.address % 64) as usize..][..self.len as usize]
    }
}

/// What memory type and instruction make together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// One at a time, exact width, everything before it drained.
    Uncached,
    /// Stores gather in buffers; loads are single and uncached.
    Combining,
    /// A store of its own, weakly ordered, never gathered.
    Direct,
    /// A load served from a streaming buffer.
    Streaming,
    /// Loads cached; stores go through and change the cached line.
    Through,
    /// Loads cached; stores go through and drop the cached line.
    Protected,
}
