//! Reads of host memory by a kernel.

use super::commands::Commands;
use super::devices::check;
use super::error::OpenClError;
use super::memory::Memory;
use super::program::{Kernel, Program};
use crate::NoHostMemory;
use crate::kernel_source::{READ_BYTES, reads};
use crate::runtime_common::contents::{content, sum_of};
use crate::runtime_common::workers::Number;
use crate::x86::buffer::Buffer;
use crate::x86::sample::{stamp_after, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{Allocation, Confirmed, Transfer, Verb, Window};
use lanemark_units::Ticks;
use std::ptr;
use std::sync::Arc;

/// Shortest sample.
const LEAST_SAMPLE: Ticks = Ticks::whole_ns(5_000_000);
/// Most repetitions of an iteration in a sample.
const MOST_REPEATS: u64 = 1 << 20;
/// Runs of which the fastest counts.
const RUNS: u32 = 3;

/// Kernels and memory of reads; kept for the next plan as far as it can use them.
#[derive(Debug)]
pub(super) struct Reads {
    commands: Arc<Commands>,
    /// Kernel per load, in the order of [`READ_BYTES`].
    kernels: [Option<Kernel>; READ_BYTES.len()],
    /// Host memory that the device reads.
    memory: Option<Memory>,
    /// A sum per work item.
    sums: Option<Memory>,
}

impl Reads {
    /// Builds and allocates nothing yet.
    pub(super) fn new(commands: &Arc<Commands>) -> Reads {
        let kernels = [const { None }; READ_BYTES.len()];
        Reads { commands: Arc::clone(commands), kernels, memory: None, sums: None }
    }

    /// Number of work items that a transfer without limit uses: some for each compute unit, so that reads overlap.
    pub(super) fn most_items(commands: &Commands) -> u32 {
        const ITEMS_PER_UNIT: u32 = 64;
        const MOST: u32 = 1 << 16;
        commands.context.compute_units.saturating_mul(ITEMS_PER_UNIT).clamp(1, MOST)
    }

    /// Builds the kernel, and fills host memory: page-locked as far as the runtime can, with addresses if it has them.
    ///
    /// # Errors
    /// Errors of the runtime or the system, usually too little memory.
    pub(super) fn prepare(&mut self, transfer: Transfer, summand: u32) -> Result<PreparedReads<'_>, OpenClError> {
        let Transfer { bytes, window, outstanding, .. } = transfer;
        let fits = |unit: &u32| {
            [bytes, window.offset, window.step(bytes)].iter().all(|length| length.is_multiple_of(u64::from(*unit)))
        };
        let place = READ_BYTES.iter().position(fits).unwrap_or(READ_BYTES.len() - 1);
        let context = &self.commands.context;
        if self.kernels[place].is_none() {
            self.kernels[place] = Some(Program::of(context, &reads(READ_BYTES[place]))?.kernel()?);
        }
        let len = (window.offset + window.len) as usize;
        if self.memory.as_ref().is_none_or(|memory| memory.len() < len) {
            self.memory = None;
            let has_host = context.usm.is_some_and(|usm| usm.has_host);
            let kind = if has_host { Allocation::Host } else { Allocation::Mapped };
            self.memory = Some(Memory::new(context, kind, len)?);
        }
        let most = Reads::most_items(&self.commands);
        if self.sums.is_none() {
            self.sums = Some(Memory::new(context, Allocation::Buffer, most as usize * 4)?);
        }
        let (Some(kernel), Some(memory), Some(sums)) = (&self.kernels[place], &self.memory, &self.sums) else {
            return Err(OpenClError::System("memory of reads is missing".to_owned()));
        };
        let short = |error: rustix::io::Errno| NoHostMemory { bytes: len as u64, because: error.to_string() };
        let mut contents = Buffer::new(len).map_err(short)?;
        for (number, word) in contents.bytes_mut()[window.offset as usize..].as_chunks_mut().0.iter_mut().enumerate() {
            *word = content(number as u64, summand).to_le_bytes();
        }
        let filling = "filling host memory";
        self.commands.copy_and_wait(filling, Verb::Store, &mut contents.bytes_mut()[..len], memory)?;
        let items = outstanding.unwrap_or(most).min(most).max(1);
        let unit = READ_BYTES[place];
        let given = [kernel.set_argument(0, memory.at()), kernel.set_argument(1, sums.at())];
        given.into_iter().try_for_each(|status| check("setting a kernel argument", status))?;
        Ok(PreparedReads { commands: &self.commands, kernel, sums, transfer, unit, items, summand })
    }
}

/// Reads whose kernel and memory exist.
#[derive(Debug)]
pub(super) struct PreparedReads<'a> {
    commands: &'a Commands,
    kernel: &'a Kernel,
    sums: &'a Memory,
    transfer: Transfer,
    /// Bytes of a load.
    unit: u32,
    items: u32,
    summand: u32,
}

impl PreparedReads<'_> {
    fn count(&self, passes: u64) -> u64 {
        self.transfer.count.saturating_mul(passes)
    }

    fn items(&self, passes: u64) -> u32 {
        self.count(passes).min(self.items.into()).max(1) as u32
    }

    /// Number of times that `passes` iterations are repeated in a sample, so that a launch, which takes some 10 us, is a
    /// small part of it. The first launches compile the kernel for this number of work items.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn repeats(&self, timer: Timer, passes: u64) -> Result<u64, OpenClError> {
        let mut repeats = 1;
        while repeats < MOST_REPEATS {
            let mut fastest = self.run(timer, passes.saturating_mul(repeats))?;
            // One slow run may be a disturbance.
            for _ in 1..RUNS {
                fastest = fastest.min(self.run(timer, passes.saturating_mul(repeats))?);
            }
            if fastest >= LEAST_SAMPLE {
                break;
            }
            repeats *= 4;
        }
        Ok(repeats)
    }

    /// Makes all transfers of `passes` iterations, and returns the time from the call until the queue is empty.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn run(&self, timer: Timer, passes: u64) -> Result<Ticks, OpenClError> {
        let Transfer { bytes, window, .. } = self.transfer;
        let unit = u64::from(self.unit);
        let numbers =
            [window.offset / unit, self.count(passes), window.places(bytes), window.step(bytes) / unit, bytes / unit];
        for (place, number) in (2..).zip(numbers) {
            self.kernel.set_number(place, Number::Ulong(number))?;
        }
        self.kernel.set_number(7, Number::Uint(window.pattern.is_random().into()))?;
        self.kernel.set_number(8, Number::Uint(0))?;
        let start = stamp_before();
        let launched = self.commands.launch(self.kernel, self.items(passes) as usize, ptr::null_mut());
        let finished = self.commands.finish();
        let taken = timer.ticks(stamp_after().saturating_sub(start));
        check("launching the kernel of reads", launched)?;
        check("running the kernel of reads", finished)?;
        Ok(taken)
    }

    /// Bytes of the last run of `passes` iterations, and those whose sums are right.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn confirmed(&self, passes: u64) -> Result<Confirmed, OpenClError> {
        let Transfer { bytes, window, .. } = self.transfer;
        let (count, items) = (self.count(passes), self.items(passes));
        let mut found = vec![0; items as usize * 4];
        self.commands.copy_and_wait("reading the sums of reads", Verb::Load, &mut found, self.sums)?;
        let mut confirmed = Confirmed { claimed_bytes: 0, confirmed_bytes: 0 };
        for (item, found) in (0..u64::from(items)).zip(found.as_chunks().0) {
            let (sum, read) = expected(&window, bytes, (item..count).step_by(items as usize), self.summand);
            confirmed.claimed_bytes += read;
            confirmed.confirmed_bytes += if u32::from_le_bytes(*found) == sum { read } else { 0 };
        }
        Ok(confirmed)
    }
}

/// Sum of all words of these transfers, and their bytes.
fn expected(window: &Window, bytes: u64, transfers: impl Iterator<Item = u64>, summand: u32) -> (u32, u64) {
    transfers.fold((0_u32, 0), |(sum, read), nth| {
        let first = (window.place(nth, bytes) - window.offset) / 4;
        (sum.wrapping_add(sum_of(first, bytes / 4, summand)), read + bytes)
    })
}
