//! Driver calls to a card: plans of `pread`, `pwrite` and `mmap` on a file that has them, and of mappings of host memory for
//! the card.

#![allow(unsafe_code)]

use super::CardMachine;
use super::bar_files::BarFile;
use crate::map_unmap::refused;
use crate::x86::disturbance::Company;
use crate::x86::driver_calls::{Calls, equal_bytes, timed_maps, timed_reads, timed_writes};
use crate::x86::request::{Request, Timed};
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, Limits, stamp_before};
use lanemark_machine::{Confirmed, Delivery as Delivered, MachineError, Plan, Samples, Unsupported, Verb};
use rustix::fd::AsFd as _;
use std::sync::Arc;

impl CardMachine {
    /// Runs a plan of driver calls or of mappings of host memory, which the allowance has accepted. The kernel's mapping of the
    /// card has the memory type of the plan.
    ///
    /// The bytes are compared with those that another call reads. Calls return when the kernel has executed the stores, so
    /// writes have an `issue` time only.
    pub(super) fn run_calls(
        &mut self,
        plan: &Plan,
        ask: &Request,
        place: usize,
        samples: &mut Samples,
    ) -> Result<(), MachineError> {
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        let (start, user) = self.prepare(ask)?;
        let card = |error| self.error(error);
        let (device, place) = (&self.allowance.attachment.device, &self.allowance.attachment.places[place]);
        self.opened.check(device).map_err(card)?;
        let (name, memory_type) = (self.allowance.facts.name.clone(), ask.span.memory_type);
        let unsupported = || Unsupported {
            what: format!("a driver call as {memory_type}"),
            machine: name.clone(),
            because: self.allowance.files.types().to_owned(),
        };
        let path = self.allowance.files.path(device, place.range.bar, memory_type).ok_or_else(unsupported)?;
        let opened = self.allowance.files.open(device, place, memory_type, &path).map_err(card)?;
        let run = Run {
            machine: &name,
            timer: self.timer,
            plan,
            cpu: self.cpus[ask.core],
            company: Company::None,
            passes_per_check: ask.passes_per_check,
            delivery: Delivery::Drained,
            interrupted: &Arc::clone(&self.interrupted),
            numbering: Numbering::EndingWith(self.runs),
        };
        if let Timed::MapUnmap(asked) = ask.work {
            let mapper = self.allowance.files.mapper(opened, asked, self.timer);
            let mut mapper = mapper.map_err(|error| refused(&name, error))?;
            let (clock, bounce_buffer) = (mapper.clock(), mapper.bounce_buffer());
            let timed = |limits: &Limits<'_>, first, passes| {
                mapper.timed(limits, first, passes).map_err(|error| refused(&name, error))
            };
            run.take_by(clock, samples, "mapping memory for DMA", || {}, timed)?;
            samples.confirmed = None;
            samples.bounce_buffer = bounce_buffer;
            self.opened.check(device).map_err(card)?;
            samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
            return Ok(());
        }
        let BarFile { file, start: bar } = &opened;
        let (file, offset) = (file.as_fd(), bar + ask.span.at.offset);
        let call_bytes = if let Timed::Driver { call_bytes, .. } = ask.work { call_bytes } else { ask.len };
        let calls = Calls { file, offset, user, len: ask.len, call_bytes };
        run.take(
            samples,
            "calling the driver",
            || {},
            |limits, first, passes| match ask.work {
                // SAFETY: `prepare` has allocated the memory for the span, and this run is its only user.
                Timed::Driver { verb: Verb::Load, .. } => Ok(unsafe { timed_reads(&calls, limits, first, passes) }),
                // SAFETY: as above.
                Timed::Driver { verb: Verb::Store, .. } => Ok(unsafe { timed_writes(&calls, limits, first, passes) }),
                Timed::Map => Ok(timed_maps(file, offset, ask.len, limits, first, passes)),
                _ => Err(unsupported().into()),
            },
        )?;
        samples.delivery = Delivered::Seen;
        if let Timed::Driver { verb, .. } = ask.work {
            if verb == Verb::Store {
                samples.delivery = Delivered::Unknown;
                let disturbed = samples.disturbed.iter_mut().map(|(_, sample, _)| sample);
                samples.taken.iter_mut().chain(disturbed).for_each(|sample| sample.delivered = sample.issue);
            }
            let moved = self.source.as_ref().map_or(&[][..], |source| &source.bytes()[start..start + ask.len]);
            let equal = equal_bytes(file, offset, moved).map_err(|error| MachineError::Os {
                machine: name.clone(),
                doing: "reading the span back",
                source: error.into(),
            })?;
            samples.confirmed = Some(Confirmed { claimed_bytes: ask.len as u64, confirmed_bytes: equal });
        }
        self.opened.check(device).map_err(card)?;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}
