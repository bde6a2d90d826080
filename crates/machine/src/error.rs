//! Errors of machines.

use crate::BusError;
use lanemark_units::{BarOffset, Ticks};

/// The machine does not support this plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is unsupported on {machine}, because {because}")]
pub struct Unsupported {
    /// The requested operation.
    pub what: String,
    /// Name of the machine.
    pub machine: String,
    /// The reason.
    pub because: String,
}

/// The reason why a plan returned no samples.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The machine does not support the plan; nothing was sent.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// An access is outside every region; nothing was sent.
    #[error("{machine}: {len} B at {at} are outside every region; regions: {regions}")]
    OutOfRange {
        /// Name of the machine.
        machine: String,
        /// Start of the access.
        at: BarOffset,
        /// Length of the access in bytes.
        len: u64,
        /// Existing regions.
        regions: String,
    },
    /// The timeout of the plan expired.
    #[error("{machine}: the plan timed out after {after}, waiting for {waiting_for}; shorten it or raise its timeout")]
    Timeout {
        /// Name of the machine.
        machine: String,
        /// Time for which the plan ran, on the machine's clock.
        after: Ticks,
        /// The stall that the plan was in.
        waiting_for: String,
    },
    /// Deadlock of a simulation: no event is pending and the plan is not complete. This is a defect of the platform.
    #[error("{machine}: deadlock at {at}: no event is pending, and the plan waits for {waiting_for}")]
    Stuck {
        /// Name of the machine.
        machine: String,
        /// Time of the deadlock.
        at: Ticks,
        /// The stall that the plan was in.
        waiting_for: String,
    },
    /// A system call failed.
    #[error("{machine}: {doing}: {source}")]
    Os {
        /// Name of the machine.
        machine: String,
        /// The operation that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The device does not respond as required: the device or its memory is gone. A retry does not help.
    #[error("{what}")]
    Device {
        /// Name of the machine.
        machine: String,
        /// The device, the failure, and the action to take.
        what: String,
    },
    /// A TLP was lost, rejected or never completed.
    #[error("{0}")]
    Bus(Box<BusError>),
    /// The run was interrupted (Ctrl-C).
    #[error("{machine}: interrupted")]
    Interrupted {
        /// Name of the machine.
        machine: String,
    },
}
