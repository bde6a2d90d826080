//! A request of a core to a device: the order of its instructions, and its polling loop.
//!
//! ```text
//!  stores of the data --> [SFENCE] --> loads of the status --> loads of the result
//! ```

use crate::host::instruction::{Instruction, Manner, Touch};
use lanemark_machine::{Handshake, Verb};
use lanemark_units::Ticks;

/// Instructions that follow the current stream of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The fence after stores to WC memory.
    Fence,
    /// The polling loop.
    Poll,
    /// The loads of the result.
    Fetch,
    /// None.
    End,
}

/// Returns the polling loop on the status register at a bus address, until it counts `until` requests.
#[must_use]
pub fn poll(address: u64, until: u64, pace: Ticks) -> Instruction {
    let (verb, manner, len) = (Verb::Load, Manner::Uncached, Handshake::STATUS_BYTES);
    Instruction::Poll { touch: Touch { verb, manner, address, len, turn: until, pace }, until }
}
