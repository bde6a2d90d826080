//! The code that runs one sample, chosen before the first sample.

#![allow(unsafe_code)]

use super::NAME;
use super::kernel::NullDevice;
use crate::map_unmap::{Mapper, refused};
use crate::x86::copy::{Blocks, Copy};
use crate::x86::copy_table::CopyTable;
use crate::x86::driver_calls::{Calls, timed_maps, timed_reads, timed_writes};
use crate::x86::exchange::Exchange;
use crate::x86::loops::Ground;
use crate::x86::routine::Routine;
use crate::x86::sample::{Limits, Stamps};
use lanemark_machine::{KernelCall, MachineError, Verb};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::cell::RefCell;

/// Code that runs one sample.
pub(super) enum Job<'a> {
    /// Measurement loop of a core.
    Loop {
        routine: Routine,
        ground: Ground,
    },
    /// Block copies by one routine.
    Copy {
        copy: Copy,
        blocks: Blocks,
    },
    /// Block copies by the routine that a table chooses for their size.
    ChosenCopy {
        table: &'a CopyTable,
        blocks: Blocks,
    },
    Driver {
        verb: Verb,
        calls: Calls<'a>,
    },
    Map {
        file: BorrowedFd<'a>,
        offset: u64,
        len: usize,
    },
    Kernel {
        device: &'a NullDevice,
        call: KernelCall,
    },
    /// Borrowed for one sample at a time; samples do not nest.
    MapUnmap(RefCell<Box<dyn Mapper>>),
    Exchange {
        exchange: Exchange,
        with_cpu: usize,
    },
}

impl Job<'_> {
    /// Runs `passes` iterations between two timestamps.
    ///
    /// # Safety
    /// Every pointer must be valid as it was when the job was created; an exchange needs [`Job::answered`].
    ///
    /// # Errors
    /// Errors of the DMA library; errors of system calls are in the stamps.
    pub(super) unsafe fn sample(&self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, MachineError> {
        // SAFETY: guaranteed by the caller for each call.
        Ok(unsafe {
            match self {
                Job::Loop { routine, ground } => routine(ground, limits, first, passes),
                Job::Copy { copy, blocks } => blocks.timed(*copy, limits, first, passes),
                Job::ChosenCopy { table, blocks } => table.timed(blocks, limits, first, passes),
                Job::Driver { verb: Verb::Load, calls } => timed_reads(calls, limits, first, passes),
                Job::Driver { verb: Verb::Store, calls } => timed_writes(calls, limits, first, passes),
                Job::Map { file, offset, len } => timed_maps(*file, *offset, *len, limits, first, passes),
                Job::Kernel { device, call } => device.timed(*call, limits, first, passes),
                Job::MapUnmap(mapper) => {
                    mapper.borrow_mut().timed(limits, first, passes).map_err(|error| refused(NAME, error))?
                }
                Job::Exchange { exchange, .. } => exchange.timed(limits, first, passes),
            }
        })
    }

    /// Runs `body`, which takes the samples; for an exchange, while another core answers.
    ///
    /// # Errors
    /// Errors of `body`, and of starting the other thread.
    ///
    /// # Safety
    /// Same as for [`Job::sample`].
    pub(super) unsafe fn answered(&self, body: impl FnOnce() -> Result<(), MachineError>) -> Result<(), MachineError> {
        match self {
            // SAFETY: guaranteed by the caller.
            Job::Exchange { exchange, with_cpu } => unsafe { exchange.answered(*with_cpu, body) }
                .map_err(|error| os("starting a thread on the other core", error))?,
            _ => body(),
        }
    }

    /// Operation in progress, for messages.
    pub(super) fn doing(&self) -> &'static str {
        match self {
            Job::Driver { .. } => "copying between memory and the memory file",
            Job::Map { .. } => "mapping the memory file",
            Job::Kernel { .. } => "measuring a kernel entry",
            Job::MapUnmap(_) => "mapping memory for DMA",
            Job::Exchange { .. } => "exchanging messages with another core",
            Job::Loop { .. } | Job::Copy { .. } | Job::ChosenCopy { .. } => "running a measurement loop",
        }
    }
}

/// Error of a system call.
pub(super) fn os(doing: &'static str, error: Errno) -> MachineError {
    MachineError::Os { machine: NAME.to_owned(), doing, source: error.into() }
}
