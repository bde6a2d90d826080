//! Recovery of a card in a running machine: the steps, and their results on a simulated machine.

use lanemark_wire::FunctionId;
use lanemark_wire::config::AerRegister;
use serde::{Serialize, Serializer};

/// The steps that recover a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Source of the facts: `this machine`, or a file.
    pub source: String,
    /// Addresses of the card's functions: `0000:01:00.0`.
    pub functions: Vec<String>,
    /// Addresses of the ports above the card, the nearest first.
    pub ports: Vec<String>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Conditions that the steps cannot check.
    pub notes: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Kind of the step.
    pub kind: StepKind,
    /// Shell commands, in order.
    pub commands: Vec<String>,
    /// The same as acts for a simulated machine; serialized as `commands` only.
    #[serde(skip)]
    pub acts: Vec<Act>,
    /// The reason.
    pub why: String,
}

/// Purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Unbinds the driver and stops programs that use the card.
    Unbind,
    /// Saves the masks for the end.
    Keep,
    /// Masks error reports of card and ports.
    Mask,
    /// Removes the card from the system.
    Remove,
    /// Programs the card.
    Program,
    /// Rescans the bus for the card.
    Rescan,
    /// Clears status bits that were set meanwhile.
    Clear,
    /// Checks link, BARs and errors.
    Check,
    /// Restores the masks.
    Restore,
}

impl StepKind {
    /// Name of the step.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StepKind::Unbind => "unbind",
            StepKind::Keep => "keep",
            StepKind::Mask => "mask",
            StepKind::Remove => "remove",
            StepKind::Program => "program",
            StepKind::Rescan => "rescan",
            StepKind::Clear => "clear",
            StepKind::Check => "check",
            StepKind::Restore => "restore",
        }
    }
}

/// An act on functions of one PCI domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A register write.
    Write {
        /// The function.
        function: FunctionId,
        /// The register.
        register: AerRegister,
        /// The value.
        value: u32,
    },
    /// Removal of a function from the system.
    Remove(FunctionId),
    /// Programming of the card with this function.
    Program(FunctionId),
    /// A scan of a bus for new functions.
    Rescan {
        /// The bus.
        bus: u8,
    },
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// The step.
    pub step: Step,
    /// Reason for skipping it; absent if it was performed.
    pub left_out: Option<String>,
    /// Failures.
    pub failures: Vec<String>,
    /// Changes.
    pub changes: Vec<Changed>,
    /// Errors that reached the system's log.
    pub reported: Vec<String>,
}

/// A function before and after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Address.
    pub function: String,
    /// State before the step.
    pub before: String,
    /// State after the step.
    pub after: String,
}

/// A recovery on a simulated machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CarriedOut {
    /// The machine.
    pub machine: String,
    /// Initial state of card and ports, by address.
    #[serde(serialize_with = "by_function")]
    pub at_first: Vec<(String, String)>,
    /// Result of a load from the card before the recovery.
    pub first_load: String,
    /// Errors in the log before the recovery.
    pub reported_at_first: Vec<String>,
    /// The performed steps.
    pub done: Vec<Done>,
    /// Result of a load from the card after the recovery.
    pub last_load: String,
    /// Differences of the card from its working state; empty after a complete recovery.
    pub differences: Vec<String>,
}

fn by_function<S: Serializer>(states: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(states.iter().map(|(function, state)| (function, state)))
}
