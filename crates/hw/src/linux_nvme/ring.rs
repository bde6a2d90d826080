//! Commands through `io_uring`.

#![allow(unsafe_code)]

use super::passthrough::{BYTES, Passthrough, URING_IO, outcome};
use crate::nvme::NvmeError;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::io::Errno;
use std::io;
use std::os::fd::RawFd;

/// Entries of the submission queue.
const ENTRIES: u32 = 64;
/// Polls between two looks at the clock.
const POLLS: u32 = 64;

/// A ring with submissions of 128 B and completions of 32 B, which NVMe commands need.
pub(super) struct Ring {
    ring: IoUring<squeue::Entry128, cqueue::Entry32>,
    outstanding: u32,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("outstanding", &self.outstanding).finish_non_exhaustive()
    }
}

impl Ring {
    /// Creates a ring.
    pub(super) fn new() -> io::Result<Ring> {
        let ring = IoUring::<squeue::Entry128, cqueue::Entry32>::builder().build(ENTRIES)?;
        Ok(Ring { ring, outstanding: 0 })
    }

    /// Number of outstanding commands; after an error they may still write to memory.
    pub(super) const fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Runs the commands of `next`, as [`DriveQueue::run`](crate::nvme::DriveQueue::run).
    ///
    /// # Safety
    /// As for [`read`](super::passthrough::read), until [`outstanding`](Ring::outstanding) is 0.
    #[inline]
    pub(super) unsafe fn run(
        &mut self,
        file: RawFd,
        depth: u32,
        mut next: impl FnMut() -> Option<Passthrough>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        let depth = depth.clamp(1, ENTRIES);
        let mut is_last = false;
        loop {
            let mut queued = 0;
            while !is_last && self.outstanding + queued < depth {
                let Some(command) = next() else {
                    is_last = true;
                    break;
                };
                let mut bytes = [0; 80];
                bytes[..BYTES].copy_from_slice(&command.bytes());
                let entry = opcode::UringCmd80::new(types::Fd(file), URING_IO).cmd(bytes).build();
                // SAFETY: the caller guarantees that the data pointer stays valid.
                let pushed = unsafe { self.ring.submission().push(&entry) };
                pushed.map_err(|_| kernel(Errno::NOBUFS))?;
                queued += 1;
            }
            if queued > 0 {
                self.outstanding += queued;
                self.submit(check)?;
            }
            if self.outstanding == 0 {
                return Ok(());
            }
            self.wait(check)?;
        }
    }

    /// Submits what is in the submission queue.
    fn submit(&mut self, check: &mut impl FnMut() -> Result<(), NvmeError>) -> Result<(), NvmeError> {
        loop {
            match self.ring.submit() {
                // The kernel takes fewer if one of them fails at once: that one has its completion.
                Ok(_) if self.ring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR | Errno::AGAIN | Errno::BUSY) => {}
                    error => return Err(kernel(error.unwrap_or(Errno::IO))),
                },
            }
            check()?;
        }
    }

    /// Polls until at least one command has completed.
    #[inline]
    fn wait(&mut self, check: &mut impl FnMut() -> Result<(), NvmeError>) -> Result<(), NvmeError> {
        loop {
            for _ in 0..POLLS {
                let mut completed = 0;
                for completion in self.ring.completion() {
                    completed += 1;
                    self.outstanding -= 1;
                    outcome("Read", completion.result())?;
                }
                if completed > 0 {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            check()?;
        }
    }
}

const fn kernel(error: Errno) -> NvmeError {
    NvmeError::Kernel { command: "Read", error }
}
