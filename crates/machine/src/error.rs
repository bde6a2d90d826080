//! What can go wrong between a question and a machine.

use crate::BusError;
use lanemark_units::{BarOffset, Ticks};

/// The machine will not run this plan, because.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is unsupported on {machine}, because {because}")]
pub struct Unsupported {
    /// What was asked for.
    pub what: String,
    /// Of whom.
    pub machine: String,
    /// Why not.
    pub because: String,
}

/// Why a plan did not give samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The machine has not got it; nothing was sent.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// An access outside every window; nothing was sent.
    #[error("{machine}: {len} B at {at} lie outside every region; the regions are {regions}")]
    OutOfRange {
        /// Of whom.
        machine: String,
        /// Where it starts.
        at: BarOffset,
        /// How long it is.
        len: u64,
        /// What there is.
        regions: String,
    },
    /// The plan's time is over.
    #[error(
        "{machine}: the plan was not done after {after}, waiting for {waiting_for}; make it shorter or raise its timeout"
    )]
    Timeout {
        /// Of whom.
        machine: String,
        /// How long it ran, in the machine's time.
        after: Ticks,
        /// What it waited for.
        waiting_for: String,
    },
    /// Nothing will ever happen again and the plan is not done: a defect of the machine's description.
    #[error("{machine}: at {at} nothing is left to happen, but the plan waits for {waiting_for}")]
    Stuck {
        /// Of whom.
        machine: String,
        /// When.
        at: Ticks,
        /// What it waited for.
        waiting_for: String,
    },
    /// The operating system refused.
    #[error("{machine}: {doing}: {source}")]
    Os {
        /// Of whom.
        machine: String,
        /// What was being done.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
    /// The device does not answer as it must: it is gone, or its memory is. Asking again is of no use.
    #[error("{what}")]
    Device {
        /// Of whom.
        machine: String,
        /// Which device, what happened and what to do.
        what: String,
    },
    /// A TLP was lost, refused or never answered.
    #[error("{0}")]
    Bus(Box<BusError>),
    /// Somebody asked for an end (Ctrl-C).
    #[error("{machine}: interrupted")]
    Interrupted {
        /// Of whom.
        machine: String,
    },
}
