//! Messages between two cores.

use crate::{Access, Span};

/// A message from one core to another, and its answer.
///
/// In each iteration, the first core sends a message and waits for the answer; the second core waits for the message
/// and answers. The first core takes the timestamps. A message carries a number computed from its iteration, so that a
/// stale message is never mistaken for a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The core that sends the message, then the core that answers; counted from 0.
    pub cores: [u32; 2],
    /// Medium of message and answer.
    pub medium: Medium,
}

/// Medium of the messages between two cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    /// The sender stores a number into a cache line, and the receiver polls the line.
    Lines {
        /// Storing instruction. A non-temporal store is followed by `SFENCE`, which empties its write-combining
        /// buffer.
        access: Access,
        /// Line of the message: 64 B, 64 B aligned.
        message: Span,
        /// Line of the answer, which may be the same: 64 B, 64 B aligned.
        answer: Span,
    },
    /// The receiver sleeps in the kernel until the sender wakes it, on Linux through an `eventfd` in each direction.
    Events,
}
