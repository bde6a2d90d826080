//! Runs of plans with reads or writes of a drive, through any queue: samples, and verification of the bytes.

use super::direction::Direction;
use super::drive_queue::{DataAt, DriveQueue, Spot};
use super::error::NvmeError;
use super::identify::Namespace;
use super::memory::PAGE;
use super::plan::DrivePlan;
use crate::host_pages::{HostPages, changed, changed_beside, fill};
use crate::x86::disturbance::Company;
use crate::x86::pattern;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, Limits, Stamps, stamp_before, timed};
use crate::x86::timer::Timer;
use lanemark_machine::{Confirmed, MachineError, Partner, Plan, Samples, Transfer, Verb};
use lanemark_units::Ticks;
use rustix::io::Errno;
use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

/// Time that Linux waits for a command, as a limit of those outside of samples: a Flush may have to empty a cache.
const LONGEST: Ticks = Ticks::whole_ns(30_000_000_000);
/// Filler of the place for verification before a read, and of the blocks before the measured writes.
const POISON: u64 = 0xdead_10cc_dead_10cc;

/// Memory to which a drive reads.
pub(crate) trait DataMemory {
    /// Copies the bytes at `at` to `bytes`.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno>;
}

impl DataMemory for HostPages {
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        HostPages::read(self, at, bytes);
        Ok(())
    }
}

/// A command failed: the error, and the name of an outstanding command.
pub(crate) type Failure = (NvmeError, &'static str);

/// A plan with reads or writes of a drive, and the parts of a machine that it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveRun<'a> {
    pub(crate) name: &'a str,
    pub(crate) cpu: usize,
    pub(crate) timer: Timer,
    pub(crate) interrupted: &'a AtomicBool,
    /// Number of this run, from which the bytes before it follow.
    pub(crate) number: u64,
    pub(crate) plan: &'a Plan,
    pub(crate) asked: DrivePlan,
    pub(crate) namespace: Namespace,
}

/// Memory of a plan: its windows, and a place for verification in host memory, behind the windows that are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) window_end: u64,
    pub(crate) scratch: u64,
    pub(crate) end: u64,
}

impl Places {
    /// The memory of a plan; its window is not in host memory if that of another card has the data.
    pub(crate) fn of(asked: &DrivePlan) -> Places {
        let end = |of: Transfer| match of.partner {
            Partner::Host => of.window.offset + of.window.len.max(of.bytes),
            Partner::Peer { .. } => 0,
        };
        let window_end = asked.transfers().map(end).max().unwrap_or(0);
        let scratch = match asked.data {
            DataAt::Host => window_end.next_multiple_of(PAGE),
            DataAt::Cmb | DataAt::Peer => 0,
        };
        Places { window_end, scratch, end: scratch + asked.transfer.bytes.next_multiple_of(PAGE) }
    }
}

impl DriveRun<'_> {
    /// Seed of the bytes in the window before the run.
    pub(crate) const fn seed(&self) -> u64 {
        2 * self.number
    }

    /// Fills the window.
    pub(crate) fn fill(&self, pages: &mut HostPages) {
        fill(pages, Places::of(&self.asked).window_end, self.seed());
    }

    /// Samples, and reads the blocks of the last iteration once more, to host memory; compares them with the data of the plan.
    pub(crate) fn measured<Q: DriveQueue>(
        &self,
        queue: &mut Q,
        (pages, data): (&HostPages, &impl DataMemory),
        samples: &mut Samples,
    ) -> Result<Confirmed, MachineError> {
        let DriveRun { plan, namespace, asked, .. } = *self;
        let directions = Direction::all(&asked, &namespace);
        let read_only = || self.device_error(format!("{}: its queue only reads", self.name));
        let mut commands: Vec<Vec<Q::Command>> = Vec::new();
        for direction in &directions {
            let of_places = (0..direction.places()).map(|place| direction.command(queue, place));
            commands.push(of_places.collect::<Option<_>>().ok_or_else(read_only)?);
        }
        let all = directions.iter().map(Direction::places).sum();
        let (scratch, bytes) = (Places::of(&asked).scratch, asked.transfer.bytes);
        let verified = Spot { place: DataAt::Host, at: scratch, list: all };
        let poison = || (scratch..scratch + bytes).step_by(8).for_each(|word| pages.store_word(word, POISON));
        for direction in directions.iter().filter(|direction| direction.transfer.verb == Verb::Load) {
            // Blocks that a former run wrote may have the same bytes.
            poison();
            for place in direction.last(plan.passes) {
                let (first, blocks) = direction.blocks(place);
                let write = queue.write(first, blocks, verified, bytes).ok_or_else(read_only)?;
                self.once(queue, write)?;
            }
        }

        let run = Run {
            machine: self.name,
            timer: self.timer,
            plan,
            cpu: self.cpu,
            company: Company::Device,
            passes_per_check: 1,
            delivery: Delivery::Drained,
            interrupted: self.interrupted,
            numbering: Numbering::EndingWith(self.number),
        };
        let shared = RefCell::new(&mut *queue);
        let (kinds, pairs) = (directions.len() as u64, u64::from(asked.pairs));
        let take = |limits: &Limits<'_>, first: u64, passes: u64| -> Result<Stamps, MachineError> {
            let mut queue = shared.borrow_mut();
            queue.check()?;
            let failure = Cell::new(None);
            // Commands of each queue pair so far.
            let mut sent = vec![0; asked.pairs as usize];
            // All iterations are one stream, as in the simulation: the queue would run empty between them.
            let end = passes.saturating_mul(asked.transfer.count).saturating_mul(kinds);
            let stamps = timed(limits, first, 1, |_| {
                let next = |pair: usize| {
                    let sent = sent.get_mut(pair)?;
                    let nth = *sent * pairs + pair as u64;
                    if nth >= end {
                        return None;
                    }
                    *sent += 1;
                    let kind = (nth % kinds) as usize;
                    let place = directions.get(kind)?.place(nth / kinds);
                    commands.get(kind)?.get(place as usize)
                };
                let done = self.commands(&mut **queue, asked.depth, plan.timeout, next);
                done.map_err(|why| {
                    failure.set(Some(why));
                    Errno::IO
                })
            });
            // A drive that is gone explains every other failure.
            queue.check()?;
            failure.get().map_or(Ok(stamps), |failure| Err(self.failed(failure, plan.timeout)))
        };
        let doing = match (asked.transfer.verb, asked.reads) {
            (Verb::Load, _) => "writing to the drive",
            (Verb::Store, None) => "reading from the drive",
            (Verb::Store, Some(_)) => "reading from the drive and writing to it",
        };
        run.take(samples, doing, || {}, take)?;

        let (mut meant, mut found) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let (mut claimed_bytes, mut confirmed_bytes) = (0, 0);
        for direction in &directions {
            for place in direction.last(plan.passes) {
                poison();
                let (first, blocks) = direction.blocks(place);
                let again = queue.read(first, blocks, verified, bytes);
                self.once(queue, again)?;
                pages.read(scratch, &mut meant);
                let loaded = data.read(direction.at(place), &mut found);
                loaded.map_err(|error| self.failed((NvmeError::Os(error), ""), plan.timeout))?;
                claimed_bytes += bytes;
                confirmed_bytes += pattern::equal_bytes(&found, &meant);
            }
        }
        Ok(Confirmed { claimed_bytes, confirmed_bytes })
    }

    /// Runs one command outside of the samples.
    pub(crate) fn once<Q: DriveQueue>(&self, queue: &mut Q, command: Q::Command) -> Result<(), MachineError> {
        let (mut once, longest) = (Some(command), self.plan.timeout.max(LONGEST));
        let done = self.commands(queue, 1, longest, |_| once.take());
        done.map_err(|failure| self.failed(failure, longest))
    }

    /// Runs commands, until a timeout or an interruption.
    #[inline]
    pub(crate) fn commands<Q: DriveQueue, K: Borrow<Q::Command>>(
        &self,
        queue: &mut Q,
        depth: u32,
        timeout: Ticks,
        next: impl FnMut(usize) -> Option<K>,
    ) -> Result<(), Failure> {
        let mut check = deadline(self.timer, timeout, self.interrupted);
        queue.run(depth, next, &mut check).map_err(|error| (error, queue.waiting_for()))
    }

    /// Fails if bytes of the window have changed that no read of the drive goes to.
    pub(crate) fn check_beside(&self, pages: &HostPages) -> Result<(), MachineError> {
        let end = Places::of(&self.asked).window_end;
        let changed = match self.asked.transfer.verb {
            Verb::Store => changed_beside(pages, self.plan, &self.asked.transfer, end, self.seed()),
            Verb::Load => changed(pages, 0, end, self.seed()),
        };
        let Some(changed) = changed else { return Ok(()) };
        Err(self.device_error(format!(
            "{}: the drive has changed the byte at offset {changed} of the {}, which no read goes to: its \
             firmware is at fault",
            self.name,
            match self.asked.data {
                DataAt::Cmb => "controller memory buffer",
                DataAt::Host | DataAt::Peer => "host memory",
            }
        )))
    }

    /// The error of a run.
    pub(crate) fn failed(&self, (error, command): Failure, after: Ticks) -> MachineError {
        let machine = self.name.to_owned();
        match error {
            NvmeError::Interrupted => MachineError::Interrupted { machine },
            NvmeError::Late => {
                let waiting_for = format!("the completion of the command {command}");
                MachineError::Timeout { machine, after, waiting_for }
            }
            NvmeError::Os(error) => {
                MachineError::Os { machine, doing: "accessing a register of the drive", source: error.into() }
            }
            NvmeError::Wait(error) => {
                MachineError::Os { machine, doing: "waiting for an interrupt of the drive", source: error.into() }
            }
            error => self.device_error(format!("{}: {error}", self.name)),
        }
    }

    fn device_error(&self, what: String) -> MachineError {
        MachineError::Device { machine: self.name.to_owned(), what }
    }
}

/// A check that ends a wait at the flag or after `timeout`.
pub(crate) fn deadline(
    timer: Timer,
    timeout: Ticks,
    interrupted: &AtomicBool,
) -> impl FnMut() -> Result<(), NvmeError> {
    let end = stamp_before().saturating_add(timer.cycles(timeout));
    move || {
        if interrupted.load(Ordering::Relaxed) {
            Err(NvmeError::Interrupted)
        } else if stamp_before() > end {
            Err(NvmeError::Late)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::IoQueues;
    use crate::x86::pin::allowed_cpus;
    use lanemark_machine::{EngineJob, Pattern, Window};

    /// Fault of a medium.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Fault {
        None,
        /// Completes writes and keeps the former bytes.
        LosesWrites,
        /// Completes reads and leaves the host memory as it was.
        LosesReads,
        /// Changes a byte of the host memory with each write.
        ChangesItsSource,
    }

    /// A queue whose commands run at once, on a medium in memory.
    struct Medium<'a> {
        pages: &'a HostPages,
        bytes: Vec<u8>,
        fault: Fault,
        pairs: usize,
    }

    /// Whether it writes to the medium, the first byte there, that of the host memory, and their number.
    type Moved = (bool, usize, u64, u64);

    impl DriveQueue for Medium<'_> {
        type Command = Moved;

        fn read(&self, first: u64, _blocks: u32, to: Spot, bytes: u64) -> Moved {
            (false, 512 * first as usize, to.at, bytes)
        }

        fn write(&self, first: u64, _blocks: u32, from: Spot, bytes: u64) -> Option<Moved> {
            Some((true, 512 * first as usize, from.at, bytes))
        }

        fn run<K: Borrow<Moved>>(
            &mut self,
            _depth: u32,
            mut next: impl FnMut(usize) -> Option<K>,
            _check: &mut impl FnMut() -> Result<(), NvmeError>,
        ) -> Result<(), NvmeError> {
            let mut turns = (0..self.pairs).cycle();
            while let Some(moved) = turns.next().and_then(&mut next) {
                let (is_write, on_medium, at, bytes) = *moved.borrow();
                let medium = &mut self.bytes[on_medium..on_medium + bytes as usize];
                if is_write {
                    let is_filler = self.pages.load_word(at) == POISON;
                    if self.fault != Fault::LosesWrites || is_filler {
                        self.pages.read(at, medium);
                    }
                    if self.fault == Fault::ChangesItsSource && !is_filler {
                        self.pages.store_word(at, 5);
                    }
                } else if self.fault != Fault::LosesReads {
                    for (to, word) in (at..).step_by(8).zip(medium.as_chunks().0) {
                        self.pages.store_word(to, u64::from_le_bytes(*word));
                    }
                }
            }
            Ok(())
        }

        fn waiting_for(&self) -> &'static str {
            "a command"
        }

        fn check(&self) -> Result<(), MachineError> {
            Ok(())
        }
    }

    /// Runs transfers of 1 KiB over 4 KiB in each of these directions, twice on the same medium; the bytes of the second run that are
    /// not confirmed, of 4 KiB for each direction, and the error of the check of the host memory.
    fn unconfirmed(verbs: &[Verb], pairs: u32, fault: Fault) -> (u64, Option<String>) {
        let mut transfers = verbs.iter().zip(0..).map(|(verb, nth)| {
            let window = Window { offset: 4096 * nth, len: 4096, pattern: Pattern::Sequential };
            let (partner, outstanding) = (Partner::Host, Some(1));
            Transfer { card: 0, verb: *verb, partner, bytes: 1024, count: 4, window, outstanding }
        });
        let (transfer, reads) = (transfers.next().unwrap(), transfers.next());
        let plan = Plan::new(vec![EngineJob::Transfer(transfer)], 2);
        let namespace = Namespace { id: 1, blocks: 16, block_bytes: 512, metadata_bytes: 0 };
        let (queues, data) = (IoQueues::Host, DataAt::Host);
        let asked = DrivePlan { core: 0, transfer, reads, pairs, depth: 1, queues, data, by_interrupt: false };
        let interrupted = AtomicBool::new(false);
        let (cpu, timer) = (allowed_cpus().unwrap()[0], Timer::checked(None));
        let run = DriveRun {
            name: "a drive",
            cpu,
            timer,
            interrupted: &interrupted,
            number: 3,
            plan: &plan,
            asked,
            namespace,
        };
        let mut pages = HostPages::new(Places::of(&asked).end).unwrap();
        let mut bytes: Vec<u8> = (0..8192_u32).map(|place| (place * 7 + 1) as u8).collect();
        // The first run is without a fault, so that the medium has the very bytes that the second one should write.
        let mut missing = 0;
        for fault in [Fault::None, fault] {
            run.fill(&mut pages);
            let mut queue = Medium { pages: &pages, bytes, fault, pairs: pairs as usize };
            let confirmed = run.measured(&mut queue, (&pages, &pages), &mut Samples::wanted(1)).unwrap();
            assert_eq!(confirmed.claimed_bytes, 4096 * verbs.len() as u64);
            (bytes, missing) = (queue.bytes, confirmed.claimed_bytes - confirmed.confirmed_bytes);
        }
        (missing, run.check_beside(&pages).err().map(|error| error.to_string()))
    }

    /// Plans with reads of the drive, with writes, and with both on one queue pair and on two.
    const READS: (&[Verb], u32) = (&[Verb::Store], 1);
    const WRITES: (&[Verb], u32) = (&[Verb::Load], 1);
    const BOTH: [(&[Verb], u32); 2] = [(&[Verb::Store, Verb::Load], 1), (&[Verb::Store, Verb::Load], 2)];

    #[test]
    fn reads_and_writes_of_a_drive_are_confirmed_byte_by_byte() {
        for (verbs, pairs) in [READS, WRITES, BOTH[0], BOTH[1], (READS.0, 3)] {
            assert_eq!(unconfirmed(verbs, pairs, Fault::None), (0, None), "{verbs:?} on {pairs}");
        }
    }

    #[test]
    fn a_write_that_is_lost_is_found_although_a_former_run_wrote_the_same_bytes() {
        for (verbs, pairs) in [WRITES, BOTH[0], BOTH[1]] {
            let (missing, beside) = unconfirmed(verbs, pairs, Fault::LosesWrites);
            assert!((4032..=4096).contains(&missing) && beside.is_none(), "{missing} of 4096 B, {beside:?}");
        }
    }

    #[test]
    fn a_read_that_is_lost_is_found() {
        for ((verbs, pairs), all) in [(READS, 4096), (BOTH[0], 8192)] {
            let (missing, beside) = unconfirmed(verbs, pairs, Fault::LosesReads);
            assert!((all - 64..=all).contains(&missing) && beside.is_none(), "{missing} of {all} B, {beside:?}");
        }
    }

    #[test]
    fn a_drive_that_changes_what_it_writes_is_found() {
        for ((verbs, pairs), at) in [(WRITES, 0), (BOTH[0], 4096)] {
            let (_, beside) = unconfirmed(verbs, pairs, Fault::ChangesItsSource);
            let words = format!("offset {at} of the host memory");
            assert!(beside.as_ref().is_some_and(|error| error.contains(&words)), "{beside:?}");
        }
    }
}
