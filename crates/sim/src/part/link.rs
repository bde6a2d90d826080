//! One direction of a link: arbitrates between those who send, serialises TLPs, keeps flow-control credits,
//! delivers after a latency.
//!
//! Ports: [`Transmitter::offer`] takes TLPs from whoever sends, an [input](Spec::inputs) each;
//! [`Transmitter::send`] says when each arrives at the other end; [`Transmitter::give_back`] takes the receiver's
//! credits, which are here a link's latency later; [`Transmitter::owe`] takes the DLLPs that the other direction
//! makes necessary: each goes as soon as the line is free, and before the next TLP only when it can wait no longer. One
//! DLLP stands for all of its kind that are owed when it goes.
//!
//! What waits goes in the order that the table of the specification demands ([`lanemark_wire::may_pass`]): no read and no
//! completion goes before a posted request that was there before it, whoever sent it. The first inputs may have priority
//! in their order; the others take turns, so that between posted requests of two inputs there is no order. What the table
//! leaves to a port says its [`Passing`].
//!
//! Credits on their way back are counted when the next TLP goes, and DLLPs go when the next TLP does after them, or when
//! somebody waits for what they bring. A test compares this with a link that counts each credit when it arrives.
//!
//! A TLP that comes damaged is sent again when the receiver's `Nak` is here, or, if that was damaged too, when the replay
//! timer ends; until then the line carries nothing that counts, and what goes then is chosen anew. At 64 GT/s nothing is damaged, because FLITs are
//! corrected, and their replay buffer has no end.
//!
//! Waits recorded: `LinkBusy` when the line was sending, `Credit` or `Device` when credits came last, `Replay` when the
//! acknowledgment of older TLPs did, or this one was sent before.

use crate::part::credit::{Account, Cost, Covered, Credits, Pool};
use crate::part::dllp::{self, DllpKind, Dllps, Gone, Skp};
use crate::part::input::{Input, Waiting};
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_platform::Passing;
use lanemark_units::Ticks;
use lanemark_wire::flit::FlitLine;
use lanemark_wire::{FlowClass, Generation, Lanes, dw_ticks};

/// How many of each class a port looks at.
const LOOKS_AT: usize = 8;

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
    /// A TLP starts at a multiple of this many DWs, a power of two.
    pub start_dw: u64,
    /// How long acknowledgments and credits of the other direction wait for the line at the most.
    pub dllp_patience: Ticks,
    /// `Max_Payload_Size`.
    pub mps_bytes: u32,
    /// TLPs that the replay buffer holds until they are acknowledged.
    pub replay_tlps: u32,
    /// What it does where the table leaves it a choice.
    pub passing: Passing,
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

/// Who goes next.
#[derive(Clone, Copy, Debug)]
struct Choice {
    input: usize,
    class: usize,
    place: usize,
    ready: Ticks,
    covered: Covered,
}

/// When the next TLP can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// As far as is known now and no DLLP goes before it, which [`Transmitter::send`] sees to.
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
                patience: spec.dllp_patience,
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
            tried: 0,
            crossed: Crossed::default(),
        }
    }

    /// Queues a TLP of this input that may go from `at` on, but not before those of it that already wait. Says whether
    /// it may go before all others, so that [`Transmitter::due`] is another.
    #[inline]
    pub fn offer(&mut self, input: usize, at: Ticks, tlp: Tlp) -> bool {
        let may_pass = match self.spec.passing {
            Passing::Never => false,
            Passing::Blocked => tlp.is_free(),
            Passing::Random => true,
        };
        let goes_behind = !may_pass && self.inputs[input].holds_only(tlp.kind.class());
        self.queued += 1;
        if self.inputs[input].is_empty() {
            let place = self.active.partition_point(|other| *other < input);
            self.active.insert(place, input);
        }
        self.offered += 1;
        self.inputs[input].offer(at, self.offered, tlp);
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
        self.inputs[input].len()
    }

    /// When the next waiting TLP can go.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Due {
        if let Some(again_at) = self.again_at {
            return Due { at: again_at.max(self.busy_until), awaits_dllp: again_at == Ticks::NEVER };
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
            for (choice, _) in others {
                awaits_dllp |= choice.covered.at == Ticks::NEVER;
                first = first.min(choice.ready.max(choice.covered.at));
            }
        }
        Due { at: first.max(self.busy_until), awaits_dllp }
    }

    /// Whether the first of a class may go before all that were there before it, as far as the table goes.
    #[inline]
    fn is_ordered(&self, head: &Waiting<'_>) -> bool {
        head.class == FlowClass::Posted as usize
            || self.active.iter().all(|input| {
                let input = &self.inputs[*input];
                !input.has_posted_before(head)
                    || self.spec.passing != Passing::Never && head.tlp.is_free() && input.lets_pass_posted(head)
            })
    }

    /// Whether others than the first of a class may go.
    #[inline]
    fn looks_behind_heads(&self) -> bool {
        match self.spec.passing {
            Passing::Never => false,
            Passing::Blocked => self.active.iter().any(|input| self.inputs[*input].has_free()),
            Passing::Random => true,
        }
    }

    /// Those of an input that the table lets go before all that were there before them, and their place in the order.
    fn passing_of(&self, number: usize) -> impl Iterator<Item = (Choice, u64)> {
        let others = move |waiting: &Waiting<'_>| {
            let mut others = self.active.iter().filter(move |other| **other != number);
            waiting.class == FlowClass::Posted as usize
                || others.all(|other| self.inputs[*other].lets_pass_posted(waiting))
        };
        let input = &self.inputs[number];
        input.first_of_each(LOOKS_AT).filter(move |waiting| input.lets_pass_all(waiting) && others(waiting)).map(
            move |waiting| {
                let Waiting { class, place, order, ready, tlp } = waiting;
                (Choice { input: number, class, place, ready, covered: self.account.covered_at(Cost::of(tlp)) }, order)
            },
        )
    }

    /// Whose TLP goes at `now`: those of the first inputs before all others, which take turns; of one input the oldest
    /// that may go.
    #[inline]
    fn choose(&self, now: Ticks) -> Option<Choice> {
        if self.spec.passing == Passing::Random {
            return self.choose_any(now);
        }
        let active = self.active.as_slice();
        let (first, others) = active.split_at(active.partition_point(|input| *input < self.spec.first_served));
        let (served, next) = others.split_at(others.partition_point(|input| *input <= self.served));
        let mut turns = first.iter().chain(next).chain(served);
        let may_go = |input: usize, head: Waiting<'_>| {
            if head.ready > now || !self.is_ordered(&head) {
                return None;
            }
            let covered = self.account.covered_at(Cost::of(head.tlp));
            let Waiting { class, place, ready, .. } = head;
            (covered.at <= now).then_some(Choice { input, class, place, ready, covered })
        };
        let choice = turns.clone().find_map(|number| {
            let input = &self.inputs[*number];
            if let Some(head) = input.only_head() {
                return may_go(*number, head);
            }
            let heads = input.heads().filter_map(|head| Some((head.order, may_go(*number, head)?)));
            heads.min_by_key(|(order, _)| *order).map(|(_, choice)| choice)
        });
        if choice.is_some() || !self.looks_behind_heads() {
            return choice;
        }
        turns.find_map(|number| {
            let going = self.passing_of(*number).filter(|(choice, _)| choice.ready.max(choice.covered.at) <= now);
            going.min_by_key(|(_, order)| *order).map(|(choice, _)| choice)
        })
    }

    /// Any of those that may go at `now`.
    fn choose_any(&self, now: Ticks) -> Option<Choice> {
        let all = || {
            let all = self.active.iter().flat_map(|input| self.passing_of(*input));
            all.filter(|(choice, _)| choice.ready.max(choice.covered.at) <= now)
        };
        let count = all().count() as u64;
        let drawn = mixed(self.spec.number << 48 ^ self.offered << 16 ^ self.queued as u64).checked_rem(count)?;
        all().nth(drawn as usize).map(|(choice, _)| choice)
    }

    /// Sends the TLP whose turn it is, if one can go; if DLLPs go before it, they do, and it goes later.
    #[inline]
    pub fn send(&mut self, now: Ticks) -> Option<Sent> {
        if self.queued == 0 || self.busy_until > now || self.again_at.is_some_and(|at| at > now) {
            return None;
        }
        let choice = self.choose(now)?;
        self.settle_dllps(now);
        if self.busy_until > now {
            return None;
        }
        self.account.collect(now);
        let Choice { input, class, place, ready, covered } = choice;
        if self.spec.tlps_per_error > 0 && self.comes_damaged(now, &choice) {
            return None;
        }
        let tlp = self.inputs[input].take(class, place)?;
        self.queued -= 1;
        if self.inputs[input].is_empty() {
            self.active.retain(|other| *other != input);
        }
        if input >= self.spec.first_served {
            self.served = input;
        }
        self.account.take(Cost::of(&tlp));
        let because = match covered {
            _ if self.again_at.take().is_some() => Some(Cause::Replay),
            Covered { at, because: Some(cause) } if at > ready.max(self.busy_until) => Some(cause),
            _ if self.busy_until > ready => Some(Cause::LinkBusy),
            _ => None,
        };
        let (header_dw, all_dw) = self.dws(&tlp);
        self.count(&tlp, all_dw * 4);
        let (header_sent, sent) = self.occupy(now, header_dw, all_dw);
        let latency = self.spec.latency;
        Some(Sent { tlp, input, ready, header_arrives: header_sent + latency, arrives: sent + latency, because })
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
        self.tried += 1;
        let drawn =
            |what: u64| mixed(self.spec.number << 48 ^ self.tried << 1 ^ what).is_multiple_of(self.spec.tlps_per_error);
        let (tlp_is, nak_is) = (drawn(0), drawn(1));
        if self.flits.is_some() || !tlp_is {
            return false;
        }
        let is_it = |other: &Waiting<'_>| (other.class, other.place) == (choice.class, choice.place);
        let Some(going) = self.inputs[choice.input].first_of_each(LOOKS_AT).find(is_it) else { return false };
        let (header_dw, all_dw) = self.dws(going.tlp);
        let (_, sent) = self.occupy(now, header_dw, all_dw);
        self.crossed.replays += 1;
        self.crossed.wire_bytes += all_dw * 4;
        if nak_is {
            // Source: PCI Express Base Specification 3.0, section 3.5.2.1: three times the time of an acknowledgment.
            self.crossed.replay_timeouts += 1;
            self.again_at = Some(sent + self.spec.dllp_patience * 3);
        } else {
            self.again_at = Some(Ticks::NEVER);
            self.damaged_at = Some(sent + self.spec.latency);
        }
        true
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
    #[inline]
    pub fn free(&mut self, kind: DllpKind, from: Ticks, data: u32, because: Cause) {
        self.account.free(kind, from, data, because);
        if let Some(line) = self.flits {
            self.account.told(kind, from, line.checked(line.slot(from)) + self.spec.latency);
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

    /// A DLLP of this kind can go from `from` on: an acknowledgment or credits of the other direction.
    #[inline]
    pub fn owe(&mut self, now: Ticks, kind: DllpKind, from: Ticks) {
        if self.flits.is_none() {
            self.dllps.owe(kind, from);
            self.settle_dllps(now);
        }
    }

    /// When the next DLLP goes, if no TLP does before: a tick later, so that a TLP of that very time is before it.
    #[must_use]
    pub fn next_dllp_at(&self) -> Ticks {
        Ticks(self.dllps.next_at(self.busy_until).0.saturating_add(1))
    }

    /// A DLLP that went and the other end waits for, said once.
    #[inline]
    pub fn take_gone(&mut self) -> Option<Gone> {
        self.dllps.gone.pop_front()
    }

    /// Puts every DLLP on the line that goes before a TLP at `start`.
    #[inline]
    pub fn settle_dllps(&mut self, start: Ticks) {
        let before = self.dllps.before(start, self.busy_until);
        self.busy_until = before.busy_until;
        self.crossed.dllps += before.count;
    }

    /// Lets every DLLP go that is owed, on a line without TLPs.
    pub fn settle_all(&mut self) {
        while self.dllps.are_owed() {
            self.settle_dllps(self.next_dllp_at());
        }
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
        Spec {
            generation: Generation::Gen2,
            lanes,
            latency,
            credits,
            start_dw: 1,
            dllp_patience: Ticks::whole_ns(100),
            mps_bytes: 64,
            replay_tlps: Pool::INFINITE.header,
            passing: Passing::Blocked,
            skp: None,
            tlps_per_error: 0,
            number: 0,
            inputs: 2,
            first_served: 0,
        }
    }

    fn link(posted_header: u32, posted_data: u32) -> Transmitter {
        Transmitter::new(spec(Ticks::whole_ns(100), credits(posted_header, posted_data)))
    }

    /// The receiver has room again, and its DLLP goes at once and takes no time.
    fn back(link: &mut Transmitter, now: Ticks, cost: Cost) {
        let kind = DllpKind::update(cost.class);
        link.free(kind, now, cost.data, Cause::Device);
        link.told(Gone { kind, went: now, comes: now + link.spec.latency });
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
        assert_eq!(link.due().at, Ticks::ZERO);
        assert!(link.send(Ticks::ZERO).is_some());
        assert_eq!(link.due().at, Ticks::NEVER);
        assert_eq!(link.send(Ticks::whole_ns(500)), None);
        back(&mut link, Ticks::whole_ns(500), Cost::of(&write(64)));
        assert_eq!(link.due().at, Ticks::whole_ns(600), "the credit needs the link's latency");
        assert_eq!(link.send(Ticks(link.due().at.0 - 1)), None);
        assert!(link.send(Ticks::whole_ns(600)).is_some());
    }

    #[test]
    fn data_credits_are_counted_in_units_of_16_bytes() {
        let mut link = link(8, 4);
        link.offer(0, Ticks::ZERO, write(64));
        assert_eq!(link.due().at, Ticks::ZERO);
        let mut short = self::link(8, 3);
        short.offer(0, Ticks::ZERO, write(64));
        assert_eq!(short.due().at, Ticks::NEVER);
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
        back(&mut link, Ticks::ZERO, Cost::of(&write(64)));
        assert_eq!(link.send(link.due().at).unwrap().because, Some(Cause::Device), "credits after the line was free");
        let mut link = self::link(9, 32);
        for _ in 0..2 {
            link.offer(0, Ticks::ZERO, write(64));
        }
        link.send(Ticks::ZERO);
        assert_eq!(link.send(link.due().at).unwrap().because, Some(Cause::LinkBusy));
    }

    #[test]
    fn an_offer_with_an_earlier_time_goes_behind_what_waits() {
        let mut link = link(9, 32);
        link.offer(0, Ticks::whole_ns(50), write(64));
        link.offer(0, Ticks::ZERO, write(4));
        assert_eq!(link.send(link.due().at).unwrap().tlp.length_dw, 16);
        assert_eq!(link.send(link.due().at).unwrap().tlp.length_dw, 1);
    }

    fn covers(left: Pool, cost: Cost) -> bool {
        left.header >= 1 && left.data >= cost.data
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
                credited = (now, !covers(left, needed));
                left.header += 1;
                left.data += back.remove(0).1.data;
            }
            if now < ready || now < busy || !covers(left, needed) {
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
                let send = lazy.due().at;
                if offer <= accept && offer <= send {
                    lazy.offer(0, offer, write(offers[next].1));
                    next += 1;
                } else if accept <= send {
                    back(&mut lazy, accept, accepting.pop_front().unwrap().1);
                } else if let Some(sent) = lazy.send(send) {
                    gone.push((send.0, sent.because));
                    accepting.push_back((sent.arrives + Ticks(hold), Cost::of(&sent.tlp)));
                }
            }
            assert_eq!(gone, eager(posted, &offers, hold, latency));
        }
    }

    #[test]
    fn at_64_gts_a_tlp_is_there_when_its_last_flit_is() {
        let latency = Ticks::whole_ns(100);
        let spec = Spec { generation: Generation::Gen6, lanes: Lanes::X16, ..spec(latency, Credits::INFINITE) };
        let mut link = Transmitter::new(spec);
        for _ in 0..3 {
            link.offer(0, Ticks::ZERO, write(64));
        }
        let mut arrivals = Vec::new();
        while let Some(sent) = link.send(link.due().at) {
            arrivals.push(sent.arrives);
        }
        // 20 DWs each: the third ends with the 60th DW, in the second FLIT of 2 ns.
        assert_eq!(arrivals, [102, 102, 104].map(Ticks::whole_ns));
    }

    #[test]
    fn a_damaged_tlp_goes_again_when_the_nak_is_here() {
        let mut link = Transmitter::new(Spec { tlps_per_error: 1, ..spec(Ticks::whole_ns(100), Credits::INFINITE) });
        link.offer(0, Ticks::ZERO, write(64));
        // Every TLP is damaged, and every Nak too: the timer ends three times the patience after the last bit.
        assert_eq!(link.send(Ticks::ZERO), None);
        assert_eq!((link.due().at, link.take_damaged()), (Ticks::whole_ns(22 + 300), None));
        link.spec.tlps_per_error = 2;
        let mut now = link.due().at;
        for _ in 0..40 {
            if let Some(sent) = link.send(now) {
                assert_eq!(sent.because, Some(Cause::Replay));
                return;
            }
            if let Some(found) = link.take_damaged() {
                assert_eq!(found, now + Ticks::whole_ns(122));
                assert_eq!(link.due(), Due { at: Ticks::NEVER, awaits_dllp: true });
                link.told(Gone { kind: DllpKind::Nak, went: found, comes: found + Ticks::whole_ns(100) });
            }
            now = link.due().at;
        }
        panic!("it never came whole");
    }
}
