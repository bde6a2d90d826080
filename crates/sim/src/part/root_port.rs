//! What comes up to a root port: writes to host memory and reads of it.
//!
//! ```text
//!  link --> requests in order, each at its pace --> memory, cache
//!  link <--- completions, cut <---- read latency <------+
//! ```
//!
//! Ports: [`RootPort::receive`] takes requests from the link, [`RootPort::accept`] hands them to memory when they are
//! [due](RootPort::accept_due) and gives their credits back, [`RootPort::answer`] cuts what was read into completions.
//! Nothing passes anything here, so a read finds what was written before it; and what a core is told, by a word that it
//! waits for, by a message, or by a completion ([`RootPort::pushed_until`]), it is told behind the writes before it. A read
//! that the last-level cache answers may be answered before one that came earlier and goes to DRAM.

use crate::engine::{Slab, Slot, Wire};
use crate::part::credit::Cost;
use crate::part::last_level_cache::LastLevelCache;
use crate::part::memory::Memory;
use crate::steady::Survey;
use crate::tlp::{Cut, Flaw, Tlp, TlpKind, completions};
use lanemark_machine::Cause;
use lanemark_platform::Mailbox;
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
    /// From a read request to its first completion, from DRAM.
    pub read: Ticks,
    /// The same from the last-level cache.
    pub cached_read: Ticks,
    /// Time between two reads.
    pub read_request: Ticks,
    /// From a write to bytes that a core sees.
    pub write: Ticks,
    /// Time between two writes.
    pub write_tlp: Ticks,
    /// Most payload of a completion; 64 for one per read completion boundary of 64 B.
    pub completion_bytes: u32,
    /// The same of reads while which a write came.
    pub loaded_completion_bytes: u32,
    /// Whether what is behind the last read completion boundary comes by itself.
    pub odd_end_apart: bool,
    /// Where completions are cut.
    pub rcb: Rcb,
    /// From here on what is lent is the drivers': a write there is a word that a core waits for.
    pub drivers_from: u64,
    /// From a message to the handler of its interrupt.
    pub interrupt: Ticks,
}

/// A card tells whoever called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Which card, as a requester.
    pub requester: u16,
    /// Which of its channels.
    pub channel: u16,
    /// When it came here.
    pub taken: Ticks,
    /// When the core knows.
    pub known: Ticks,
    /// Whether it interrupts the core.
    pub interrupts: bool,
}

/// A request that came and was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    /// When it is taken.
    taken: Ticks,
    /// Why no earlier.
    because: Cause,
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
    /// Those whose data come from the last-level cache.
    cached_reads: Wire<Tlp>,
    /// What each requester wrote on each of its channels, and when a core sees the last of it.
    seen: Vec<([u16; 2], u64, Ticks)>,
    /// When a core sees the last write that came.
    pushed_until: Ticks,
    /// When the last write was taken.
    wrote_at: Option<Ticks>,
    /// What the write taken last tells a core, until somebody took it.
    pub notice: Option<Notice>,
    /// Requests for what is not lent.
    pub unsupported: u64,
    /// The last of them, until somebody took it.
    pub refused: Option<Tlp>,
}

impl RootPort {
    /// With nothing under way.
    #[must_use]
    pub fn new(spec: Spec) -> RootPort {
        RootPort {
            spec,
            requests: VecDeque::new(),
            next_read: Ticks::ZERO,
            next_write: Ticks::ZERO,
            last: Ticks::ZERO,
            reads: Wire::default(),
            cached_reads: Wire::default(),
            seen: Vec::new(),
            pushed_until: Ticks::ZERO,
            wrote_at: None,
            notice: None,
            unsupported: 0,
            refused: None,
        }
    }

    /// When a core sees the last of what `requester` wrote; zero if it wrote nothing.
    #[must_use]
    pub fn seen_at(&self, requester: u16) -> Ticks {
        self.of(requester).map(|(.., at)| *at).max().unwrap_or(Ticks::ZERO)
    }

    /// Bytes that `requester` wrote.
    #[must_use]
    pub fn written_by(&self, requester: u16) -> u64 {
        self.of(requester).map(|(_, bytes, _)| *bytes).sum()
    }

    /// Bytes that `requester` wrote on one of its channels.
    #[must_use]
    pub fn written_on(&self, requester: u16, channel: u16) -> u64 {
        self.of(requester).filter(|([_, other], ..)| *other == channel).map(|(_, bytes, _)| *bytes).sum()
    }

    fn of(&self, requester: u16) -> impl Iterator<Item = &([u16; 2], u64, Ticks)> {
        self.seen.iter().filter(move |([other, _], ..)| *other == requester)
    }

    /// A request is checked at `at`, and `because` says why no earlier, if it waited. It may be told so before that time: requests
    /// come in order.
    #[inline]
    pub fn receive(&mut self, at: Ticks, because: Option<Cause>, tlp: Tlp) {
        let (next, pace) = match tlp.kind {
            TlpKind::MRd => (&mut self.next_read, self.spec.read_request),
            _ => (&mut self.next_write, self.spec.write_tlp),
        };
        let taken = at.max(*next).max(self.last);
        *next = taken + pace;
        self.last = taken;
        if tlp.kind == TlpKind::MWr {
            self.pushed_until = taken + self.spec.write;
        }
        let because = if taken > at { Cause::RootComplex } else { because.unwrap_or(Cause::Credit) };
        self.requests.push_back(Received { taken, because, tlp });
    }

    /// Until when a completion that came behind all of this waits for the writes before it.
    ///
    /// Source: PCI Express Base Specification, "Ordering Rules": a completion passes no posted request.
    #[inline]
    #[must_use]
    pub fn pushed_until(&self) -> Ticks {
        self.pushed_until
    }

    /// From when on what it took last keeps nothing waiting.
    #[must_use]
    pub fn quiet_at(&self) -> Ticks {
        self.next_read.max(self.next_write)
    }

    /// When the next request is taken.
    #[inline]
    #[must_use]
    pub fn accept_due(&self) -> Ticks {
        self.requests.front().map_or(Ticks::NEVER, |first| first.taken)
    }

    /// Takes the next request; with it come the credits it held and why they come back no earlier.
    #[inline]
    pub fn accept(
        &mut self,
        now: Ticks,
        memory: &mut Memory,
        cache: &mut LastLevelCache,
        slab: &mut Slab,
    ) -> Option<(Cost, Cause)> {
        let Received { tlp, because, .. } = *self.requests.front()?;
        self.requests.pop_front();
        let offset = tlp.address.wrapping_sub(self.spec.address);
        let is_lent = self.is_lent(&tlp);
        if tlp.kind == TlpKind::MWr {
            self.wrote_at = Some(now);
        }
        match tlp.kind {
            TlpKind::MRd if cache.is_there() && is_lent && self.is_cached(&tlp, cache) => {
                self.cached_reads.send(now + self.spec.cached_read, tlp);
            }
            TlpKind::MRd => self.reads.send(now + self.spec.read, tlp),
            _ if is_lent => {
                let skip = tlp.first_be.trailing_zeros() as usize;
                let len = tlp.enabled_bytes() as usize;
                memory.write(offset + skip as u64, &slab.bytes(tlp.payload)[skip..skip + len]);
                let seen = now + self.spec.write;
                if offset >= self.spec.drivers_from {
                    let (requester, channel) = (tlp.requester, tlp.tag);
                    self.notice = Some(Notice { requester, channel, taken: now, known: seen, interrupts: false });
                    slab.give_back(tlp.payload);
                    return Some((Cost::of(&tlp), because));
                }
                cache.write(tlp.address + skip as u64, len as u64);
                match self.seen.iter_mut().find(|(other, ..)| *other == [tlp.requester, tlp.tag]) {
                    Some((_, bytes, at)) => (*bytes, *at) = (*bytes + len as u64, seen),
                    None => self.seen.push(([tlp.requester, tlp.tag], len as u64, seen)),
                }
            }
            _ if Mailbox::MESSAGES.contains(&tlp.address) && tlp.flaw == Flaw::None => {
                // What was written before is seen before the handler runs.
                let known = now + self.spec.interrupt.max(self.spec.write);
                let (requester, channel) = (tlp.requester, tlp.tag);
                self.notice = Some(Notice { requester, channel, taken: now, known, interrupts: true });
            }
            _ => self.refuse(&tlp),
        }
        slab.give_back(tlp.payload);
        Some((Cost::of(&tlp), because))
    }

    /// When the next read's data have come from memory.
    #[inline]
    #[must_use]
    pub fn answer_due(&self) -> Ticks {
        self.reads.due().min(self.cached_reads.due())
    }

    /// Whether the last-level cache has all of a read: what drivers lend was just written by a core.
    fn is_cached(&self, tlp: &Tlp, cache: &LastLevelCache) -> bool {
        let is_drivers = tlp.address - self.spec.address >= self.spec.drivers_from;
        is_drivers || cache.holds(tlp.address, u64::from(tlp.length_dw) * 4)
    }

    /// Answers the next read with its completions, the first first.
    #[inline]
    pub fn answer(&mut self, now: Ticks, memory: &mut Memory, slab: &mut Slab, mut send: impl FnMut(Tlp)) {
        let is_cached = self.cached_reads.due() < self.reads.due();
        let reads = if is_cached { &mut self.cached_reads } else { &mut self.reads };
        let Some(tlp) = reads.take(now) else { return };
        let latency = if is_cached { self.spec.cached_read } else { self.spec.read };
        if !self.is_lent(&tlp) {
            self.refuse(&tlp);
            return send(Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, ..tlp });
        }
        // Came a write while it was read?
        let is_loaded = self.wrote_at.is_some_and(|wrote_at| wrote_at + latency > now);
        let most = if is_loaded { self.spec.loaded_completion_bytes } else { self.spec.completion_bytes };
        let cut = Cut { rcb: self.spec.rcb, most, odd_end_apart: self.spec.odd_end_apart };
        for completion in completions(&tlp, cut) {
            let payload = slab.take();
            let len = completion.payload_bytes() as usize;
            memory.read(completion.address - self.spec.address, &mut slab.bytes_mut(payload)[..len]);
            send(Tlp { payload, ..completion });
        }
    }

    #[cold]
    fn refuse(&mut self, tlp: &Tlp) {
        self.unsupported += 1;
        self.refused = Some(*tlp);
    }

    fn is_lent(&self, tlp: &Tlp) -> bool {
        let offset = tlp.address.wrapping_sub(self.spec.address);
        let is_inside = offset < self.spec.len && u64::from(tlp.length_dw) * 4 <= self.spec.len - offset;
        is_inside && tlp.flaw == Flaw::None
    }

    /// Whether all of this is lent to plans: nobody waits for a word there.
    pub(crate) fn lends(&self, start: u64, bytes: u64) -> bool {
        let len = self.spec.len.min(self.spec.drivers_from);
        start.checked_sub(self.spec.address).is_some_and(|offset| offset < len && bytes <= len - offset)
    }

    /// Shows everything that changes.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let RootPort {
            spec,
            requests,
            next_read,
            next_write,
            last,
            reads,
            cached_reads,
            seen,
            pushed_until,
            wrote_at,
            notice,
            unsupported,
            refused,
        } = self;
        view.count(requests.len());
        for Received { taken, because, tlp } in requests {
            view.moment(taken);
            view.count(because.index());
            view.tlp(tlp);
        }
        view.time(next_read);
        view.time(next_write);
        view.time(last);
        reads.visit(view, Survey::tlp);
        cached_reads.visit(view, Survey::tlp);
        view.count(seen.len());
        for ([requester, channel], bytes, at) in seen {
            view.state(u64::from(*requester));
            view.state(u64::from(*channel));
            view.counter(bytes);
            view.mark(at);
        }
        view.time(pushed_until);
        // Until when it loads reads is what is compared.
        view.flag(wrote_at.is_some());
        if let Some(wrote_at) = wrote_at {
            let mut loads_until = *wrote_at + spec.read;
            view.time(&mut loads_until);
            *wrote_at = loads_until - spec.read;
        }
        // Somebody takes these in the same event.
        view.flag(notice.is_some());
        view.flag(refused.is_some());
        view.state(*unsupported);
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.answer_due() == Ticks::NEVER
    }
}
