//! Host memory as a machine: opening it, running a plan, verifying the data.

#![allow(unsafe_code)]

use super::NAME;
use super::job::{Job, os};
use super::kernel::NullDevice;
use super::memory_file::MemoryFile;
use crate::interpreter::interpreter;
use crate::map_unmap::{mapper, refused};
use crate::x86::buffer::Buffer;
use crate::x86::buffer_handoff::{disciplines, routine as handoff};
use crate::x86::c_library::c_library;
use crate::x86::copy::{Blocks, routine};
use crate::x86::copy_table::CopyTable;
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::driver_calls::{Calls, equal_bytes};
use crate::x86::exchange::Exchange;
use crate::x86::flush::flush_lines;
use crate::x86::loops::{After, Ground};
use crate::x86::pattern::{self, Lines};
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::request::{Ability, Request, Through, Timed};
use crate::x86::routine::{alone, clock};
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{
    Access, BufferHandoff, Confirmed, Discipline, Facts, Machine, MachineError, Order, Plan, Region, RegionKind,
    Samples, Table, TimeBase, Unsupported, Verb, Width,
};
use lanemark_units::{BarOffset, MemoryType};
use rustix::io::Errno;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for the copy calibration, once per kind of destination.
const CALIBRATION: Duration = Duration::from_millis(400);

/// Ordinary memory (WB) of this machine, accessed by its own cores.
///
/// It has one region, `memory`: 64 MiB of storage at BAR0+0x0, populated at opening.
///
/// - **Plans:** one lane with one stream, optionally followed by a fence, a flush of its span or a pause; one of those
///   alone; block copies; driver calls; an `mmap`; a system call; a clock read; DMA mappings; a buffer shared with a
///   device. Or messages between two cores. The lines of a span can be flushed before
///   a sample. Core `n` of a plan is the `n`-th core in the affinity mask of the opening thread. [`run`](Machine::run)
///   pins the calling thread to it, and a thread of its own to the other core, and restores the affinity afterwards.
/// - **Times:** time-stamp counter. `issue` ends when every instruction is executed and every load complete; `delivered`
///   ends when, after an `MFENCE`, every store is visible to all cores, which for ordinary memory means in a cache. The
///   time of an empty sample is subtracted: `timer_cost` from `issue`, and in addition the time of an empty drain from
///   `delivered`.
/// - **Timeout:** applies to each sample, excluding warm-up. The clock and the interrupt flag are read only every 262,144
///   accesses or so; a shorter sample runs without interference.
/// - **Dropped:** samples during which the thread lost its core (involuntary context switch) or moved to another one, or
///   during which the counter and `CLOCK_MONOTONIC_RAW` drifted apart by more than 20 us and 0.04 %.
/// - **Messages:** a waiting core reads the clock and the flag every few thousand loads; a thread that sleeps in the kernel
///   is woken when the other one ends.
/// - **Driver calls:** `pread` and `pwrite` on a memory file replace a driver's `ioctl`; the span is one of that file, not
///   of the region. The kernel copies by 8 B or more.
/// - **Confirmed:** `claimed` is the length of the span, `confirmed` the number of bytes that, after the last sample, equal
///   the data last stored or copied. Values differ between iterations and between runs, so that stale bytes do not count.
///   Loads into registers cannot be verified: `None`.
/// ```
/// use lanemark_hw::HostMemory;
/// use lanemark_machine::{Access, Machine, Step, Plan, Samples, Span, Stream, Verb, Width};
///
/// let Ok(mut host) = HostMemory::open() else { return }; // not x86-64 Linux
/// let region = host.facts().storage().unwrap();
/// let span = Span { at: region.at, len: 4096, memory_type: host.facts().memory_types[0] };
/// let stores = Stream::over(Verb::Store, Access::Plain(Width::B8), span);
/// let mut samples = Samples::wanted(10);
/// host.run(&Plan::new(Step::Stream(stores), 100), &mut samples).unwrap();
/// assert!(samples.taken.len() == 10 || samples.dropped.count() > 0);
/// assert_eq!(samples.confirmed.unwrap().confirmed_bytes, 4096);
/// ```
pub struct HostMemory {
    facts: Facts,
    cpu: Cpu,
    /// System numbers of the cores that a plan may name.
    cpus: Vec<usize>,
    timer: Timer,
    /// Memory that plans load and store.
    region: Buffer,
    /// Other end of copies and driver calls, of the same length.
    source: Buffer,
    lines: Box<Lines>,
    /// Created for the first driver call.
    file: Option<MemoryFile>,
    /// Opened for the first system call.
    null: Option<NullDevice>,
    /// Calibrated when `copy_to_device` is first requested, for hot and for cold destinations.
    copies: [Option<CopyTable>; 2],
    interrupted: Arc<AtomicBool>,
    /// Number of runs so far.
    runs: u64,
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostMemory")
            .field("facts", &self.facts)
            .field("timer", &self.timer)
            .field("runs", &self.runs)
            .finish_non_exhaustive()
    }
}

impl HostMemory {
    const REGION_BYTES: usize = 64 << 20;

    /// Allocates and fills the memory, detects the processor and calibrates its counter against the clock; takes about
    /// 0.1 s. No thread is pinned yet.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`] on another operating system or architecture, or if the counter is not invariant;
    /// [`MachineError::Os`] if memory cannot be allocated or the affinity mask cannot be read.
    pub fn open() -> Result<HostMemory, MachineError> {
        HostMemory::with_region(Self::REGION_BYTES)
    }

    fn with_region(len: usize) -> Result<HostMemory, MachineError> {
        let cpu = Cpu::detected();
        if !cpu.has_invariant_tsc {
            return Err(MachineError::Unsupported(Unsupported {
                what: "measuring time".to_owned(),
                machine: NAME.to_owned(),
                because: "the time-stamp counter of this processor is not invariant (CPUID 80000007H, EDX bit 8)"
                    .to_owned(),
            }));
        }
        let cpus = allowed_cpus().map_err(|error| os("reading the CPU affinity mask", error))?;
        let mut region = Buffer::new(len).map_err(|error| os("allocating the region", error))?;
        let source = Buffer::new(len).map_err(|error| os("allocating the source of copies", error))?;
        pattern::fill(region.bytes_mut(), 0);
        Ok(HostMemory {
            facts: facts(&cpu, cpus.len(), len as u64),
            timer: Timer::checked(cpu.tsc_hz),
            cpu,
            cpus,
            region,
            source,
            lines: pattern::lines(),
            file: None,
            null: None,
            copies: [None, None],
            interrupted: Arc::default(),
            runs: 0,
        })
    }

    /// Sets the flag that ends a run with [`MachineError::Interrupted`], between two samples or within a long one.
    #[must_use]
    pub fn interrupted_by(self, flag: Arc<AtomicBool>) -> HostMemory {
        HostMemory { interrupted: flag, ..self }
    }

    /// Limits of plans: the clock is read every 0.1 ms at one access per cycle and every 50 ms at the slowest; one
    /// iteration can store every byte of the 64 MiB singly, and as much again.
    fn ability(&self) -> Ability<'_> {
        Ability {
            facts: &self.facts,
            cpu: &self.cpu,
            timer: self.timer,
            no_other_type: "ordinary memory is WB, and a program cannot change that",
            weight_per_check: 1 << 18,
            weight_per_pass: 1 << 27,
        }
    }

    /// Current contents of the region.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }

    /// Fills the other end of a copy, and creates what a request needs for the first time.
    fn prepare(&mut self, ask: &Request) -> Result<(), MachineError> {
        let (offset, len) = (ask.offset, ask.len);
        let copied = match ask.work {
            Timed::Stream { shape, .. } if shape.access.width().is_none() => Some(offset..offset + len),
            Timed::Driver { .. } => Some(offset..offset + len),
            Timed::Copy { block_bytes, .. } => Some(0..block_bytes),
            Timed::Stream { .. }
            | Timed::Alone(_)
            | Timed::Clock(_)
            | Timed::KernelCall(_)
            | Timed::MapUnmap(_)
            | Timed::BufferHandoff(_)
            | Timed::Map
            | Timed::Exchange { .. } => None,
        };
        if let Some(copied) = copied {
            pattern::fill(&mut self.source.bytes_mut()[copied], self.runs);
        }
        match ask.work {
            Timed::Driver { .. } | Timed::Map if self.file.is_none() => {
                let file = MemoryFile::holding(self.region.bytes());
                self.file = Some(file.map_err(|error| os("making the memory file for driver calls", error))?);
            }
            Timed::KernelCall(_) if self.null.is_none() => {
                self.null = Some(NullDevice::open().map_err(|error| os("opening /dev/null", error))?);
            }
            Timed::Exchange { through: Through::Lines { there, back, .. }, .. } => {
                for line in [there, back] {
                    self.region.bytes_mut()[line..line + 64].fill(0);
                }
            }
            Timed::BufferHandoff(BufferHandoff { verb: Verb::Load, .. }) => {
                let written = &mut self.region.bytes_mut()[offset..offset + len];
                pattern::fill(written, self.runs);
            }
            Timed::Stream { .. }
            | Timed::Alone(_)
            | Timed::Clock(_)
            | Timed::KernelCall(_)
            | Timed::MapUnmap(_)
            | Timed::BufferHandoff(_)
            | Timed::Driver { .. }
            | Timed::Map
            | Timed::Copy { .. }
            | Timed::Exchange { .. } => {}
        }
        if ask.chooses_copies() {
            let table = &mut self.copies[ask.destination() as usize];
            if table.is_none() {
                let measured = CopyTable::measured(ask.destination(), CALIBRATION);
                *table = Some(measured.map_err(|error| os("allocating memory for the copy calibration", error))?);
            }
        }
        Ok(())
    }

    /// Returns the code that runs one sample; valid until the memory is used for something else.
    fn job(&mut self, ask: &Request) -> Result<Job<'_>, MachineError> {
        let (at, other, block) = (self.region.at(ask.offset), self.source.at(ask.offset), self.source.at(0));
        let table = self.copies[ask.destination() as usize].as_ref();
        let mut ground = Ground {
            at,
            other,
            len: ask.len,
            count: 0,
            rest: 0,
            lines: &raw const *self.lines,
            interleaved: 0,
            after: After::Nothing,
            copies: table.map_or(std::ptr::null(), std::ptr::from_ref),
        };
        let no_loop = |what: &dyn fmt::Display| {
            let (machine, because) = (NAME.to_owned(), "there is no measurement loop for it".to_owned());
            MachineError::from(Unsupported { what: what.to_string(), machine, because })
        };
        let file =
            || self.file.as_ref().map(MemoryFile::file).ok_or_else(|| os("finding the memory file", Errno::NOENT));
        Ok(match ask.work {
            Timed::Stream { shape, count, rest } => {
                (ground.count, ground.rest, ground.after) = (count, rest, shape.after);
                if let Order::Interleaved { lines } = shape.order {
                    ground.interleaved = lines as usize;
                }
                Job::Loop { routine: shape.routine().ok_or_else(|| no_loop(&shape.access))?, ground }
            }
            Timed::Alone(after) => {
                ground.after = after;
                Job::Loop { routine: alone(after).ok_or_else(|| no_loop(&"nothing"))?, ground }
            }
            Timed::BufferHandoff(shared) => {
                ground.count = ask.len / BufferHandoff::WIDTH_BYTES as usize;
                Job::Loop { routine: handoff(&shared).ok_or_else(|| no_loop(&shared.discipline))?, ground }
            }
            Timed::Clock(which) => Job::Loop { routine: clock(which), ground },
            Timed::Copy { access, block_bytes } => {
                let blocks = Blocks { to: at, from: block, len: block_bytes, count: ask.len / block_bytes };
                match (access, table) {
                    (Access::CopyToDevice, Some(table)) => Job::ChosenCopy { table, blocks },
                    _ => Job::Copy { copy: routine(access).ok_or_else(|| no_loop(&access))?, blocks },
                }
            }
            Timed::Driver { verb, call_bytes } => {
                let calls = Calls { file: file()?, offset: ask.offset as u64, user: other, len: ask.len, call_bytes };
                Job::Driver { verb, calls }
            }
            Timed::Map => Job::Map { file: file()?, offset: ask.offset as u64, len: ask.len },
            Timed::KernelCall(call) => {
                let device = self.null.as_ref().ok_or_else(|| os("finding /dev/null", Errno::NOENT))?;
                Job::Kernel { device, call }
            }
            Timed::MapUnmap(asked) => Job::MapUnmap(RefCell::new(mapper(asked).map_err(|error| refused(NAME, error))?)),
            Timed::Exchange { with_core, through } => {
                let exchange = match through {
                    Through::Events => Exchange::by_events().map_err(|error| os("making an eventfd", error))?,
                    Through::Lines { post, there, back } => {
                        Exchange::Lines { post, there: self.region.at(there), back: self.region.at(back) }
                    }
                };
                Job::Exchange { exchange, with_cpu: self.cpus[with_core] }
            }
        })
    }

    /// Compares the span with the data of iteration `last`.
    fn confirmed(&self, ask: &Request, last: u64) -> Result<Option<Confirmed>, MachineError> {
        let range = ask.offset..ask.offset + ask.len;
        let (span, source) = (&self.region.bytes()[range.clone()], &self.source.bytes()[range]);
        let equal = match (ask.work, &self.file) {
            _ if ask.len == 0 => return Ok(None),
            (Timed::Stream { shape, .. }, _) => match (shape.access.width(), shape.verb) {
                (None, _) => pattern::equal_bytes(span, source),
                (Some(width), Verb::Store) => pattern::stored_bytes(span, width.bytes() as usize, pattern::value(last)),
                (Some(_), Verb::Load) => return Ok(None),
            },
            (Timed::BufferHandoff(BufferHandoff { verb: Verb::Store, .. }), _) => {
                pattern::stored_bytes(span, BufferHandoff::WIDTH_BYTES as usize, pattern::value(last))
            }
            (Timed::BufferHandoff(BufferHandoff { discipline: Discipline::Bounced, .. }), _) => {
                pattern::equal_bytes(span, source)
            }
            (Timed::Copy { block_bytes, .. }, _) => {
                let block = &self.source.bytes()[..block_bytes];
                span.chunks(block_bytes).map(|place| pattern::equal_bytes(place, block)).sum()
            }
            (Timed::Driver { .. }, Some(file)) => equal_bytes(file.file(), ask.offset as u64, source)
                .map_err(|error| os("reading the memory file back", error))?,
            (
                Timed::Alone(_)
                | Timed::Clock(_)
                | Timed::KernelCall(_)
                | Timed::MapUnmap(_)
                | Timed::BufferHandoff(_)
                | Timed::Driver { .. }
                | Timed::Map
                | Timed::Exchange { .. },
                _,
            ) => return Ok(None),
        };
        Ok(Some(Confirmed { claimed_bytes: ask.len as u64, confirmed_bytes: equal }))
    }
}

impl Machine for HostMemory {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        match Request::of(plan, &self.ability()) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.into_unsupported(&self.facts)),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let ask = Request::of(plan, &self.ability()).map_err(|refusal| refusal.into_error(&self.facts))?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        self.prepare(&ask)?;
        let (timer, interrupted) = (self.timer, Arc::clone(&self.interrupted));
        let is_exchange = matches!(ask.work, Timed::Exchange { .. });
        let run = Run {
            machine: NAME,
            timer,
            plan,
            cpu: self.cpus[ask.core],
            company: Company::None,
            passes_per_check: ask.passes_per_check,
            delivery: Delivery::Drained,
            interrupted: &interrupted,
            numbering: if is_exchange { Numbering::Messages } else { Numbering::EndingWith(self.runs) },
        };
        let flushed = ask.flushed.map(|(offset, len)| (self.region.at(offset), len));
        let job = self.job(&ask)?;
        let before = || {
            if let Some((at, len)) = flushed {
                // SAFETY: the span lies within the region.
                unsafe { flush_lines(at, len) };
            }
        };
        let mut left = None;
        let take_all = || {
            let taken = run.take(samples, job.doing(), before, |limits, first, passes| {
                // SAFETY: `Request::of` checked that the processor supports the instruction, that spans and lines are within the
                // region, starts aligned and counts within the span. Source and region are two mappings of one length. Both,
                // the lines and the tables belong to this machine, which is borrowed exclusively.
                unsafe { job.sample(limits, first, passes) }
            })?;
            left = Some(taken);
            Ok(())
        };
        // SAFETY: as for `sample`.
        unsafe { job.answered(take_all) }?;
        let last = left.map_or(0, |left| left.last);
        samples.confirmed = self.confirmed(&ask, last)?;
        samples.spent = timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

fn facts(cpu: &Cpu, cpus: usize, region_bytes: u64) -> Facts {
    Facts {
        name: NAME.to_owned(),
        summary: format!("{}, ordinary memory (WB)", cpu.brand),
        time_base: if interpreter().is_some() { TimeBase::Emulated } else { TimeBase::Real },
        cores: usable_cores(cpus),
        regions: vec![Region {
            name: "memory".to_owned(),
            at: BarOffset { bar: 0, offset: 0 },
            len: region_bytes,
            kind: RegionKind::Storage,
        }],
        memory_types: vec![MemoryType::Wb],
        stores: cpu.accesses(Verb::Store),
        loads: cpu.accesses(Verb::Load),
        memcpy: c_library(),
        dma: None,
        driver_width: Some(Width::B8),
        tables: vec![Table::Nothing, Table::InMemory],
        disciplines: disciplines(),
        line_sources: vec![],
        runtime: None,
    }
}

#[cfg(test)]
mod tests;
