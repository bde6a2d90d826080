//! DMA transfers that a core requests through a driver and waits for.

use crate::{Completion, Descriptors, Share, Transfer};

/// Driver calls, back to back. Each makes a card do one transfer with host memory, and waits for its completion.
///
/// Time is measured by the core: a sample begins with the first call and ends when the core has observed the last
/// completion.
///
/// ```
/// use lanemark_machine::{Completion, Descriptors, DmaCall, Partner, Pattern, Share, Transfer, Verb, Window};
/// use lanemark_units::MemoryType;
/// let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
/// let partner = Partner::Host;
/// let transfer = Transfer { card: 0, verb: Verb::Store, partner, bytes: 64, count: 10, window, outstanding: None };
/// let descriptors = Descriptors::Written(MemoryType::Uc);
/// let call = DmaCall { transfer, channel: 0, share: Share::Doorbell, descriptors, completion: Completion::Flag };
/// assert_eq!(call.transfer.bytes_per_pass(), 640);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaCall {
    /// The transfers: `count` calls of one transfer each. The partner must be the host.
    pub transfer: Transfer,
    /// DMA channel of the card, counted from 0. Each channel has its own doorbell, descriptor ring and completion, so
    /// that several cores can use several channels concurrently.
    pub channel: u32,
    /// The steps of a driver call that are included.
    pub share: Share,
    /// How the device obtains the descriptors.
    pub descriptors: Descriptors,
    /// How the core is notified of the completion.
    pub completion: Completion,
}
