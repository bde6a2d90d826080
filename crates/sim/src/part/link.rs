//! One direction of a link: arbitrates between those who send, serialises TLPs, keeps flow-control credits,
//! delivers after a latency.
//!
//! Ports: [`Transmitter::offer`] takes TLPs from whoever sends, an [input](Spec::inputs) each;
//! [`Transmitter::send`] says when each arrives at the other end; [`Transmitter::give_back`] takes the receiver's
//! credits, which are here a link's latency later; [`Transmitter::owe`] takes the DLLPs that the other direction
//! makes necessary: each goes as soon as the line is free, and before the next TLP only when it can wait no longer. One
//! DLLP stands for all of its kind that are owed when it goes.
//!
//! What one input offers keeps the order that the table of the specification demands: nothing passes an older
//! posted request, but for completions with relaxed ordering; posted requests pass everything, completions pass
//! non-posted requests and the reverse; each class keeps its own order. Between inputs there is none. The first
//! inputs may have priority in their order; the others take turns.
//!
//! Credits on their way back lie in a line of their own and are counted when the next TLP goes, and DLLPs when the
//! next TLP goes after them: no event of theirs is needed, because the times at which they come are known. A test
//! compares this with a link that counts each credit when it arrives.
//!
//! Waits recorded: `LinkBusy` when the line was sending, `Credit` or `Device` when credits came last.
//!
//! SKP ordered sets, replay and errors are not here yet, and an `UpdateFC` that waits behind a TLP does not bring its
//! credits later.

use crate::engine::Wire;
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, Generation, Lanes, dw_ticks};
use std::collections::VecDeque;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Speed.
    pub generation: Generation,
    /// Width.
    pub lanes: Lanes,
    /// From the last bit sent to the packet checked at the other end.
    pub latency: Ticks,
    /// Credits the receiver advertised at initialisation.
    pub credits: Credits,
    /// A TLP starts at a multiple of this many DWs.
    pub start_dw: u64,
    /// How many there are that send.
    pub inputs: usize,
    /// How many of them, from the first on, go before all behind them.
    pub first_served: usize,
}

/// Credits of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Headers: TLPs.
    pub header: u32,
    /// Data, 16 B each.
    pub data: u32,
}

impl Pool {
    /// More than anybody uses: what `infinite` is at initialisation.
    pub const INFINITE: Pool = Pool { header: u32::MAX / 2, data: u32::MAX / 2 };

    const fn covers(self, cost: Cost) -> bool {
        self.header >= 1 && self.data >= cost.data
    }
}

/// Flow-control credits by class, in the order of [`FlowClass::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits(pub [Pool; FlowClass::ALL.len()]);

impl Credits {
    /// Of every class without an end.
    pub const INFINITE: Credits = Credits([Pool::INFINITE; FlowClass::ALL.len()]);
}

/// What one TLP takes: a header of its class, and so much data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Its class.
    pub class: FlowClass,
    /// Data credits of 16 B.
    pub data: u32,
}

impl Cost {
    /// Of this TLP.
    #[must_use]
    pub const fn of(tlp: &Tlp) -> Cost {
        Cost { class: tlp.kind.class(), data: tlp.payload_bytes().div_ceil(16) }
    }
}

/// What crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Crossed {
    /// Memory writes.
    pub writes: u64,
    /// Memory reads.
    pub reads: u64,
    /// Completions.
    pub completions: u64,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Bytes on the line, framing and headers too.
    pub wire_bytes: u64,
    /// DLLPs that took time of the line: those that a TLP of this direction could have waited for.
    pub dllps: u64,
}

/// A TLP on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The packet.
    pub tlp: Tlp,
    /// Which input it came from.
    pub input: usize,
    /// When the last bit of its header is at the other end, which is all that a switch needs to send it on.
    pub header_arrives: Ticks,
    /// When all of it is checked at the other end.
    pub arrives: Ticks,
    /// What it had waited for last, if it had.
    pub because: Option<Cause>,
}

/// TLPs of one sender that have not started to go, by class.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Input {
    queues: [Wire<(u64, Tlp)>; FlowClass::ALL.len()],
    /// Which of the queues hold something, a bit each.
    holding: u8,
    /// No offer is ready before the one before it.
    last: Ticks,
    /// How many were offered.
    offered: u64,
}

impl Input {
    fn offer(&mut self, at: Ticks, tlp: Tlp) {
        self.last = self.last.max(at);
        self.offered += 1;
        let class = tlp.kind.class() as usize;
        self.holding |= 1 << class;
        self.queues[class].send(self.last, (self.offered, tlp));
    }

    #[inline]
    fn take(&mut self, class: usize, now: Ticks) -> Option<Tlp> {
        let (_, tlp) = self.queues[class].take(now)?;
        if self.queues[class].is_empty() {
            self.holding &= !(1 << class);
        }
        Some(tlp)
    }

    /// The first TLPs of the classes that hold some, unless they must not pass a posted request: class, place in the
    /// order of offers, and when it is ready.
    #[inline]
    fn heads(&self) -> impl Iterator<Item = (usize, u64, Ticks, &Tlp)> {
        let mut left = self.holding;
        std::iter::from_fn(move || {
            let class = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (class < FlowClass::ALL.len()).then_some(class)
        })
        .filter_map(|class| self.head(class))
    }

    #[inline]
    fn head(&self, class: usize) -> Option<(usize, u64, Ticks, &Tlp)> {
        let queue = &self.queues[class];
        let (order, tlp) = queue.first()?;
        let is_posted = class == FlowClass::Posted as usize;
        let may_pass = is_posted || tlp.relaxed && class == FlowClass::Completion as usize;
        let older_posted = || self.queues[FlowClass::Posted as usize].first().is_some_and(|(posted, _)| posted < order);
        (may_pass || !older_posted()).then(|| (class, *order, queue.due(), tlp))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.holding == 0
    }
}

/// What kind of DLLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DllpKind {
    /// `Ack`.
    Ack,
    /// `UpdateFC` of posted requests.
    UpdatePosted,
    /// `UpdateFC` of non-posted requests.
    UpdateNonPosted,
    /// `UpdateFC` of completions.
    UpdateCompletion,
}

impl DllpKind {
    /// How many kinds there are.
    const COUNT: usize = 4;

    /// That which returns credits of a class.
    #[must_use]
    pub const fn update(class: FlowClass) -> DllpKind {
        match class {
            FlowClass::Posted => DllpKind::UpdatePosted,
            FlowClass::NonPosted => DllpKind::UpdateNonPosted,
            FlowClass::Completion => DllpKind::UpdateCompletion,
        }
    }
}

/// A DLLP that has not gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owed {
    kind: DllpKind,
    from: Ticks,
    until: Ticks,
}

/// DLLPs that go before a TLP.
struct Gone {
    /// When the TLP goes.
    start: Ticks,
    /// When the last of them is over.
    busy: Ticks,
    /// When the last of each kind goes.
    last: [Option<Ticks>; DllpKind::COUNT],
    count: u64,
}

/// Who goes next.
#[derive(Clone, Copy, Debug)]
struct Choice {
    input: usize,
    class: usize,
    ready: Ticks,
    covered: (Ticks, Option<Cause>),
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitter {
    spec: Spec,
    /// Time of one DW on the line.
    dw: Ticks,
    /// DWs around header and payload of a TLP, and those of a DLLP.
    framing_dw: u64,
    dllp: Ticks,
    inputs: Vec<Input>,
    /// The inputs that have something to send, ascending.
    active: Vec<usize>,
    queued: usize,
    /// The most data credits that a TLP took that was offered.
    most_data: u32,
    /// Who was served last of those that take turns.
    served: usize,
    left: Credits,
    /// Credits on their way back, and why they come no earlier.
    returning: Wire<(Cost, Cause)>,
    /// DLLPs that are owed and have not gone, by the time from which they can.
    owed: VecDeque<Owed>,
    busy_until: Ticks,
    /// Counted since the last reset.
    pub crossed: Crossed,
}

impl Transmitter {
    /// An idle transmitter with all its credits.
    #[must_use]
    pub fn new(spec: Spec) -> Transmitter {
        let dw = dw_ticks(spec.generation, spec.lanes);
        let rate = spec.generation.rate();
        Transmitter {
            dw,
            framing_dw: u64::from(rate.framing_bytes / 4),
            dllp: dw * u64::from(rate.dllp_bytes / 4),
            inputs: vec![Input::default(); spec.inputs],
            active: Vec::with_capacity(spec.inputs),
            queued: 0,
            most_data: 0,
            served: spec.inputs.saturating_sub(1),
            left: spec.credits,
            spec,
            returning: Wire::default(),
            owed: VecDeque::new(),
            busy_until: Ticks::ZERO,
            crossed: Crossed::default(),
        }
    }

    /// Queues a TLP of this input that may go from `at` on, but not before those of it that already wait. Says whether
    /// it may go before all others, so that [`Transmitter::due`] is another.
    #[inline]
    pub fn offer(&mut self, input: usize, at: Ticks, tlp: Tlp) -> bool {
        let goes_behind = self.inputs[input].holding == 1 << tlp.kind.class() as u8;
        self.queued += 1;
        self.most_data = self.most_data.max(Cost::of(&tlp).data);
        if self.inputs[input].is_empty() {
            let place = self.active.partition_point(|other| *other < input);
            self.active.insert(place, input);
        }
        self.inputs[input].offer(at, tlp);
        !goes_behind
    }

    /// TLPs that have not started to go.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// TLPs of one input that have not started to go.
    #[inline]
    #[must_use]
    pub fn queued_of(&self, input: usize) -> usize {
        self.inputs[input].queues.iter().map(Wire::len).sum()
    }

    /// When the next waiting TLP can go, as far as is known now and no DLLP goes before it, which
    /// [`Transmitter::send`] sees to; if none waits, when the last credit is back.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ticks {
        if self.queued == 0 {
            return if self.returning.is_empty() { Ticks::NEVER } else { self.returning.last_due() };
        }
        let mut first = Ticks::NEVER;
        for input in &self.active {
            for (_, _, ready, tlp) in self.inputs[*input].heads() {
                first = first.min(ready.max(self.covered_at(Cost::of(tlp)).0));
            }
        }
        first.max(self.busy_until)
    }

    /// The DLLPs that go before a TLP that could go at `start`: those that find the line free before it, and those that
    /// can wait no longer.
    fn dllps_before(&self, start: Ticks) -> Gone {
        let mut gone = Gone { start, busy: self.busy_until, last: [None; DllpKind::COUNT], count: 0 };
        for owed in &self.owed {
            if owed.from > gone.start {
                break;
            }
            let last = &mut gone.last[owed.kind as usize];
            if last.is_some_and(|last| owed.from <= last) {
                continue;
            }
            let at = owed.from.max(gone.busy);
            if at < gone.start || owed.until <= gone.start {
                *last = Some(at);
                gone.busy = at + self.dllp;
                gone.start = gone.start.max(gone.busy);
                gone.count += 1;
            }
        }
        gone
    }

    /// When there are credits for `cost` and why no earlier; never, while too few of them are on their way back.
    #[inline]
    fn covered_at(&self, cost: Cost) -> (Ticks, Option<Cause>) {
        let mut have = self.left.0[cost.class as usize];
        if have.covers(cost) {
            return (Ticks::ZERO, None);
        }
        for (at, (back, because)) in self.returning.iter().filter(|(_, (back, _))| back.class == cost.class) {
            have.header += 1;
            have.data += back.data;
            if have.covers(cost) {
                return (*at, Some(*because));
            }
        }
        (Ticks::NEVER, None)
    }

    /// Whose TLP goes at `now`: those of the first inputs before all others, which take turns; of one input the oldest
    /// that may go.
    #[inline]
    fn choose(&self, now: Ticks) -> Option<Choice> {
        let active = self.active.as_slice();
        let (first, others) = active.split_at(active.partition_point(|input| *input < self.spec.first_served));
        let (served, next) = others.split_at(others.partition_point(|input| *input <= self.served));
        first.iter().chain(next).chain(served).find_map(|input| {
            let input = *input;
            let mut oldest: Option<(u64, Choice)> = None;
            for (class, order, ready, tlp) in self.inputs[input].heads() {
                if ready > now || oldest.as_ref().is_some_and(|(other, _)| *other < order) {
                    continue;
                }
                let covered = self.covered_at(Cost::of(tlp));
                if covered.0 <= now {
                    oldest = Some((order, Choice { input, class, ready, covered }));
                }
            }
            oldest.map(|(_, choice)| choice)
        })
    }

    /// Sends the TLP whose turn it is, if one can go; if DLLPs go before it, they do, and it goes later.
    #[inline]
    pub fn send(&mut self, now: Ticks) -> Option<Sent> {
        let choice = if self.queued > 0 && self.busy_until <= now { self.choose(now) } else { None };
        if choice.is_some() {
            self.settle_dllps(now);
        }
        let choice = choice.filter(|_| self.busy_until <= now);
        while let Some((back, _)) = self.returning.take(now) {
            let pool = &mut self.left.0[back.class as usize];
            pool.header += 1;
            pool.data += back.data;
        }
        let Choice { input, class, ready, covered } = choice?;
        let tlp = self.inputs[input].take(class, now)?;
        self.queued -= 1;
        if self.inputs[input].is_empty() {
            self.active.retain(|other| *other != input);
        }
        if input >= self.spec.first_served {
            self.served = input;
        }
        let cost = Cost::of(&tlp);
        let pool = &mut self.left.0[class];
        pool.header -= 1;
        pool.data -= cost.data;
        let because = match covered {
            (at, Some(cause)) if at > ready.max(self.busy_until) => Some(cause),
            _ if self.busy_until > ready => Some(Cause::LinkBusy),
            _ => None,
        };
        let header_dw = self.framing_dw + u64::from(tlp.header_dw());
        let all_dw = header_dw + u64::from(tlp.payload_bytes() / 4);
        self.busy_until = now + self.dw * all_dw.next_multiple_of(self.spec.start_dw);
        self.count(&tlp, all_dw * 4);
        Some(Sent {
            tlp,
            input,
            header_arrives: now + self.dw * header_dw + self.spec.latency,
            arrives: now + self.dw * all_dw + self.spec.latency,
            because,
        })
    }

    #[inline]
    fn count(&mut self, tlp: &Tlp, wire_bytes: u64) {
        match tlp.kind {
            TlpKind::MWr => self.crossed.writes += 1,
            TlpKind::MRd => self.crossed.reads += 1,
            TlpKind::CplD | TlpKind::Cpl => self.crossed.completions += 1,
        }
        self.crossed.payload_bytes += u64::from(tlp.payload_bytes());
        self.crossed.wire_bytes += wire_bytes;
    }

    /// The receiver gives back credits at `now`; `because` says why it did so no earlier. Says whether somebody may
    /// wait for them, or for all of them to be back, so that [`Transmitter::due`] is another.
    #[inline]
    pub fn give_back(&mut self, now: Ticks, back: Cost, because: Cause) -> bool {
        self.returning.send(now + self.spec.latency, (back, because));
        self.queued == 0 || !self.left.0[back.class as usize].covers(Cost { data: self.most_data, ..back })
    }

    /// A DLLP of this kind can go from `from` on and must go before a TLP from `until` on: an acknowledgment or credits of
    /// the other direction.
    #[inline]
    pub fn owe(&mut self, now: Ticks, kind: DllpKind, from: Ticks, until: Ticks) {
        self.settle_dllps(now);
        let place = self.owed.iter().rposition(|other| other.from <= from).map_or(0, |place| place + 1);
        self.owed.insert(place, Owed { kind, from, until });
    }

    /// Puts every DLLP on the line that goes before a TLP at `start`.
    #[inline]
    fn settle_dllps(&mut self, start: Ticks) {
        if self.owed.is_empty() {
            return;
        }
        let gone = self.dllps_before(start);
        if gone.count > 0 {
            self.busy_until = gone.busy;
            self.crossed.dllps += gone.count;
            self.owed.retain(|owed| gone.last[owed.kind as usize].is_none_or(|last| owed.from > last));
        }
    }

    /// How long a TLP takes here, from its first bit to its last.
    #[inline]
    #[must_use]
    pub fn time_of(&self, tlp: &Tlp) -> Ticks {
        self.dw * (self.framing_dw + u64::from(tlp.header_dw()) + u64::from(tlp.payload_bytes() / 4))
    }

    /// Credits the receiver advertised.
    #[inline]
    #[must_use]
    pub fn credits(&self) -> &Credits {
        &self.spec.credits
    }

    /// Credits not in use at `now`.
    #[must_use]
    pub fn credits_left(&self, now: Ticks) -> Credits {
        let mut left = self.left;
        for (_, (back, _)) in self.returning.iter().filter(|(at, _)| *at <= now) {
            left.0[back.class as usize].header += 1;
            left.0[back.class as usize].data += back.data;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tlp::span;
    use lanemark_wire::tlp_wire_bytes;

    fn write(len: u64) -> Tlp {
        let (address, length_dw, first_be, last_be) = span(0x1_0000_0000, len);
        Tlp { address, length_dw, first_be, last_be, ..Tlp::of(TlpKind::MWr) }
    }

    /// Posted credits and one non-posted one; two inputs that take turns.
    fn credits(header: u32, data: u32) -> Credits {
        Credits([Pool { header, data }, Pool { header: 1, data: 1 }, Pool::INFINITE])
    }

    fn spec(latency: Ticks, credits: Credits) -> Spec {
        let lanes = Lanes::new(8).unwrap();
        Spec { generation: Generation::Gen2, lanes, latency, credits, start_dw: 1, inputs: 2, first_served: 0 }
    }

    fn link(posted_header: u32, posted_data: u32) -> Transmitter {
        Transmitter::new(spec(Ticks::whole_ns(100), credits(posted_header, posted_data)))
    }

    #[test]
    fn a_64_byte_write_takes_22_ns_of_a_gen2_x8_link() {
        let mut link = link(8, 32);
        link.offer(0, Ticks::ZERO, write(64));
        // 64 B + 16 B header + 8 B framing = 88 B at 4 GB/s, then the latency.
        assert_eq!(link.send(Ticks::ZERO).unwrap().arrives, Ticks::whole_ns(122));
    }

    #[test]
    fn the_last_header_credit_lets_a_write_go_and_none_holds_the_next() {
        let mut link = link(1, 32);
        link.offer(0, Ticks::ZERO, write(64));
        link.offer(0, Ticks::ZERO, write(64));
        assert_eq!(link.due(), Ticks::ZERO);
        assert!(link.send(Ticks::ZERO).is_some());
        assert_eq!(link.due(), Ticks::NEVER);
        assert_eq!(link.send(Ticks::whole_ns(500)), None);
        link.give_back(Ticks::whole_ns(500), Cost::of(&write(64)), Cause::Device);
        assert_eq!(link.due(), Ticks::whole_ns(600), "the credit needs the link's latency");
        assert_eq!(link.send(Ticks(link.due().0 - 1)), None);
        assert!(link.send(Ticks::whole_ns(600)).is_some());
    }

    #[test]
    fn data_credits_are_counted_in_units_of_16_bytes() {
        let mut link = link(8, 4);
        link.offer(0, Ticks::ZERO, write(64));
        assert_eq!(link.due(), Ticks::ZERO);
        let mut short = self::link(8, 3);
        short.offer(0, Ticks::ZERO, write(64));
        assert_eq!(short.due(), Ticks::NEVER);
        assert_eq!(Cost::of(&write(1)).data, 1);
        assert_eq!(Cost::of(&write(17)).data, 2);
    }

    #[test]
    fn a_wait_is_charged_to_what_became_ready_last() {
        let mut link = link(1, 32);
        for _ in 0..2 {
            link.offer(0, Ticks::ZERO, write(64));
        }
        assert_eq!(link.send(Ticks::ZERO).unwrap().because, None);
        link.give_back(Ticks::ZERO, Cost::of(&write(64)), Cause::Device);
        assert_eq!(link.send(link.due()).unwrap().because, Some(Cause::Device), "credits after the line was free");
        let mut link = self::link(9, 32);
        for _ in 0..2 {
            link.offer(0, Ticks::ZERO, write(64));
        }
        link.send(Ticks::ZERO);
        assert_eq!(link.send(link.due()).unwrap().because, Some(Cause::LinkBusy));
    }

    #[test]
    fn an_offer_with_an_earlier_time_goes_behind_what_waits() {
        let mut link = link(9, 32);
        link.offer(0, Ticks::whole_ns(50), write(64));
        link.offer(0, Ticks::ZERO, write(4));
        assert_eq!(link.send(link.due()).unwrap().tlp.length_dw, 16);
        assert_eq!(link.send(link.due()).unwrap().tlp.length_dw, 1);
    }

    /// A link that counts every credit when it arrives, tick by tick.
    fn eager(posted: Pool, offers: &[(u64, u64)], hold: u64, latency: u64) -> Vec<(u64, Option<Cause>)> {
        let (mut left, mut busy, mut gone) = (posted, 0, Vec::new());
        let mut back: Vec<(u64, Cost)> = Vec::new();
        let mut credited = (0, false);
        for now in 0.. {
            let Some((ready, len)) = offers.get(gone.len()).copied() else { break };
            let needed = Cost::of(&write(len));
            while back.first().is_some_and(|first| first.0 <= now) {
                credited = (now, !left.covers(needed));
                left.header += 1;
                left.data += back.remove(0).1.data;
            }
            if now < ready || now < busy || !left.covers(needed) {
                continue;
            }
            let because = match credited {
                (at, true) if at > ready.max(busy) => Some(Cause::Device),
                _ if busy > ready => Some(Cause::LinkBusy),
                _ => None,
            };
            credited.1 = false;
            left.header -= 1;
            left.data -= needed.data;
            busy = now + u64::from(tlp_wire_bytes(Generation::Gen2, 4, len as u32, false)) / 4;
            back.push((busy + latency + hold + latency, needed));
            gone.push((now, because));
        }
        gone
    }

    #[test]
    fn counting_credits_lazily_gives_the_times_and_causes_of_counting_them_as_they_arrive() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let posted = Pool { header: 1 + random(4) as u32, data: 4 + random(12) as u32 };
            let (hold, latency) = (random(60), random(40));
            let mut at = 0;
            let offers: Vec<(u64, u64)> = (0..30)
                .map(|_| {
                    at += random(40);
                    (at, [4, 16, 32, 64][random(4) as usize])
                })
                .collect();
            let mut lazy = Transmitter::new(spec(Ticks(latency), credits(posted.header, posted.data)));
            lazy.dw = Ticks(1);
            let mut gone = Vec::new();
            let (mut next, mut accepting) = (0, std::collections::VecDeque::new());
            while gone.len() < offers.len() {
                let offer = offers.get(next).map_or(Ticks::NEVER, |offer| Ticks(offer.0));
                let accept = accepting.front().map_or(Ticks::NEVER, |first: &(Ticks, Cost)| first.0);
                let send = lazy.due();
                if offer <= accept && offer <= send {
                    lazy.offer(0, offer, write(offers[next].1));
                    next += 1;
                } else if accept <= send {
                    lazy.give_back(accept, accepting.pop_front().unwrap().1, Cause::Device);
                } else if let Some(sent) = lazy.send(send) {
                    gone.push((send.0, sent.because));
                    accepting.push_back((sent.arrives + Ticks(hold), Cost::of(&sent.tlp)));
                }
            }
            assert_eq!(gone, eager(posted, &offers, hold, latency));
        }
    }
}
