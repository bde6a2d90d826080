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
            let found = self.wait(lone.ring(false), 1, check);
            let Ok(Found::Succeeded(_)) = found else {
                outstanding.take(command.borrow().kind);
                *self.ring = lone.ring(true);
                return Err(self.failed(outstanding, found));
            };
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
            let found = self.wait(*ring, IDS, check)?;
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

    /// Waits for the next completion; those of success have identifiers below `ids`.
    #[inline(always)]
    fn wait(
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
