//! How a core asks a device to move bytes, and how it is notified of the end.

use lanemark_units::MemoryType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How much of a driver call a plan makes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// All of it: enter the kernel, pin the pages, build the list, ring, wait, unpin, return.
    Call,
    /// What a program does whose pages stay pinned and whose registers are mapped: build the list, ring, wait.
    List,
    /// The list is there already: ring and wait.
    Doorbell,
}

impl Share {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Share::Call => "call",
            Share::List => "list",
            Share::Doorbell => "doorbell",
        }
    }
}

/// How a device comes to know where the bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Descriptors {
    /// The core writes the descriptors to the device, through a mapping of this memory type: UC or WC.
    Written(MemoryType),
    /// The device fetches them from host memory, where the core left them.
    Fetched,
}

impl Descriptors {
    /// The memory type they are written through, or `fetched`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Descriptors::Written(memory_type) => memory_type.name(),
            Descriptors::Fetched => "fetched",
        }
    }
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
    /// Every completion, in the order they are listed to users.
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

crate::name::from_name!(Completion, "a completion");

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
