//! What comes up to a root port: writes to host memory and reads of it.
//!
//! ```text
//!  link --> requests in order, each at its pace --> memory
//!  link <--- completions, cut <---- read latency <----+
//! ```
//!
//! Ports: [`RootPort::receive`] takes requests from the link, [`RootPort::accept`] hands them to memory when they are
//! [due](RootPort::accept_due) and gives their credits back, [`RootPort::answer`] cuts what was read into completions.
//! Nothing passes anything here, so a read finds what was written before it.

use crate::engine::{Slab, Slot, Wire};
use crate::part::link::Cost;
use crate::part::memory::Memory;
use crate::tlp::{Tlp, TlpKind, completions};
use lanemark_machine::Cause;
use lanemark_units::Ticks;
use lanemark_wire::Rcb;
use std::collections::VecDeque;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Bus address of the memory lent to devices.
    pub address: u64,
    /// How much is lent.
    pub len: u64,
    /// From a read request to its first completion.
    pub read: Ticks,
    /// Time between two reads.
    pub read_request: Ticks,
    /// From a write to bytes that a core sees.
    pub write: Ticks,
    /// Time between two writes.
    pub write_tlp: Ticks,
    /// Most payload of a completion; 64 for one per read completion boundary of 64 B.
    pub completion_bytes: u32,
    /// Where completions are cut.
    pub rcb: Rcb,
}

/// A request that came and was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    /// When it is taken.
    taken: Ticks,
    /// Whether it waits for those before it.
    waits: bool,
    tlp: Tlp,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootPort {
    spec: Spec,
    requests: VecDeque<Received>,
    next_read: Ticks,
    next_write: Ticks,
    last: Ticks,
    /// Reads whose data are on their way from memory.
    reads: Wire<Tlp>,
    /// What each requester wrote, and when a core sees the last of it.
    seen: Vec<(u16, u64, Ticks)>,
    /// Requests for what is not lent.
    pub unsupported: u64,
}

impl RootPort {
    /// With nothing under way.
    #[must_use]
    pub fn new(spec: Spec) -> RootPort {
        RootPort {
            spec,
            requests: VecDeque::with_capacity(256),
            next_read: Ticks::ZERO,
            next_write: Ticks::ZERO,
            last: Ticks::ZERO,
            reads: Wire::default(),
            seen: Vec::new(),
            unsupported: 0,
        }
    }

    /// When a core sees the last of what `requester` wrote; zero if it wrote nothing.
    #[must_use]
    pub fn seen_at(&self, requester: u16) -> Ticks {
        self.seen.iter().find(|(other, ..)| *other == requester).map_or(Ticks::ZERO, |(.., at)| *at)
    }

    /// Bytes that `requester` wrote.
    #[must_use]
    pub fn written_by(&self, requester: u16) -> u64 {
        self.seen.iter().find(|(other, ..)| *other == requester).map_or(0, |(_, bytes, _)| *bytes)
    }

    /// A request is checked at `at`. It may be told so before that time: requests come in order.
    #[inline]
    pub fn receive(&mut self, at: Ticks, tlp: Tlp) {
        let (next, pace) = match tlp.kind {
            TlpKind::MRd => (&mut self.next_read, self.spec.read_request),
            _ => (&mut self.next_write, self.spec.write_tlp),
        };
        let taken = at.max(*next).max(self.last);
        *next = taken + pace;
        self.last = taken;
        self.requests.push_back(Received { taken, waits: taken > at, tlp });
    }

    /// When the next request is taken.
    #[inline]
    #[must_use]
    pub fn accept_due(&self) -> Ticks {
        self.requests.front().map_or(Ticks::NEVER, |first| first.taken)
    }

    /// Takes the next request; with it come the credits it held and why they come back no earlier.
    #[inline]
    pub fn accept(&mut self, now: Ticks, memory: &mut Memory, slab: &mut Slab) -> Option<(Cost, Cause)> {
        let Received { tlp, waits, .. } = self.requests.pop_front()?;
        let offset = tlp.address.wrapping_sub(self.spec.address);
        let is_lent = offset < self.spec.len && u64::from(tlp.length_dw) * 4 <= self.spec.len - offset;
        match tlp.kind {
            TlpKind::MRd => self.reads.send(now + self.spec.read, tlp),
            _ if is_lent => {
                let skip = tlp.first_be.trailing_zeros() as usize;
                let len = tlp.enabled_bytes() as usize;
                memory.write(offset + skip as u64, &slab.bytes(tlp.payload)[skip..skip + len]);
                let seen = now + self.spec.write;
                match self.seen.iter_mut().find(|(other, ..)| *other == tlp.requester) {
                    Some((_, bytes, at)) => (*bytes, *at) = (*bytes + len as u64, seen),
                    None => self.seen.push((tlp.requester, len as u64, seen)),
                }
            }
            _ => self.unsupported += 1,
        }
        slab.give_back(tlp.payload);
        Some((Cost::of(&tlp), if waits { Cause::RootComplex } else { Cause::Credit }))
    }

    /// When the next read's data have come from memory.
    #[inline]
    #[must_use]
    pub fn answer_due(&self) -> Ticks {
        self.reads.due()
    }

    /// Answers the next read with its completions, the first first.
    #[inline]
    pub fn answer(&mut self, now: Ticks, memory: &mut Memory, slab: &mut Slab, mut send: impl FnMut(Tlp)) {
        let Some(tlp) = self.reads.take(now) else { return };
        let offset = tlp.address.wrapping_sub(self.spec.address);
        let is_lent = offset < self.spec.len && u64::from(tlp.length_dw) * 4 <= self.spec.len - offset;
        if !is_lent {
            self.unsupported += 1;
            return send(Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, ..tlp });
        }
        for completion in completions(&tlp, self.spec.rcb, self.spec.completion_bytes) {
            let payload = slab.take();
            let len = completion.payload_bytes() as usize;
            memory.read(completion.address - self.spec.address, &mut slab.bytes_mut(payload)[..len]);
            send(Tlp { payload, ..completion });
        }
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.reads.is_empty()
    }
}
