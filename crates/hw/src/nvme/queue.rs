//! A submission queue and its completion queue.

use super::command::Command;
use super::error::NvmeError;
use super::memory::{Bar, DmaMemory};
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
const POLLS: u32 = 64;

/// A pair of queues in host memory.
#[derive(Debug)]
pub(super) struct QueuePair {
    entries: u16,
    /// Offsets of both in the memory, and their doorbells.
    submissions: u64,
    completions: u64,
    submission_doorbell: u64,
    completion_doorbell: u64,
    tail: u16,
    head: u16,
    /// Phase bit of new completions.
    phase: bool,
    /// Identifiers of outstanding commands, one bit each, and their names.
    outstanding: u64,
    names: [&'static str; ENTRIES as usize],
}

impl QueuePair {
    /// The pair with this number, in cleared memory.
    pub(super) fn new(
        id: u16,
        entries: u16,
        [submissions, completions]: [u64; 2],
        capabilities: Capabilities,
    ) -> QueuePair {
        QueuePair {
            entries,
            submissions,
            completions,
            submission_doorbell: capabilities.doorbell(id, false),
            completion_doorbell: capabilities.doorbell(id, true),
            tail: 0,
            head: 0,
            phase: true,
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
        memory: &impl DmaMemory,
        command: &Command,
    ) -> Result<(), NvmeError> {
        debug_assert!(self.outstanding() < self.depth(), "the queue is full");
        let id = self.outstanding.trailing_ones() as u16;
        let at = self.submissions + u64::from(self.tail) * SUBMISSION;
        for (place, word) in (at..).step_by(8).zip(command.entry(id)) {
            memory.store(place, word);
        }
        self.tail = (self.tail + 1) % self.entries;
        self.outstanding |= 1 << id;
        self.names[usize::from(id)] = command.name;
        Ok(bar.store(self.submission_doorbell, 4, self.tail.into())?)
    }

    /// Takes a completion if there is one; returns whether there was one.
    #[inline]
    fn take(&mut self, bar: &impl Bar, memory: &impl DmaMemory) -> Result<bool, NvmeError> {
        let at = self.completions + u64::from(self.head) * COMPLETION;
        // Source: NVM Express Base Specification 2.0, figure "Common Completion Queue Entry Layout": dword 3 has the command
        // identifier in bits 15:0, the phase in bit 16, and the status above.
        let dword3 = memory.load(at + 8) >> 32;
        if (dword3 >> 16 & 1 == 1) != self.phase {
            return Ok(false);
        }
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

    /// Polls for a completion; `check` ends the wait with an error.
    #[inline]
    pub(super) fn wait(
        &mut self,
        bar: &impl Bar,
        memory: &impl DmaMemory,
        check: &mut impl FnMut() -> Result<(), NvmeError>,
    ) -> Result<(), NvmeError> {
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
