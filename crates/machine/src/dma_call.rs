//! DMA transfers that a core requests through a driver and waits for.

use crate::{Transfer, UnknownName};
use lanemark_units::MemoryType;
use std::fmt;
use std::str::FromStr;

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
/// assert_eq!(call.transfer.bytes_of_pass(), 640);
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

/// The steps of a driver call that a plan includes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Share {
    /// All steps: enter the kernel, pin pages, write descriptors, ring the doorbell, wait, unpin, return.
    Call,
    /// User-space driver with pinned pages and mapped registers: write descriptors, ring the doorbell, wait.
    List,
    /// Descriptors are prepared in advance: ring the doorbell and wait.
    Doorbell,
}

/// How a device obtains its descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Descriptors {
    /// The core writes them to the device, through a mapping of this memory type: UC or WC.
    Written(MemoryType),
    /// The device fetches them from host memory, where the core has written them.
    Fetched,
}

/// How a core is notified that a device has finished.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Completion {
    /// The device writes a completion flag to host memory, which the core polls.
    Flag,
    /// The core polls a status register of the device.
    Register,
    /// The device sends an MSI or MSI-X interrupt, whose handler wakes the waiting thread.
    Interrupt,
}

impl Completion {
    /// All methods, in the order shown to users.
    pub const ALL: [Completion; 3] = [Completion::Flag, Completion::Register, Completion::Interrupt];

    /// Name in options and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Completion::Flag => "flag",
            Completion::Register => "register",
            Completion::Interrupt => "interrupt",
        }
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Completion {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Completion, UnknownName> {
        let known = || Completion::ALL.map(Completion::name).join(", ");
        let found = Completion::ALL.into_iter().find(|completion| completion.name() == text);
        found.ok_or_else(|| UnknownName { name: text.to_owned(), what: "a completion method", known: known() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_completion_method_is_parsed_from_its_name() {
        for completion in Completion::ALL {
            assert_eq!(completion.to_string().parse::<Completion>().unwrap(), completion);
        }
        let error = "bell".parse::<Completion>().unwrap_err().to_string();
        assert!(error.contains("flag, register, interrupt"), "{error}");
    }
}
