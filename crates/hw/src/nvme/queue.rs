//! A submission queue and its completion queue.

use super::cmb::MappedCmb;
use super::command::Command;
use super::error::NvmeError;
use super::memory::{Bar, DmaMemory, Vector};
use super::register::Capabilities;
use super::status::Status;

/// Bytes of a submission and of a completion. Source: NVM Express Base Specification 2.0, 3.3.3.1 and 3.3.3.2.
pub(super) const SUBMISSION: u64 = 64;
/// See [`SUBMISSION`].
pub(super) const COMPLETION: u64 = 16;

/// Entries of a queue: a submission queue of this many fills a page.
pub(super) const ENTRIES: u16 = 64;
/// Most outstanding commands: a full queue has a free entry.
pub(crate) const MOST_DEPTH: u32 = ENTRIES as u32 - 1;

/// Polls between two looks at the clock.
pub(super) const POLLS: u32 = 64;

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

    /// Memory of the buffer, and the offset in its BAR.
    fn in_cmb(&self, offset: u64) -> Result<(&B, u64), NvmeError> {
        self.mapped().map(|mapped| (mapped.memory, mapped.cmb.offset + offset))
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
                    let (memory, at) = self.in_cmb(offset + word)?;
                    memory.store(at, 8, 0)?;
                }
            }
        }
        Ok(())
    }

    /// Stores an entry.
    #[inline]
    fn store(&self, place: Place, at: u64, entry: [u64; 8]) -> Result<(), NvmeError> {
        match place {
            Place::Host(offset) => self.host.store_entry(offset + at, entry),
            Place::Cmb(offset) => {
                let (memory, first) = self.in_cmb(offset + at)?;
                for (to, word) in (first..).step_by(8).zip(entry) {
                    memory.store(to, 8, word)?;
                }
            }
        }
        Ok(())
    }

    /// Loads 8 B.
    #[inline]
    fn load(&self, place: Place, at: u64) -> Result<u64, NvmeError> {
        match place {
            Place::Host(offset) => Ok(self.host.load(offset + at)),
            Place::Cmb(offset) => {
                let (memory, from) = self.in_cmb(offset + at)?;
                Ok(memory.load(from, 8)?)
            }
        }
    }
}

/// A pair of queues.
#[derive(Debug)]
pub(super) struct QueuePair<'a> {
    entries: u16,
    /// Places of both, and their doorbells.
    submissions: Place,
    completions: Place,
    submission_doorbell: u64,
    completion_doorbell: u64,
    tail: u16,
    head: u16,
    /// Phase bit of new completions.
    phase: bool,
    /// The interrupt after completions; without one, they are polled.
    interrupt: Option<Vector<'a>>,
    /// Whether an interrupt has arrived and the queue was not seen empty since: it may stand for several completions.
    is_notified: bool,
    /// Identifiers of outstanding commands, one bit each, and their names.
    outstanding: u64,
    names: [&'static str; ENTRIES as usize],
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
        QueuePair {
            entries,
            submissions,
            completions,
            submission_doorbell: capabilities.doorbell(id, false),
            completion_doorbell: capabilities.doorbell(id, true),
            tail: 0,
            head: 0,
            phase: true,
            interrupt,
            is_notified: false,
            outstanding: 0,
            names: [""; ENTRIES as usize],
        }
    }

    /// Number of outstanding commands.
    #[inline]
    pub(super) const fn outstanding(&self) -> u32 {
        self.outstanding.count_ones()
    }

    /// Most outstanding commands.
    pub(super) const fn depth(&self) -> u32 {
        self.entries as u32 - 1
    }

    /// Stores a command and rings the doorbell; fewer than [`depth`](QueuePair::depth) commands must be outstanding.
    #[inline]
    pub(super) fn submit(
        &mut self,
        bar: &impl Bar,
        memory: &QueueMemory<'_, impl Bar, impl DmaMemory>,
        command: &Command,
    ) -> Result<(), NvmeError> {
        debug_assert!(self.outstanding() < self.depth(), "the queue is full");
        let id = self.outstanding.trailing_ones() as u16;
        memory.store(self.submissions, u64::from(self.tail) * SUBMISSION, command.entry(id))?;
        self.tail = (self.tail + 1) % self.entries;
        self.outstanding |= 1 << id;
        self.names[usize::from(id)] = command.name;
        Ok(bar.store(self.submission_doorbell, 4, self.tail.into())?)
    }

    /// Takes a completion if there is one; returns whether there was one.
    #[inline]
    fn take(&mut self, bar: &impl Bar, memory: &QueueMemory<'_, impl Bar, impl DmaMemory>) -> Result<bool, NvmeError> {
        let Some(dword3) = self.next(memory)? else { return Ok(false) };
        self.head = (self.head + 1) % self.entries;
        self.phase ^= self.head == 0;
        bar.store(self.completion_doorbell, 4, self.head.into())?;
        let id = dword3 as u16;
        let is_ours = self.outstanding.checked_shr(id.into()).is_some_and(|bits| bits & 1 == 1);
        if !is_ours {
            return Err(NvmeError::Unknown(id));
        }
        self.outstanding &= !(1 << id);
        let status = Status((dword3 >> 17) as u16);
        if status.is_success() {
            return Ok(true);
        }
        Err(NvmeError::Refused { command: self.names[usize::from(id)], status })
    }

    /// Dword 3 of the next completion, if there is one. Source: NVM Express Base Specification 2.0, figure "Common Completion
    /// Queue Entry Layout": the command identifier is in bits 15:0, the phase in bit 16, and the status above.
    #[inline]
    fn next(&self, memory: &QueueMemory<'_, impl Bar, impl DmaMemory>) -> Result<Option<u64>, NvmeError> {
        let last = memory.load(self.completions, u64::from(self.head) * COMPLETION + 8)?;
        // A drive that was removed answers every load with all ones; no command has the identifier 0xffff.
        if last == u64::MAX && matches!(self.completions, Place::Cmb(_)) {
            return Err(NvmeError::Gone);
        }
        let dword3 = last >> 32;
        Ok(((dword3 >> 16 & 1 == 1) == self.phase).then_some(dword3))
    }

    /// Takes a completion if there is one and, with an interrupt, if one was announced; returns whether it took one.
    #[inline]
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
        let last = (self.head + self.entries - 1) % self.entries;
        Ok(memory.load(self.completions, u64::from(last) * COMPLETION)? as u32)
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
    #[inline]
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
        let id = self.outstanding.trailing_zeros() as usize;
        self.names.get(id).copied().unwrap_or("")
    }
}
