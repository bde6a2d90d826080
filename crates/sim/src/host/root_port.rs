//! A root port as the completer of device requests: writes and reads of host memory.
//!
//! ```text
//!  link --> requests in order, each at its rate --> memory, cache
//!  link <--- completions, split <-- read latency <------+
//! ```
//!
//! Ports: [`RootPort::receive`] receives requests from the link, [`RootPort::accept`] passes them to memory when they
//! are [due](RootPort::accept_due) and returns their credits, [`RootPort::answer`] splits read data into completions.
//! Requests are not reordered, so a read returns earlier writes. Notifications to a core, by an awaited word, a
//! message or a completion ([`RootPort::pushed_until`]), follow the earlier writes. A read that hits in the
//! last-level cache may complete before an earlier one from DRAM, and so may one from DRAM if latencies are spread
//! ([`Spec::read_spread`]).
//!
//! A write of a partial line may occupy the port for longer ([`Spec::partial_line`]). The cache is looked up when the
//! write is accepted; its time is exact for the next request, and an upper bound for those behind it.

use crate::busy::Busy;
use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::fabric::credit::Cost;
use crate::host::last_level_cache::LastLevelCache;
use crate::host::read_spread::ReadSpread;
use crate::steady::Survey;
use crate::tlp::{Cut, Flaw, Tlp, TlpKind, completions};
use lanemark_engine::{Memory, Queue, Slab, Slot, Wire};
use lanemark_machine::Cause;
use lanemark_platform::{Mailbox, Memory as Lent, Merging};
use lanemark_units::{Iova, Ticks};
use lanemark_wire::Rcb;
use std::collections::BTreeMap;

/// Constants of a root port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Bus address of the DMA memory.
    pub address: u64,
    /// Length of the DMA memory.
    pub len: u64,
    /// From a read request to its first completion, from DRAM.
    pub read: Ticks,
    /// Mean of the additional time of each line from DRAM.
    pub read_spread: Ticks,
    /// From a read request to its first completion, from the last-level cache.
    pub cached_read: Ticks,
    /// Time between two reads.
    pub read_request: Ticks,
    /// From a write to its visibility to a core.
    pub write: Ticks,
    /// Time between two writes.
    pub write_tlp: Ticks,
    /// Time for which a partially written line that is not cached occupies the port.
    pub partial_line: Ticks,
    /// Extra one-way latency to the memory of another socket; zero for the port's own socket.
    pub remote: Ticks,
    /// Largest payload of a completion of each read, without that of the port; 64 for one completion for each read
    /// completion boundary of 64 B.
    pub merging: Merging,
    /// Largest payload of the port.
    pub mps_bytes: u32,
    /// Whether the bytes after the last read completion boundary have a completion of their own.
    pub odd_end_apart: bool,
    /// Read Completion Boundary.
    pub rcb: Rcb,
    /// Offset from which the DMA memory belongs to drivers: a write there is an awaited word.
    pub drivers_from: u64,
    /// From a message to its interrupt handler.
    pub interrupt: Ticks,
}

/// A notification of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Requester ID of the card.
    pub requester: u16,
    /// Channel of the card.
    pub channel: u16,
    /// Time of its arrival at the root port.
    pub taken: Ticks,
    /// Time at which the core receives it.
    pub known: Ticks,
    /// Whether it is an interrupt.
    pub interrupts: bool,
    /// Its acceptance.
    pub milestone: Milestone,
}

/// A request that has not been accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    /// Time of arrival.
    at: Ticks,
    /// Time of acceptance, if no line occupies the port.
    taken: Ticks,
    /// Stall cause.
    because: Cause,
    tlp: Tlp,
}

/// Acceptance times of the next requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Pace {
    next_read: Ticks,
    next_write: Ticks,
    last: Ticks,
}

impl Pace {
    /// Returns when a request of this kind that arrives at `at` is accepted.
    #[inline]
    fn due(&self, at: Ticks, kind: TlpKind) -> Ticks {
        let next = if kind == TlpKind::MRd { self.next_read } else { self.next_write };
        at.max(next).max(self.last)
    }

    /// Accepts a request that occupies the port for `held`; returns its time.
    #[inline]
    fn take(&mut self, at: Ticks, kind: TlpKind, held: Ticks, spec: &Spec) -> Ticks {
        let taken = self.due(at, kind);
        match kind {
            TlpKind::MRd => self.next_read = taken + spec.read_request,
            _ => self.next_write = taken + spec.write_tlp + held,
        }
        self.last = taken + held;
        taken
    }
}

/// State of the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootPort {
    spec: Spec,
    requests: Queue<Received>,
    /// Acceptance times of received requests, if no line occupies the port, and if every possible one does.
    earliest: Pace,
    latest: Pace,
    /// Acceptance times of accepted requests, and the last acceptance.
    taken: Pace,
    accepted: Milestone,
    /// Reads being served by DRAM, and the additional times of their lines.
    reads: Wire<Tlp>,
    spread: ReadSpread,
    /// Reads being served by the last-level cache.
    cached_reads: Wire<Tlp>,
    /// Difference between the requester's address and the host address of reads, by requester ID and tag, where it is
    /// not zero.
    named: BTreeMap<(u16, u16), u64>,
    /// Bytes written by each channel of each requester, and when a core sees the last of them.
    seen: Vec<([u16; 2], u64, Ticks, Milestone)>,
    /// Time at which a core sees the last received write.
    pushed_until: Ticks,
    /// Time of the last accepted write.
    wrote_at: Option<Ticks>,
    /// Notification by the last accepted write, until it is taken.
    pub notice: Option<Notice>,
    /// Use of memory by reads and by writes.
    pub(crate) read_busy: Busy,
    pub(crate) write_busy: Busy,
    /// Requests outside the DMA memory (Unsupported Request).
    pub unsupported: u64,
    /// The last of them, until it is taken.
    pub refused: Option<Tlp>,
}

impl RootPort {
    /// Creates an idle port.
    #[must_use]
    pub fn new(spec: Spec) -> RootPort {
        RootPort {
            spread: ReadSpread::new(spec.read_spread),
            spec,
            requests: Queue::default(),
            earliest: Pace::default(),
            latest: Pace::default(),
            taken: Pace::default(),
            accepted: Milestone::NONE,
            reads: Wire::default(),
            cached_reads: Wire::default(),
            named: BTreeMap::new(),
            seen: Vec::new(),
            pushed_until: Ticks::ZERO,
            wrote_at: None,
            notice: None,
            read_busy: Busy::default(),
            write_busy: Busy::default(),
            unsupported: 0,
            refused: None,
        }
    }

    /// Returns when a core sees the last write of `requester`; zero if there is none.
    #[must_use]
    pub fn seen_at(&self, requester: u16) -> Ticks {
        self.last_seen(requester).0
    }

    /// Returns when a core sees the last write of `requester`, and its acceptance; zero if there is none.
    pub(crate) fn last_seen(&self, requester: u16) -> (Ticks, Milestone) {
        let last = self.of(requester).max_by_key(|(.., at, _)| *at);
        last.map_or((Ticks::ZERO, Milestone::NONE), |(.., at, milestone)| (*at, *milestone))
    }

    /// Returns the bytes written by `requester`.
    #[must_use]
    pub fn written_by(&self, requester: u16) -> u64 {
        self.of(requester).map(|(_, bytes, ..)| *bytes).sum()
    }

    /// Returns the bytes written by a channel of `requester`.
    #[must_use]
    pub fn written_on(&self, requester: u16, channel: u16) -> u64 {
        self.of(requester).filter(|([_, other], ..)| *other == channel).map(|(_, bytes, ..)| *bytes).sum()
    }

    fn of(&self, requester: u16) -> impl Iterator<Item = &([u16; 2], u64, Ticks, Milestone)> {
        self.seen.iter().filter(move |([other, _], ..)| *other == requester)
    }

    /// Records the untranslated address of the next read, which its completions must carry.
    pub fn name(&mut self, tlp: &Tlp, named: Iova) {
        if tlp.kind == TlpKind::MRd {
            self.named.insert((tlp.requester, tlp.tag), named.0.wrapping_sub(tlp.address));
        }
    }

    /// Returns when every received write has reached memory and every received read has been served.
    #[must_use]
    pub fn reached_at(&self) -> Ticks {
        // An upper bound for requests not accepted yet: partial lines may occupy the port or hit in the cache.
        let read = (self.spec.read + self.spread.longest()).max(self.spec.cached_read);
        let answered = self.latest.last + read + self.spec.remote * 2;
        let coming = if self.requests.is_empty() { Ticks::ZERO } else { answered };
        coming.max(self.reads.last_due()).max(self.cached_reads.last_due())
    }

    /// Receives a request that is checked at `at`; `because` is its stall cause. The call may precede that time,
    /// because requests arrive in order. Returns whether it is the next request.
    #[inline]
    pub fn receive(&mut self, at: Ticks, because: Option<Cause>, tlp: &Tlp) -> bool {
        let taken = self.earliest.take(at, tlp.kind, Ticks::ZERO, &self.spec);
        let latest = if self.is_held_by_lines() {
            let held = self.held_for(tlp, |_| true);
            self.latest.take(at, tlp.kind, held, &self.spec)
        } else {
            self.latest = self.earliest;
            taken
        };
        if tlp.kind == TlpKind::MWr {
            self.pushed_until = latest + self.spec.write + self.spec.remote;
        }
        let because = if taken > at { Cause::Memory } else { because.unwrap_or(Cause::Credit) };
        self.requests.push(Received { at, taken, because, tlp: *tlp });
        self.requests.len() == 1
    }

    /// Returns the time until which a completion received after all of this waits for the earlier writes.
    ///
    /// Source: PCI Express Base Specification, "Ordering Rules": a completion passes no posted request.
    #[inline]
    #[must_use]
    pub fn pushed_until(&self) -> Ticks {
        self.pushed_until
    }

    /// Returns the time from which accepted requests delay no other.
    #[must_use]
    pub fn quiet_at(&self) -> Ticks {
        self.taken.next_read.max(self.taken.next_write).max(self.taken.last)
    }

    /// Sets the extra one-way latency to the socket of the memory.
    pub fn set_remote(&mut self, remote: Ticks) {
        self.spec.remote = remote;
    }

    /// Returns whether the cache state affects the timing of writes.
    #[inline]
    #[must_use]
    pub fn is_held_by_lines(&self) -> bool {
        self.spec.partial_line > Ticks::ZERO
    }

    /// Returns for how long a request occupies the port; `is_missing` tells whether a line is not cached.
    #[inline]
    fn held_for(&self, tlp: &Tlp, is_missing: impl Fn(u64) -> bool) -> Ticks {
        if tlp.kind != TlpKind::MWr {
            return Ticks::ZERO;
        }
        let (line, bytes) = (Lent::LINE_BYTES, u64::from(tlp.enabled_bytes()));
        let first = tlp.address + u64::from(tlp.first_be.trailing_zeros());
        if first.is_multiple_of(line) && bytes.is_multiple_of(line) {
            return Ticks::ZERO;
        }
        // Awaited words are in the cache of the core.
        if tlp.address.wrapping_sub(self.spec.address) >= self.spec.drivers_from || !self.is_lent(tlp) {
            return Ticks::ZERO;
        }
        let missing = Lent::partial_lines(first, bytes).filter(|line| is_missing(*line));
        self.spec.partial_line * missing.count() as u64
    }

    /// Returns when the next request is accepted.
    #[inline]
    #[must_use]
    pub fn accept_due(&self) -> Ticks {
        self.requests.first().map_or(Ticks::NEVER, |first| self.taken.due(first.taken, first.tlp.kind))
    }

    /// Accepts the next request; also returns its credits, the cause of their delay and the acceptance.
    #[inline]
    pub fn accept(
        &mut self,
        now: Ticks,
        memory: &mut Memory,
        cache: &mut LastLevelCache,
        slab: &mut Slab,
        path: &mut CriticalPath,
    ) -> Option<(Cost, Cause, Milestone)> {
        let Received { at, taken, because, mut tlp } = self.requests.pop()?;
        let held = if self.is_held_by_lines() { self.held_for(&tlp, |line| !cache.has(line)) } else { Ticks::ZERO };
        self.taken.take(now, tlp.kind, held, &self.spec);
        match tlp.kind {
            TlpKind::MRd => self.read_busy.occupy(self.spec.read_request, self.taken.next_read),
            _ => self.write_busy.occupy(self.spec.write_tlp + held, self.taken.next_write),
        }
        let because = if now > taken { Cause::Memory } else { because };
        if now > at {
            tlp.milestone = path.add(self.accepted, now, Place::MEMORY, Cause::Memory);
        }
        self.accepted = tlp.milestone;
        let offset = tlp.address.wrapping_sub(self.spec.address);
        let is_lent = self.is_lent(&tlp);
        if tlp.kind == TlpKind::MWr {
            self.wrote_at = Some(now);
        }
        match tlp.kind {
            TlpKind::MRd if cache.is_there() && is_lent && self.is_cached(&tlp, cache) => {
                self.cached_reads.send(now + self.spec.cached_read + self.spec.remote * 2, tlp);
            }
            TlpKind::MRd => {
                let at = now + self.spec.read + self.spec.remote * 2;
                if self.spread.is_there() {
                    let lines = if is_lent { Lent::lines(tlp.address, u64::from(tlp.length_dw) * 4) } else { 0 };
                    self.reads.join(at + self.spread.slowest(lines), tlp);
                } else {
                    self.reads.send(at, tlp);
                }
            }
            _ if is_lent => {
                let skip = tlp.first_be.trailing_zeros() as usize;
                let len = tlp.enabled_bytes() as usize;
                memory.write(offset + skip as u64, &slab.bytes(tlp.payload)[skip..skip + len]);
                let seen = now + self.spec.write + self.spec.remote;
                if offset >= self.spec.drivers_from {
                    let (requester, channel) = (tlp.requester, tlp.tag);
                    let milestone = tlp.milestone;
                    self.notice =
                        Some(Notice { requester, channel, taken: now, known: seen, interrupts: false, milestone });
                    slab.give_back(tlp.payload);
                    return Some((Cost::of(&tlp), because, milestone));
                }
                if cache.is_there() {
                    cache.write_by_device(tlp.address + skip as u64, len as u64);
                }
                match self.seen.iter_mut().find(|(other, ..)| *other == [tlp.requester, tlp.tag]) {
                    Some((_, bytes, at, last)) => (*bytes, *at, *last) = (*bytes + len as u64, seen, tlp.milestone),
                    None => self.seen.push(([tlp.requester, tlp.tag], len as u64, seen, tlp.milestone)),
                }
            }
            _ if Mailbox::MESSAGES.contains(&tlp.address) && tlp.flaw == Flaw::None => {
                // Earlier writes are visible before the handler runs.
                let known = now + self.spec.interrupt.max(self.spec.write + self.spec.remote);
                let (requester, channel, milestone) = (tlp.requester, tlp.tag, tlp.milestone);
                self.notice = Some(Notice { requester, channel, taken: now, known, interrupts: true, milestone });
            }
            _ => self.refuse(&tlp),
        }
        slab.give_back(tlp.payload);
        Some((Cost::of(&tlp), because, tlp.milestone))
    }

    /// Returns when the next read has its data.
    #[inline]
    #[must_use]
    pub fn answer_due(&self) -> Ticks {
        self.reads.due().min(self.cached_reads.due())
    }

    /// Returns whether a read hits in the last-level cache. Driver memory always hits, because a core has just
    /// written it.
    fn is_cached(&self, tlp: &Tlp, cache: &LastLevelCache) -> bool {
        let is_drivers = tlp.address - self.spec.address >= self.spec.drivers_from;
        is_drivers || cache.holds(tlp.address, u64::from(tlp.length_dw) * 4)
    }

    /// Completes the next read; passes its completions to `send` in order.
    #[inline]
    pub fn answer(
        &mut self,
        now: Ticks,
        memory: &mut Memory,
        slab: &mut Slab,
        path: &mut CriticalPath,
        mut send: impl FnMut(Tlp),
    ) {
        let is_cached = self.cached_reads.due() < self.reads.due();
        let reads = if is_cached { &mut self.cached_reads } else { &mut self.reads };
        let Some(mut tlp) = reads.take(now) else { return };
        tlp.milestone = path.add(tlp.milestone, now, Place::MEMORY, Cause::Transit);
        let latency = if is_cached { self.spec.cached_read } else { self.spec.read } + self.spec.remote * 2;
        let above = self.named.remove(&(tlp.requester, tlp.tag)).unwrap_or(0);
        if !self.is_lent(&tlp) {
            self.refuse(&tlp);
            let address = tlp.address.wrapping_add(above);
            return send(Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, address, ..tlp });
        }
        // Whether a write arrived during the read.
        let is_loaded = self.wrote_at.is_some_and(|wrote_at| wrote_at + latency > now);
        let start = tlp.address + u64::from(tlp.first_be.trailing_zeros().min(3));
        let most = self.spec.merging.most_bytes(start, u64::from(tlp.enabled_bytes()), is_loaded);
        let most = most.min(self.spec.mps_bytes);
        let cut = Cut { rcb: self.spec.rcb, most, odd_end_apart: self.spec.odd_end_apart };
        for completion in completions(&tlp, cut) {
            let payload = slab.take();
            let len = completion.payload_bytes() as usize;
            memory.read(completion.address - self.spec.address, &mut slab.bytes_mut(payload)[..len]);
            send(Tlp { payload, address: completion.address.wrapping_add(above), ..completion });
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

    /// Returns whether a range is DMA memory of plans, without driver words.
    pub(crate) fn lends(&self, start: u64, bytes: u64) -> bool {
        let len = self.spec.len.min(self.spec.drivers_from);
        start.checked_sub(self.spec.address).is_some_and(|offset| offset < len && bytes <= len - offset)
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let RootPort {
            spec,
            requests,
            earliest,
            latest,
            taken,
            accepted: _,
            reads,
            spread,
            cached_reads,
            // With an IOMMU, no steady state is skipped.
            named: _,
            seen,
            pushed_until,
            wrote_at,
            notice,
            read_busy,
            write_busy,
            unsupported,
            refused,
        } = self;
        read_busy.visit(view);
        write_busy.visit(view);
        view.count(requests.len());
        for Received { at: _, taken, because, tlp } in requests.as_mut_slice() {
            view.moment(taken);
            view.count(because.index());
            view.tlp(tlp);
        }
        for Pace { next_read, next_write, last } in [earliest, latest, taken] {
            view.time(next_read);
            view.time(next_write);
            view.time(last);
        }
        reads.visit(view, Survey::tlp);
        spread.visit(view);
        cached_reads.visit(view, Survey::tlp);
        view.count(seen.len());
        for ([requester, channel], bytes, at, _) in seen {
            view.state(u64::from(*requester));
            view.state(u64::from(*channel));
            view.counter(bytes);
            view.mark(at);
        }
        view.time(pushed_until);
        // Compared through the end of the affected reads.
        view.flag(wrote_at.is_some());
        if let Some(wrote_at) = wrote_at {
            let read = spec.read + spec.remote * 2;
            let mut loads_until = *wrote_at + read;
            view.time(&mut loads_until);
            *wrote_at = loads_until - read;
        }
        // Always taken in the same event.
        view.flag(notice.is_some());
        view.flag(refused.is_some());
        view.state(*unsupported);
    }
}
