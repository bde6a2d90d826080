//! One direction of a link: arbitrates between senders, serialises TLPs, tracks flow-control credits, and delivers
//! TLPs after a latency.
//!
//! Ports: [`Transmitter::offer`] queues a TLP of a sender, which is an [input](Spec::inputs).
//! [`Transmitter::send_as`] sends a TLP and returns its arrival time. [`Transmitter::free`] frees space at the
//! receiver, whose credits arrive a link latency later. [`Transmitter::schedule_dllp`] schedules the DLLPs that the other
//! direction causes: they are sent on an idle line, and precede a TLP only at their latency limit. A DLLP covers all
//! of its kind that are scheduled when it is sent.
//!
//! Queued TLPs follow the ordering table of the specification ([`lanemark_wire::may_pass`]): no read and no
//! completion passes an earlier posted request, even of another sender. The first inputs may have priority, in their
//! order; the others are served round-robin, so posted requests of two inputs are not ordered. [`Ordering`] chooses
//! where the table permits both.
//!
//! Returned credits are added when the next TLP is sent. DLLPs are processed with the next TLP, when a sender stalls
//! for one, or when many are scheduled. A test compares this with a link that adds each credit on arrival.
//!
//! A corrupted TLP is replayed when the receiver's `Nak` arrives or, if that is corrupted too, when `REPLAY_TIMER`
//! expires. Until then the line carries no valid TLP; then a TLP is chosen anew. At 64 GT/s no TLP is corrupted,
//! because FLITs have forward error correction, and the replay buffer is infinite.
//!
//! Recorded stall causes: `LinkBusy` while the line is sending, `Credit` or `Device` when credits arrive last, and
//! `Replay` when the `Ack` of older TLPs arrives last or the TLP is a replay.

use crate::critical_path::Milestone;
use crate::fabric::credit::{Account, Cost, Covered, Credits, Pool};
use crate::fabric::dllp::{self, DllpKind, Dllps, DllpsBefore, Gone, Skp, Watch};
use crate::fabric::input::{Input, Waiting};
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::Queue;
use lanemark_machine::{Cause, CreditsLeft};
use lanemark_platform::OrderingChoice;
use lanemark_units::Ticks;
use lanemark_wire::flit::FlitLine;
use lanemark_wire::{FlowClass, Generation, Lanes, dw_ticks};

mod steady;

/// Number of queued TLPs of each class that a port examines.
const LOOKAHEAD: usize = 8;

/// Number of replays of a TLP before link retraining: `REPLAY_NUM` has two bits.
///
/// Source: PCI Express Base Specification 5.0, section 3.6.2.1.
const MOST_REPLAYS: u8 = 3;

/// Minimum number of ordered sets of 16 symbols that each side sends in Recovery: 8 TS1, then 16 TS2 after the first
/// one received. Two round trips are added. The lock time of receivers is not modelled.
///
/// Source: PCI Express Base Specification 5.0, section 4.2.6.4.
const TRAINING_SETS: u64 = 24;

/// Constants of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Data rate.
    pub generation: Generation,
    /// Link width.
    pub lanes: Lanes,
    /// From the last bit sent to the TLP checked at the other end, including retimers.
    pub latency: Ticks,
    /// Latency of the opposite direction, from a DLLP sent there to its effect here.
    pub latency_back: Ticks,
    /// Credits that the receiver advertised at initialisation.
    pub credits: Credits,
    /// Alignment of the start of a TLP in DWs, a power of two.
    pub start_dw: u64,
    /// The same behind a completion.
    pub completion_start_dw: u64,
    /// Length of each pause that a TLP requests before it.
    pub pause: Ticks,
    /// Latency limit of `Ack` and `UpdateFC` of the other direction.
    pub ack_latency_limit: Ticks,
    /// `Max_Payload_Size`.
    pub mps_bytes: u32,
    /// Capacity of the replay buffer, in TLPs.
    pub replay_tlps: u32,
    /// Ordering where the table permits both.
    pub ordering: OrderingChoice,
    /// SKP ordered sets, if they are simulated.
    pub skp: Option<Skp>,
    /// One in this many TLPs is corrupted, at random; 0 for none.
    pub tlps_per_error: u64,
    /// Number of link and direction, which seeds its random numbers.
    pub number: u64,
    /// Number of inputs.
    pub inputs: usize,
    /// Number of inputs with strict priority, from the first on.
    pub first_served: usize,
}

/// Traffic counters of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Crossed {
    /// Memory writes.
    pub writes: u64,
    /// Memory reads.
    pub reads: u64,
    /// Completions.
    pub completions: u64,
    /// Payload bytes.
    pub payload_bytes: u64,
    /// Bytes on the line, with headers and framing.
    pub wire_bytes: u64,
    /// DLLPs that took line time for which a TLP could have waited.
    pub dllps: u64,
    /// Corrupted TLPs that were replayed.
    pub replays: u64,
    /// Replays after an expired `REPLAY_TIMER`.
    pub replay_timeouts: u64,
    /// Link retrainings after `REPLAY_NUM` rolled over.
    pub rollovers: u64,
}

impl Crossed {
    fn counts(&mut self) -> [&mut u64; 9] {
        let Crossed {
            writes,
            reads,
            completions,
            payload_bytes,
            wire_bytes,
            dllps,
            replays,
            replay_timeouts,
            rollovers,
        } = self;
        [writes, reads, completions, payload_bytes, wire_bytes, dllps, replays, replay_timeouts, rollovers]
    }

    /// Adds `other` to every counter.
    pub(crate) fn add(&mut self, mut other: Crossed) {
        self.counts().into_iter().zip(other.counts()).for_each(|(count, other)| *count += *other);
    }

    /// Counters accumulated since `before`.
    pub(crate) fn since(mut self, mut before: Crossed) -> Crossed {
        self.counts().into_iter().zip(before.counts()).for_each(|(count, before)| *count -= *before);
        self
    }

    /// Multiplies every counter by `times`.
    pub(crate) fn times(mut self, times: u64) -> Crossed {
        self.counts().into_iter().for_each(|count| *count *= times);
        self
    }
}

/// A TLP that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The TLP.
    pub tlp: Tlp,
    /// Its input.
    pub input: usize,
    /// Its ready time.
    pub ready: Ticks,
    /// Time at which it begins on the line, after the pauses before it.
    pub begins: Ticks,
    /// Time at which its header has arrived, which is enough for a cut-through switch.
    pub header_arrives: Ticks,
    /// Time at which it has been checked at the other end.
    pub arrives: Ticks,
    /// Its last stall cause, if it stalled.
    pub because: Option<Cause>,
    /// The event that ended that stall.
    pub waited_for: WaitedFor,
}

/// The constraint that ended last before a TLP was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// Nothing: it was ready last.
    Itself,
    /// The line, after the departure of the packet before.
    Line(Milestone),
    /// DLLPs on the line, which was free of TLPs when the TLP was ready at this time.
    Dllps(Ticks),
    /// Credits, freed by the receiver.
    Credits(Milestone),
    /// A slot of the replay buffer, acknowledged by the receiver.
    Acknowledgment(Milestone),
}

impl Sent {
    /// An empty slot.
    pub const INVALID: Sent = Sent {
        tlp: Tlp::of(TlpKind::MWr),
        input: 0,
        ready: Ticks::ZERO,
        begins: Ticks::ZERO,
        header_arrives: Ticks::ZERO,
        arrives: Ticks::ZERO,
        because: None,
        waited_for: WaitedFor::Itself,
    };
}

/// The TLP chosen to be sent.
#[derive(Clone, Copy, Debug)]
struct Choice {
    input: usize,
    class: usize,
    place: usize,
    ready: Ticks,
    covered: Covered,
}

/// A TLP that may pass every earlier one.
#[derive(Clone, Copy, Debug)]
struct PassingTlp {
    choice: Choice,
    order: u64,
    goes_at: Ticks,
}

/// When the next TLP can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The time as far as is known now, before DLLPs, which [`Transmitter::send_as`] accounts for.
    pub at: Ticks,
    /// Whether a TLP stalls for a DLLP that has not been sent.
    pub awaits_dllp: bool,
}

/// State of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitter {
    spec: Spec,
    /// Line time of a DW.
    dw: Ticks,
    /// Positions of DWs in FLITs, whose DLLPs take no line time of TLPs.
    flits: Option<FlitLine>,
    /// Framing of a TLP, in DWs.
    framing_dw: u64,
    /// Alignment of TLP starts in DWs, less one.
    slots: u64,
    completion_slots: u64,
    /// Queued TLPs, if all are of one input and one class and are sent in order, with their ready times; and that
    /// input and class. Otherwise they are in `inputs`.
    lane: Queue<(Ticks, Tlp)>,
    lane_of: (usize, FlowClass),
    /// Whether TLPs may be sent in order without a choice: none is corrupted or reordered at random.
    has_lane: bool,
    inputs: Vec<Input>,
    /// Inputs with queued TLPs outside the lane, ascending.
    active: Vec<usize>,
    queued: usize,
    /// Number of queued TLPs with Relaxed or ID-Based Ordering.
    free: usize,
    /// Number of TLPs queued since construction.
    offered: u64,
    /// The round-robin input served last.
    served: usize,
    account: Account,
    dllps: Dllps,
    busy_until: Ticks,
    /// Begin and end of the last TLP on the line.
    tlp_from: Ticks,
    tlp_until: Ticks,
    /// Departure of the last TLP.
    departed: Milestone,
    /// After a corrupted TLP: when it can be replayed, if that is known.
    again_at: Option<Ticks>,
    /// Time at which the receiver detected the corrupted TLP, until it is taken.
    damaged_at: Option<Ticks>,
    /// Consecutive replays: `REPLAY_NUM`, and 4 when it rolls over.
    replay_num: u8,
    /// End of link retraining, until it is taken.
    trains_until: Option<Ticks>,
    /// The last corrupted TLP, until it is taken.
    pub damaged: Option<Sent>,
    /// Number of TLPs sent, with corrupted ones.
    tried: u64,
    /// Counters since the last reset.
    pub crossed: Crossed,
}

impl Transmitter {
    /// Creates an idle transmitter with all of its credits.
    #[must_use]
    pub fn new(spec: Spec) -> Transmitter {
        let dw = dw_ticks(spec.generation, spec.lanes);
        let rate = spec.generation.rate();
        Transmitter {
            dw,
            flits: (spec.generation == Generation::Gen6).then(|| FlitLine::new(spec.lanes)),
            framing_dw: u64::from(rate.framing_bytes / 4),
            slots: spec.start_dw.next_power_of_two() - 1,
            completion_slots: spec.completion_start_dw.next_power_of_two() - 1,
            dllps: Dllps::new(dllp::Spec {
                ack_latency_limit: spec.ack_latency_limit,
                time: dw * u64::from(rate.dllp_bytes / 4),
                latency: spec.latency,
                needs_acks: spec.replay_tlps < Pool::INFINITE.header,
                skp: spec.skp,
            }),
            lane: Queue::default(),
            lane_of: (0, FlowClass::Posted),
            has_lane: spec.tlps_per_error == 0 && spec.ordering != OrderingChoice::Random,
            inputs: vec![Input::default(); spec.inputs],
            active: Vec::with_capacity(spec.inputs),
            queued: 0,
            free: 0,
            offered: 0,
            served: spec.inputs.saturating_sub(1),
            account: Account::new(&spec.credits, spec.replay_tlps),
            spec,
            busy_until: Ticks::ZERO,
            tlp_from: Ticks::ZERO,
            tlp_until: Ticks::ZERO,
            departed: Milestone::NONE,
            again_at: None,
            damaged_at: None,
            replay_num: 0,
            trains_until: None,
            damaged: None,
            tried: 0,
            crossed: Crossed::default(),
        }
    }

    /// Queues a TLP of an input that is ready at `at`, but not before those already queued there. Returns false if it
    /// cannot precede the queued TLPs, so that [`Transmitter::due`] is unchanged.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    pub fn offer(&mut self, input: usize, at: Ticks, tlp: Tlp) -> bool {
        let class = tlp.kind.class();
        let is_first = self.queued == 0;
        self.queued += 1;
        self.offered += 1;
        let queue = &mut self.inputs[input];
        let joins = if is_first { self.has_lane } else { !self.lane.is_empty() && self.lane_of == (input, class) };
        if joins && !tlp.is_free() {
            self.lane_of = (input, class);
            self.lane.push((queue.ready(at), tlp));
            return is_first;
        }
        self.offer_apart(input, at, tlp)
    }

    /// Queues a TLP outside the lane, as [`Transmitter::offer`].
    #[inline(never)]
    fn offer_apart(&mut self, input: usize, at: Ticks, tlp: Tlp) -> bool {
        self.leave_lane(1);
        self.free += usize::from(tlp.is_free());
        let queue = &mut self.inputs[input];
        let (is_first, is_like_others) = (queue.is_empty(), queue.holds_only(tlp.kind.class()));
        queue.offer(at, self.offered, tlp);
        if is_first {
            self.activate(input);
        }
        !(is_like_others && self.is_in_order())
    }

    /// Moves the TLPs of the lane to their input; `later` is the number of TLPs offered after them.
    fn leave_lane(&mut self, later: u64) {
        let (input, _) = self.lane_of;
        let mut order = self.offered - later - self.lane.len() as u64;
        if !self.lane.is_empty() {
            self.activate(input);
        }
        while let Some((ready, tlp)) = self.lane.pop() {
            order += 1;
            self.inputs[input].put(ready, order, tlp);
        }
    }

    /// Marks an input as having queued TLPs.
    #[inline]
    fn activate(&mut self, input: usize) {
        if self.active.is_empty() {
            return self.active.push(input);
        }
        let place = self.active.partition_point(|other| *other < input);
        self.active.insert(place, input);
    }

    /// Returns the only TLP that may be sent next: the first of the only active input, if its TLPs are of one class
    /// and none may pass another.
    #[inline]
    fn only_head(&self) -> Option<(usize, Waiting<'_>)> {
        let &[only] = self.active.as_slice() else { return None };
        if !self.is_in_order() {
            return None;
        }
        Some((only, self.inputs[only].only_head()?))
    }

    /// Returns whether TLPs of one class and one input are sent in order.
    #[inline]
    fn is_in_order(&self) -> bool {
        match self.spec.ordering {
            OrderingChoice::Never => true,
            OrderingChoice::Blocked => self.free == 0,
            OrderingChoice::Random => false,
        }
    }

    /// Returns the number of queued TLPs.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Returns when the next queued TLP can be sent.
    #[allow(clippy::inline_always)] // For every TLP, several times.
    #[inline(always)]
    #[must_use]
    pub fn due(&self, now: Ticks) -> Due {
        if let Some((ready, tlp)) = self.lane.first() {
            let at = self.account.covered_at(Cost::of(tlp)).at;
            return self.due_at(now, (*ready).max(at), at == Ticks::NEVER);
        }
        if self.queued == 0 {
            return Due { at: Ticks::NEVER, awaits_dllp: false };
        }
        self.due_apart(now)
    }

    /// Returns when the next TLP outside the lane can be sent.
    #[inline(never)]
    fn due_apart(&self, now: Ticks) -> Due {
        if let Some(again_at) = self.again_at {
            return Due { at: again_at.max(self.busy_until), awaits_dllp: again_at == Ticks::NEVER };
        }
        if let Some((_, head)) = self.only_head() {
            let at = self.account.covered_at(Cost::of(head.tlp)).at;
            return self.due_at(now, head.ready.max(at), at == Ticks::NEVER);
        }
        let (mut first, mut awaits_dllp) = (Ticks::NEVER, false);
        for number in &self.active {
            let input = &self.inputs[*number];
            let mut look = |head: Waiting<'_>| {
                if self.is_ordered(&head) {
                    let covered = self.account.covered_at(Cost::of(head.tlp));
                    awaits_dllp |= covered.at == Ticks::NEVER;
                    first = first.min(head.ready.max(covered.at));
                }
            };
            match input.only_head() {
                Some(head) => look(head),
                None => input.heads().for_each(&mut look),
            }
        }
        if self.looks_behind_heads() {
            let others = self.active.iter().flat_map(|input| self.passing_of(*input));
            for other in others {
                awaits_dllp |= other.goes_at == Ticks::NEVER;
                first = first.min(other.goes_at);
            }
        }
        self.due_at(now, first, awaits_dllp)
    }

    /// Returns the due time of a TLP that can start at `at`. DLLPs that can be sent only after now are ignored,
    /// because another one may be scheduled before them.
    #[inline]
    fn due_at(&self, now: Ticks, at: Ticks, awaits_dllp: bool) -> Due {
        let at = at.max(self.busy_until);
        Due { at: self.dllps.first_behind(now, at, self.busy_until), awaits_dllp }
    }

    /// Returns whether the first TLP of a class may pass every earlier TLP by the table.
    #[inline]
    fn is_ordered(&self, head: &Waiting<'_>) -> bool {
        head.class == FlowClass::Posted as usize
            || self.active.iter().all(|input| {
                let input = &self.inputs[*input];
                !input.has_posted_before(head)
                    || self.spec.ordering != OrderingChoice::Never && head.tlp.is_free() && input.lets_pass_posted(head)
            })
    }

    /// Returns whether TLPs behind the first of a class may be sent.
    #[inline]
    fn looks_behind_heads(&self) -> bool {
        match self.spec.ordering {
            OrderingChoice::Never => false,
            OrderingChoice::Blocked => self.free > 0,
            OrderingChoice::Random => true,
        }
    }

    /// Returns the TLPs of an input that may pass every earlier one, with their position in the order.
    fn passing_of(&self, number: usize) -> impl Iterator<Item = PassingTlp> {
        let others = move |waiting: &Waiting<'_>| {
            let mut others = self.active.iter().filter(move |other| **other != number);
            waiting.class == FlowClass::Posted as usize
                || others.all(|other| self.inputs[*other].lets_pass_posted(waiting))
        };
        let input = &self.inputs[number];
        input.first_of_each(LOOKAHEAD).filter(move |waiting| input.lets_pass_all(waiting) && others(waiting)).map(
            move |waiting| {
                let Waiting { class, place, order, ready, tlp } = waiting;
                let covered = self.account.covered_at(Cost::of(tlp));
                let goes_at = ready.max(covered.at);
                PassingTlp { choice: Choice { input: number, class, place, ready, covered }, order, goes_at }
            },
        )
    }

    /// Chooses the TLP to be sent at `now`: inputs with priority first, then the others round-robin; of an input, the
    /// oldest TLP that may be sent.
    #[inline]
    fn choose(&self, now: Ticks) -> Option<Choice> {
        if let Some((input, Waiting { class, place, ready, tlp, .. })) = self.only_head() {
            let covered = self.account.covered_at(Cost::of(tlp));
            let goes = ready <= now && covered.at <= now;
            return goes.then_some(Choice { input, class, place, ready, covered });
        }
        if self.spec.ordering == OrderingChoice::Random {
            return self.choose_any(now);
        }
        let choice = match self.active.as_slice() {
            [] => return None,
            [only] => self.choose_of(*only, now),
            _ => self.turns().find_map(|input| self.choose_of(input, now)),
        };
        if choice.is_some() || !self.looks_behind_heads() {
            return choice;
        }
        self.turns().find_map(|number| {
            let going = self.passing_of(number).filter(|other| other.goes_at <= now);
            going.min_by_key(|other| other.order).map(|other| other.choice)
        })
    }

    /// Returns the active inputs in arbitration order.
    #[inline]
    fn turns(&self) -> impl Iterator<Item = usize> {
        let active = self.active.as_slice();
        let (first, others) = active.split_at(active.partition_point(|input| *input < self.spec.first_served));
        let (served, next) = others.split_at(others.partition_point(|input| *input <= self.served));
        first.iter().chain(next).chain(served).copied()
    }

    /// Returns the oldest TLP of an input that may be sent at `now`, of the first of each class.
    #[inline]
    fn choose_of(&self, number: usize, now: Ticks) -> Option<Choice> {
        let input = &self.inputs[number];
        let may_go = |head: Waiting<'_>| {
            let covered = self.account.covered_at(Cost::of(head.tlp));
            let goes = head.ready <= now && self.is_ordered(&head) && covered.at <= now;
            goes.then_some(Choice { input: number, class: head.class, place: head.place, ready: head.ready, covered })
        };
        if let Some(head) = input.only_head() {
            return may_go(head);
        }
        let heads = input.heads().filter_map(|head| Some((head.order, may_go(head)?)));
        heads.min_by_key(|(order, _)| *order).map(|(_, choice)| choice)
    }

    /// Returns any TLP that may be sent at `now`.
    fn choose_any(&self, now: Ticks) -> Option<Choice> {
        let all = || {
            let all = self.active.iter().flat_map(|input| self.passing_of(*input));
            all.filter(|other| other.goes_at <= now)
        };
        let count = all().count() as u64;
        let drawn = mixed(self.spec.number << 48 ^ self.offered << 16 ^ self.queued as u64).checked_rem(count)?;
        all().nth(drawn as usize).map(|other| other.choice)
    }

    /// Sends a TLP like [`Transmitter::send_as`], and returns it.
    #[cfg(test)]
    pub fn send(&mut self, now: Ticks) -> Option<Sent> {
        let mut sent = Sent::INVALID;
        self.send_as(now, None, &mut sent).then_some(sent)
    }

    /// Sends the chosen TLP, if it can be sent. If DLLPs precede it, they are sent and the TLP follows later.
    ///
    /// Returns whether a TLP was sent, and writes it to `sent`. Writing in place avoids a store-forwarding stall: a
    /// moved [`Sent`] would be written in parts and read as a whole immediately.
    /// `other` is the opposite direction, if DLLPs may be delivered to it at once.
    #[inline]
    pub fn send_as(&mut self, now: Ticks, other: Option<&mut Transmitter>, sent: &mut Sent) -> bool {
        if self.queued == 0 || self.busy_until > now || self.again_at.is_some_and(|at| at > now) {
            return false;
        }
        if !self.dllps.are_later_than(now) {
            match other {
                Some(other) if self.dllps.gone.is_empty() => self.deliver_dllps(now, other),
                _ => self.settle_dllps(now),
            }
            if self.busy_until > now {
                return false;
            }
        }
        let Some((ready, tlp)) = self.lane.first() else { return self.send_apart(now, sent) };
        let (ready, covered) = (*ready, self.account.covered_at(Cost::of(tlp)));
        if ready > now || covered.at > now {
            return false;
        }
        sent.tlp = *tlp;
        self.lane.drop_first();
        self.leave(now, self.lane_of.0, ready, covered, sent);
        true
    }

    /// Sends the chosen TLP of those outside the lane.
    #[inline(never)]
    fn send_apart(&mut self, now: Ticks, sent: &mut Sent) -> bool {
        self.choose(now).is_some_and(|choice| self.go(now, &choice, sent))
    }

    /// Sends the DLLPs that precede a TLP at `now`, and delivers them.
    #[inline]
    fn deliver_dllps(&mut self, now: Ticks, other: &mut Transmitter) {
        let before = self.dllps.before_to(now, self.busy_until, |gone| other.receive_dllp(gone));
        self.went(before);
    }

    /// Sends the chosen TLP, unless it is corrupted.
    fn go(&mut self, now: Ticks, choice: &Choice, sent: &mut Sent) -> bool {
        if self.spec.tlps_per_error > 0 && self.comes_damaged(now, choice) {
            return false;
        }
        let Choice { input, class, place, ready, covered } = *choice;
        let queue = &mut self.inputs[input];
        if !queue.take(class, place, &mut sent.tlp) {
            return false;
        }
        self.free -= usize::from(sent.tlp.is_free());
        if queue.is_empty() {
            self.active.retain(|other| *other != input);
        }
        self.leave(now, input, ready, covered, sent);
        true
    }

    /// Puts a TLP on the line that has left its queue.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
    fn leave(&mut self, now: Ticks, input: usize, ready: Ticks, covered: Covered, sent: &mut Sent) {
        self.queued -= 1;
        if input >= self.spec.first_served {
            self.served = input;
        }
        let cost = Cost::of(&sent.tlp);
        self.account.collect(now);
        self.account.take(cost);
        sent.because = self.waited_for(covered, ready);
        sent.waited_for = self.constraint(covered, sent.because, ready);
        sent.begins = self.begins(now, &sent.tlp);
        self.again_at = None;
        let (header_dw, all_dw) = self.dws(&sent.tlp);
        self.count(&sent.tlp, all_dw * 4);
        let slots = self.slots_behind(&sent.tlp);
        let (header_sent, all_sent) = self.occupy(sent.begins, header_dw, all_dw, slots);
        let latency = self.spec.latency;
        (sent.input, sent.ready) = (input, ready);
        (sent.header_arrives, sent.arrives) = (header_sent + latency, all_sent + latency);
    }

    /// Returns when a TLP that is sent now begins on the line. A replay comes from the replay buffer, without pauses.
    #[inline]
    fn begins(&self, now: Ticks, tlp: &Tlp) -> Ticks {
        if self.again_at.is_some() { now } else { now + self.spec.pause * u64::from(tlp.pauses) }
    }

    /// Returns the last stall cause of a TLP that is sent now.
    #[inline]
    fn waited_for(&self, covered: Covered, ready: Ticks) -> Option<Cause> {
        match covered {
            _ if self.again_at.is_some() => Some(Cause::Replay),
            Covered { at, because: Some(cause), .. } if at > ready.max(self.busy_until) => Some(cause),
            _ if self.busy_until > ready => Some(Cause::LinkBusy),
            _ => None,
        }
    }

    /// Returns what a TLP that is sent now waited for, by its stall cause.
    #[inline]
    fn constraint(&self, covered: Covered, because: Option<Cause>, ready: Ticks) -> WaitedFor {
        match because {
            None => WaitedFor::Itself,
            Some(Cause::Replay) if covered.because == Some(Cause::Replay) => {
                WaitedFor::Acknowledgment(covered.milestone)
            }
            Some(Cause::LinkBusy) if ready >= self.tlp_until => WaitedFor::Dllps(ready),
            Some(Cause::LinkBusy | Cause::Replay) => WaitedFor::Line(self.departed),
            Some(_) => WaitedFor::Credits(covered.milestone),
        }
    }

    /// Records the departure of the TLP just sent.
    #[inline]
    pub fn set_departed(&mut self, departed: Milestone) {
        self.departed = departed;
    }

    /// Returns the line DWs of a TLP up to the end of its header, and in total.
    #[inline]
    fn dws(&self, tlp: &Tlp) -> (u64, u64) {
        let header_dw = self.framing_dw + u64::from(tlp.header_dw());
        (header_dw, header_dw + u64::from(tlp.payload_bytes() / 4))
    }

    /// Decides whether the TLP sent now is corrupted; if so, it occupies the line and waits for its replay.
    #[cold]
    fn comes_damaged(&mut self, now: Ticks, choice: &Choice) -> bool {
        if self.replay_num > MOST_REPLAYS {
            self.enter_recovery(now);
            return true;
        }
        self.tried += 1;
        let drawn =
            |what: u64| mixed(self.spec.number << 48 ^ self.tried << 1 ^ what).is_multiple_of(self.spec.tlps_per_error);
        let (tlp_is, nak_is) = (drawn(0), drawn(1));
        if self.flits.is_some() || !tlp_is {
            self.replay_num = 0;
            return false;
        }
        let is_it = |other: &Waiting<'_>| (other.class, other.place) == (choice.class, choice.place);
        let Some(going) = self.inputs[choice.input].first_of_each(LOOKAHEAD).find(is_it) else { return false };
        let (tlp, Choice { input, ready, .. }) = (*going.tlp, *choice);
        let because = self.waited_for(choice.covered, ready);
        let (header_dw, all_dw) = self.dws(&tlp);
        let begins = self.begins(now, &tlp);
        let (header_sent, sent) = self.occupy(begins, header_dw, all_dw, self.slots_behind(&tlp));
        let [header_arrives, arrives] = [header_sent, sent].map(|at| at + self.spec.latency);
        let waited_for = self.constraint(choice.covered, because, choice.ready);
        self.damaged = Some(Sent { tlp, input, ready, begins, header_arrives, arrives, because, waited_for });
        self.replay_num += 1;
        self.crossed.replays += 1;
        self.crossed.wire_bytes += all_dw * 4;
        if nak_is {
            // Source: PCI Express Base Specification 3.0, section 3.5.2.1: three times the time of an acknowledgment.
            self.crossed.replay_timeouts += 1;
            self.again_at = Some(sent + self.spec.ack_latency_limit * 3);
        } else {
            self.again_at = Some(Ticks::NEVER);
            self.damaged_at = Some(sent + self.spec.latency);
        }
        true
    }

    /// Takes the link through Recovery before the next replay: neither direction sends meanwhile.
    fn enter_recovery(&mut self, now: Ticks) {
        let sets = dw_ticks(self.spec.generation, Lanes::X1) * (TRAINING_SETS * 4);
        let until = now + (self.spec.latency + self.spec.latency_back) * 2 + sets;
        (self.replay_num, self.busy_until, self.again_at, self.trains_until) = (0, until, Some(until), Some(until));
        self.crossed.rollovers += 1;
    }

    /// Returns the end of link retraining, once after its start.
    #[inline]
    pub fn take_training(&mut self) -> Option<Ticks> {
        self.trains_until.take()
    }

    /// Blocks the line until `until`, while the other direction retrains the link.
    pub fn pause(&mut self, until: Ticks) {
        self.busy_until = self.busy_until.max(until);
    }

    /// Returns when the receiver detected the last corrupted TLP, once.
    #[inline]
    pub fn take_damaged(&mut self) -> Option<Ticks> {
        self.damaged_at.take()
    }

    /// Returns the alignment of the start of the next TLP behind this one, in DWs less one.
    #[inline]
    fn slots_behind(&self, tlp: &Tlp) -> u64 {
        if matches!(tlp.kind, TlpKind::CplD | TlpKind::Cpl) { self.completion_slots } else { self.slots }
    }

    /// Occupies the line from `now` on, with the next TLP at a multiple of `slots` + 1 DWs; returns when the header has been sent as far as the receiver needs it, and
    /// when everything has.
    #[inline]
    fn occupy(&mut self, now: Ticks, header_dw: u64, all_dw: u64, slots: u64) -> (Ticks, Ticks) {
        let pace_dw = (all_dw + slots) & !slots;
        self.tlp_from = now;
        if let Some(line) = self.flits {
            let first = line.slot(now);
            self.busy_until = line.starts(first + pace_dw);
            self.tlp_until = self.busy_until;
            return (line.checked(first + header_dw - 1), line.checked(first + all_dw - 1));
        }
        self.busy_until = now + self.dw * pace_dw;
        self.tlp_until = now + self.dw * all_dw;
        (now + self.dw * header_dw, now + self.dw * all_dw)
    }

    #[inline]
    fn count(&mut self, tlp: &Tlp, wire_bytes: u64) {
        match tlp.kind {
            TlpKind::MWr => self.crossed.writes += 1,
            TlpKind::MRd => self.crossed.reads += 1,
            TlpKind::CplD | TlpKind::Cpl => self.crossed.completions += 1,
            TlpKind::MsgD | TlpKind::Msg => {}
        }
        self.crossed.payload_bytes += u64::from(tlp.payload_bytes());
        self.crossed.wire_bytes += wire_bytes;
    }

    /// Returns whether the pool of a DLLP kind is finite.
    #[inline]
    #[must_use]
    pub fn counts(&self, kind: DllpKind) -> bool {
        self.account.counts(kind)
    }

    /// Frees space at the receiver from `from` on; `because` is the cause of the delay. The DLLP that returns it is
    /// scheduled on the other direction, or is in the FLIT sent then.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    pub fn free(&mut self, kind: DllpKind, from: Ticks, data: u32, because: Cause, milestone: Milestone) {
        self.account.free(kind, from, data, because, milestone);
        if let Some(line) = self.flits {
            self.account.update_sent(kind, from, line.checked(line.slot(from)) + self.spec.latency_back);
        }
    }

    /// Returns whether the receiver must return credits immediately, because the sender has none left.
    #[inline]
    #[must_use]
    pub fn is_exhausted(&self, kind: DllpKind) -> bool {
        self.account.is_exhausted(kind, self.spec.mps_bytes / 16)
    }

    /// Receives a DLLP of the other direction.
    #[inline]
    pub fn receive_dllp(&mut self, gone: Gone) {
        match (gone.kind, &mut self.again_at) {
            (DllpKind::Nak, Some(again_at)) => *again_at = gone.comes,
            (DllpKind::Nak, None) => {}
            (kind, _) => self.account.update_sent(kind, gone.went, gone.comes),
        }
    }

    /// Makes the scheduled DLLP of this kind urgent from `now` on.
    #[inline]
    pub fn hurry(&mut self, now: Ticks, kind: DllpKind) {
        if self.flits.is_none() {
            self.dllps.hurry(kind, now);
            self.settle_dllps(now);
        }
    }

    /// Schedules a DLLP of this kind from `from` on: an `Ack` or `UpdateFC` for the other direction. Returns whether
    /// so many are scheduled that they should be processed.
    #[inline]
    pub fn schedule_dllp(&mut self, kind: DllpKind, from: Ticks) -> bool {
        self.flits.is_none() && self.dllps.schedule_dllp(kind, from)
    }

    /// Returns when the next DLLP is sent if no TLP precedes it; a tick later, so that a TLP at the same time comes
    /// first.
    #[must_use]
    pub fn next_dllp_at(&self) -> Ticks {
        Ticks(self.dllps.next_at(self.busy_until).0.saturating_add(1))
    }

    /// Delivers the DLLPs sent by `now` to the other direction, and sends no ordered set behind the last of them: the
    /// state of a line must not depend on when it is observed. Returns whether any DLLP was delivered.
    #[inline]
    pub fn tell(&mut self, now: Ticks, other: &mut Transmitter) -> bool {
        if self.dllps.next_at(Ticks::ZERO) > now && self.dllps.gone.is_empty() {
            return false;
        }
        let mut has_told = false;
        let mut record = |gone| {
            other.receive_dllp(gone);
            has_told = true;
        };
        while let Some(gone) = self.dllps.gone.pop_front() {
            record(gone);
        }
        let before = self.dllps.gone_by(now, self.busy_until, record);
        self.went(before);
        has_told
    }

    /// Returns whether a corrupted TLP waits for its replay.
    #[inline]
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.again_at.is_some()
    }

    /// Starts a log of the last `most` DLLPs.
    pub fn watch_dllps(&mut self, most: usize) {
        self.dllps.watch = Some(Watch::new(most));
    }

    /// Ends the log; returns it and the line time of a DLLP.
    pub fn take_watched(&mut self) -> Option<(Watch, Ticks)> {
        Some((self.dllps.watch.take()?, self.dllps.time()))
    }

    /// Sends every DLLP that precedes a TLP at `start`.
    #[inline]
    pub fn settle_dllps(&mut self, start: Ticks) {
        if self.dllps.are_later_than(start) {
            return;
        }
        let before = self.dllps.before(start, self.busy_until);
        self.went(before);
    }

    #[inline]
    fn went(&mut self, before: DllpsBefore) {
        self.busy_until = before.busy_until;
        self.crossed.dllps += before.count;
    }

    /// Sends every scheduled DLLP on a line without TLPs.
    pub fn settle_all(&mut self) {
        while self.dllps.are_scheduled() {
            self.settle_dllps(self.next_dllp_at());
        }
    }

    /// Sends the scheduled DLLPs before `due` on a line without TLPs; returns whether those were all.
    pub fn settle_before(&mut self, due: Ticks) -> bool {
        while self.dllps.are_scheduled() {
            let goes_at = self.next_dllp_at();
            if goes_at >= due {
                return false;
            }
            self.settle_dllps(goes_at);
        }
        true
    }

    /// Returns when the line is idle and no credits are in flight.
    #[must_use]
    pub fn quiet_at(&self) -> Ticks {
        self.busy_until.max(self.account.last_due())
    }

    /// Returns the line time up to `now` of TLPs and of DLLPs, since the last reset.
    #[must_use]
    pub fn carried(&self, now: Ticks) -> [Ticks; 2] {
        let dllp_dw = u64::from(self.spec.generation.rate().dllp_bytes / 4);
        let tlps = self.dw * (self.crossed.wire_bytes / 4);
        // Part of the last TLP may lie after `now`, or all of it if the link pauses before it.
        let left = self.tlp_until.since(now.max(self.tlp_from));
        [Ticks(tlps.0.saturating_sub(left.0)), self.dw * dllp_dw * self.crossed.dllps]
    }

    /// Returns the unused credits of a class.
    #[must_use]
    pub fn credits_left(&self, class: FlowClass) -> CreditsLeft {
        self.account.left(class)
    }

    /// Returns the line time of a TLP, from its first bit to its last.
    #[inline]
    #[must_use]
    pub fn time_of(&self, tlp: &Tlp) -> Ticks {
        self.dw * (self.framing_dw + u64::from(tlp.header_dw()) + u64::from(tlp.payload_bytes() / 4))
    }
}

/// `SplitMix64`: hashes a counter to a random number.
const fn mixed(number: u64) -> u64 {
    let a = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let b = (a ^ (a >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let c = (b ^ (b >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    c ^ (c >> 31)
}

#[cfg(test)]
mod litmus;
#[cfg(test)]
mod tests;
