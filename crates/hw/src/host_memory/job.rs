//! What runs a sample, chosen before the first of them.

#![allow(unsafe_code)]

use super::NAME;
use super::kernel::NullDevice;
use super::memory_file::{Calls, MemoryFile, timed_maps, timed_reads, timed_writes};
use crate::x86::copy::{Blocks, Copy};
use crate::x86::copy_table::CopyTable;
use crate::x86::exchange::Exchange;
use crate::x86::loops::Ground;
use crate::x86::routine::Routine;
use crate::x86::sample::{Ending, Limits, Stamps};
use crate::x86::timer::Timer;
use lanemark_machine::{KernelCall, MachineError, Verb};
use rustix::io::Errno;
use std::sync::atomic::Ordering;

/// What runs a sample.
pub(super) enum Job<'a> {
    /// One of the loops of a core.
    Loop {
        routine: Routine,
        ground: Ground,
    },
    /// Copies by one routine.
    Copy {
        copy: Copy,
        blocks: Blocks,
    },
    /// Copies by what a table has for their size.
    ChosenCopy {
        table: &'a CopyTable,
        blocks: Blocks,
    },
    Driver {
        verb: Verb,
        calls: Calls<'a>,
    },
    Map {
        file: &'a MemoryFile,
        offset: u64,
        len: usize,
    },
    Kernel {
        device: &'a NullDevice,
        call: KernelCall,
    },
    Exchange {
        exchange: Exchange,
        with_cpu: usize,
    },
}

impl Job<'_> {
    /// Runs `passes` passes between timestamps.
    ///
    /// # Safety
    /// Every pointer in it is valid for what it says, as it was when the job was made, and an exchange is answered.
    pub(super) unsafe fn sample(&self, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        // SAFETY: handed on to the caller, each.
        unsafe {
            match self {
                Job::Loop { routine, ground } => routine(ground, limits, first, passes),
                Job::Copy { copy, blocks } => blocks.timed(*copy, limits, first, passes),
                Job::ChosenCopy { table, blocks } => table.timed(blocks, limits, first, passes),
                Job::Driver { verb: Verb::Load, calls } => timed_reads(calls, limits, first, passes),
                Job::Driver { verb: Verb::Store, calls } => timed_writes(calls, limits, first, passes),
                Job::Map { file, offset, len } => timed_maps(file, *offset, *len, limits, first, passes),
                Job::Kernel { device, call } => device.timed(*call, limits, first, passes),
                Job::Exchange { exchange, .. } => exchange.timed(limits, first, passes),
            }
        }
    }

    /// Runs `body`, in which samples are taken; for an exchange, while the other core answers.
    ///
    /// # Errors
    /// Those of `body`, and what the kernel said about the other thread.
    ///
    /// # Safety
    /// As for [`Job::sample`].
    pub(super) unsafe fn answered(&self, body: impl FnOnce() -> Result<(), MachineError>) -> Result<(), MachineError> {
        match self {
            // SAFETY: handed on to the caller.
            Job::Exchange { exchange, with_cpu } => unsafe { exchange.answered(*with_cpu, body) }
                .map_err(|error| os("starting a thread on the other core", error))?,
            _ => body(),
        }
    }

    /// What it does, for messages.
    fn doing(&self) -> &'static str {
        match self {
            Job::Driver { .. } => "copying between memory and the memory file",
            Job::Map { .. } => "mapping the memory file",
            Job::Kernel { .. } => "calling the kernel for nothing",
            Job::Exchange { .. } => "exchanging messages with another core",
            Job::Loop { .. } | Job::Copy { .. } | Job::ChosenCopy { .. } => "running a loop",
        }
    }

    /// Whether a sample of `passes` passes counts.
    ///
    /// # Errors
    /// [`MachineError::Timeout`], [`MachineError::Interrupted`], or what the kernel said.
    pub(super) fn judged(
        &self,
        stamps: &Stamps,
        passes: u64,
        limits: &Limits<'_>,
        timer: Timer,
    ) -> Result<(), MachineError> {
        let machine = NAME.to_owned();
        let cycles = stamps.delivered.saturating_sub(stamps.start);
        let late =
            |waiting_for| MachineError::Timeout { machine: NAME.to_owned(), after: timer.ticks(cycles), waiting_for };
        let is_interrupted = limits.interrupted.load(Ordering::Relaxed);
        match stamps.ending {
            Ending::Stopped(_) | Ending::Failed(Errno::CANCELED) if is_interrupted => {
                Err(MachineError::Interrupted { machine })
            }
            Ending::Failed(Errno::TIMEDOUT) => Err(late("a message from the other core".to_owned())),
            Ending::Failed(error) => Err(os(self.doing(), error)),
            Ending::Stopped(done) => Err(late(format!("pass {} of {passes}", done + 1))),
            Ending::Done if cycles > limits.timeout_cycles => Err(late(format!("the last of {passes} passes"))),
            Ending::Done => Ok(()),
        }
    }
}

/// The system refused.
pub(super) fn os(doing: &'static str, error: Errno) -> MachineError {
    MachineError::Os { machine: NAME.to_owned(), doing, source: error.into() }
}
