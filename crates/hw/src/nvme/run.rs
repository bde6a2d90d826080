//! Runs of plans with reads or writes of a drive, through any queue: samples, and verification of the bytes.

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
use lanemark_machine::{Confirmed, MachineError, Plan, Samples, Transfer, Verb};
use lanemark_units::Ticks;
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time that Linux waits for a command, as a limit of those outside of samples: a Flush may have to empty a cache.
const LONGEST: Ticks = Ticks::whole_ns(30_000_000_000);
/// Filler of the place for verification before a read, and of the blocks before the measured writes.
const POISON: u64 = 0xdead_10cc_dead_10cc;

/// A queue through which commands reach a drive.
pub(crate) trait DriveQueue {
    /// A command that is ready to be submitted.
    type Command: Copy;

    /// A read of `blocks` logical blocks, `bytes` bytes, from `first` on to the byte `at` of the host memory. Its data pointers
    /// are those of this place of the window, or of the scratch, whose number follows that of the last place.
    fn read(&self, first: u64, blocks: u32, at: u64, bytes: u64, place: u64) -> Self::Command;

    /// A write of these bytes to these blocks, whose contents are lost; `None` if this queue only reads.
    fn write(&self, first: u64, blocks: u32, at: u64, bytes: u64, place: u64) -> Option<Self::Command>;

    /// Runs the commands of `next` with at most `depth` outstanding, until it returns `None` and all have completed.
    /// `check` is called during long waits, and ends them with an error.
    fn run(
        &mut self,
        depth: u32,
        next: impl FnMut() -> Option<Self::Command>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError>;

    /// Name of an outstanding command.
    fn waiting_for(&self) -> &'static str;

    /// Fails if the drive cannot be used any more. Called between samples.
    fn check(&self) -> Result<(), MachineError>;
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

/// Host memory of a plan: the window of the plan, and a place for verification.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) window_end: u64,
    pub(crate) scratch: u64,
    pub(crate) end: u64,
}

impl Places {
    /// The memory of a transfer.
    pub(crate) fn of(transfer: &Transfer) -> Places {
        let Transfer { bytes, window, .. } = *transfer;
        let window_end = window.offset + window.len.max(bytes);
        let scratch = window_end.next_multiple_of(PAGE);
        Places { window_end, scratch, end: scratch + bytes.next_multiple_of(PAGE) }
    }
}

impl DriveRun<'_> {
    /// Seed of the bytes in the window before the run.
    const fn seed(&self) -> u64 {
        2 * self.number
    }

    /// Fills the window.
    pub(crate) fn fill(&self, pages: &mut HostPages) {
        fill(pages, Places::of(&self.asked.transfer).window_end, self.seed());
    }

    /// Samples, and reads the blocks of the last iteration once more; compares them with the host memory.
    pub(crate) fn measured<Q: DriveQueue>(
        &self,
        queue: &mut Q,
        pages: &HostPages,
        samples: &mut Samples,
    ) -> Result<Confirmed, MachineError> {
        let DriveRun { plan, namespace, asked, .. } = *self;
        let Transfer { verb, bytes, count, window: places, .. } = asked.transfer;
        let blocks = (bytes / namespace.block_bytes) as u32;
        // Each place of the window has blocks of its own, as far as the namespace reaches.
        let pieces = (namespace.blocks / u64::from(blocks)).max(1);
        let first_block = |place: u64| place % pieces * u64::from(blocks);
        let at = |place: u64| places.offset + place * places.step(bytes);
        let index = |nth: u64| (places.place(nth, bytes) - places.offset) / places.step(bytes);
        let all = places.places(bytes);
        let command = |place: u64| match verb {
            Verb::Store => Some(queue.read(first_block(place), blocks, at(place), bytes, place)),
            Verb::Load => queue.write(first_block(place), blocks, at(place), bytes, place),
        };
        let commands: Option<Vec<Q::Command>> = (0..all).map(command).collect();
        let commands = commands.ok_or_else(|| self.device_error(format!("{}: its queue only reads", self.name)))?;
        let transfers = plan.passes.saturating_mul(count);
        let last: BTreeSet<u64> = (transfers.saturating_sub(count)..transfers).map(index).collect();
        let scratch = Places::of(&asked.transfer).scratch;
        let poison = || (scratch..scratch + bytes).step_by(8).for_each(|word| pages.store_word(word, POISON));
        if verb == Verb::Load {
            // Blocks that a former run wrote may have the same bytes.
            poison();
            for place in &last {
                let write = queue.write(first_block(*place), blocks, scratch, bytes, all);
                write.map_or(Ok(()), |write| self.once(queue, write))?;
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
        let take = |limits: &Limits<'_>, first: u64, passes: u64| -> Result<Stamps, MachineError> {
            let mut queue = shared.borrow_mut();
            queue.check()?;
            let failure = Cell::new(None);
            let mut nth = 0;
            // All iterations are one stream, as in the simulation: the queue would run empty between them.
            let end = passes.saturating_mul(count);
            let stamps = timed(limits, first, 1, |_| {
                let next = || {
                    let command = (nth < end).then(|| commands.get(index(nth) as usize).copied()).flatten();
                    nth += 1;
                    command
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
        let doing = if verb == Verb::Load { "writing to the drive" } else { "reading from the drive" };
        run.take(samples, doing, || {}, take)?;

        let (mut meant, mut found) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let mut confirmed_bytes = 0;
        for place in &last {
            poison();
            let again = queue.read(first_block(*place), blocks, scratch, bytes, all);
            self.once(queue, again)?;
            pages.read(scratch, &mut meant);
            pages.read(at(*place), &mut found);
            confirmed_bytes += pattern::equal_bytes(&found, &meant);
        }
        Ok(Confirmed { claimed_bytes: bytes * last.len() as u64, confirmed_bytes })
    }

    /// Runs one command outside of the samples.
    pub(crate) fn once<Q: DriveQueue>(&self, queue: &mut Q, command: Q::Command) -> Result<(), MachineError> {
        let (mut once, longest) = (Some(command), self.plan.timeout.max(LONGEST));
        let done = self.commands(queue, 1, longest, || once.take());
        done.map_err(|failure| self.failed(failure, longest))
    }

    /// Runs commands, until a timeout or an interruption.
    #[inline]
    pub(crate) fn commands<Q: DriveQueue>(
        &self,
        queue: &mut Q,
        depth: u32,
        timeout: Ticks,
        next: impl FnMut() -> Option<Q::Command>,
    ) -> Result<(), Failure> {
        let mut check = deadline(self.timer, timeout, self.interrupted);
        queue.run(depth, next, &mut check).map_err(|error| (error, queue.waiting_for()))
    }

    /// Fails if bytes of the window have changed that no read of the drive goes to.
    pub(crate) fn check_beside(&self, pages: &HostPages) -> Result<(), MachineError> {
        let end = Places::of(&self.asked.transfer).window_end;
        let changed = match self.asked.transfer.verb {
            Verb::Store => changed_beside(pages, self.plan, &self.asked.transfer, end, self.seed()),
            Verb::Load => changed(pages, 0, end, self.seed()),
        };
        let Some(changed) = changed else { return Ok(()) };
        Err(self.device_error(format!(
            "{}: the drive has changed the byte at offset {changed} of the host memory, which no read goes to: its \
             firmware is at fault",
            self.name
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
    use lanemark_machine::{EngineJob, Partner, Pattern, Window};

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
    }

    /// Whether it writes to the medium, the first byte there, that of the host memory, and their number.
    type Moved = (bool, usize, u64, u64);

    impl DriveQueue for Medium<'_> {
        type Command = Moved;

        fn read(&self, first: u64, _blocks: u32, at: u64, bytes: u64, _place: u64) -> Moved {
            (false, 512 * first as usize, at, bytes)
        }

        fn write(&self, first: u64, _blocks: u32, at: u64, bytes: u64, _place: u64) -> Option<Moved> {
            Some((true, 512 * first as usize, at, bytes))
        }

        fn run(
            &mut self,
            _depth: u32,
            mut next: impl FnMut() -> Option<Moved>,
            _check: &mut impl FnMut() -> Result<(), NvmeError>,
        ) -> Result<(), NvmeError> {
            while let Some((is_write, on_medium, at, bytes)) = next() {
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

    /// Runs transfers of 1 KiB over 4 KiB, twice on the same medium; the bytes of the second run that are confirmed, of 4 KiB, and
    /// the error of the check of the host memory.
    fn confirmed(verb: Verb, fault: Fault) -> (u64, Option<String>) {
        let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
        let (partner, outstanding) = (Partner::Host, Some(1));
        let transfer = Transfer { card: 0, verb, partner, bytes: 1024, count: 4, window, outstanding };
        let plan = Plan::new(vec![EngineJob::Transfer(transfer)], 2);
        let namespace = Namespace { id: 1, blocks: 16, block_bytes: 512, metadata_bytes: 0 };
        let asked = DrivePlan { core: 0, transfer, depth: 1, queues: IoQueues::Host, by_interrupt: false };
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
        let mut pages = HostPages::new(Places::of(&transfer).end).unwrap();
        let mut bytes: Vec<u8> = (0..8192_u32).map(|place| (place * 7 + 1) as u8).collect();
        // The first run is without a fault, so that the medium has the very bytes that the second one should write.
        let mut found = 0;
        for fault in [Fault::None, fault] {
            run.fill(&mut pages);
            let mut queue = Medium { pages: &pages, bytes, fault };
            let confirmed = run.measured(&mut queue, &pages, &mut Samples::wanted(1)).unwrap();
            assert_eq!(confirmed.claimed_bytes, 4096);
            (bytes, found) = (queue.bytes, confirmed.confirmed_bytes);
        }
        (found, run.check_beside(&pages).err().map(|error| error.to_string()))
    }

    #[test]
    fn reads_and_writes_of_a_drive_are_confirmed_byte_by_byte() {
        assert_eq!(confirmed(Verb::Store, Fault::None), (4096, None));
        assert_eq!(confirmed(Verb::Load, Fault::None), (4096, None));
    }

    #[test]
    fn a_write_that_is_lost_is_found_although_a_former_run_wrote_the_same_bytes() {
        let (found, beside) = confirmed(Verb::Load, Fault::LosesWrites);
        assert!(found < 64 && beside.is_none(), "{found} of 4096 B, {beside:?}");
    }

    #[test]
    fn a_read_that_is_lost_is_found() {
        let (found, beside) = confirmed(Verb::Store, Fault::LosesReads);
        assert!(found < 64 && beside.is_none(), "{found} of 4096 B, {beside:?}");
    }

    #[test]
    fn a_drive_that_changes_what_it_writes_is_found() {
        let (_, beside) = confirmed(Verb::Load, Fault::ChangesItsSource);
        assert!(beside.as_ref().is_some_and(|error| error.contains("offset 0 of the host memory")), "{beside:?}");
    }
}
