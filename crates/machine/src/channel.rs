//! Messages between cores.

use crate::{Access, Span};

/// Mechanism by which one lane sends messages to another.
///
/// A message carries a number, computed from its iteration and its place in the body, so that a stale message is
/// never mistaken for a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// The sender stores the number into a cache line; the receiver polls the line.
    Line {
        /// Storing instruction. A non-temporal store is followed by `SFENCE`, which empties its write-combining
        /// buffer.
        access: Access,
        /// The line: 64 B, 64 B aligned.
        span: Span,
    },
    /// The receiver sleeps in the kernel until the sender wakes it (on Linux through an `eventfd`).
    Event {
        /// Index of the event.
        number: u32,
    },
}

impl Channel {
    /// Memory that the channel uses; `None` for an event.
    #[must_use]
    pub const fn span(&self) -> Option<&Span> {
        match self {
            Channel::Line { span, .. } => Some(span),
            Channel::Event { .. } => None,
        }
    }
}
