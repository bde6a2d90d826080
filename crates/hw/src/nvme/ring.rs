//! Positions in a submission queue and in its completion queue, and the completions there.

use super::command::Kind;
use super::error::NvmeError;
use super::status::Status;

/// Positions in a pair of queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ring {
    entries: u32,
    tail: u32,
    head: u32,
    /// Bit 16 of dword 3 of new completions: the phase.
    phase: u32,
}

impl Ring {
    pub(super) const fn new(entries: u16) -> Ring {
        Ring { entries: entries as u32, tail: 0, head: 0, phase: PHASE }
    }

    /// Most outstanding commands: a full queue has a free entry.
    pub(super) const fn depth(self) -> u32 {
        self.entries - 1
    }

    /// The positions, if no command is outstanding.
    pub(super) const fn lone(self) -> Option<Lone> {
        let Ring { entries, tail, head, phase } = self;
        if tail == head { Some(Lone { entries, index: head, phase }) } else { None }
    }

    /// Index of the next submission.
    #[inline]
    pub(super) const fn tail(self) -> u32 {
        self.tail
    }

    /// Index of the next completion.
    #[inline]
    pub(super) const fn head(self) -> u32 {
        self.head
    }

    /// Index of the last completion that was taken.
    pub(super) const fn last(self) -> u32 {
        if self.head == 0 { self.entries - 1 } else { self.head - 1 }
    }

    /// Moves past a submission; returns the value of the doorbell.
    #[inline]
    pub(super) const fn submitted(&mut self) -> u32 {
        self.tail = self.after(self.tail);
        self.tail
    }

    /// Moves past a completion; returns the value of the doorbell.
    #[inline]
    pub(super) const fn taken(&mut self) -> u32 {
        self.head = self.after(self.head);
        if self.head == 0 {
            self.phase ^= PHASE;
        }
        self.head
    }

    #[inline]
    const fn after(self, index: u32) -> u32 {
        if index + 1 == self.entries { 0 } else { index + 1 }
    }

    /// The completion in dwords 2 and 3 of the next entry, if it is new.
    #[inline]
    pub(super) const fn completed(self, last: u64) -> Option<Completion> {
        let dword3 = (last >> 32) as u32;
        if dword3 & PHASE == self.phase { Some(Completion(dword3)) } else { None }
    }

    /// Identifier of the command, if dwords 2 and 3 of the next entry are a new completion of a command that succeeded and whose
    /// identifier is below `ids`, a power of two. More, Do Not Retry and the retry delay of the status have no effect on it.
    #[inline]
    pub(super) const fn succeeded(self, last: u64, ids: u32) -> Option<u32> {
        let dword3 = (last >> 32) as u32;
        if dword3 & SUCCESS & !(ids - 1) == self.phase { Some(dword3 & (ids - 1)) } else { None }
    }
}

/// Positions while there is at most one outstanding command: both queues are at the same index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lone {
    entries: u32,
    index: u32,
    phase: u32,
}

impl Lone {
    /// Index of the next submission, and of its completion.
    #[inline]
    pub(super) const fn index(&self) -> u32 {
        self.index
    }

    /// The index after it: the value of both doorbells.
    #[inline]
    pub(super) const fn after(&self) -> u32 {
        if self.index + 1 == self.entries { 0 } else { self.index + 1 }
    }

    /// Moves past a submission and its completion, to [`after`](Lone::after).
    #[inline]
    pub(super) const fn advance(&mut self, after: u32) {
        self.index = after;
        if after == 0 {
            self.phase ^= PHASE;
        }
    }

    /// The positions of both queues, with an outstanding command or without.
    #[inline]
    pub(super) const fn ring(&self, is_outstanding: bool) -> Ring {
        let Lone { entries, index, phase } = *self;
        Ring { entries, tail: if is_outstanding { self.after() } else { index }, head: index, phase }
    }
}

/// Dword 3 of a completion. Source: NVM Express Base Specification 2.0, figure "Common Completion Queue Entry Layout": the command
/// identifier is in bits 15:0, the phase in bit 16, and the status above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Completion(u32);

/// See [`Completion`].
const PHASE: u32 = 1 << 16;
/// All bits but those of the status that do not tell success from failure: CRD, M and DNR, from bit 28 on. Source: NVM Express
/// Base Specification 2.0, figure "Completion Queue Entry: Status Field".
const SUCCESS: u32 = (1 << 28) - 1;

impl Completion {
    pub(super) const fn id(self) -> u16 {
        self.0 as u16
    }

    /// # Errors
    /// [`NvmeError::Refused`], for a command of this kind.
    pub(super) const fn result(self, kind: Kind) -> Result<(), NvmeError> {
        let status = Status((self.0 >> 17) as u16);
        if status.is_success() { Ok(()) } else { Err(NvmeError::Refused { command: kind.name(), status }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dwords 2 and 3 of a completion, with dword 2 full of ones.
    fn entry(status: u32, phase: u32, id: u32) -> u64 {
        u64::from(status << 17 | phase << 16 | id) << 32 | u64::from(u32::MAX)
    }

    #[test]
    fn positions_wrap_at_any_number_of_entries_and_the_phase_changes_with_each_round() {
        for entries in [2, 3, 63, 64] {
            let mut ring = Ring::new(entries);
            for nth in 1..=3 * u32::from(entries) {
                let phase = 1 - (nth - 1) / u32::from(entries) % 2;
                assert!(
                    ring.completed(entry(0, phase, 9)).is_some() && ring.completed(entry(0, 1 - phase, 9)).is_none()
                );
                let bells = (ring.submitted(), ring.taken());
                let wanted = nth % u32::from(entries);
                assert_eq!((bells, ring.tail(), ring.head()), ((wanted, wanted), wanted, wanted), "{entries}");
                assert_eq!(ring.last(), (nth - 1) % u32::from(entries));
            }
            assert_eq!(ring.depth(), u32::from(entries) - 1);
        }
    }

    #[test]
    fn a_completion_succeeded_if_its_phase_is_new_its_status_is_0_and_its_identifier_is_possible() {
        let ring = Ring::new(64);
        let of = |status, phase, id| {
            (ring.succeeded(entry(status, phase, id), 1), ring.succeeded(entry(status, phase, id), 64))
        };
        assert_eq!(of(0, 1, 0), (Some(0), Some(0)));
        assert_eq!((of(0, 1, 1), of(0, 1, 63), of(0, 1, 64)), ((None, Some(1)), (None, Some(63)), (None, None)));
        assert_eq!((of(0, 0, 0), of(1, 1, 0), of(1 << 8, 1, 0)), ((None, None), (None, None), (None, None)));
        assert_eq!((of(1 << 10, 1, 0), of(0xf << 11, 1, 0)), ((None, None), (Some(0), Some(0))));
        let refused = ring.completed(entry(0x80, 1, 0x1234)).unwrap();
        let error = NvmeError::Refused { command: "Read", status: Status(0x80) };
        assert_eq!((refused.id(), refused.result(Kind::Read)), (0x1234, Err(error)));
    }

    #[test]
    fn one_command_at_a_time_moves_both_queues_like_a_submission_and_a_completion() {
        for entries in [2, 3, 64] {
            let mut ring = Ring::new(entries);
            for _ in 0..3 * entries {
                let mut lone = ring.lone().unwrap();
                let after = lone.after();
                ring.submitted();
                assert_eq!((ring.lone(), lone.ring(true), after), (None, ring, ring.tail()), "{entries}");
                ring.taken();
                lone.advance(after);
                assert_eq!((lone.ring(false), lone.index()), (ring, ring.head()), "{entries}");
            }
        }
    }
}
