//! A transfer by a device that a core asks for and waits for.

use crate::{Transfer, UnknownName};
use lanemark_units::MemoryType;
use std::fmt;
use std::str::FromStr;

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

/// How much of a driver call a plan makes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Share {
    /// All of it: enter the kernel, pin the pages, build the list, ring, wait, unpin, return.
    Call,
    /// What a program does whose pages stay pinned and whose registers are mapped: build the list, ring, wait.
    List,
    /// The list is there already: ring and wait.
    Doorbell,
}

/// How a device comes to know where the bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Descriptors {
    /// The core writes the descriptors to the device, through a mapping of this memory type: UC or WC.
    Written(MemoryType),
    /// The device fetches them from host memory, where the core left them.
    Fetched,
}

/// How a core comes to know that a device is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Completion {
    /// The device writes a word to host memory, which the core loads until it is there.
    Flag,
    /// The core loads a register of the device until it says so.
    Register,
    /// The device sends a message (MSI, MSI-X); its handler wakes the thread that waits.
    Interrupt,
}

impl Completion {
    /// Every way, in the order they are listed to users.
    pub const ALL: [Completion; 3] = [Completion::Flag, Completion::Register, Completion::Interrupt];

    /// The name in options and records.
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
        found.ok_or_else(|| UnknownName { name: text.to_owned(), what: "a way to tell of an end", known: known() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_tell_of_an_end_is_read_by_its_name() {
        for completion in Completion::ALL {
            assert_eq!(completion.to_string().parse::<Completion>().unwrap(), completion);
        }
        let error = "bell".parse::<Completion>().unwrap_err().to_string();
        assert!(error.contains("flag, register, interrupt"), "{error}");
    }
}
