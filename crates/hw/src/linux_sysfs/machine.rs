//! Plans run on a card.

#![allow(unsafe_code)]

use super::allowance::Allowance;
use super::attachment::Attachment;
use super::effective::Mapping;
use super::window::Window;
use super::{CardError, Kind};
use crate::x86::ask::{Ask, Work};
use crate::x86::buffer::Buffer;
use crate::x86::disturbance::Company;
use crate::x86::loops::Ground;
use crate::x86::pattern::{self, Lines};
use crate::x86::pin::allowed_cpus;
use crate::x86::run::{Left, Numbering, Run};
use crate::x86::sample::{Delivery, Limits, stamp_before, timed};
use crate::x86::timer::{EmptySample, Timer};
use lanemark_machine::{
    Confirmed, Delivery as Delivered, Facts, Machine, MachineError, Order, Plan, Samples, TimeBase, Unsupported, Verb,
};
use lanemark_units::{BarOffset, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The named ranges of a PCI device, loaded and stored by a core of this machine.
///
/// A region a range: `bar2`, or `bar2+0x1000` where several lie in one BAR.
///
/// - **Plans:** as for [`HostMemory`](crate::HostMemory), without driver calls. Memory types are those that came of
///   mapping each range once, at opening: UC through `resourceN`, WC through `resourceN_wc`. Registers take plain
///   accesses of 4 B.
/// - **Mappings:** a range is mapped for a run and unmapped after it, so that no two types are held at once. The type is
///   read back each time where the system tells it, and a run whose mapping has another type is refused.
/// - **Order:** nothing is loaded before it was stored, but by a plan that loads.
/// - **Times:** as for host memory, but `delivered` of stores ends when a load of the last 4 B of the span has come back:
///   it cannot pass the posted writes, so they have been accepted. One round trip of a read is inside, as
///   [`Delivered::ReadBack`] says; it is measured by the same load alone, after the last sample, and not subtracted: a
///   part of it runs while the last stores are under way, and a time that is too long makes no rate too high. Ranges
///   that must not be loaded have an `issue` time only.
/// - **Timeout:** holds for each sample, warm-up apart; the clock is looked at after some 4,000 accesses.
/// - **Confirmed:** what was stored to storage is loaded back after the last sample and compared byte by byte; for copies
///   out of storage, the copy is compared with it. Nothing of registers is confirmed.
/// - **Ends:** a device that has gone, a BAR that vanishes under the mapping, and storage that reads all ones are
///   [`MachineError::Device`].
#[derive(Debug)]
pub struct CardMachine {
    allowance: Allowance,
    /// The system's numbers of the cores a plan may name.
    cpus: Vec<usize>,
    timer: Timer,
    /// The other side of copies, as long as the longest so far.
    source: Option<Buffer>,
    lines: Box<Lines>,
    interrupted: Arc<AtomicBool>,
    /// Runs begun.
    runs: u64,
}

impl CardMachine {
    /// Maps every range once with each memory type to learn which there are; loads and stores nothing.
    ///
    /// In an emulator (`is_emulated`) the time-stamp counter need not be invariant: its times mean nothing anyway.
    ///
    /// # Errors
    /// [`CardError`], in particular those of mapping.
    pub fn open(attachment: Attachment, is_emulated: bool) -> Result<CardMachine, CardError> {
        let device = attachment.device.clone();
        let cpus = allowed_cpus()
            .map_err(|error| device.os("asking for", "the cores that may be used".into(), error.into()))?;
        let mut allowance = Allowance::new(attachment, cpus.len(), |place, memory_type| {
            match Window::open(&device, place, memory_type) {
                Ok(window) => Ok(Ok(window.mapped().clone())),
                Err(refusal @ (CardError::NoWriteCombining { .. } | CardError::OtherType { .. })) => {
                    Ok(Err(refusal.to_string()))
                }
                Err(other) => Err(other),
            }
        })?;
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
        })
    }

    /// Ends a run with [`MachineError::Interrupted`] once `flag` is set, between two samples or within a long one.
    #[must_use]
    pub fn interrupted_by(self, flag: Arc<AtomicBool>) -> CardMachine {
        CardMachine { interrupted: flag, ..self }
    }

    /// The device and the ranges that may be touched.
    #[must_use]
    pub const fn attachment(&self) -> &Attachment {
        &self.allowance.attachment
    }

    /// What came of mapping each range with each memory type.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.allowance.mappings
    }

    fn name(&self) -> String {
        self.allowance.facts.name.clone()
    }

    /// Makes room for the other side of a copy and puts new bytes there; says where they start. It lies as far from a
    /// page's start as the span does, so that both sides have one alignment.
    fn prepare(&mut self, ask: &Ask) -> Result<(usize, *mut u8), MachineError> {
        let is_copy = matches!(ask.work, Work::Stream { shape, .. } if shape.access.width().is_none());
        let start = ask.offset % super::sigbus::PAGE;
        let end = if is_copy { start + ask.len } else { start };
        if self.source.as_ref().is_none_or(|source| source.bytes().len() < end) {
            let machine = self.name();
            let source = Buffer::new(end.max(1)).map_err(|error| MachineError::Os {
                machine,
                doing: "allocating the other side of a copy",
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

    /// A card error as the promise has it.
    fn error(&self, error: CardError) -> MachineError {
        let machine = self.name();
        match error {
            CardError::Gone { .. } | CardError::BusError { .. } | CardError::AllOnes { .. } => {
                MachineError::Device { machine, what: error.to_string() }
            }
            other => Unsupported { what: "this plan".to_owned(), machine, because: other.to_string() }.into(),
        }
    }

    /// Loads the span back, if that says whether the bytes arrived, and compares it with what pass `last` left there.
    fn confirmed(
        &self,
        window: &Window,
        ask: &Ask,
        source_start: usize,
        left: &Left,
        timeout: Ticks,
    ) -> Result<Option<Confirmed>, MachineError> {
        let Work::Stream { shape, .. } = ask.work else { return Ok(None) };
        if ask.len == 0 || window.place().kind != Kind::Storage {
            return Ok(None);
        }
        let is_load_into_register = shape.verb == Verb::Load && shape.access.width().is_some();
        if is_load_into_register {
            return Ok(None);
        }
        let found = self.loaded(window, ask.span.at, ask.len, timeout)?;
        if shape.verb == Verb::Store && found.iter().all(|byte| *byte == 0xff) {
            let device = window.device();
            device.check_present().map_err(|error| self.error(error))?;
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

    /// The bytes of a span, by loads of 8 B and fewer at its ends.
    fn loaded(&self, window: &Window, at: BarOffset, len: usize, timeout: Ticks) -> Result<Vec<u8>, MachineError> {
        /// Loads between two looks at the clock: 4 ms at a microsecond each.
        const PER_LOOK: usize = 4096 * 8;
        // Reading 64 KiB by 8 B may take 10 ms, and much more than a sample of stores; the plan's time holds for each
        // part of it.
        let mut found = vec![0; len];
        for (number, part) in found.chunks_mut(PER_LOOK).enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(MachineError::Interrupted { machine: self.name() });
            }
            let begun = stamp_before();
            window.load(at.offset + (number * PER_LOOK) as u64, part).map_err(|error| self.error(error))?;
            let after = self.timer.ticks(stamp_before().saturating_sub(begun));
            if after > timeout {
                let waiting_for = format!("loads from {at} that confirm what was stored");
                return Err(MachineError::Timeout { machine: self.name(), after, waiting_for });
            }
        }
        window.check().map_err(|error| self.error(error))?;
        Ok(found)
    }

    /// The median of a load that nothing was stored before.
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
        self.allowance.ask(plan).map(drop).map_err(|refusal| refusal.into_unsupported(self.facts()))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (ask, place) = self.allowance.ask(plan).map_err(|refusal| refusal.into_error(self.facts()))?;
        let Work::Stream { shape, count, rest } = ask.work else { return Err(self.no_loop(&ask).into()) };
        let routine = shape.routine().ok_or_else(|| self.no_loop(&ask))?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        let (source_start, other) = self.prepare(&ask)?;
        let card = |error| self.error(error);
        let Attachment { device, places, .. } = self.attachment();
        device.check_present().map_err(card)?;
        let window = Window::open(device, &places[place], ask.span.memory_type).map_err(card)?;
        let at = window.at(ask.span.at.offset, ask.span.len).map_err(card)?;

        let reads_back = shape.verb == Verb::Store && places[place].kind.may_load();
        let delivery = if reads_back {
            // SAFETY: the window is mapped until the end of this function, and its place may be loaded.
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
            company: Company::Nobody,
            passes_per_look: ask.passes_per_look,
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
            || {},
            |limits, first, passes| {
                // SAFETY: `Ask::of` found the instruction on this processor and its counts within the span, the window holds
                // the span, and a store goes to a window that is mapped for stores. The source is a mapping of its own, used
                // by this run alone, and the lines belong to the machine.
                let stamps = unsafe { routine(&ground, limits, first, passes) };
                window.check().map_err(card)?;
                Ok(stamps)
            },
        )?;
        samples.delivery = match (shape.verb, reads_back) {
            (Verb::Load, _) => Delivered::Seen,
            (Verb::Store, true) => {
                let (timeout_cycles, passes_per_look) = (timer.cycles(plan.timeout), ask.passes_per_look);
                let limits = Limits { timeout_cycles, passes_per_look, interrupted: &interrupted, delivery };
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
        device.check_present().map_err(card)?;
        samples.spent = timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

impl CardMachine {
    fn no_loop(&self, ask: &Ask) -> Unsupported {
        let because = "there is no loop for it".to_owned();
        Unsupported { what: format!("{:?}", ask.work), machine: self.name(), because }
    }
}
