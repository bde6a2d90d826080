//! The machine itself: opening it, running a plan, checking the bytes.

use super::NAME;
use super::memory_file::{Calls, MemoryFile, timed_reads, timed_writes};
use crate::x86::ask::{Ability, Ask, Work};
use crate::x86::buffer::Buffer;
use crate::x86::c_library::c_library;
use crate::x86::cpu::Cpu;
use crate::x86::loops::Ground;
use crate::x86::pattern::{self, Lines};
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::routine::Routine;
use crate::x86::run::{Left, Run};
use crate::x86::sample::{Delivery, Limits, Stamps, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{
    Clockwork, Confirmed, Facts, Machine, MachineError, Plan, Region, RegionKind, Samples, Unsupported, Verb, Width,
};
use lanemark_units::{BarOffset, MemoryType};
use rustix::io::Errno;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The ordinary memory (WB) of this machine, loaded and stored by its own core.
///
/// One region, `memory`: 64 MiB of storage at BAR0+0x0, present in memory from the start.
///
/// - **Plans:** one lane whose pass is one stream, one stream and a fence, or driver calls. Core `n` of a
///   plan is the `n`-th of the cores that the opening thread may run on; [`run`](Machine::run) holds the
///   calling thread there and lets it go afterwards.
/// - **Times:** the time-stamp counter. `issue` ends when every instruction is executed and every load
///   answered; `delivered` when, after an `MFENCE`, every store is visible to all cores, which on ordinary
///   memory means it is in a cache. What an empty sample takes is subtracted from each: the time reported
///   as `timer_cost` from `issue`, and that of an empty drain besides from `delivered`.
/// - **Timeout:** holds for each sample, warm-up apart. A sample looks at the clock, and at the interruption
///   flag, only after some 260,000 accesses, so one shorter than that is undisturbed.
/// - **Dropped:** samples during which the kernel took the core away (involuntary context switches of this thread), the
///   thread moved, or the counter and `CLOCK_MONOTONIC_RAW` came to lie more than 20 us and 0.04 % apart.
/// - **Driver calls:** `pread` and `pwrite` of the kernel on a memory file stand in for a driver's `ioctl`;
///   the span is one of that file, not of the region. The kernel's copy is 8 B wide or wider, as it likes.
/// - **Confirmed:** `claimed` is the length of the span, and `confirmed` how many of its bytes were found equal, after
///   the last sample, to what was last stored or copied. Values change from pass to pass and from run to
///   run, so that bytes left over from before do not count. Loads into registers leave nothing to
///   compare: `None`.
///
/// ```
/// use lanemark_hw::HostMemory;
/// use lanemark_machine::{Access, Machine, Op, Plan, Samples, Span, Stream, Verb, Width};
///
/// let Ok(mut host) = HostMemory::open() else { return }; // not x86-64 Linux
/// let region = host.facts().storage().unwrap();
/// let span = Span { at: region.at, len: 4096, memory_type: host.facts().memory_types[0] };
/// let stores = Stream::over(Verb::Store, Access::Plain(Width::B8), span);
/// let mut samples = Samples::wanted(10);
/// host.run(&Plan::on_one_core(vec![Op::Stream(stores)], 100), &mut samples).unwrap();
/// assert!(samples.taken.len() == 10 || samples.dropped.count() > 0);
/// assert_eq!(samples.confirmed.unwrap().confirmed_bytes, 4096);
/// ```
pub struct HostMemory {
    facts: Facts,
    cpu: Cpu,
    /// The system's numbers of the cores a plan may name.
    cpus: Vec<usize>,
    timer: Timer,
    /// What plans load and store.
    region: Buffer,
    /// The other side of copies and driver calls, byte for byte.
    source: Buffer,
    lines: Box<Lines>,
    /// Made when the first driver call is asked for.
    file: Option<MemoryFile>,
    interrupted: Arc<AtomicBool>,
    /// Runs begun.
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

    /// Allocates and fills the memory, looks at the processor and holds its counter against the clock; takes
    /// about a tenth of a second. Nothing is pinned yet.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`] on another system or architecture, or if the counter changes its rate with
    /// power states; [`MachineError::Os`] if memory is short or the kernel will not tell the cores.
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
        let cpus = allowed_cpus().map_err(|error| os("asking which cores may be used", error))?;
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
            interrupted: Arc::default(),
            runs: 0,
        })
    }

    /// Ends a run with [`MachineError::Interrupted`] once `flag` is set, between two samples or within a long one.
    #[must_use]
    pub fn interrupted_by(self, flag: Arc<AtomicBool>) -> HostMemory {
        HostMemory { interrupted: flag, ..self }
    }

    /// What it can be asked. Between two looks at the clock lie 0.1 ms at an access a cycle, 50 ms at the slowest; a
    /// pass may store every byte of 64 MiB singly, and as much again.
    fn ability(&self) -> Ability<'_> {
        Ability {
            facts: &self.facts,
            cpu: &self.cpu,
            no_other_type: "ordinary memory is WB, and a program cannot change that",
            weight_per_look: 1 << 18,
            weight_per_pass: 1 << 27,
        }
    }

    /// Puts new bytes on the other side of a copy, and makes the file if it is asked for.
    fn prepare(&mut self, ask: &Ask) -> Result<(), MachineError> {
        let copies = match ask.work {
            Work::Stream { shape, .. } => shape.access.width().is_none(),
            Work::Driver { .. } => true,
        };
        if copies {
            pattern::fill(&mut self.source.bytes_mut()[ask.offset..ask.offset + ask.len], self.runs);
        }
        if matches!(ask.work, Work::Driver { .. }) && self.file.is_none() {
            let file = MemoryFile::holding(self.region.bytes());
            self.file = Some(file.map_err(|error| os("making the memory file for driver calls", error))?);
        }
        Ok(())
    }

    /// What runs a sample; valid until the memory is used otherwise.
    fn job(&mut self, ask: &Ask) -> Result<Job<'_>, MachineError> {
        let (at, other) = (self.region.at(ask.offset), self.source.at(ask.offset));
        match ask.work {
            Work::Stream { shape, count, rest } => {
                let ground = Ground { at, other, len: ask.len, count, rest, lines: &raw const *self.lines };
                let routine = shape.routine().ok_or_else(|| Unsupported {
                    what: shape.access.to_string(),
                    machine: NAME.to_owned(),
                    because: "there is no loop for it".to_owned(),
                })?;
                Ok(Job::Stream { routine, ground })
            }
            Work::Driver { verb, call_bytes } => {
                let file = self.file.as_ref().ok_or_else(|| os("finding the memory file", Errno::NOENT))?;
                let calls = Calls { file, offset: ask.offset as u64, user: other, len: ask.len, call_bytes };
                Ok(Job::Driver { verb, calls })
            }
        }
    }

    /// Holds the span against what pass `last` left there.
    fn confirmed(&self, ask: &Ask, last: u64) -> Result<Option<Confirmed>, MachineError> {
        let range = ask.offset..ask.offset + ask.len;
        let (span, source) = (&self.region.bytes()[range.clone()], &self.source.bytes()[range]);
        let equal = match (ask.work, &self.file) {
            _ if ask.len == 0 => return Ok(None),
            (Work::Stream { shape, .. }, _) => match (shape.access.width(), shape.verb) {
                (None, _) => pattern::equal_bytes(span, source),
                (Some(width), Verb::Store) => pattern::stored_bytes(span, width.bytes() as usize, pattern::value(last)),
                (Some(_), Verb::Load) => return Ok(None),
            },
            (Work::Driver { .. }, Some(file)) => file
                .equal_bytes(ask.offset as u64, source)
                .map_err(|error| os("reading the memory file back", error))?,
            (Work::Driver { .. }, None) => return Ok(None),
        };
        Ok(Some(Confirmed { claimed_bytes: ask.len as u64, confirmed_bytes: equal }))
    }
}

impl Machine for HostMemory {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        match Ask::of(plan, &self.ability()) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.into_unsupported(&self.facts)),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let ask = Ask::of(plan, &self.ability()).map_err(|refusal| refusal.into_error(&self.facts))?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        self.prepare(&ask)?;
        let (timer, interrupted) = (self.timer, Arc::clone(&self.interrupted));
        let run = Run {
            machine: NAME,
            timer,
            plan,
            cpu: self.cpus[ask.core],
            passes_per_look: ask.passes_per_look,
            delivery: Delivery::Drained,
            interrupted: &interrupted,
            number: self.runs,
        };
        let job = self.job(&ask)?;
        let Left { last, .. } = run.take(samples, |limits, first, passes| Ok(job.sample(limits, first, passes)))?;
        samples.confirmed = self.confirmed(&ask, last)?;
        samples.spent = timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

/// What a sample runs, chosen before the first of them.
enum Job<'a> {
    Stream { routine: Routine, ground: Ground },
    Driver { verb: Verb, calls: Calls<'a> },
}

impl Job<'_> {
    #[allow(unsafe_code)]
    fn sample(&self, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        match self {
            Job::Stream { routine, ground } => {
                // SAFETY: `Ask::of` found the instruction on this processor, the span inside the region, its start
                // aligned as the instruction wants it and its counts within it; source and region are two mappings
                // of one length; both and the lines belong to the machine that `self` borrows exclusively.
                unsafe { routine(ground, limits, first, passes) }
            }
            Job::Driver { verb, calls } => {
                let timed = match verb {
                    Verb::Load => timed_reads,
                    Verb::Store => timed_writes,
                };
                // SAFETY: the user memory is the part of the source that mirrors the span, and is used by nobody else.
                unsafe { timed(calls, limits, first, passes) }
            }
        }
    }
}

fn os(doing: &'static str, error: Errno) -> MachineError {
    MachineError::Os { machine: NAME.to_owned(), doing, source: error.into() }
}

fn facts(cpu: &Cpu, cpus: usize, region_bytes: u64) -> Facts {
    Facts {
        name: NAME.to_owned(),
        summary: format!("{}, ordinary memory (WB)", cpu.brand),
        clockwork: Clockwork::Real,
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
        driver_width: Some(Width::B8),
    }
}

#[cfg(test)]
mod tests;
