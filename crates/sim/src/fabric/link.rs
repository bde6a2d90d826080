//! One direction of a link: arbitrates between those who send, serialises TLPs, keeps flow-control credits,
//! delivers after a latency.
//!
//! Ports: [`Transmitter::offer`] takes TLPs from whoever sends, an [input](Spec::inputs) each;
//! [`Transmitter::send_as`] says when each arrives at the other end; [`Transmitter::free`] takes the receiver's
//! credits, which are here a link's latency later; [`Transmitter::owe`] takes the DLLPs that the other direction
//! makes necessary: each goes as soon as the line is free, and before the next TLP only when it can wait no longer. One
//! DLLP stands for all of its kind that are owed when it goes.
//!
//! What waits goes in the order that the table of the specification demands ([`lanemark_wire::may_pass`]): no read and no
//! completion goes before a posted request that was there before it, whoever sent it. The first inputs may have priority
//! in their order; the others take turns, so that between posted requests of two inputs there is no order. What the table
//! leaves to a port says its [`Ordering`].
//!
//! Credits on their way back are counted when the next TLP goes, and DLLPs go when the next TLP does after them, when
//! somebody waits for what they bring, or when many are owed. A test compares this with a link that counts each credit when it arrives.
//!
//! A TLP that comes damaged is sent again when the receiver's `Nak` is here, or, if that was damaged too, when the replay
//! timer ends; until then the line carries nothing that counts, and what goes then is chosen anew. At 64 GT/s nothing is damaged, because FLITs are
//! corrected, and their replay buffer has no end.
//!
//! Waits recorded: `LinkBusy` when the line was sending, `Credit` or `Device` when credits came last, `Replay` when the
//! acknowledgment of older TLPs did, or this one was sent before.

use crate::fabric::credit::{Account, Cost, Covered, Credits, Pool};
use crate::fabric::dllp::{self, Before, DllpKind, Dllps, Gone, Skp, Watch};
use crate::fabric::input::{Input, Waiting};
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_platform::OrderingChoice;
use lanemark_units::Ticks;
use lanemark_wire::flit::FlitLine;
use lanemark_wire::{FlowClass, Generation, Lanes, dw_ticks};

mod steady;

/// How many of each class a port looks at.
const LOOKAHEAD: usize = 8;

/// Replays of one TLP before the link is trained again: `REPLAY_NUM` has two bits.
///
/// Source: PCI Express Base Specification 5.0, section 3.6.2.1.
const MOST_REPLAYS: u8 = 3;

/// Ordered sets of 16 symbols that each side sends in Recovery, at the least: 8 TS1, then 16 TS2 behind the first one that it
/// received. With them go two ways there and back. What receivers take to find their clocks again is not known.
///
/// Source: PCI Express Base Specification 5.0, section 4.2.6.4.
const TRAINING_SETS: u64 = 24;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Speed.
    pub generation: Generation,
    /// Width.
    pub lanes: Lanes,
    /// From the last bit sent to the packet checked at the other end.
    pub latency: Ticks,
    /// The same of the opposite direction.
    pub latency_back: Ticks,
    /// Credits the receiver advertised at initialisation.
    pub credits: Credits,
    /// A TLP starts at a multiple of this many DWs, a power of two.
    pub start_dw: u64,
    /// How long acknowledgments and credits of the other direction wait for the line at the most.
    pub ack_latency_limit: Ticks,
    /// `Max_Payload_Size`.
    pub mps_bytes: u32,
    /// TLPs that the replay buffer holds until they are acknowledged.
    pub replay_tlps: u32,
    /// What it does where the table leaves it a choice.
    pub ordering: OrderingChoice,
    /// SKP ordered sets, if they are simulated.
    pub skp: Option<Skp>,
    /// One in so many TLPs comes damaged, at random; 0: none.
    pub tlps_per_error: u64,
    /// Which link and direction, so that each has its own random numbers.
    pub number: u64,
    /// How many there are that send.
    pub inputs: usize,
    /// How many of them, from the first on, go before all behind them.
    pub first_served: usize,
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
    /// TLPs that came damaged and were sent again.
    pub replays: u64,
    /// Those of them that were sent again because the replay timer ended.
    pub replay_timeouts: u64,
    /// How often the link was trained again, because one TLP had to be sent again four times.
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

    /// And this.
    pub(crate) fn add(&mut self, mut other: Crossed) {
        self.counts().into_iter().zip(other.counts()).for_each(|(count, other)| *count += *other);
    }

    /// What of it crossed since.
    pub(crate) fn since(mut self, mut before: Crossed) -> Crossed {
        self.counts().into_iter().zip(before.counts()).for_each(|(count, before)| *count -= *before);
        self
    }

    /// So often.
    pub(crate) fn times(mut self, times: u64) -> Crossed {
        self.counts().into_iter().for_each(|count| *count *= times);
        self
    }
}

/// A TLP on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The packet.
    pub tlp: Tlp,
    /// Which input it came from.
    pub input: usize,
    /// When it was ready to go.
    pub ready: Ticks,
    /// When the last bit of its header is at the other end, which is all that a switch needs to send it on.
    pub header_arrives: Ticks,
    /// When all of it is checked at the other end.
    pub arrives: Ticks,
    /// What it had waited for last, if it had.
    pub because: Option<Cause>,
}

impl Sent {
    /// Where one is put.
    pub const INVALID: Sent = Sent {
        tlp: Tlp::of(TlpKind::MWr),
        input: 0,
        ready: Ticks::ZERO,
        header_arrives: Ticks::ZERO,
        arrives: Ticks::ZERO,
        because: None,
    };
}

/// Who goes next.
#[derive(Clone, Copy, Debug)]
struct Choice {
    input: usize,
    class: usize,
    place: usize,
    ready: Ticks,
    covered: Covered,
}

/// One that may go before all that were there before it.
#[derive(Clone, Copy, Debug)]
struct PassingTlp {
    choice: Choice,
    order: u64,
    goes_at: Ticks,
}

/// When the next TLP can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// As far as is known now and no DLLP goes before it, which [`Transmitter::send_as`] sees to.
    pub at: Ticks,
    /// Whether one waits for a DLLP that has not gone.
    pub awaits_dllp: bool,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmitter {
    spec: Spec,
    /// Time of one DW on the line.
    dw: Ticks,
    /// Where DWs lie on a line that sends FLITs, whose DLLPs take no time of TLPs.
    flits: Option<FlitLine>,
    /// DWs around header and payload of a TLP.
    framing_dw: u64,
    /// One less than the DWs from one place where a TLP can start to the next.
    slots: u64,
    inputs: Vec<Input>,
    /// The inputs that have something to send, ascending.
    active: Vec<usize>,
    queued: usize,
    /// How many were offered.
    offered: u64,
    /// Who was served last of those that take turns.
    served: usize,
    account: Account,
    dllps: Dllps,
    busy_until: Ticks,
    /// When the last TLP is over.
    tlp_until: Ticks,
    /// A TLP was sent and came damaged; when it can go again, if that is known.
    again_at: Option<Ticks>,
    /// When the receiver found one damaged, until it is asked for.
    damaged_at: Option<Ticks>,
    /// How often in a row one was: `REPLAY_NUM`, and 4 where it is about to roll over.
    replay_num: u8,
    /// Until when the link is trained, until it is asked for.
    trains_until: Option<Ticks>,
    /// It, until somebody looks.
    pub damaged: Option<Sent>,
    /// TLPs that went, damaged ones too.
    tried: u64,
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
            flits: (spec.generation == Generation::Gen6).then(|| FlitLine::new(spec.lanes)),
            framing_dw: u64::from(rate.framing_bytes / 4),
            slots: spec.start_dw.next_power_of_two() - 1,
            dllps: Dllps::new(dllp::Spec {
                ack_latency_limit: spec.ack_latency_limit,
                time: dw * u64::from(rate.dllp_bytes / 4),
                latency: spec.latency,
                hears_acks: spec.replay_tlps < Pool::INFINITE.header,
                skp: spec.skp,
            }),
            inputs: vec![Input::default(); spec.inputs],
            active: Vec::with_capacity(spec.inputs),
            queued: 0,
            offered: 0,
            served: spec.inputs.saturating_sub(1),
            account: Account::new(&spec.credits, spec.replay_tlps),
            spec,
            busy_until: Ticks::ZERO,
            tlp_until: Ticks::ZERO,
            again_at: None,
            damaged_at: None,
            replay_num: 0,
            trains_until: None,
            damaged: None,
            tried: 0,
            crossed: Crossed::default(),
        }
    }

    /// Queues a TLP of this input that may go from `at` on, but not before those of it that already wait. Says whether
    /// it may go before all others, so that [`Transmitter::due`] is another.
    #[inline]
    pub fn offer(&mut self, input: usize, at: Ticks, tlp: Tlp) -> bool {
        let goes_behind = self.inputs[input].holds_only(tlp.kind.class())
            && match self.spec.ordering {
                OrderingChoice::Never => true,
                OrderingChoice::Blocked => !tlp.is_free() && !self.looks_behind_heads(),
                OrderingChoice::Random => false,
            };
        self.queued += 1;
        self.offered += 1;
        if self.inputs[input].is_empty() {
            self.activate(input);
        }
        self.inputs[input].offer(at, self.offered, tlp);
        !goes_behind
    }

    /// An input that had nothing to send has something.
    #[inline]
    fn activate(&mut self, input: usize) {
        if self.active.is_empty() {
            return self.active.push(input);
        }
        let place = self.active.partition_point(|other| *other < input);
        self.active.insert(place, input);
    }

    /// The only TLP that may go next: the first of the only input that has some, if it has those of one class only and none
    /// that may go before others.
    #[inline]
    fn only_head(&self) -> Option<(usize, Waiting<'_>)> {
        let &[only] = self.active.as_slice() else { return None };
        let input = &self.inputs[only];
        let is_plain = match self.spec.ordering {
            OrderingChoice::Never => true,
            OrderingChoice::Blocked => !input.has_free(),
            OrderingChoice::Random => false,
        };
        if is_plain { Some((only, input.only_head()?)) } else { None }
    }

    /// TLPs that have not started to go.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// When the next waiting TLP can go.
    #[inline]
    #[must_use]
    pub fn due(&self, now: Ticks) -> Due {
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

    /// When one that can go at `at` goes on the line. A DLLP that can go only later than now is not counted: another one that is
    /// owed meanwhile may go before it.
    #[inline]
    fn due_at(&self, now: Ticks, at: Ticks, awaits_dllp: bool) -> Due {
        let at = at.max(self.busy_until);
        Due { at: self.dllps.first_behind(now, at, self.busy_until), awaits_dllp }
    }

    /// Whether the first of a class may go before all that were there before it, as far as the table goes.
    #[inline]
    fn is_ordered(&self, head: &Waiting<'_>) -> bool {
        head.class == FlowClass::Posted as usize
            || self.active.iter().all(|input| {
                let input = &self.inputs[*input];
                !input.has_posted_before(head)
                    || self.spec.ordering != OrderingChoice::Never && head.tlp.is_free() && input.lets_pass_posted(head)
            })
    }

    /// Whether others than the first of a class may go.
    #[inline]
    fn looks_behind_heads(&self) -> bool {
        match self.spec.ordering {
            OrderingChoice::Never => false,
            OrderingChoice::Blocked => self.active.iter().any(|input| self.inputs[*input].has_free()),
            OrderingChoice::Random => true,
        }
    }

    /// Those of an input that the table lets go before all that were there before them, and their place in the order.
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

    /// Whose TLP goes at `now`: those of the first inputs before all others, which take turns; of one input the oldest
    /// that may go.
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

    /// The inputs that have something, in the order of their turns.
    #[inline]
    fn turns(&self) -> impl Iterator<Item = usize> {
        let active = self.active.as_slice();
        let (first, others) = active.split_at(active.partition_point(|input| *input < self.spec.first_served));
        let (served, next) = others.split_at(others.partition_point(|input| *input <= self.served));
        first.iter().chain(next).chain(served).copied()
    }

    /// Of the first of each class of an input, the oldest that may go at `now`.
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

    /// Any of those that may go at `now`.
    fn choose_any(&self, now: Ticks) -> Option<Choice> {
        let all = || {
            let all = self.active.iter().flat_map(|input| self.passing_of(*input));
            all.filter(|other| other.goes_at <= now)
        };
        let count = all().count() as u64;
        let drawn = mixed(self.spec.number << 48 ^ self.offered << 16 ^ self.queued as u64).checked_rem(count)?;
        all().nth(drawn as usize).map(|other| other.choice)
    }

    /// As [`Transmitter::send_as`], and returns what went.
    #[cfg(test)]
    pub fn send(&mut self, now: Ticks) -> Option<Sent> {
        let mut sent = Sent::INVALID;
        self.send_as(now, &mut sent).then_some(sent)
    }

    /// Sends the TLP whose turn it is, if one can go; if DLLPs go before it, they do, and it goes later.
    ///
    /// Returns whether one went, and writes it where the caller wants it: a [`Sent`] that is moved is written in
    /// pieces and read at once, and the processor waits for the pieces.
    #[inline]
    pub fn send_as(&mut self, now: Ticks, sent: &mut Sent) -> bool {
        if self.queued == 0 || self.busy_until > now || self.again_at.is_some_and(|at| at > now) {
            return false;
        }
        self.settle_dllps(now);
        if self.busy_until > now {
            return false;
        }
        self.choose(now).is_some_and(|choice| self.go(now, &choice, sent))
    }

    /// The one that was chosen goes, if it does not come damaged.
    #[inline]
    fn go(&mut self, now: Ticks, choice: &Choice, sent: &mut Sent) -> bool {
        if self.spec.tlps_per_error > 0 && self.comes_damaged(now, choice) {
            return false;
        }
        let Choice { input, class, place, ready, covered } = *choice;
        if !self.inputs[input].take(class, place, &mut sent.tlp) {
            return false;
        }
        self.queued -= 1;
        if self.inputs[input].is_empty() {
            if self.active.len() == 1 { self.active.clear() } else { self.active.retain(|other| *other != input) }
        }
        if input >= self.spec.first_served {
            self.served = input;
        }
        let cost = Cost::of(&sent.tlp);
        self.account.collect(now);
        self.account.take(cost);
        sent.because = self.waited_for(covered, ready);
        self.again_at = None;
        let (header_dw, all_dw) = self.dws(&sent.tlp);
        self.count(&sent.tlp, all_dw * 4);
        let (header_sent, all_sent) = self.occupy(now, header_dw, all_dw);
        let latency = self.spec.latency;
        (sent.input, sent.ready) = (input, ready);
        (sent.header_arrives, sent.arrives) = (header_sent + latency, all_sent + latency);
        true
    }

    /// What one that goes now waited for last.
    #[inline]
    fn waited_for(&self, covered: Covered, ready: Ticks) -> Option<Cause> {
        match covered {
            _ if self.again_at.is_some() => Some(Cause::Replay),
            Covered { at, because: Some(cause) } if at > ready.max(self.busy_until) => Some(cause),
            _ if self.busy_until > ready => Some(Cause::LinkBusy),
            _ => None,
        }
    }

    /// DWs on the line until the end of its header, and all of them.
    #[inline]
    fn dws(&self, tlp: &Tlp) -> (u64, u64) {
        let header_dw = self.framing_dw + u64::from(tlp.header_dw());
        (header_dw, header_dw + u64::from(tlp.payload_bytes() / 4))
    }

    /// Whether the TLP that goes now comes damaged: then it has been on the line and waits to go again.
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
        let (header_sent, sent) = self.occupy(now, header_dw, all_dw);
        let [header_arrives, arrives] = [header_sent, sent].map(|at| at + self.spec.latency);
        self.damaged = Some(Sent { tlp, input, ready, header_arrives, arrives, because });
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

    /// The link goes through Recovery before the next replay: nothing goes either way as long.
    fn enter_recovery(&mut self, now: Ticks) {
        let sets = dw_ticks(self.spec.generation, Lanes::X1) * (TRAINING_SETS * 4);
        let until = now + (self.spec.latency + self.spec.latency_back) * 2 + sets;
        (self.replay_num, self.busy_until, self.again_at, self.trains_until) = (0, until, Some(until), Some(until));
        self.crossed.rollovers += 1;
    }

    /// Until when the link is trained, if that has begun; said once.
    #[inline]
    pub fn take_training(&mut self) -> Option<Ticks> {
        self.trains_until.take()
    }

    /// Nothing goes until then: the other direction trains the link.
    pub fn pause(&mut self, until: Ticks) {
        self.busy_until = self.busy_until.max(until);
    }

    /// When the receiver found the TLP damaged that was sent last, said once.
    #[inline]
    pub fn take_damaged(&mut self) -> Option<Ticks> {
        self.damaged_at.take()
    }

    /// Takes the line from `now` on: when the header is sent as far as the receiver can use it, and when all is.
    #[inline]
    fn occupy(&mut self, now: Ticks, header_dw: u64, all_dw: u64) -> (Ticks, Ticks) {
        let pace_dw = (all_dw + self.slots) & !self.slots;
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

    /// Whether what a DLLP of this kind returns has an end.
    #[inline]
    #[must_use]
    pub fn counts(&self, kind: DllpKind) -> bool {
        self.account.counts(kind)
    }

    /// The receiver has room again from `from` on, `because` says why no earlier; the DLLP that tells so is owed by the
    /// other direction, or lies in the FLIT that it sends then.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    pub fn free(&mut self, kind: DllpKind, from: Ticks, data: u32, because: Cause) {
        self.account.free(kind, from, data, because);
        if let Some(line) = self.flits {
            self.account.told(kind, from, line.checked(line.slot(from)) + self.spec.latency_back);
        }
    }

    /// Whether the receiver must tell of room at once, because it has granted no more.
    #[inline]
    #[must_use]
    pub fn is_exhausted(&self, kind: DllpKind) -> bool {
        self.account.is_exhausted(kind, self.spec.mps_bytes / 16)
    }

    /// A DLLP of the other direction comes here.
    #[inline]
    pub fn told(&mut self, gone: Gone) {
        match (gone.kind, &mut self.again_at) {
            (DllpKind::Nak, Some(again_at)) => *again_at = gone.comes,
            (DllpKind::Nak, None) => {}
            (kind, _) => self.account.told(kind, gone.went, gone.comes),
        }
    }

    /// A DLLP of this kind that is owed cannot wait from `now` on.
    #[inline]
    pub fn hurry(&mut self, now: Ticks, kind: DllpKind) {
        if self.flits.is_none() {
            self.dllps.hurry(kind, now);
            self.settle_dllps(now);
        }
    }

    /// A DLLP of this kind can go from `from` on: an acknowledgment or credits of the other direction. Says whether so many
    /// are owed that it is time to look which have gone.
    #[inline]
    pub fn owe(&mut self, kind: DllpKind, from: Ticks) -> bool {
        self.flits.is_none() && self.dllps.owe(kind, from)
    }

    /// When the next DLLP goes, if no TLP does before: a tick later, so that a TLP of that very time is before it.
    #[must_use]
    pub fn next_dllp_at(&self) -> Ticks {
        Ticks(self.dllps.next_at(self.busy_until).0.saturating_add(1))
    }

    /// Tells the other direction what has gone for it by now, and lets no ordered set go behind the last of that: what a line has
    /// done must not depend on who looks when. Says whether there was anything to tell.
    #[inline]
    pub fn tell(&mut self, now: Ticks, other: &mut Transmitter) -> bool {
        if self.dllps.next_at(Ticks::ZERO) > now && self.dllps.gone.is_empty() {
            return false;
        }
        let mut has_told = false;
        let mut told = |gone| {
            other.told(gone);
            has_told = true;
        };
        while let Some(gone) = self.dllps.gone.pop_front() {
            told(gone);
        }
        let before = self.dllps.gone_by(now, self.busy_until, told);
        self.went(before);
        has_told
    }

    /// Whether a TLP came damaged and waits to go again.
    #[inline]
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.again_at.is_some()
    }

    /// Keeps the last `most` DLLPs that go from now on.
    pub fn watch_dllps(&mut self, most: usize) {
        self.dllps.watch = Some(Watch::new(most));
    }

    /// Those that went since then, and how long each was on the line; nobody watches any more.
    pub fn take_watched(&mut self) -> Option<(Watch, Ticks)> {
        Some((self.dllps.watch.take()?, self.dllps.time()))
    }

    /// Puts every DLLP on the line that goes before a TLP at `start`.
    #[inline]
    pub fn settle_dllps(&mut self, start: Ticks) {
        if self.dllps.are_later_than(start) {
            return;
        }
        let before = self.dllps.before(start, self.busy_until);
        self.went(before);
    }

    #[inline]
    fn went(&mut self, before: Before) {
        self.busy_until = before.busy_until;
        self.crossed.dllps += before.count;
    }

    /// Lets every DLLP go that is owed, on a line without TLPs.
    pub fn settle_all(&mut self) {
        while self.dllps.are_owed() {
            self.settle_dllps(self.next_dllp_at());
        }
    }

    /// The same, if all of them go before `due` on a line without TLPs: whether they do.
    pub fn settle_before(&mut self, due: Ticks) -> bool {
        while self.dllps.are_owed() {
            let goes_at = self.next_dllp_at();
            if goes_at >= due {
                return false;
            }
            self.settle_dllps(goes_at);
        }
        true
    }

    /// When the line is free and all credits that are on their way are here.
    #[must_use]
    pub fn quiet_at(&self) -> Ticks {
        self.busy_until.max(self.account.last_due())
    }

    /// Time of the line until `now` that went to TLPs and to DLLPs, since the last reset.
    #[must_use]
    pub fn carried(&self, now: Ticks) -> [Ticks; 2] {
        let dllp_dw = u64::from(self.spec.generation.rate().dllp_bytes / 4);
        let tlps = self.dw * (self.crossed.wire_bytes / 4);
        // Of the last one, a part may still have to go.
        let left = Ticks(self.tlp_until.0.saturating_sub(now.0));
        [Ticks(tlps.0.saturating_sub(left.0)), self.dw * dllp_dw * self.crossed.dllps]
    }

    /// How long a TLP takes here, from its first bit to its last.
    #[inline]
    #[must_use]
    pub fn time_of(&self, tlp: &Tlp) -> Ticks {
        self.dw * (self.framing_dw + u64::from(tlp.header_dw()) + u64::from(tlp.payload_bytes() / 4))
    }
}

/// `SplitMix64`: neighbours in, strangers out.
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
