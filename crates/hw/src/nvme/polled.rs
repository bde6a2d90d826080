//! The loop that is measured: the commands of one I/O queue pair whose completions are polled.

use super::command::{Command, Kind};
use super::error::NvmeError;
use super::memory::{Doorbell, ENTRIES, Slots};
use super::ring::{Completion, Lone, Ring};
use std::borrow::Borrow;

/// Polls between two looks at the clock.
pub(super) const POLLS: u32 = 64;

/// A queue pair, ready for its commands.
#[derive(Debug)]
pub(super) struct Polled<'a, S, C, D> {
    pub(super) submissions: S,
    pub(super) completions: C,
    /// Doorbells of the submissions and of the completions.
    pub(super) doorbells: [D; 2],
    /// Positions, which a run changes.
    pub(super) ring: &'a mut Ring,
}

/// Commands that are outstanding, by identifier; a free one is the smallest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    /// A bit for each identifier that is taken.
    taken: u64,
    /// Identifiers that may still be taken; negative if more are taken than the present limit.
    left: i32,
    kinds: [Kind; ENTRIES as usize],
}

/// Bound of identifiers.
const IDS: u32 = ENTRIES as u32;

impl Outstanding {
    /// At most `depth`, which is below [`ENTRIES`].
    pub(super) const fn new(depth: u32) -> Outstanding {
        Outstanding { taken: 0, left: depth.cast_signed(), kinds: [Kind::Flush; ENTRIES as usize] }
    }

    pub(super) const fn count(&self) -> u32 {
        self.taken.count_ones()
    }

    /// Lets at most `depth` be outstanding from now on.
    const fn limit(&mut self, depth: u32) {
        self.left = depth.cast_signed() - self.count().cast_signed();
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.left <= 0
    }

    /// The free identifier that is taken next; there is one unless it [is full](Outstanding::is_full).
    #[inline]
    pub(super) const fn next(&self) -> u16 {
        (self.taken.trailing_ones() % IDS) as u16
    }

    /// Takes the [next](Outstanding::next) identifier for a command of this kind.
    #[inline]
    pub(super) const fn take(&mut self, kind: Kind) {
        let id = self.next();
        self.taken |= 1 << id;
        self.left -= 1;
        self.kinds[id as usize] = kind;
    }

    /// Frees an identifier below [`IDS`].
    ///
    /// # Errors
    /// [`NvmeError::Unknown`] if it was free.
    #[inline]
    fn free(&mut self, id: u32) -> Result<(), NvmeError> {
        let bit = 1 << (id % IDS);
        if self.taken & bit == 0 {
            return Err(NvmeError::Unknown(id as u16));
        }
        self.taken &= !bit;
        self.left += 1;
        Ok(())
    }

    /// Frees the identifier of a completion.
    ///
    /// # Errors
    /// [`NvmeError`] of a command that failed or is not outstanding.
    pub(super) fn completed(&mut self, completion: Completion) -> Result<(), NvmeError> {
        let id = completion.id();
        if u32::from(id) >= IDS {
            return Err(NvmeError::Unknown(id));
        }
        self.free(id.into())?;
        completion.result(self.kinds[usize::from(id)])
    }

    /// The one with the smallest identifier.
    pub(super) fn any(&self) -> Option<Kind> {
        self.kinds.get(self.taken.trailing_zeros() as usize).copied()
    }
}

// Inlined by request: without it, this compiler keeps the state of the loop in memory.
#[allow(clippy::inline_always)]
impl<S: Slots, C: Slots, D: Doorbell> Polled<'_, S, C, D> {
    /// Runs the commands of `next` until it returns `None` and all have completed, with at most `depth` outstanding. `check` is
    /// called during long waits, and ends them with an error; `outstanding` then has the commands that have not completed.
    ///
    /// # Errors
    /// [`NvmeError`] of the first command that fails, and of `check`.
    #[inline(always)]
    pub(super) fn run<K: Borrow<Command>>(
        self,
        outstanding: &mut Outstanding,
        depth: u32,
        next: impl FnMut() -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        outstanding.limit(depth);
        match self.ring.lone() {
            Some(lone) if depth == 1 && outstanding.count() == 0 => self.single(lone, outstanding, next, check),
            _ => self.several(outstanding, next, check),
        }
    }

    /// As [`run`](Polled::run), in a function of its own, which leaves that of `run` more registers.
    #[inline(never)]
    pub(super) fn run_elsewhere<K: Borrow<Command>>(
        self,
        outstanding: &mut Outstanding,
        depth: u32,
        next: impl FnMut() -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        self.run(outstanding, depth, next, check)
    }

    /// One command at a time, each with the identifier 0.
    #[inline(always)]
    fn single<K: Borrow<Command>>(
        self,
        // A copy can stay in registers of the processor.
        mut lone: Lone,
        outstanding: &mut Outstanding,
        mut next: impl FnMut() -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        let mut current = next();
        while let Some(command) = current {
            let after = lone.after();
            if let Err(error) = self.submit(lone.index(), command.borrow().words(), 0, after) {
                *self.ring = lone.ring(false);
                return Err(error);
            }
            // While the drive is at work.
            let upcoming = next();
            // The first poll is here. If it finds no completion, the call of `poll` is shorter than the wait.
            let positions = lone.ring(false);
            let first = self.completions.completion(lone.index());
            if !first.is_ok_and(|last| positions.succeeded(last, 1).is_some()) {
                let found = self.poll(positions, 1, check);
                let Ok(Found::Succeeded(_)) = found else {
                    outstanding.take(command.borrow().kind);
                    *self.ring = lone.ring(true);
                    return Err(self.failed(outstanding, found));
                };
            }
            lone.advance(after);
            if let Err(error) = self.doorbells[1].ring(after) {
                *self.ring = lone.ring(false);
                return Err(error.into());
            }
            current = upcoming;
        }
        *self.ring = lone.ring(false);
        Ok(())
    }

    /// The error of a run whose only command has failed, or has not completed in time.
    #[cold]
    fn failed(self, outstanding: &mut Outstanding, found: Result<Found, NvmeError>) -> NvmeError {
        let ended = found.and_then(|found| {
            self.doorbells[1].ring(self.ring.taken())?;
            found.end(outstanding)
        });
        // Success has another identifier than that of the only command.
        ended.err().unwrap_or(NvmeError::Unknown(0))
    }

    #[inline(never)]
    fn several<K: Borrow<Command>>(
        self,
        outstanding: &mut Outstanding,
        mut next: impl FnMut() -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        let mut ring = *self.ring;
        let mut take = |ring: &mut Ring, outstanding: &mut Outstanding| {
            let found = self.poll(*ring, IDS, check)?;
            self.doorbells[1].ring(ring.taken())?;
            found.end(outstanding)
        };
        let done = (|| {
            while let Some(command) = next() {
                while outstanding.is_full() {
                    take(&mut ring, outstanding)?;
                }
                let command = command.borrow();
                let mut moved = ring;
                self.submit(ring.tail(), command.words(), outstanding.next(), moved.submitted())?;
                ring = moved;
                outstanding.take(command.kind);
            }
            while outstanding.count() > 0 {
                take(&mut ring, outstanding)?;
            }
            Ok(())
        })();
        *self.ring = ring;
        done
    }

    /// Stores a submission at an index, and rings the doorbell with the one after it.
    #[inline(always)]
    fn submit(&self, index: u32, words: &[u64; 8], id: u16, after: u32) -> Result<(), NvmeError> {
        self.submissions.submit(index, words, id)?;
        Ok(self.doorbells[0].ring(after)?)
    }

    /// Waits for the next completion; those of success have identifiers below `ids`. In a function of its own: its loop would take
    /// registers from that of the commands.
    #[inline(never)]
    fn poll(
        &self,
        ring: Ring,
        ids: u32,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<Found, NvmeError> {
        loop {
            for _ in 0..POLLS {
                let last = self.completions.completion(ring.head())?;
                if let Some(id) = ring.succeeded(last, ids) {
                    return Ok(Found::Succeeded(id));
                }
                if let Some(completion) = ring.completed(last) {
                    return Ok(Found::Other(completion));
                }
                std::hint::spin_loop();
            }
            check()?;
        }
    }
}

/// A completion, whose status was already seen if it is 0.
enum Found {
    /// The command with this identifier succeeded.
    Succeeded(u32),
    Other(Completion),
}

impl Found {
    /// Frees its identifier.
    ///
    /// # Errors
    /// [`NvmeError`] of a command that failed or is not outstanding.
    #[inline]
    fn end(self, outstanding: &mut Outstanding) -> Result<(), NvmeError> {
        match self {
            Found::Succeeded(id) => outstanding.free(id),
            Found::Other(completion) => outstanding.completed(completion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, FakeMemory, Fault, always, never};
    use super::super::memory::{DmaMemory as _, PAGE};
    use super::super::{Controller, DataPointer, IoQueues, queue_bytes};
    use super::*;

    const DATA: u64 = queue_bytes(1);

    fn memory() -> FakeMemory {
        FakeMemory::new(DATA + PAGE)
    }

    /// A read of one logical block.
    fn read(memory: &FakeMemory, block: u64) -> Command {
        Command::read(5, block, 1, DataPointer::prp([memory.iova(DATA), 0]))
    }

    #[test]
    fn commands_go_on_after_a_refused_one_at_any_depth_and_length_of_the_queue() {
        for most_entries in [2, 3, 64] {
            let memory = memory();
            let fake = Fake::with_entries(&memory, Fault::Batches(1), most_entries);
            let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
            let most = controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap();
            assert_eq!(most, most_entries - 1);
            let (good, beyond) = (read(&memory, 0), read(&memory, Fake::BLOCKS));
            let mut reads = 0;
            for (depth, then) in [(1, 1), (1, most), (most, 1), (most, most)] {
                // Also more than a round of the queue, so that no former entry is at its place by chance.
                for count in [3, 70, 128] {
                    let mut all = [vec![good; count], vec![beyond], vec![good; 5]].concat().into_iter();
                    let said = controller.run(depth, |_| all.next(), &mut never).unwrap_err().to_string();
                    assert!(said.contains("LBA Out of Range"), "{depth}: {said}");
                    let mut rest = [good; 128].into_iter().take(count);
                    assert_eq!(controller.run(then, |_| rest.next(), &mut never), Ok(()), "{depth}, {then}, {count}");
                    assert_eq!(controller.waiting_for(), "", "{depth}, {then}, {count}");
                    // Of the five behind the refused one, those drawn are submitted, but for the last one maybe.
                    let drawn = 5 - all.len() as u64;
                    reads += 2 * count as u64 + drawn.saturating_sub(1);
                    let found = fake.reads();
                    assert!((reads..=reads + 1).contains(&found), "{found} of {reads} reads: {depth}, {then}, {count}");
                    reads = found;
                }
            }
        }
    }

    #[test]
    fn a_completion_with_more_information_ends_no_run() {
        for depth in [1, 2] {
            let memory = memory();
            let fake = Fake::new(&memory, Fault::HasMore);
            let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
            controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap();
            let mut reads = (0..100).map(|_| read(&memory, 0));
            assert_eq!(controller.run(depth, |_| reads.next(), &mut never), Ok(()));
            assert_eq!(fake.reads(), 100, "{depth}");
        }
    }

    #[test]
    fn fewer_commands_than_before_are_outstanding_after_a_run_that_was_ended() {
        let memory = memory();
        let fake = Fake::new(&memory, Fault::Batches(9));
        let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
        controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap();
        let flush = |_| Some(Command::flush(5));
        assert_eq!(controller.run(8, flush, &mut never), Err(NvmeError::Late));
        fake.complete_all();
        fake.forget_most_outstanding();
        let mut ten = [Command::flush(5); 10].into_iter();
        // Each batch has one command now.
        assert_eq!(
            controller.run(1, |_| ten.next(), &mut || {
                fake.complete_all();
                Ok(())
            }),
            Ok(())
        );
        assert_eq!((fake.most_outstanding(), controller.waiting_for()), (1, ""));
    }

    #[test]
    fn a_completion_of_no_command_is_named_at_any_depth() {
        for depth in [1, 2] {
            let memory = memory();
            let fake = Fake::new(&memory, Fault::WrongIoIdentifier);
            let mut controller = Controller::enable(&fake, &memory, 0, None, &mut always).unwrap();
            controller.create_queues(IoQueues::Host, 1, None, &mut always).unwrap();
            let flush = |_| Some(Command::flush(5));
            assert_eq!(controller.run(depth, flush, &mut never), Err(NvmeError::Unknown(9)), "{depth}");
            assert_eq!(controller.waiting_for(), "Flush", "{depth}");
        }
    }
}
