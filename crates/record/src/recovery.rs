//! How a card that no longer works is brought back while the machine runs: the steps, and what became of them where they were
//! carried out.

use lanemark_wire::FunctionId;
use lanemark_wire::config::AerRegister;
use serde::{Serialize, Serializer};

/// The steps that bring a card back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Where the machine was seen: `this machine`, or which file.
    pub source: String,
    /// The card's functions, by address: `0000:01:00.0`.
    pub functions: Vec<String>,
    /// The ports between the card and the processors, the nearest first.
    pub ports: Vec<String>,
    /// What to do, in this order.
    pub steps: Vec<Step>,
    /// What the steps cannot know.
    pub notes: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Which.
    pub kind: StepKind,
    /// Commands for a shell, one after the other.
    pub commands: Vec<String>,
    /// The same for who can do it without a shell; `commands` say it to all others.
    #[serde(skip)]
    pub acts: Vec<Act>,
    /// Why.
    pub why: String,
}

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Driver and programs let the card go.
    Unbind,
    /// What masks hold is kept for the end.
    Keep,
    /// Card and ports report no errors.
    Mask,
    /// The system forgets the card.
    Remove,
    /// The card is programmed.
    Program,
    /// The system looks for the card.
    Rescan,
    /// What was set meanwhile in status registers is cleared.
    Clear,
    /// Link, BARs and errors are looked at.
    Check,
    /// Masks are as before.
    Restore,
}

impl StepKind {
    /// Its name.
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

/// Something that is done to functions of one PCI domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A register is written.
    Write {
        /// Of which function.
        function: FunctionId,
        /// Which.
        register: AerRegister,
        /// What.
        value: u32,
    },
    /// The system forgets a function.
    Remove(FunctionId),
    /// The card that has this function is programmed.
    Program(FunctionId),
    /// The system looks at a bus for what it does not know.
    Rescan {
        /// Which bus.
        bus: u8,
    },
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// The step.
    pub step: Step,
    /// Why it was left out, if it was.
    pub left_out: Option<String>,
    /// What went wrong with it.
    pub failures: Vec<String>,
    /// What it changed.
    pub changes: Vec<Changed>,
    /// Errors that reached the system's log in it.
    pub reported: Vec<String>,
}

/// A function before and after a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its address.
    pub function: String,
    /// How it looked.
    pub before: String,
    /// How it looks.
    pub after: String,
}

/// A recovery that was carried out on a simulated machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CarriedOut {
    /// Whose.
    pub machine: String,
    /// How card and ports looked at first, by address.
    #[serde(serialize_with = "by_function")]
    pub at_first: Vec<(String, String)>,
    /// What a load from the card brought at first.
    pub first_load: String,
    /// Errors that had reached the log by then.
    pub reported_at_first: Vec<String>,
    /// What was done.
    pub done: Vec<Done>,
    /// What a load from the card brought at the end.
    pub last_load: String,
    /// What of the card is not as it was while it worked; none if all is.
    pub differences: Vec<String>,
}

fn by_function<S: Serializer>(looks: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(looks.iter().map(|(function, look)| (function, look)))
}
