//! How one core tells another.

use crate::{Access, Span};

/// A way for a message from one lane to another.
///
/// Messages are numbered by pass and place in the body, so that both lanes know which is meant; what was
/// sent before is never taken for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// The sender stores the number into a line; the receiver loads it again and again until it is there.
    Line {
        /// The storing instruction. A non-temporal one is followed by `SFENCE`, for its buffer would keep the
        /// message otherwise.
        access: Access,
        /// The line: 64 B at a boundary of 64 B.
        span: Span,
    },
    /// The receiver sleeps in the kernel until the sender wakes it (on Linux by an `eventfd`).
    Event {
        /// Which of several.
        number: u32,
    },
}

impl Channel {
    /// The bytes it touches, if any.
    #[must_use]
    pub const fn span(&self) -> Option<&Span> {
        match self {
            Channel::Line { span, .. } => Some(span),
            Channel::Event { .. } => None,
        }
    }
}
