//! Errors of a controller.

use super::identify::Active;
use super::status::Status;
use rustix::io::Errno;

/// Error of a controller, without the name of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NvmeError {
    /// CSTS.RDY did not follow CC.EN.
    #[error(
        "the controller did not become {wanted} within {after_ms} ms, the time of CAP.TO (CSTS is {csts:#x}): power-cycle the drive"
    )]
    NotReady { wanted: &'static str, after_ms: u64, csts: u64 },
    /// CSTS.CFS.
    #[error("the controller reports a fatal status (CSTS is {0:#x}): reset or power-cycle the drive")]
    Fatal(u64),
    /// Registers read as all ones.
    #[error("the registers of the controller read as all ones: the drive was removed, or its link is down")]
    Gone,
    /// A property that this code does not handle.
    #[error("{0}: use another drive")]
    Unsupported(&'static str),
    /// A property that an option needs.
    #[error("{because}: use another drive, or remove the option {option}")]
    NoOption { because: &'static str, option: &'static str },
    /// Fewer I/O queue pairs than needed.
    #[error(
        "the drive grants {granted} I/O queue pairs (Set Features, Number of Queues), and the run needs {wanted}: use fewer --channels"
    )]
    QueuePairs { wanted: u32, granted: u32 },
    /// A namespace that cannot be used.
    #[error(
        "namespace {id}: {because}; active namespaces: {active}: name another one with --namespace, or use another drive"
    )]
    Namespace { id: u32, because: &'static str, active: Active },
    /// A command failed.
    #[error(
        "the drive refused the command {command}: {status}; see its error log, under the kernel's driver: nvme error-log"
    )]
    Refused { command: &'static str, status: Status },
    /// No completion came.
    #[error("the drive did not complete the command {command} within {after_ms} ms: reset or power-cycle it")]
    NoCompletion { command: &'static str, after_ms: u64 },
    /// A completion came without its interrupt.
    #[error(
        "the drive completed the command {command} and sent no interrupt: check its MSI-X or MSI capability with lspci -vv"
    )]
    NoInterrupt { command: &'static str },
    /// A completion names a command that is not outstanding.
    #[error("the drive completed the command {0}, which was not outstanding: its firmware is at fault")]
    Unknown(u16),
    /// The run was interrupted.
    #[error("the wait for the drive was interrupted")]
    Interrupted,
    /// The plan has no more time.
    #[error("the time of the plan is over")]
    Late,
    /// The kernel did not run a command.
    #[error("the kernel's driver did not run the command {command}: {error}; see dmesg")]
    Kernel { command: &'static str, error: Errno },
    /// The kernel removes the drive.
    #[error(
        "the kernel has removed the drive: it was unplugged, its slot was turned off, or its driver was unbound; see dmesg"
    )]
    Removed,
    /// Waiting for an interrupt failed.
    #[error("waiting for an interrupt of the controller failed: {0}")]
    Wait(Errno),
    /// A register could not be accessed.
    #[error("accessing a register of the controller failed: {0}")]
    Os(Errno),
}

impl NvmeError {
    /// A property is missing that this option of a command needs.
    pub(crate) const fn no_option(because: &'static str, option: &'static str) -> NvmeError {
        NvmeError::NoOption { because, option }
    }
}

impl From<Errno> for NvmeError {
    fn from(error: Errno) -> NvmeError {
        NvmeError::Os(error)
    }
}
