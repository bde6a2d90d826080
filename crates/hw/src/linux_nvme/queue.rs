//! The kernel's driver as a queue for reads.

#![allow(unsafe_code)]

use super::DriveNode;
use super::passthrough::{self, Passthrough};
use super::ring::Ring;
use crate::host_pages::HostPages;
use crate::nvme::{Command, DataPointer, DriveQueue, Namespace, NvmeError, Queues, Spot};
use lanemark_machine::MachineError;
use std::borrow::Borrow;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// Time between two looks at sysfs during a wait.
const LOOK: Duration = Duration::from_millis(100);
/// Time after a failed command within which sysfs shows that its drive is being removed.
const REMOVAL: Duration = Duration::from_secs(1);

/// The system interface by which commands are given to the kernel's driver.
#[derive(Debug)]
pub(super) enum Way {
    Ring(Box<Ring>),
    /// An ioctl each, and the reason why not by `io_uring`.
    Calls(String),
}

impl Way {
    pub(super) const fn queues(&self) -> Queues {
        match self {
            Way::Ring(_) => Queues::Kernel,
            Way::Calls(_) => Queues::Ioctl,
        }
    }

    /// The way in words.
    pub(super) fn summary(&self) -> String {
        match self {
            Way::Ring(_) => "by io_uring".to_owned(),
            Way::Calls(because) => format!("by ioctl, one command at a time, because {because}"),
        }
    }
}

/// Commands of a run through the kernel's driver.
pub(super) struct KernelQueue<'a> {
    pub(super) way: &'a mut Way,
    pub(super) file: &'a OwnedFd,
    pub(super) node: &'a DriveNode,
    pub(super) namespace: Namespace,
    pub(super) pages: &'a HostPages,
    pub(super) name: &'a str,
}

impl KernelQueue<'_> {
    /// Whether commands may still write to the memory.
    pub(super) const fn is_busy(&self) -> bool {
        match &*self.way {
            Way::Ring(ring) => ring.outstanding() > 0,
            Way::Calls(_) => false,
        }
    }
}

impl DriveQueue for KernelQueue<'_> {
    type Command = Passthrough;

    fn read(&self, first: u64, blocks: u32, Spot { at, .. }: Spot, bytes: u64) -> Passthrough {
        assert!(at + bytes <= self.pages.len(), "{bytes} B at {at} of {} B", self.pages.len());
        let to = self.pages.address().0 + at;
        Passthrough::of(&Command::read(self.namespace.id, first, blocks, DataPointer::prp([to, 0])), bytes as u32)
    }

    fn write(&self, _first: u64, _blocks: u32, _from: Spot, _bytes: u64) -> Option<Passthrough> {
        None
    }

    #[inline]
    fn run<K: Borrow<Passthrough>>(
        &mut self,
        depth: u32,
        mut next: impl FnMut(usize) -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        let (node, mut looked) = (self.node, Instant::now());
        let mut check = || {
            check()?;
            if looked.elapsed() > LOOK {
                looked = Instant::now();
                return if node.is_removed() { Err(NvmeError::Removed) } else { Ok(()) };
            }
            Ok(())
        };
        let done = match self.way {
            // SAFETY: `read` makes commands for bytes of the pages, which have no references. They outlive the commands: the
            // machine keeps them while any is outstanding.
            Way::Ring(ring) => unsafe {
                ring.run(self.file.as_raw_fd(), depth, || next(0).map(|command| *command.borrow()), &mut check)
            },
            Way::Calls(_) => loop {
                let Some(command) = next(0) else { break Ok(()) };
                // SAFETY: as above; the call ends with the command.
                let done = unsafe { passthrough::read(self.file.as_fd(), *command.borrow()) };
                if let Err(error) = done.and_then(|()| check()) {
                    break Err(error);
                }
            },
        };
        done.map_err(|error| match error {
            NvmeError::Kernel { .. } | NvmeError::Refused { .. } if is_removed_soon(node) => NvmeError::Removed,
            error => error,
        })
    }

    fn waiting_for(&self) -> &'static str {
        "Read"
    }

    fn check(&self) -> Result<(), MachineError> {
        if !self.node.is_removed() {
            return Ok(());
        }
        let what = format!("{}: {}", self.name, NvmeError::Removed);
        Err(MachineError::Device { machine: self.name.to_owned(), what })
    }
}

/// Whether the drive is being removed. Its commands may fail before sysfs shows it.
pub(super) fn is_removed_soon(node: &DriveNode) -> bool {
    let begun = Instant::now();
    loop {
        if node.is_removed() {
            return true;
        }
        if begun.elapsed() > REMOVAL {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}
