//! A submission queue and its completion queue.

use super::cmb::MappedCmb;
use super::command::{Command, ID, Kind};
use super::error::NvmeError;
use super::memory::{Bar, COMPLETION, DmaMemory, Doorbell as _, ENTRIES, SUBMISSION, Slots, Vector};
use super::polled::{Outstanding, POLLS, Polled};
use super::register::Capabilities;
use super::ring::{Completion, Ring};
use std::borrow::Borrow;

/// Most outstanding commands: a full queue has a free entry.
pub(crate) const MOST_DEPTH: u32 = ENTRIES as u32 - 1;

/// Place of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// At an offset of the host memory.
    Host(u64),
    /// At an offset of the controller memory buffer.
    Cmb(u64),
}

/// Memory of queues: that of the host, and the controller memory buffer if it is used.
#[derive(Debug)]
pub(super) struct QueueMemory<'a, B: Bar, M: DmaMemory> {
    pub(super) host: &'a M,
    pub(super) cmb: Option<MappedCmb<'a, B>>,
}

impl<B: Bar, M: DmaMemory> QueueMemory<'_, B, M> {
    fn mapped(&self) -> Result<&MappedCmb<'_, B>, NvmeError> {
        self.cmb.as_ref().ok_or(NvmeError::Unsupported("no controller memory buffer is mapped"))
    }

    /// Address of a queue for the controller.
    pub(super) fn address(&self, place: Place) -> Result<u64, NvmeError> {
        match place {
            Place::Host(offset) => Ok(self.host.iova(offset)),
            Place::Cmb(offset) => Ok(self.mapped()?.address + offset),
        }
    }

    /// Clears `bytes` bytes of a queue.
    pub(super) fn clear(&self, place: Place, bytes: u64) -> Result<(), NvmeError> {
        for word in (0..bytes).step_by(8) {
            match place {
                Place::Host(offset) => self.host.store(offset + word, 0),
                Place::Cmb(offset) => {
                    let mapped = self.mapped()?;
                    mapped.memory.store(mapped.cmb.offset + offset + word, 8, 0)?;
                }
            }
        }
        Ok(())
    }

    /// The entries of a queue.
    #[inline]
    fn slots(&self, place: Place) -> Result<QueueSlots<'_, B, M>, NvmeError> {
        Ok(match place {
            Place::Host(offset) => QueueSlots::Host(self.host.slots(offset)),
            Place::Cmb(offset) => {
                let mapped = self.mapped()?;
                QueueSlots::Cmb(CmbSlots { memory: mapped.memory, start: mapped.cmb.offset + offset })
            }
        })
    }
}

/// Entries of a queue in the controller memory buffer, and the offset of the first one in its BAR.
#[derive(Clone, Copy, Debug)]
struct CmbSlots<'a, B> {
    memory: &'a B,
    start: u64,
}

impl<B: Bar> Slots for CmbSlots<'_, B> {
    #[inline]
    fn submit(&self, index: u32, words: &[u64; 8], id: u16) -> Result<(), NvmeError> {
        let first = self.start + u64::from(index % u32::from(ENTRIES)) * SUBMISSION;
        for (nth, word) in words.iter().enumerate() {
            let id = if nth == 0 { u64::from(id) << ID } else { 0 };
            self.memory.store(first + 8 * nth as u64, 8, word | id)?;
        }
        Ok(())
    }

    #[inline]
    fn completion(&self, index: u32) -> Result<u64, NvmeError> {
        let at = self.start + u64::from(index % u32::from(ENTRIES)) * COMPLETION;
        // A drive that was removed answers every load with all ones; no command has the identifier 0xffff.
        match self.memory.load(at + 8, 8)? {
            u64::MAX => Err(NvmeError::Gone),
            last => Ok(last),
        }
    }
}

/// Entries of a queue in either place.
enum QueueSlots<'a, B, M: DmaMemory + 'a> {
    Host(M::Slots<'a>),
    Cmb(CmbSlots<'a, B>),
}

impl<B: Bar, M: DmaMemory> Slots for QueueSlots<'_, B, M> {
    #[inline]
    fn submit(&self, index: u32, words: &[u64; 8], id: u16) -> Result<(), NvmeError> {
        match self {
            QueueSlots::Host(slots) => slots.submit(index, words, id),
            QueueSlots::Cmb(slots) => slots.submit(index, words, id),
        }
    }

    #[inline]
    fn completion(&self, index: u32) -> Result<u64, NvmeError> {
        match self {
            QueueSlots::Host(slots) => slots.completion(index),
            QueueSlots::Cmb(slots) => slots.completion(index),
        }
    }
}

/// A pair of queues.
#[derive(Debug)]
pub(super) struct QueuePair<'a> {
    /// Places of both, and their doorbells.
    submissions: Place,
    completions: Place,
    submission_doorbell: u64,
    completion_doorbell: u64,
    ring: Ring,
    /// The interrupt after completions; without one, they are polled.
    interrupt: Option<Vector<'a>>,
    /// Whether an interrupt has arrived and the queue was not seen empty since: it may stand for several completions.
    is_notified: bool,
    outstanding: Outstanding,
}

impl<'a> QueuePair<'a> {
    /// The pair with this number, in cleared memory.
    pub(super) fn new(
        id: u16,
        entries: u16,
        [submissions, completions]: [Place; 2],
        capabilities: Capabilities,
        interrupt: Option<Vector<'a>>,
    ) -> QueuePair<'a> {
        let ring = Ring::new(entries);
        QueuePair {
            submissions,
            completions,
            submission_doorbell: capabilities.doorbell(id, false),
            completion_doorbell: capabilities.doorbell(id, true),
            ring,
            interrupt,
            is_notified: false,
            outstanding: Outstanding::new(ring.depth()),
        }
    }

    /// Number of outstanding commands.
    #[inline]
    pub(super) const fn outstanding(&self) -> u32 {
        self.outstanding.count()
    }

    /// Most outstanding commands.
    pub(super) const fn depth(&self) -> u32 {
        self.ring.depth()
    }

    /// Stores a command and rings the doorbell; fewer than [`depth`](QueuePair::depth) commands must be outstanding.
    pub(super) fn submit(
        &mut self,
        bar: &impl Bar,
        memory: &QueueMemory<'_, impl Bar, impl DmaMemory>,
        command: &Command,
    ) -> Result<(), NvmeError> {
        debug_assert!(!self.outstanding.is_full(), "the queue is full");
        memory.slots(self.submissions)?.submit(self.ring.tail(), command.words(), self.outstanding.next())?;
        let mut moved = self.ring;
        bar.doorbell(self.submission_doorbell)?.ring(moved.submitted())?;
        self.ring = moved;
        self.outstanding.take(command.kind);
        Ok(())
    }

    /// Takes a completion if there is one; returns whether there was one.
    fn take(&mut self, bar: &impl Bar, memory: &QueueMemory<'_, impl Bar, impl DmaMemory>) -> Result<bool, NvmeError> {
        let Some(completion) = self.next(memory)? else { return Ok(false) };
        bar.doorbell(self.completion_doorbell)?.ring(self.ring.taken())?;
        self.outstanding.completed(completion).map(|()| true)
    }

    /// The next completion, if there is one.
    fn next(&self, memory: &QueueMemory<'_, impl Bar, impl DmaMemory>) -> Result<Option<Completion>, NvmeError> {
        Ok(self.ring.completed(memory.slots(self.completions)?.completion(self.ring.head())?))
    }

    /// Runs the commands of `next`, with at most `depth` outstanding, until it returns `None` and all have completed. Completions
    /// are polled. `check` is called during long waits, and ends them with an error.
    ///
    /// # Errors
    /// [`NvmeError`] of the first command that fails, and of `check`.
    #[inline]
    pub(super) fn run_polled<K: Borrow<Command>>(
        &mut self,
        (bar, memory): (&impl Bar, &QueueMemory<'_, impl Bar, impl DmaMemory>),
        depth: u32,
        next: impl FnMut() -> Option<K>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        let doorbells = [bar.doorbell(self.submission_doorbell)?, bar.doorbell(self.completion_doorbell)?];
        let (ring, outstanding) = (&mut self.ring, &mut self.outstanding);
        // A loop of its own for each pair of places but the last: no command branches on it.
        match (memory.slots(self.submissions)?, memory.slots(self.completions)?) {
            (QueueSlots::Host(submissions), QueueSlots::Host(completions)) => {
                Polled { submissions, completions, doorbells, ring }.run(outstanding, depth, next, check)
            }
            (QueueSlots::Cmb(submissions), QueueSlots::Host(completions)) => {
                Polled { submissions, completions, doorbells, ring }.run_elsewhere(outstanding, depth, next, check)
            }
            (submissions, completions) => {
                Polled { submissions, completions, doorbells, ring }.run_elsewhere(outstanding, depth, next, check)
            }
        }
    }

    /// Takes a completion if there is one and, with an interrupt, if one was announced; returns whether it took one.
    pub(super) fn poll(
        &mut self,
        bar: &impl Bar,
        memory: &QueueMemory<'_, impl Bar, impl DmaMemory>,
    ) -> Result<bool, NvmeError> {
        if self.interrupt.is_some() && !self.is_notified {
            return Ok(false);
        }
        let is_taken = self.take(bar, memory)?;
        self.is_notified &= is_taken;
        Ok(is_taken)
    }

    /// Waits for an interrupt of this pair or of another one. Returns the vectors that have arrived; `None` if completions
    /// are polled.
    pub(super) fn announced(&self) -> Option<Result<u64, NvmeError>> {
        self.interrupt.map(|vector| vector.event.wait().map_err(NvmeError::Wait))
    }

    /// Notes that these vectors have arrived.
    pub(super) fn notify(&mut self, arrived: u64) {
        self.is_notified |= self.interrupt.is_some_and(|vector| vector.is_in(arrived));
    }

    /// Whether an interrupt announces completions.
    pub(super) const fn has_interrupt(&self) -> bool {
        self.interrupt.is_some()
    }

    /// Whether there is a completion that no interrupt has announced.
    pub(super) fn is_unannounced(&self, memory: &QueueMemory<'_, impl Bar, impl DmaMemory>) -> Result<bool, NvmeError> {
        Ok(!self.is_notified && self.next(memory)?.is_some())
    }

    /// Dword 0 of the completion that was taken last, if no command has been submitted since.
    pub(super) fn result(&self, memory: &QueueMemory<'_, impl Bar, impl DmaMemory>) -> Result<u32, NvmeError> {
        let at = u64::from(self.ring.last()) * COMPLETION;
        Ok(match self.completions {
            Place::Host(offset) => memory.host.load(offset + at),
            Place::Cmb(offset) => {
                let mapped = memory.mapped()?;
                mapped.memory.load(mapped.cmb.offset + offset + at, 8)?
            }
        } as u32)
    }

    /// Sleeps until an interrupt announces a completion; `check` ends the wait with an error.
    fn sleep(
        &mut self,
        interrupt: Vector<'_>,
        bar: &impl Bar,
        memory: &QueueMemory<'_, impl Bar, impl DmaMemory>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        loop {
            if self.is_notified && self.take(bar, memory)? {
                self.is_notified = self.next(memory)?.is_some();
                return Ok(());
            }
            let has_arrived = interrupt.is_in(interrupt.event.wait().map_err(NvmeError::Wait)?);
            let is_complete = self.next(memory)?.is_some();
            self.is_notified = has_arrived && is_complete;
            if self.is_notified {
                continue;
            }
            // An interrupt without a completion does not extend the wait: a device may send them forever.
            match check() {
                Err(NvmeError::Late) if is_complete => {
                    return Err(NvmeError::NoInterrupt { command: self.waiting_for() });
                }
                checked => checked?,
            }
        }
    }

    /// Waits for a completion, by polling or for its interrupt; `check` ends the wait with an error.
    pub(super) fn wait(
        &mut self,
        bar: &impl Bar,
        memory: &QueueMemory<'_, impl Bar, impl DmaMemory>,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
        if let Some(interrupt) = self.interrupt {
            return self.sleep(interrupt, bar, memory, check);
        }
        loop {
            for _ in 0..POLLS {
                if self.take(bar, memory)? {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            check()?;
        }
    }

    /// Name of an outstanding command.
    pub(super) fn waiting_for(&self) -> &'static str {
        self.outstanding.any().map_or("", Kind::name)
    }
}
