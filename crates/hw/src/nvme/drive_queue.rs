//! What a run needs of a queue of commands to a drive, and the memory of a command.

use super::error::NvmeError;
use lanemark_machine::MachineError;
use std::borrow::Borrow;

/// Memory with the data of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DataAt {
    /// Host memory.
    Host,
    /// The controller memory buffer of the drive.
    Cmb,
    /// A BAR of another card.
    Peer,
}

/// Memory of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    /// The window of the plan, or the place for verification, which is always in host memory.
    pub(crate) place: DataAt,
    /// Offset of the first byte; in a BAR of another card, from its start.
    pub(crate) at: u64,
    /// Number of its list of data pointers.
    pub(crate) list: u64,
}

/// A queue through which commands reach a drive.
pub(crate) trait DriveQueue {
    /// A command that is ready to be submitted.
    type Command: Copy;

    /// A read of `blocks` logical blocks, `bytes` bytes, from `first` on to this memory.
    fn read(&self, first: u64, blocks: u32, to: Spot, bytes: u64) -> Self::Command;

    /// A write of these bytes to these blocks, whose contents are lost; `None` if this queue only reads.
    fn write(&self, first: u64, blocks: u32, from: Spot, bytes: u64) -> Option<Self::Command>;

    /// Runs the commands of `next`, given the number of a queue pair, with at most `depth` outstanding on each, until it returns
    /// `None` and all have completed. `check` is called during long waits, and ends them with an error.
    fn run<K: Borrow<Self::Command>>(
        &mut self,
        depth: u32,
        next: impl FnMut(usize) -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError>;

    /// Name of an outstanding command.
    fn waiting_for(&self) -> &'static str;

    /// Fails if the drive cannot be used any more. Called between samples.
    fn check(&self) -> Result<(), MachineError>;
}
