//! What runs a sample, chosen before the first of them.

#![allow(unsafe_code)]

use super::NAME;
use super::kernel::NullDevice;
use super::map_unmap::Mapper;
use super::memory_file::{Calls, MemoryFile, timed_maps, timed_reads, timed_writes};
use crate::x86::copy::{Blocks, Copy};
use crate::x86::copy_table::CopyTable;
use crate::x86::exchange::Exchange;
use crate::x86::loops::Ground;
use crate::x86::routine::Routine;
use crate::x86::sample::{Limits, Stamps};
use lanemark_machine::{KernelCall, MachineError, Verb};
use rustix::io::Errno;
use std::cell::RefCell;

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
    /// Borrowed for the length of a sample, which nothing else is in.
    MapUnmap(RefCell<Box<dyn Mapper>>),
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
    ///
    /// # Errors
    /// What a library said that is asked about; what the kernel said stands in the stamps.
    pub(super) unsafe fn sample(&self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, MachineError> {
        // SAFETY: handed on to the caller, each.
        Ok(unsafe {
            match self {
                Job::Loop { routine, ground } => routine(ground, limits, first, passes),
                Job::Copy { copy, blocks } => blocks.timed(*copy, limits, first, passes),
                Job::ChosenCopy { table, blocks } => table.timed(blocks, limits, first, passes),
                Job::Driver { verb: Verb::Load, calls } => timed_reads(calls, limits, first, passes),
                Job::Driver { verb: Verb::Store, calls } => timed_writes(calls, limits, first, passes),
                Job::Map { file, offset, len } => timed_maps(file, *offset, *len, limits, first, passes),
                Job::Kernel { device, call } => device.timed(*call, limits, first, passes),
                Job::MapUnmap(lender) => lender.borrow_mut().timed(limits, first, passes)?,
                Job::Exchange { exchange, .. } => exchange.timed(limits, first, passes),
            }
        })
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
    pub(super) fn doing(&self) -> &'static str {
        match self {
            Job::Driver { .. } => "copying between memory and the memory file",
            Job::Map { .. } => "mapping the memory file",
            Job::Kernel { .. } => "calling the kernel for nothing",
            Job::MapUnmap(_) => "lending memory",
            Job::Exchange { .. } => "exchanging messages with another core",
            Job::Loop { .. } | Job::Copy { .. } | Job::ChosenCopy { .. } => "running a loop",
        }
    }
}

/// The system refused.
pub(super) fn os(doing: &'static str, error: Errno) -> MachineError {
    MachineError::Os { machine: NAME.to_owned(), doing, source: error.into() }
}
