//! Snapshots of a board without what only grows with time, and the difference of two snapshots.

use super::{Leg, Survey};
use crate::index::CardIndex;
use crate::requester::{FIRST_CARD, ROOT_COMPLEX};
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::{Slab, Slot, Visitor};
use lanemark_machine::Verb;
use lanemark_units::Ticks;

/// State of a board at an instant.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) now: Ticks,
    pub(crate) legs: Vec<Leg>,
    hash: u64,
    state: Vec<u64>,
    moments: Vec<Ticks>,
    times: Vec<Ticks>,
    marks: Vec<Ticks>,
    counters: Vec<u64>,
    /// Lengths of the logs.
    logs: Vec<usize>,
}

/// A visitor that records a snapshot.
pub(crate) struct Writer<'a> {
    to: Snapshot,
    slab: &'a Slab,
    /// Names of each card's tags, one more than their numbers in the order of visiting.
    names: Vec<Vec<u64>>,
    named: u64,
}

impl Snapshot {
    /// Returns the size of the snapshot in words.
    pub(crate) fn words(&self) -> usize {
        let Snapshot { state, moments, times, marks, counters, .. } = self;
        state.len() + moments.len() + times.len() + marks.len() + counters.len()
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn new(over: Snapshot, now: Ticks, legs: Vec<Leg>, slab: &'a Slab) -> Writer<'a> {
        let mut to = Snapshot { now, legs, ..over };
        let Snapshot { now: _, legs, hash: _, state, moments, times, marks, counters, logs } = &mut to;
        state.clear();
        counters.clear();
        logs.clear();
        for times in [moments, times, marks] {
            times.clear();
        }
        state.extend(legs.iter().map(|leg| leg.step.map_or(leg.next, |step| leg.next % step)));
        Writer { to, slab, names: Vec::new(), named: 0 }
    }

    pub(crate) fn written(mut self) -> Snapshot {
        let Snapshot { now, ref state, ref moments, ref times, .. } = self.to;
        let ahead = |at: &Ticks| if *at == Ticks::NEVER { u64::MAX } else { at.since(now).0 };
        let all = state.iter().copied().chain(moments.iter().map(ahead)).chain(times.iter().map(ahead));
        let hash = all.fold(0, |hash: u64, value| (hash.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.to.hash = hash;
        self.to
    }
}

impl Visitor for Writer<'_> {
    fn state(&mut self, value: u64) {
        self.to.state.push(value);
    }

    fn moment(&mut self, at: &mut Ticks) {
        self.to.moments.push(*at);
    }

    fn time(&mut self, at: &mut Ticks) {
        self.to.times.push(*at);
    }

    fn mark(&mut self, at: &mut Ticks) {
        self.to.marks.push(*at);
    }

    fn counter(&mut self, count: &mut u64) {
        self.to.counters.push(*count);
    }

    fn log(&mut self, entries: &mut Vec<Ticks>, _most: usize) {
        self.to.logs.push(entries.len());
    }
}

impl Survey for Writer<'_> {
    fn tlp(&mut self, tlp: &mut Tlp) {
        let Tlp {
            address,
            length_dw,
            first_be,
            last_be,
            requester,
            tag,
            payload,
            relaxed,
            id_based,
            pauses,
            kind,
            flaw,
            at: _,
            milestone: _,
        } = *tlp;
        let enables = u64::from(first_be) << 24 | u64::from(last_be) << 32;
        self.state(kind as u64 | u64::from(length_dw) << 8 | enables | (flaw as u64) << 40);
        self.state(
            u64::from(requester) | u64::from(relaxed) << 16 | u64::from(id_based) << 17 | u64::from(pauses) << 24,
        );
        let verb = if kind == TlpKind::MWr { Verb::Store } else { Verb::Load };
        let mut first = address + u64::from(first_be.trailing_zeros().min(3));
        let leg = self.to.legs.iter().find(|leg| leg.owner == requester && leg.verb == verb);
        match leg.and_then(|leg| leg.number_of(tlp, self.slab)) {
            Some(number) => self.place(requester, verb, number, &mut first),
            None => self.state(first),
        }
        let tag = if kind == TlpKind::MWr { u64::from(tag) } else { self.tag(requester, tag) };
        self.state(tag);
        self.flag(payload != Slot::NONE);
    }

    fn place(&mut self, owner: u16, verb: Verb, number: u64, address: &mut u64) {
        let leg = self.to.legs.iter().find(|leg| leg.owner == owner && leg.verb == verb);
        match leg.and_then(|leg| Some((leg, leg.within(number, *address)?))) {
            Some((leg, within)) => {
                let behind = leg.next.wrapping_sub(number);
                self.state(behind);
                self.state(within);
            }
            None => self.state(*address),
        }
    }

    fn tag(&mut self, owner: u16, tag: u16) -> u64 {
        if !(FIRST_CARD..ROOT_COMPLEX).contains(&owner) {
            return tag.into();
        }
        let card = CardIndex::of_requester(owner).0;
        if self.names.len() <= card {
            self.names.resize(card + 1, Vec::new());
        }
        let names = &mut self.names[card];
        if names.len() <= usize::from(tag) {
            names.resize(usize::from(tag) + 1, 0);
        }
        let name = &mut names[usize::from(tag)];
        if *name == 0 {
            self.named += 1;
            *name = self.named;
        }
        *name
    }
}

/// The difference between two equal snapshots.
#[derive(Debug)]
pub(crate) struct Period {
    pub(crate) span: Ticks,
    /// Which times and marks advance.
    pub(crate) moving_times: Vec<bool>,
    pub(crate) moving_marks: Vec<bool>,
    /// Growth of the counters.
    pub(crate) growth: Vec<u64>,
    /// Number of transfers of each leg.
    pub(crate) transfers: Vec<u64>,
    /// Lengths of the logs at its start.
    pub(crate) logs: Vec<usize>,
    /// Largest number of repetitions before a counter overflows.
    most_times: u64,
}

impl Period {
    /// Returns the period between two snapshots, if they are equal but for what grows with time.
    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Option<Period> {
        if before.hash != after.hash || before.state != after.state || after.now <= before.now {
            return None;
        }
        let span = after.now.since(before.now);
        let lengths = |one: &Snapshot| [one.moments.len(), one.times.len(), one.marks.len(), one.counters.len()];
        if lengths(before) != lengths(after) {
            return None;
        }
        let moves = |(one, other): (&Ticks, &Ticks)| {
            *one != Ticks::NEVER && *other != Ticks::NEVER && other.0.checked_sub(one.0) == Some(span.0)
        };
        let are_never = |(one, other): (&Ticks, &Ticks)| *one == Ticks::NEVER && *other == Ticks::NEVER;
        if !before.moments.iter().zip(&after.moments).all(|pair| moves(pair) || are_never(pair)) {
            return None;
        }
        // A time that does not advance must be older than all that do: then it stays older.
        let moving_times: Vec<bool> = before.times.iter().zip(&after.times).map(moves).collect();
        let live = before.times.iter().zip(&moving_times).filter(|(_, moves)| **moves).map(|(at, _)| *at);
        let oldest = live.chain(before.moments.iter().copied()).min().unwrap_or(before.now).min(before.now);
        let is_fine = |((one, other), moves): ((&Ticks, &Ticks), &bool)| {
            *moves || one == other && (*one < oldest || *one == Ticks::NEVER)
        };
        if !before.times.iter().zip(&after.times).zip(&moving_times).all(is_fine) {
            return None;
        }
        let moving_marks: Vec<bool> = before.marks.iter().zip(&after.marks).map(moves).collect();
        if !before.marks.iter().zip(&after.marks).zip(&moving_marks).all(|((one, other), moves)| *moves || one == other)
        {
            return None;
        }
        let growth: Option<Vec<u64>> =
            before.counters.iter().zip(&after.counters).map(|(one, other)| other.checked_sub(*one)).collect();
        let growth = growth?;
        let room = |(count, by): (&u64, &u64)| (u64::MAX - count).checked_div(*by);
        let most_times = after.counters.iter().zip(&growth).filter_map(room).min().unwrap_or(u64::MAX);
        let transfers = before.legs.iter().zip(&after.legs).map(|(one, other)| other.next - one.next).collect();
        Some(Period { span, moving_times, moving_marks, growth, transfers, logs: before.logs.clone(), most_times })
    }

    /// Returns how often the period repeats from `state` on for certain: before any job ends, and before `deadline`.
    pub(crate) fn most_times(&self, state: &Snapshot, deadline: Ticks) -> u64 {
        let until_end = |(leg, by): (&Leg, &u64)| leg.left().saturating_sub(1).checked_div(*by);
        let jobs = state.legs.iter().zip(&self.transfers).filter_map(until_end).min().unwrap_or(0);
        let of_time = |until: Ticks| until.since(state.now).0 / self.span.0;
        // Instants ahead of now stay below the end of time.
        jobs.min(of_time(deadline)).min(of_time(Ticks(u64::MAX / 2))).min(self.most_times)
    }

    /// Returns the number of transfers in the period.
    pub(crate) fn transfers(&self) -> u64 {
        self.transfers.iter().sum()
    }

    /// Returns the number of transfers of a card's first leg.
    pub(crate) fn transfers_of(&self, state: &Snapshot, card: CardIndex) -> u64 {
        state
            .legs
            .iter()
            .zip(&self.transfers)
            .find(|(leg, _)| leg.card() == card)
            .map_or(0, |(_, transfers)| *transfers)
    }
}
