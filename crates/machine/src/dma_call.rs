//! A transfer by a device that a core asks for and waits for.

use crate::{Completion, Descriptors, Share, Transfer};

/// Calls of a driver, one after the other: each lets a card make one transfer with host memory, and waits for its end.
///
/// Time is the core's: a sample begins with the first call and ends when the core knows that the last one is done.
///
/// ```
/// use lanemark_machine::{Completion, Descriptors, DmaCall, Partner, Pattern, Share, Transfer, Verb, Window};
/// use lanemark_units::MemoryType;
/// let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
/// let partner = Partner::Host;
/// let transfer = Transfer { card: 0, verb: Verb::Store, partner, bytes: 64, count: 10, window, outstanding: None };
/// let descriptors = Descriptors::Written(MemoryType::Uc);
/// let call = DmaCall { transfer, channel: 0, share: Share::Doorbell, descriptors, completion: Completion::Flag };
/// assert_eq!(call.transfer.bytes_of_pass(), 640);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaCall {
    /// What the card moves: `count` calls of one transfer each. Its partner is the host.
    pub transfer: Transfer,
    /// On which of the card's channels, counted from 0: each has a doorbell, a list and a completion of its own, so that one
    /// core calls on one while another does on the next.
    pub channel: u32,
    /// How much of a call there is.
    pub share: Share,
    /// How the card comes to know where the bytes are.
    pub descriptors: Descriptors,
    /// How the core comes to know that they have been moved.
    pub completion: Completion,
}
