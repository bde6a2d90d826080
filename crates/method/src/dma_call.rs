//! DMA started by a core: steps of a driver call, descriptors and notification.

use lanemark_units::MemoryType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The steps of a driver call that a plan includes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// All steps: enter the kernel, pin pages, write descriptors, ring the doorbell, wait, unpin, return.
    Call,
    /// User-space driver with pinned pages and mapped registers: write descriptors, ring the doorbell, wait.
    List,
    /// Descriptors are prepared in advance: ring the doorbell and wait.
    Doorbell,
}

impl Share {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Share::Call => "call",
            Share::List => "list",
            Share::Doorbell => "doorbell",
        }
    }
}

/// Transfer of descriptors to a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Descriptors {
    /// Written by the core to the device, through a mapping of this memory type: UC or WC.
    Written(MemoryType),
    /// Fetched by the device from host memory, where the core has written them.
    Fetched,
}

impl Descriptors {
    /// Memory type of the mapping, or `fetched`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Descriptors::Written(memory_type) => memory_type.name(),
            Descriptors::Fetched => "fetched",
        }
    }
}

/// Notification of a core when a device has finished.
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

crate::name::from_name!(Completion, "a completion");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_completion_is_parsed_from_its_name() {
        for completion in Completion::ALL {
            assert_eq!(completion.to_string().parse::<Completion>().unwrap(), completion);
        }
        let error = "bell".parse::<Completion>().unwrap_err().to_string();
        assert!(error.contains("flag, register, interrupt"), "{error}");
    }
}
