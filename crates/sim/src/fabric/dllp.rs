//! What goes on one direction of a link between TLPs: DLLPs that the other direction makes necessary, and SKP ordered
//! sets; and when.
//!
//! Ports: [`Dllps::owe`] says from when on one can go; [`Dllps::before`] lets those go that go before a TLP, and what the other
//! end hears of them is in [`Dllps::gone`]; [`Dllps::gone_by`] tells it what has gone by now.
//!
//! A `Nak`, an ordered set and credits that somebody has none left of go as soon as the line is free. Others do too, but before the next TLP only when they can wait
//! no longer, and one that goes stands for all of its kind that are owed by then. All of them wait equally long, so the
//! order in which they can go is the order in which they must.

use lanemark_engine::Visitor;
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use std::collections::VecDeque;

/// So many of a kind are looked at together, though nobody asks.
pub(crate) const MANY: usize = 64;

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
    /// `Nak`.
    Nak,
}

impl DllpKind {
    /// How many kinds return something.
    pub const POOLS: usize = 4;
    const RETURNING: [DllpKind; DllpKind::POOLS] =
        [DllpKind::Ack, DllpKind::UpdatePosted, DllpKind::UpdateNonPosted, DllpKind::UpdateCompletion];

    /// That which returns credits of a class.
    #[must_use]
    pub const fn update(class: FlowClass) -> DllpKind {
        match class {
            FlowClass::Posted => DllpKind::UpdatePosted,
            FlowClass::NonPosted => DllpKind::UpdateNonPosted,
            FlowClass::Completion => DllpKind::UpdateCompletion,
        }
    }

    /// Its place among those that return something.
    #[must_use]
    pub const fn pool(self) -> usize {
        self as usize
    }
}

/// SKP ordered sets: how often, and how long one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skp {
    /// From one to the next.
    pub interval: Ticks,
    /// Of the line.
    pub time: Ticks,
}

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// How long one waits at the most.
    pub ack_latency_limit: Ticks,
    /// How long one takes on the line.
    pub time: Ticks,
    /// From its last bit to what it does at the other end.
    pub latency: Ticks,
    /// Whether somebody there waits for `Ack`s.
    pub hears_acks: bool,
    /// Ordered sets, if they are simulated.
    pub skp: Option<Skp>,
}

/// When a TLP can go after what goes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// When the line is free.
    pub busy_until: Ticks,
    /// How many DLLPs went.
    pub count: u64,
}

/// One that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// What it is.
    pub kind: DllpKind,
    /// When.
    pub went: Ticks,
    /// When the other end knows.
    pub comes: Ticks,
}

/// The last DLLPs that went, for whoever watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// How many are kept.
    pub most: usize,
    /// They, by the time at which they went.
    pub seen: VecDeque<Gone>,
    /// How many went before them.
    pub dropped: u64,
}

impl Watch {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(most: usize) -> Watch {
        Watch { most: most.max(1), seen: VecDeque::new(), dropped: 0 }
    }

    #[cold]
    fn see(&mut self, gone: Gone) {
        if self.seen.len() == self.most {
            self.seen.pop_front();
            self.dropped += 1;
        }
        self.seen.push_back(gone);
    }
}

/// DLLPs that are owed and have not gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dllps {
    spec: Spec,
    /// From when on each can go, by kind.
    owed: [VecDeque<Ticks>; DllpKind::POOLS],
    /// The first of each; [`Ticks::NEVER`] without.
    first: [Ticks; DllpKind::POOLS],
    /// The kind of the first of all, and from when on it can go.
    next: (usize, Ticks),
    /// A tick after the last of each kind went: what was owed before went with it.
    said_until: [Ticks; DllpKind::POOLS],
    /// From when on a `Nak` and credits of each kind cannot wait, and the next ordered set.
    nak: Ticks,
    hurried: [Ticks; DllpKind::POOLS],
    skp: Ticks,
    /// The first of these, and of those without ordered sets.
    urgent: Ticks,
    hurry: Ticks,
    /// What went and somebody waits for, until it is told.
    pub gone: VecDeque<Gone>,
    /// All that went, while somebody watches.
    pub watch: Option<Watch>,
}

impl Dllps {
    /// None owed; the first ordered set is due after an interval.
    #[must_use]
    pub fn new(spec: Spec) -> Dllps {
        Dllps {
            spec,
            owed: std::array::from_fn(|_| VecDeque::with_capacity(MANY)),
            first: [Ticks::NEVER; DllpKind::POOLS],
            next: (0, Ticks::NEVER),
            said_until: [Ticks::ZERO; DllpKind::POOLS],
            nak: Ticks::NEVER,
            hurried: [Ticks::NEVER; DllpKind::POOLS],
            skp: spec.skp.map_or(Ticks::NEVER, |skp| skp.interval),
            urgent: spec.skp.map_or(Ticks::NEVER, |skp| skp.interval),
            hurry: Ticks::NEVER,
            gone: VecDeque::new(),
            watch: None,
        }
    }

    /// How long one takes on the line.
    #[must_use]
    pub fn time(&self) -> Ticks {
        self.spec.time
    }

    /// One of this kind can go from `from` on, which is no earlier than for the one of its kind before it. Says whether so
    /// many are owed that it is time to let them go.
    #[inline]
    pub fn owe(&mut self, kind: DllpKind, from: Ticks) -> bool {
        if kind == DllpKind::Nak {
            self.nak = self.nak.min(from);
            self.look_for_urgent();
            return false;
        }
        let kind = kind.pool();
        let owed = &mut self.owed[kind];
        // One that may go at the same time as another of its kind is the same one.
        if from < self.said_until[kind] || owed.back() == Some(&from) {
            return false;
        }
        owed.push_back(from);
        if owed.len() == 1 {
            self.first[kind] = from;
            if (from, kind) < (self.next.1, self.next.0) {
                self.next = (kind, from);
            }
        }
        self.owed[kind].len() >= MANY
    }

    /// One of this kind cannot wait from `from` on.
    #[inline]
    pub fn hurry(&mut self, kind: DllpKind, from: Ticks) {
        let hurried = &mut self.hurried[kind.pool()];
        *hurried = (*hurried).min(from);
        self.look_for_urgent();
    }

    fn look_for_urgent(&mut self) {
        self.hurry = self.nak.min(self.first_hurried().1);
        self.urgent = self.hurry.min(self.skp);
    }

    /// The first of those that cannot wait, and from when on.
    #[inline]
    fn first_hurried(&self) -> (usize, Ticks) {
        self.hurried.iter().copied().enumerate().fold((0, Ticks::NEVER), |a, b| if b.1 < a.1 { b } else { a })
    }

    /// Whether any is.
    #[must_use]
    pub fn are_owed(&self) -> bool {
        self.next_at(Ticks::ZERO) < Ticks::NEVER
    }

    /// When the next one goes on a line that is busy until `busy_until`, if no TLP does before.
    #[must_use]
    #[inline]
    pub fn next_at(&self, busy_until: Ticks) -> Ticks {
        self.next.1.min(self.hurry).max(busy_until)
    }

    #[inline]
    fn look_for_next(&mut self) {
        let [a, b, c, d] = self.first;
        let early = if b < a { (1, b) } else { (0, a) };
        let late = if d < c { (3, d) } else { (2, c) };
        self.next = if late.1 < early.1 { late } else { early };
    }

    /// When a TLP that could go at `start` goes at the earliest on a line that is busy until `busy_until`: behind the first
    /// DLLP that is owed, if that can go now and goes before it.
    #[inline]
    #[must_use]
    pub fn first_behind(&self, now: Ticks, start: Ticks, busy_until: Ticks) -> Ticks {
        let from = self.next.1;
        let at = from.max(busy_until);
        let goes = from <= now && at < start || from < start && from + self.spec.ack_latency_limit <= start;
        if goes { start.max(at + self.spec.time) } else { start }
    }

    /// Whether none can go at `now`.
    #[inline]
    #[must_use]
    pub fn are_later_than(&self, now: Ticks) -> bool {
        self.next.1 > now && self.urgent > now
    }

    /// One of this kind goes at `at`, and tells of all that was owed by then.
    #[inline]
    fn says(&mut self, kind: usize, at: Ticks) {
        self.said_until[kind] = at + Ticks(1);
        let owed = &mut self.owed[kind];
        while owed.front().is_some_and(|from| *from <= at) {
            owed.pop_front();
        }
        self.first[kind] = owed.front().copied().unwrap_or(Ticks::NEVER);
        self.look_for_next();
    }

    /// Shows everything that changes.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        // Where somebody watches, nothing is skipped.
        let Dllps { spec: _, owed, first, next: _, said_until, nak, hurried, skp, urgent, hurry: _, gone, watch } =
            self;
        for owed in owed {
            view.count(owed.len());
            for from in owed {
                view.moment(from);
            }
        }
        for from in first {
            view.moment(from);
        }
        for until in said_until {
            view.time(until);
        }
        view.moment(nak);
        for from in hurried {
            view.moment(from);
        }
        // Of a line that carries nothing, both are long past, and are brought up to date when it does.
        view.time(skp);
        view.time(urgent);
        view.count(gone.len());
        for Gone { kind, went, comes } in gone {
            view.count(*kind as usize);
            view.moment(went);
            view.moment(comes);
        }
        view.flag(watch.is_some());
        self.look_for_next();
        self.hurry = self.nak.min(self.first_hurried().1);
    }

    /// Lets those go that go before a TLP which could go at `start`, on a line that is busy until `busy_until`: those that
    /// find the line free before it, and those that can wait no longer. What somebody waits for lies in [`Dllps::gone`].
    #[inline]
    pub fn before(&mut self, start: Ticks, busy_until: Ticks) -> Before {
        let mut all = std::mem::take(&mut self.gone);
        let before = self.go(start, busy_until, false, |gone| all.push_back(gone));
        self.gone = all;
        before
    }

    /// The same, up to the last DLLP that goes by `now`; `tell` hears of them.
    #[inline]
    pub fn gone_by(&mut self, now: Ticks, busy_until: Ticks, tell: impl FnMut(Gone)) -> Before {
        self.go(now, busy_until, true, tell)
    }

    #[inline]
    fn go(&mut self, start: Ticks, busy_until: Ticks, ends_with_dllp: bool, mut tell: impl FnMut(Gone)) -> Before {
        let mut before = Before { busy_until, count: 0 };
        // What one brings is known when it goes, so none is decided upon before the line is free for it.
        while before.busy_until <= start {
            let (kind, from) = self.next;
            if ends_with_dllp && from.min(self.hurry) > start {
                break;
            }
            let at = from.max(before.busy_until);
            if self.urgent <= start && self.urgent <= at {
                self.go_first(start.min(from), &mut before, &mut tell);
                continue;
            }
            if from > start || at >= start && from + self.spec.ack_latency_limit > start {
                break;
            }
            self.says(kind, at);
            if self.hurried[kind] <= at {
                self.hurried[kind] = Ticks::NEVER;
                self.look_for_urgent();
            }
            self.put(DllpKind::RETURNING[kind], at, &mut before, &mut tell);
        }
        before
    }

    /// One goes at `at`, and is told of if the other end waits for its kind.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    fn put(&mut self, kind: DllpKind, at: Ticks, before: &mut Before, tell: &mut impl FnMut(Gone)) {
        let gone = Gone { kind, went: at, comes: at + self.spec.time + self.spec.latency };
        if let Some(watch) = &mut self.watch {
            watch.see(gone);
        }
        if kind != DllpKind::Ack || self.spec.hears_acks {
            tell(gone);
        }
        before.busy_until = at + self.spec.time;
        before.count += 1;
    }

    /// A `Nak` or an ordered set goes; of those that find the line free and are over by `until`, only the last is looked at.
    #[cold]
    fn go_first(&mut self, until: Ticks, before: &mut Before, tell: &mut impl FnMut(Gone)) {
        let (kind, hurried) = self.first_hurried();
        if self.nak.min(hurried) <= self.skp {
            let at = self.nak.min(hurried).max(before.busy_until);
            if self.nak <= hurried {
                self.nak = Ticks::NEVER;
                self.put(DllpKind::Nak, at, before, tell);
            } else {
                self.hurried[kind] = Ticks::NEVER;
                self.says(kind, at);
                self.put(DllpKind::RETURNING[kind], at, before, tell);
            }
        } else if let Some(Skp { interval, time }) = self.spec.skp {
            let idle = until.min(self.nak).min(hurried);
            if self.skp >= before.busy_until && idle > self.skp {
                self.skp += interval * ((idle.0 - self.skp.0) / interval.0);
            }
            before.busy_until = self.skp.max(before.busy_until) + time;
            self.skp += interval;
        }
        self.look_for_urgent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Spec =
        Spec { ack_latency_limit: Ticks(50), time: Ticks(2), latency: Ticks(7), hears_acks: false, skp: None };

    /// Each waits 50, and takes 2.
    fn owed(all: &[(DllpKind, u64)]) -> Dllps {
        let mut dllps = Dllps::new(SPEC);
        for (kind, from) in all {
            dllps.owe(*kind, Ticks(*from));
        }
        dllps
    }

    fn gone(busy_until: u64, count: u64) -> Before {
        Before { busy_until: Ticks(busy_until), count }
    }

    #[test]
    fn one_that_finds_the_line_free_before_the_tlp_goes_and_at_its_start_it_waits() {
        assert_eq!(owed(&[(DllpKind::Ack, 9)]).before(Ticks(10), Ticks(0)), gone(11, 1));
        assert_eq!(owed(&[(DllpKind::Ack, 10)]).before(Ticks(10), Ticks(0)), gone(0, 0));
        assert_eq!(
            owed(&[(DllpKind::Ack, 5)]).before(Ticks(10), Ticks(10)),
            gone(10, 0),
            "the line is busy until then"
        );
    }

    #[test]
    fn one_that_has_waited_as_long_as_it_may_goes_before_the_tlp_and_a_tick_earlier_it_does_not() {
        assert_eq!(owed(&[(DllpKind::Ack, 5)]).before(Ticks(55), Ticks(55)), gone(57, 1));
        assert_eq!(owed(&[(DllpKind::Ack, 6)]).before(Ticks(55), Ticks(55)), gone(55, 0));
    }

    #[test]
    fn one_that_goes_stands_for_all_of_its_kind_that_are_owed_by_then_and_for_no_other() {
        let all = [(DllpKind::Ack, 5), (DllpKind::Ack, 20), (DllpKind::UpdatePosted, 20), (DllpKind::Ack, 41)];
        // The line is free at 40: there the first goes, and with it the second; then the third, and then the fourth.
        assert_eq!(owed(&all).before(Ticks(100), Ticks(40)), gone(46, 3));
    }

    #[test]
    fn a_nak_goes_before_the_tlp_and_what_could_wait_and_its_end_is_told_a_latency_later() {
        let mut dllps = owed(&[(DllpKind::Ack, 5), (DllpKind::Nak, 10)]);
        assert_eq!(dllps.before(Ticks(10), Ticks(10)), gone(12, 1));
        assert_eq!(dllps.gone.pop_front(), Some(Gone { kind: DllpKind::Nak, went: Ticks(10), comes: Ticks(19) }));
        assert_eq!(owed(&[(DllpKind::Nak, 11)]).before(Ticks(10), Ticks(10)), gone(10, 0));
    }

    #[test]
    fn credits_that_cannot_wait_go_before_the_tlp_once() {
        let mut dllps = owed(&[(DllpKind::Ack, 5), (DllpKind::UpdatePosted, 10)]);
        dllps.hurry(DllpKind::UpdatePosted, Ticks(10));
        assert_eq!(dllps.before(Ticks(10), Ticks(10)), gone(12, 1));
        assert_eq!(dllps.before(Ticks(500), Ticks(500)), gone(502, 1), "only the Ack is left");
    }

    #[test]
    fn who_watches_sees_all_that_went_and_when_and_of_many_the_last() {
        let went = |most| {
            let mut dllps = owed(&[(DllpKind::Ack, 5), (DllpKind::UpdatePosted, 20), (DllpKind::Nak, 30)]);
            dllps.watch = Some(Watch::new(most));
            // None has gone before somebody looks.
            dllps.before(Ticks(100), Ticks(0));
            let Watch { seen, dropped, .. } = dllps.watch.unwrap();
            (seen.into_iter().map(|gone| (gone.kind, gone.went.0)).collect::<Vec<_>>(), dropped)
        };
        let all = [(DllpKind::Ack, 5), (DllpKind::UpdatePosted, 20), (DllpKind::Nak, 30)];
        assert_eq!(went(3), (all.to_vec(), 0));
        assert_eq!(went(2), (all[1..].to_vec(), 1));
    }

    #[test]
    fn the_dllp_that_goes_before_a_tlp_is_foreseen_to_the_tick() {
        for (from, busy_until, start) in
            (0..120).flat_map(|from| [(from, 0, 60), (from, 20, 60), (from, 60, 60), (from, 59, 60), (from, 58, 60)])
        {
            let mut dllps = Dllps::new(SPEC);
            dllps.owe(DllpKind::Ack, Ticks(from));
            let foreseen = dllps.first_behind(Ticks(start), Ticks(start), Ticks(busy_until));
            let goes = dllps.before(Ticks(start), Ticks(busy_until)).busy_until.max(Ticks(start));
            assert_eq!(foreseen, goes, "from {from}, busy until {busy_until}");
        }
    }

    #[test]
    fn what_has_gone_does_not_depend_on_when_one_looks() {
        let skp = Some(Skp { interval: Ticks(40), time: Ticks(8) });
        let look = |at: &[u64]| {
            let mut dllps = Dllps::new(Spec { skp, ..SPEC });
            let (mut busy_until, mut count) = (Ticks::ZERO, 0);
            for from in [5, 38, 41, 77, 90, 161] {
                dllps.owe(DllpKind::UpdatePosted, Ticks(from));
            }
            for now in at {
                let mut gone = Vec::new();
                let before = dllps.gone_by(Ticks(*now), busy_until, |one| gone.push(one));
                dllps.gone.extend(gone);
                (busy_until, count) = (before.busy_until, count + before.count);
            }
            let before = dllps.before(Ticks(500), busy_until);
            (before.busy_until, count + before.count, dllps.gone)
        };
        let never = look(&[]);
        for at in 0..200 {
            assert_eq!(look(&[at, at + 7]), never, "at {at}");
        }
        assert_eq!(look(&(0..200).collect::<Vec<_>>()), never);
    }

    #[test]
    fn only_updates_are_told_unless_somebody_hears_acks() {
        for hears_acks in [false, true] {
            let mut dllps = Dllps::new(Spec { hears_acks, ..SPEC });
            dllps.owe(DllpKind::Ack, Ticks(1));
            dllps.owe(DllpKind::UpdatePosted, Ticks(3));
            dllps.before(Ticks(90), Ticks(0));
            assert_eq!(dllps.gone.len(), 1 + usize::from(hears_acks));
        }
    }

    #[test]
    fn an_ordered_set_goes_when_it_is_due_and_those_of_an_idle_line_cost_nothing() {
        let skp = Some(Skp { interval: Ticks(100), time: Ticks(8) });
        let at =
            |start, busy_until| Dllps::new(Spec { skp, ..SPEC }).before(Ticks(start), Ticks(busy_until)).busy_until;
        assert_eq!(at(99, 99), Ticks(99));
        assert_eq!(at(100, 100), Ticks(108));
        assert_eq!(at(50_090, 0), Ticks(50_008), "the last one was over long before");
        assert_eq!(at(50_004, 0), Ticks(50_008), "the last one is not");
        let mut busy = Dllps::new(Spec { skp, ..SPEC });
        let first = busy.before(Ticks(250), Ticks(250)).busy_until;
        assert_eq!((first, busy.before(first, first).busy_until), (Ticks(258), Ticks(266)), "two were due meanwhile");
    }
}
