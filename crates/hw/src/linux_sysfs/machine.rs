//! Card as a machine: runs plans by loads and stores to a PCI device.

#![allow(unsafe_code)]

use super::allowance::Allowance;
use super::attachment::Attachment;
use super::bar_files::{BarFiles, Resources};
use super::effective::Mapping;
use super::opened::Opened;
use super::window::Window;
use super::{CardError, Kind};
use crate::x86::buffer::Buffer;
use crate::x86::disturbance::Company;
use crate::x86::flush::flush_lines;
use crate::x86::loops::Ground;
use crate::x86::pattern::{self, Lines};
use crate::x86::pin::allowed_cpus;
use crate::x86::request::{Request, Timed};
use crate::x86::run::{Numbering, Run, RunState};
use crate::x86::sample::{Delivery, Limits, stamp_before, timed};
use crate::x86::timer::{EmptySample, Timer};
use lanemark_machine::{
    Confirmed, Delivery as Delivered, Facts, Machine, MachineError, Order, Plan, Samples, TimeBase, Unsupported, Verb,
};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Named ranges of a PCI device, accessed by a core of this machine.
///
/// Each range is one region: `bar2`, or `bar2+0x1000` if several lie in one BAR.
///
/// - **Plans:** as for [`HostMemory`](crate::HostMemory), with driver calls only through our module. Memory types are found
///   by mapping each range once at opening: UC through `resourceN`, WC through `resourceN_wc`, all but WB through our
///   module. Registers take plain 4 B accesses only.
/// - **Mappings:** a range is mapped for one run, so that no BAR has two types at a time. The type is read back each time if
///   the system reports it; a run on a mapping of another type fails.
/// - **Order:** nothing is loaded before it was stored, except by a plan that loads.
/// - **Times:** as for host memory, but `delivered` of stores ends when a load of the last 4 B of the span completes. The
///   read cannot pass posted writes, so all of them have been accepted. This includes one read round trip, which
///   [`Delivered::ReadBack`] reports; it is measured alone after the last sample and not subtracted, because part of it
///   overlaps the last stores, and a longer time never makes a rate too high. Write-only ranges have an `issue` time only.
/// - **Timeout:** applies to each sample, excluding warm-up; the clock is read every 4,096 accesses or so.
/// - **Confirmed:** data stored to storage is loaded back after the last sample and compared byte by byte; for copies out of
///   storage, the copy is compared with it. Nothing is confirmed for registers.
/// - **Failures:** a removed device, a BAR that vanishes under its mapping, and storage that reads as all ones are
///   [`MachineError::Device`].
#[derive(Debug)]
pub struct CardMachine {
    pub(super) allowance: Allowance,
    /// System numbers of the cores that a plan may name.
    pub(super) cpus: Vec<usize>,
    pub(super) timer: Timer,
    /// Host memory for copies, as long as the longest copy so far.
    pub(super) source: Option<Buffer>,
    lines: Box<Lines>,
    pub(super) interrupted: Arc<AtomicBool>,
    /// Number of runs so far.
    pub(super) runs: u64,
    pub(super) opened: Opened,
}

impl CardMachine {
    /// Maps every range once with each memory type to find the supported ones; loads and stores nothing.
    ///
    /// In an emulator (`is_emulated`) the time-stamp counter need not be invariant, because timings are not meaningful there.
    ///
    /// # Errors
    /// [`CardError`], in particular mapping errors.
    pub fn open(attachment: Attachment, is_emulated: bool) -> Result<CardMachine, CardError> {
        CardMachine::through(&(Arc::new(Resources) as Arc<dyn BarFiles>), attachment, is_emulated)
    }

    /// As [`open`](CardMachine::open), with mappings of other files.
    pub(crate) fn through(
        files: &Arc<dyn BarFiles>,
        attachment: Attachment,
        is_emulated: bool,
    ) -> Result<CardMachine, CardError> {
        let device = attachment.device.clone();
        let opened = Opened::new(&device)?;
        let cpus =
            allowed_cpus().map_err(|error| device.os("querying", "the CPU affinity mask".into(), error.into()))?;
        let mut refused = None;
        let mut allowance = Allowance::new(Arc::clone(files), attachment, cpus.len(), |place, memory_type| {
            match Window::open(&device, &**files, place, memory_type) {
                Ok(window) => Ok(Ok(window.mapped().clone())),
                Err(refusal @ (CardError::NoWriteCombining { .. } | CardError::OtherType { .. })) => {
                    let because = refusal.to_string();
                    refused.get_or_insert(refusal);
                    Ok(Err(because))
                }
                Err(other) => Err(other),
            }
        })?;
        if let Some(refusal) = refused.filter(|_| allowance.facts.memory_types.is_empty()) {
            return Err(refusal);
        }
        if !allowance.cpu.has_invariant_tsc && !is_emulated {
            return Err(CardError::Unsupported {
                device: device.address(),
                because: "the time-stamp counter of this processor is not invariant (CPUID 80000007H, EDX bit 8)"
                    .to_owned(),
            });
        }
        if is_emulated {
            allowance.facts.time_base = TimeBase::Emulated;
        }
        let timer = allowance.timer;
        Ok(CardMachine {
            allowance,
            cpus,
            timer,
            source: None,
            lines: pattern::lines(),
            interrupted: Arc::default(),
            runs: 0,
            opened,
        })
    }

    /// Sets the flag that ends a run with [`MachineError::Interrupted`], between two samples or within a long one.
    #[must_use]
    pub fn interrupted_by(self, flag: Arc<AtomicBool>) -> CardMachine {
        CardMachine { interrupted: flag, ..self }
    }

    /// Device and accessible ranges.
    #[must_use]
    pub const fn attachment(&self) -> &Attachment {
        &self.allowance.attachment
    }

    /// Outcome of mapping each range with each memory type.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.allowance.mappings
    }

    fn name(&self) -> String {
        self.allowance.facts.name.clone()
    }

    /// Allocates and fills the host end of a copy; returns its offset and address. Its offset within a page is that of the
    /// span, so that both ends have the same alignment.
    pub(super) fn prepare(&mut self, ask: &Request) -> Result<(usize, *mut u8), MachineError> {
        let is_copy = match ask.work {
            Timed::Stream { shape, .. } => shape.access.width().is_none(),
            work => matches!(work, Timed::Driver { .. }),
        };
        let start = ask.offset % super::sigbus::PAGE;
        let end = if is_copy { start + ask.len } else { start };
        if self.source.as_ref().is_none_or(|source| source.bytes().len() < end) {
            let machine = self.name();
            let source = Buffer::new(end.max(1)).map_err(|error| MachineError::Os {
                machine,
                doing: "allocating the host end of a copy",
                source: error.into(),
            })?;
            self.source = Some(source);
        }
        let Some(source) = self.source.as_mut() else { return Ok((start, std::ptr::null_mut())) };
        if is_copy {
            pattern::fill(&mut source.bytes_mut()[start..end], self.runs);
        }
        Ok((start, source.at(start.min(source.bytes().len()))))
    }

    /// Converts a card error to an error of the `Machine` trait.
    pub(super) fn error(&self, error: CardError) -> MachineError {
        let machine = self.name();
        match error {
            CardError::Gone { .. }
            | CardError::Unbound { .. }
            | CardError::Changed { .. }
            | CardError::BusError { .. }
            | CardError::DecodingOff { .. }
            | CardError::AllOnes { .. } => MachineError::Device { machine, what: error.to_string() },
            other => Unsupported { what: "this plan".to_owned(), machine, because: other.to_string() }.into(),
        }
    }

    /// Loads the span back, if the plan moved data that can be verified, and compares it with the data of iteration `last`.
    fn confirmed(
        &self,
        window: &Window,
        ask: &Request,
        source_start: usize,
        left: &RunState,
        timeout: Ticks,
    ) -> Result<Option<Confirmed>, MachineError> {
        let Timed::Stream { shape, .. } = ask.work else { return Ok(None) };
        if ask.len == 0 || window.place().kind != Kind::Storage {
            return Ok(None);
        }
        let is_load_into_register = shape.verb == Verb::Load && shape.access.width().is_some();
        if is_load_into_register {
            return Ok(None);
        }
        if matches!(ask.span.memory_type, MemoryType::Wt | MemoryType::Wp) {
            let at = window.at(ask.span.at.offset, ask.span.len).map_err(|error| self.error(error))?;
            // SAFETY: the span is in the window. The loads must not come from a cache.
            unsafe { flush_lines(at, ask.len) };
        }
        let found = self.loaded(window, ask.span.at, ask.len, timeout)?;
        if shape.verb == Verb::Store && found.iter().all(|byte| *byte == 0xff) {
            let device = window.device();
            device.check_decoding().map_err(|error| self.error(error))?;
            let (at, len) = (ask.span.at, ask.len as u64);
            return Err(self.error(CardError::AllOnes { device: device.address(), at, len }));
        }
        let copied = self.source.as_ref().map_or(&[][..], |source| source.bytes());
        let equal = match shape.access.width() {
            Some(width) => pattern::stored_bytes(&found, width.bytes() as usize, pattern::value(left.last)),
            None => pattern::equal_bytes(&found, &copied[source_start..source_start + ask.len]),
        };
        Ok(Some(Confirmed { claimed_bytes: ask.len as u64, confirmed_bytes: equal }))
    }

    /// Loads a span, by aligned loads of 8 B and narrower ones at its ends.
    fn loaded(&self, window: &Window, at: BarOffset, len: usize, timeout: Ticks) -> Result<Vec<u8>, MachineError> {
        /// Bytes between two checks of the clock: 4,096 loads, about 4 ms.
        const PER_CHECK: usize = 4096 * 8;
        // Reading 64 KiB by 8 B may take 10 ms, much more than a sample of stores, so the timeout applies to each part.
        let mut found = vec![0; len];
        for (number, part) in found.chunks_mut(PER_CHECK).enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(MachineError::Interrupted { machine: self.name() });
            }
            let begun = stamp_before();
            window.load(at.offset + (number * PER_CHECK) as u64, part).map_err(|error| self.error(error))?;
            let after = self.timer.ticks(stamp_before().saturating_sub(begun));
            if after > timeout {
                let waiting_for = format!("loads from {at} that verify the stored data");
                return Err(MachineError::Timeout { machine: self.name(), after, waiting_for });
            }
        }
        window.check().map_err(|error| self.error(error))?;
        Ok(found)
    }

    /// Median time of a load that follows no stores.
    fn round_trip(&self, limits: &Limits<'_>, empty: EmptySample) -> Ticks {
        const TRIES: usize = 31;
        let mut spans: Vec<Ticks> =
            (0..TRIES).map(|_| self.timer.sample(&timed(limits, 0, 1, |_| Ok(())), empty).delivered).collect();
        *spans.select_nth_unstable(TRIES / 2).1
    }
}

impl Machine for CardMachine {
    fn facts(&self) -> &Facts {
        &self.allowance.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.allowance.request(plan).map(drop).map_err(|refusal| refusal.into_unsupported(self.facts()))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (ask, place) = self.allowance.request(plan).map_err(|refusal| refusal.into_error(self.facts()))?;
        let Timed::Stream { shape, count, rest } = ask.work else { return self.run_calls(plan, &ask, place, samples) };
        let routine = shape.routine().ok_or_else(|| self.no_loop(&ask))?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        let (source_start, other) = self.prepare(&ask)?;
        let card = |error| self.error(error);
        let Attachment { device, places, .. } = self.attachment();
        self.opened.check(device).map_err(card)?;
        let window =
            Window::open(device, &*self.allowance.files, &places[place], ask.span.memory_type).map_err(card)?;
        let at = window.at(ask.span.at.offset, ask.span.len).map_err(card)?;

        // A load of a cached type would come from a cache.
        let is_cached = matches!(ask.span.memory_type, MemoryType::Wt | MemoryType::Wp);
        let reads_back = shape.verb == Verb::Store && places[place].kind.may_load() && !is_cached;
        let delivery = if reads_back {
            // SAFETY: the window is mapped until the end of this function, and its kind permits loads.
            unsafe { Delivery::read_back(at, ask.len) }
        } else {
            Delivery::Drained
        };
        let (timer, interrupted) = (self.timer, Arc::clone(&self.interrupted));
        let name = self.name();
        let run = Run {
            machine: &name,
            timer,
            plan,
            cpu: self.cpus[ask.core],
            company: Company::None,
            passes_per_check: ask.passes_per_check,
            delivery,
            interrupted: &interrupted,
            numbering: Numbering::EndingWith(self.runs),
        };
        let interleaved = if let Order::Interleaved { lines } = shape.order { lines as usize } else { 0 };
        let (lines, after, copies) = (&raw const *self.lines, shape.after, std::ptr::null());
        let ground = Ground { at, other, len: ask.len, count, rest, lines, interleaved, after, copies };
        let left = run.take(
            samples,
            "loading and storing",
            || {
                if ask.flushed.is_some() {
                    // SAFETY: the span is in the window.
                    unsafe { flush_lines(at, ask.len) };
                }
            },
            |limits, first, passes| {
                // SAFETY: `Request::of` checked that the processor supports the instruction and that the accesses are within the span,
                // which the window contains; stores only go to a window mapped for stores. The source is a separate mapping used by
                // this run only, and the lines belong to the machine.
                let stamps = unsafe { routine(&ground, limits, first, passes) };
                window.check().map_err(card)?;
                Ok(stamps)
            },
        )?;
        samples.delivery = match (shape.verb, reads_back) {
            (Verb::Load, _) => Delivered::Seen,
            (Verb::Store, true) => {
                let (timeout_cycles, passes_per_check) = (timer.cycles(plan.timeout), ask.passes_per_check);
                let limits = Limits { timeout_cycles, passes_per_check, interrupted: &interrupted, delivery };
                Delivered::ReadBack { round_trip: self.round_trip(&limits, left.empty) }
            }
            (Verb::Store, false) => Delivered::Unknown,
        };
        if samples.delivery == Delivered::Unknown {
            let disturbed = samples.disturbed.iter_mut().map(|(_, sample, _)| sample);
            samples.taken.iter_mut().chain(disturbed).for_each(|sample| sample.delivered = sample.issue);
        }
        samples.confirmed = self.confirmed(&window, &ask, source_start, &left, plan.timeout)?;
        window.check().map_err(card)?;
        self.opened.check(device).map_err(card)?;
        samples.spent = timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

impl CardMachine {
    /// Error for a request without a loop; `Allowance::ask` accepts none of these.
    fn no_loop(&self, ask: &Request) -> Unsupported {
        let because = "there is no measurement loop for it".to_owned();
        Unsupported { what: format!("{:?}", ask.work), machine: self.name(), because }
    }
}
