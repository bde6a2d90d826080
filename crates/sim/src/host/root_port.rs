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
//!
//! A write that does not fill its lines may hold the port ([`Spec::partial_line`]). Whether the cache has them is looked up when it
//! is taken; so when that is, is known of the request that is taken next, and a bound of those behind it.

use crate::fabric::credit::Cost;
use crate::host::last_level_cache::LastLevelCache;
use crate::steady::Survey;
use crate::tlp::{Cut, Flaw, Tlp, TlpKind, completions};
use lanemark_engine::{Memory, Slab, Slot, Wire};
use lanemark_machine::Cause;
use lanemark_platform::{Mailbox, Memory as Lent};
use lanemark_units::{Iova, Ticks};
use lanemark_wire::Rcb;
use std::collections::{BTreeMap, VecDeque};

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
    /// How long a line holds the port that a write does not fill and the cache has not.
    pub partial_line: Ticks,
    /// Whose socket the memory is of is farther away, each way; zero where it is the port's own.
    pub remote: Ticks,
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
    /// When it is taken, if nothing holds the port.
    taken: Ticks,
    /// Why no earlier.
    because: Cause,
    tlp: Tlp,
}

/// When the next request can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Pace {
    next_read: Ticks,
    next_write: Ticks,
    last: Ticks,
}

impl Pace {
    /// When one of this kind is taken that is there at `at`.
    #[inline]
    fn due(&self, at: Ticks, kind: TlpKind) -> Ticks {
        let next = if kind == TlpKind::MRd { self.next_read } else { self.next_write };
        at.max(next).max(self.last)
    }

    /// It is taken then, and holds the port for so long.
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

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootPort {
    spec: Spec,
    requests: VecDeque<Received>,
    /// Of what came, if nothing held the port, and if all did that may.
    earliest: Pace,
    latest: Pace,
    /// Of what was taken.
    taken: Pace,
    /// Reads whose data are on their way from memory.
    reads: Wire<Tlp>,
    /// Those whose data come from the last-level cache.
    cached_reads: Wire<Tlp>,
    /// By how much the address that a read came with lies above that of the host, by its requester and tag, where it does.
    named: BTreeMap<(u16, u16), u64>,
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
            earliest: Pace::default(),
            latest: Pace::default(),
            taken: Pace::default(),
            reads: Wire::default(),
            cached_reads: Wire::default(),
            named: BTreeMap::new(),
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

    /// A read that comes next came up with this address: its requester knows its completions by it.
    pub fn name(&mut self, tlp: &Tlp, named: Iova) {
        if tlp.kind == TlpKind::MRd {
            self.named.insert((tlp.requester, tlp.tag), named.0.wrapping_sub(tlp.address));
        }
    }

    /// When all that came has reached memory, and what was read there was read.
    #[must_use]
    pub fn reached_at(&self) -> Ticks {
        // Of what was not taken yet a bound is known: lines that writes do not fill may hold the port, or be in a cache.
        let answered = self.latest.last + self.spec.read.max(self.spec.cached_read) + self.spec.remote * 2;
        let coming = if self.requests.is_empty() { Ticks::ZERO } else { answered };
        coming.max(self.reads.last_due()).max(self.cached_reads.last_due())
    }

    /// A request is checked at `at`, and `because` says why no earlier, if it waited. It may be told so before that time: requests
    /// come in order.
    #[inline]
    pub fn receive(&mut self, at: Ticks, because: Option<Cause>, tlp: &Tlp) {
        let taken = self.earliest.take(at, tlp.kind, Ticks::ZERO, &self.spec);
        let held = self.held_for(tlp, |_| true);
        let latest = self.latest.take(at, tlp.kind, held, &self.spec);
        if tlp.kind == TlpKind::MWr {
            self.pushed_until = latest + self.spec.write + self.spec.remote;
        }
        let because = if taken > at { Cause::RootComplex } else { because.unwrap_or(Cause::Credit) };
        self.requests.push_back(Received { taken, because, tlp: *tlp });
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
        self.taken.next_read.max(self.taken.next_write).max(self.taken.last)
    }

    /// Whose socket the memory is of from now on is so much farther away, each way.
    pub fn set_remote(&mut self, remote: Ticks) {
        self.spec.remote = remote;
    }

    /// Whether it matters to writes which lines are in the cache.
    #[must_use]
    pub fn is_held_by_lines(&self) -> bool {
        self.spec.partial_line > Ticks::ZERO
    }

    /// For how long a request holds the port, if lines are missing of which that is said.
    #[inline]
    fn held_for(&self, tlp: &Tlp, is_missing: impl Fn(u64) -> bool) -> Ticks {
        if self.spec.partial_line == Ticks::ZERO || tlp.kind != TlpKind::MWr {
            return Ticks::ZERO;
        }
        // Words that a core waits for it has in its cache.
        if tlp.address.wrapping_sub(self.spec.address) >= self.spec.drivers_from || !self.is_lent(tlp) {
            return Ticks::ZERO;
        }
        let first = tlp.address + u64::from(tlp.first_be.trailing_zeros());
        let missing = Lent::partial_lines(first, u64::from(tlp.enabled_bytes())).filter(|line| is_missing(*line));
        self.spec.partial_line * missing.count() as u64
    }

    /// When the next request is taken.
    #[inline]
    #[must_use]
    pub fn accept_due(&self) -> Ticks {
        self.requests.front().map_or(Ticks::NEVER, |first| self.taken.due(first.taken, first.tlp.kind))
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
        let Received { taken, because, tlp } = *self.requests.front()?;
        self.requests.pop_front();
        let held = self.held_for(&tlp, |line| !cache.has(line));
        self.taken.take(now, tlp.kind, held, &self.spec);
        let because = if now > taken { Cause::RootComplex } else { because };
        let offset = tlp.address.wrapping_sub(self.spec.address);
        let is_lent = self.is_lent(&tlp);
        if tlp.kind == TlpKind::MWr {
            self.wrote_at = Some(now);
        }
        match tlp.kind {
            TlpKind::MRd if cache.is_there() && is_lent && self.is_cached(&tlp, cache) => {
                self.cached_reads.send(now + self.spec.cached_read + self.spec.remote * 2, tlp);
            }
            TlpKind::MRd => self.reads.send(now + self.spec.read + self.spec.remote * 2, tlp),
            _ if is_lent => {
                let skip = tlp.first_be.trailing_zeros() as usize;
                let len = tlp.enabled_bytes() as usize;
                memory.write(offset + skip as u64, &slab.bytes(tlp.payload)[skip..skip + len]);
                let seen = now + self.spec.write + self.spec.remote;
                if offset >= self.spec.drivers_from {
                    let (requester, channel) = (tlp.requester, tlp.tag);
                    self.notice = Some(Notice { requester, channel, taken: now, known: seen, interrupts: false });
                    slab.give_back(tlp.payload);
                    return Some((Cost::of(&tlp), because));
                }
                cache.write_by_device(tlp.address + skip as u64, len as u64);
                match self.seen.iter_mut().find(|(other, ..)| *other == [tlp.requester, tlp.tag]) {
                    Some((_, bytes, at)) => (*bytes, *at) = (*bytes + len as u64, seen),
                    None => self.seen.push(([tlp.requester, tlp.tag], len as u64, seen)),
                }
            }
            _ if Mailbox::MESSAGES.contains(&tlp.address) && tlp.flaw == Flaw::None => {
                // What was written before is seen before the handler runs.
                let known = now + self.spec.interrupt.max(self.spec.write + self.spec.remote);
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
        let latency = if is_cached { self.spec.cached_read } else { self.spec.read } + self.spec.remote * 2;
        let above = self.named.remove(&(tlp.requester, tlp.tag)).unwrap_or(0);
        if !self.is_lent(&tlp) {
            self.refuse(&tlp);
            let address = tlp.address.wrapping_add(above);
            return send(Tlp { kind: TlpKind::Cpl, payload: Slot::NONE, address, ..tlp });
        }
        // Came a write while it was read?
        let is_loaded = self.wrote_at.is_some_and(|wrote_at| wrote_at + latency > now);
        let most = if is_loaded { self.spec.loaded_completion_bytes } else { self.spec.completion_bytes };
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
            earliest,
            latest,
            taken,
            reads,
            cached_reads,
            // With an IOMMU nothing is skipped.
            named: _,
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
        for Pace { next_read, next_write, last } in [earliest, latest, taken] {
            view.time(next_read);
            view.time(next_write);
            view.time(last);
        }
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
            let read = spec.read + spec.remote * 2;
            let mut loads_until = *wrote_at + read;
            view.time(&mut loads_until);
            *wrote_at = loads_until - read;
        }
        // Somebody takes these in the same event.
        view.flag(notice.is_some());
        view.flag(refused.is_some());
        view.state(*unsupported);
    }
}
