//! DLLPs and SKP ordered sets of one direction of a link: which are scheduled, and when they are sent between TLPs.
//!
//! Ports: [`Dllps::schedule_dllp`] schedules a DLLP, [`Dllps::before`] sends the DLLPs that precede the next TLP, and
//! [`Dllps::gone`] holds those to be delivered to the other end; [`Dllps::gone_by`] delivers those sent by now.
//!
//! A `Nak`, an ordered set and the `UpdateFC` of an exhausted pool are sent as soon as the line is free. Others are
//! sent on an idle line, and precede a TLP only when their latency limit is reached. A DLLP covers all of its kind
//! that are scheduled when it is sent. All have the same latency limit, so they expire in the order of scheduling.

use lanemark_engine::{Queue, Visitor};
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;
use std::collections::VecDeque;

/// Number of scheduled DLLPs of a kind after which they are processed without a reason to.
pub(crate) const MANY: usize = 64;

/// Kind of a DLLP.
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
    /// Number of kinds that return credits or replay-buffer slots.
    pub const POOLS: usize = 4;
    const RETURNING: [DllpKind; DllpKind::POOLS] =
        [DllpKind::Ack, DllpKind::UpdatePosted, DllpKind::UpdateNonPosted, DllpKind::UpdateCompletion];

    /// Returns the kind that returns credits of a class.
    #[must_use]
    pub const fn update(class: FlowClass) -> DllpKind {
        match class {
            FlowClass::Posted => DllpKind::UpdatePosted,
            FlowClass::NonPosted => DllpKind::UpdateNonPosted,
            FlowClass::Completion => DllpKind::UpdateCompletion,
        }
    }

    /// Returns its pool index.
    #[must_use]
    pub const fn pool(self) -> usize {
        self as usize
    }
}

/// SKP ordered sets: interval and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skp {
    /// Time from one ordered set to the next.
    pub interval: Ticks,
    /// Line time of an ordered set.
    pub time: Ticks,
}

/// Constants of the DLLPs of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Latency limit of `Ack` and `UpdateFC`.
    pub ack_latency_limit: Ticks,
    /// Line time of a DLLP.
    pub time: Ticks,
    /// From its last bit to its effect at the other end.
    pub latency: Ticks,
    /// Whether the other end needs `Ack`s, because its replay buffer is finite.
    pub needs_acks: bool,
    /// SKP ordered sets, if they are simulated.
    pub skp: Option<Skp>,
}

/// The DLLPs sent before a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DllpsBefore {
    /// Time at which the line is free after them.
    pub busy_until: Ticks,
    /// Their number.
    pub count: u64,
}

/// A DLLP that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its kind.
    pub kind: DllpKind,
    /// Time of sending.
    pub went: Ticks,
    /// Time at which it takes effect at the other end.
    pub comes: Ticks,
}

/// A log of the last DLLPs sent, for an observer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Capacity of the log.
    pub most: usize,
    /// The DLLPs, in the order of sending.
    pub seen: VecDeque<Gone>,
    /// Number of DLLPs dropped from the log.
    pub dropped: u64,
}

impl Watch {
    /// Creates an empty log.
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

/// DLLPs that are scheduled and not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dllps {
    spec: Spec,
    /// First scheduling time of each kind, [`Ticks::NEVER`] without any, and those behind it.
    first: [Ticks; DllpKind::POOLS],
    scheduled: [Queue<Ticks>; DllpKind::POOLS],
    /// Kind and time of the first scheduled DLLP.
    next: (usize, Ticks),
    /// A tick after the last DLLP of each kind was sent: it covers everything scheduled before.
    said_until: [Ticks; DllpKind::POOLS],
    /// Time from which a `Nak`, or the credits of each kind, must be sent immediately; and the next ordered set.
    nak: Ticks,
    hurried: [Ticks; DllpKind::POOLS],
    skp: Ticks,
    /// The minimum of these, and the minimum without ordered sets.
    urgent: Ticks,
    hurry: Ticks,
    /// DLLPs sent to the other end and not yet delivered.
    pub gone: VecDeque<Gone>,
    /// Log of every DLLP sent, while there is an observer.
    pub watch: Option<Watch>,
}

impl Dllps {
    /// Creates an idle state; the first ordered set is due after an interval.
    #[must_use]
    pub fn new(spec: Spec) -> Dllps {
        Dllps {
            spec,
            scheduled: std::array::from_fn(|_| Queue::default()),
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

    /// Returns the line time of a DLLP.
    #[must_use]
    pub fn time(&self) -> Ticks {
        self.spec.time
    }

    /// Schedules a DLLP of this kind from `from` on, which must not decrease for a kind. Returns whether so many are
    /// scheduled that they should be sent now.
    #[inline]
    pub fn schedule_dllp(&mut self, kind: DllpKind, from: Ticks) -> bool {
        if kind == DllpKind::Nak {
            self.nak = self.nak.min(from);
            self.look_for_urgent();
            return false;
        }
        let kind = kind.pool();
        let (first, scheduled) = (&mut self.first[kind], &mut self.scheduled[kind]);
        // A DLLP scheduled at the time of another of its kind is merged with it.
        if from < self.said_until[kind] || *scheduled.last().unwrap_or(first) == from {
            return false;
        }
        if *first < Ticks::NEVER {
            scheduled.push(from);
            return scheduled.len() + 1 >= MANY;
        }
        *first = from;
        if (from, kind) < (self.next.1, self.next.0) {
            self.next = (kind, from);
        }
        false
    }

    /// Makes the DLLP of this kind urgent from `from` on.
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

    /// Returns the first urgent kind and its time.
    #[inline]
    fn first_hurried(&self) -> (usize, Ticks) {
        self.hurried.iter().copied().enumerate().fold((0, Ticks::NEVER), |a, b| if b.1 < a.1 { b } else { a })
    }

    /// Returns whether any DLLP is scheduled.
    #[must_use]
    pub fn are_scheduled(&self) -> bool {
        self.next_at(Ticks::ZERO) < Ticks::NEVER
    }

    /// Returns when the next DLLP is sent on a line that is busy until `busy_until`, unless a TLP precedes it.
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

    /// Returns the earliest start of a TLP that could start at `start`, on a line that is busy until `busy_until`: it
    /// follows the first scheduled DLLP, if that can be sent now and precedes it.
    #[inline]
    #[must_use]
    pub fn first_behind(&self, now: Ticks, start: Ticks, busy_until: Ticks) -> Ticks {
        let from = self.next.1;
        let at = from.max(busy_until);
        let goes = from <= now && at < start || from < start && from + self.spec.ack_latency_limit <= start;
        if goes { start.max(at + self.spec.time) } else { start }
    }

    /// Returns whether no DLLP can be sent at `now`.
    #[inline]
    #[must_use]
    pub fn are_later_than(&self, now: Ticks) -> bool {
        self.next.1 > now && self.urgent > now
    }

    /// Records that a DLLP of this kind is sent at `at`, and covers all scheduled by then.
    #[inline]
    fn says(&mut self, kind: usize, at: Ticks) {
        self.said_until[kind] = at + Ticks(1);
        if self.first[kind] <= at {
            let scheduled = &mut self.scheduled[kind];
            self.first[kind] = loop {
                match scheduled.pop() {
                    Some(from) if from <= at => {}
                    next => break next.unwrap_or(Ticks::NEVER),
                }
            };
        }
        self.look_for_next();
    }

    /// Visits the state.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        // While there is an observer, no steady state is skipped.
        let Dllps { spec: _, first, scheduled, next: _, said_until, nak, hurried, skp, urgent, hurry: _, gone, watch } =
            self;
        for scheduled in scheduled {
            view.count(scheduled.len());
            for from in scheduled.as_mut_slice() {
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
        // On an idle line both lie in the past, and are updated with the next DLLP or TLP.
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

    /// Sends the DLLPs that precede a TLP that could start at `start`, on a line that is busy until `busy_until`:
    /// those that find the line free before it, and those at their latency limit. [`Dllps::gone`] then holds those
    /// for the other end.
    pub fn before(&mut self, start: Ticks, busy_until: Ticks) -> DllpsBefore {
        let mut all = std::mem::take(&mut self.gone);
        let before = self.go(start, busy_until, false, |gone| all.push_back(gone));
        self.gone = all;
        before
    }

    /// Sends the DLLPs that precede a TLP as [`Dllps::before`], and passes those for the other end to `tell`.
    #[inline]
    pub fn before_to(&mut self, start: Ticks, busy_until: Ticks, tell: impl FnMut(Gone)) -> DllpsBefore {
        self.go(start, busy_until, false, tell)
    }

    /// Sends the DLLPs up to `now` and passes those for the other end to `tell`.
    #[inline]
    pub fn gone_by(&mut self, now: Ticks, busy_until: Ticks, tell: impl FnMut(Gone)) -> DllpsBefore {
        self.go(now, busy_until, true, tell)
    }

    #[inline]
    fn go(&mut self, start: Ticks, busy_until: Ticks, ends_with_dllp: bool, mut tell: impl FnMut(Gone)) -> DllpsBefore {
        let mut before = DllpsBefore { busy_until, count: 0 };
        // The content of a DLLP is fixed when it is sent, so none is chosen before the line is free.
        if self.urgent > start {
            while before.busy_until <= start {
                let (kind, from) = self.next;
                let at = from.max(before.busy_until);
                if from > start || at >= start && from + self.spec.ack_latency_limit > start {
                    break;
                }
                self.says(kind, at);
                self.put(DllpKind::RETURNING[kind], at, &mut before, &mut tell);
            }
            return before;
        }
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

    /// Sends a DLLP at `at` and delivers it if the other end needs its kind.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    fn put(&mut self, kind: DllpKind, at: Ticks, before: &mut DllpsBefore, tell: &mut impl FnMut(Gone)) {
        let gone = Gone { kind, went: at, comes: at + self.spec.time + self.spec.latency };
        if let Some(watch) = &mut self.watch {
            watch.see(gone);
        }
        if kind != DllpKind::Ack || self.spec.needs_acks {
            tell(gone);
        }
        before.busy_until = at + self.spec.time;
        before.count += 1;
    }

    /// Sends an urgent DLLP or an ordered set. Ordered sets that end before `until` on an idle line are skipped,
    /// except the last.
    #[cold]
    fn go_first(&mut self, until: Ticks, before: &mut DllpsBefore, tell: &mut impl FnMut(Gone)) {
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
        Spec { ack_latency_limit: Ticks(50), time: Ticks(2), latency: Ticks(7), needs_acks: false, skp: None };

    /// Schedules DLLPs with a latency limit of 50 and a line time of 2.
    fn scheduled(all: &[(DllpKind, u64)]) -> Dllps {
        let mut dllps = Dllps::new(SPEC);
        for (kind, from) in all {
            dllps.schedule_dllp(*kind, Ticks(*from));
        }
        dllps
    }

    fn gone(busy_until: u64, count: u64) -> DllpsBefore {
        DllpsBefore { busy_until: Ticks(busy_until), count }
    }

    #[test]
    fn a_dllp_precedes_a_tlp_only_on_an_idle_line() {
        assert_eq!(scheduled(&[(DllpKind::Ack, 9)]).before(Ticks(10), Ticks(0)), gone(11, 1));
        assert_eq!(scheduled(&[(DllpKind::Ack, 10)]).before(Ticks(10), Ticks(0)), gone(0, 0));
        assert_eq!(scheduled(&[(DllpKind::Ack, 5)]).before(Ticks(10), Ticks(10)), gone(10, 0), "the line is busy");
    }

    #[test]
    fn a_dllp_at_its_latency_limit_precedes_the_tlp() {
        assert_eq!(scheduled(&[(DllpKind::Ack, 5)]).before(Ticks(55), Ticks(55)), gone(57, 1));
        assert_eq!(scheduled(&[(DllpKind::Ack, 6)]).before(Ticks(55), Ticks(55)), gone(55, 0));
    }

    #[test]
    fn a_dllp_covers_all_of_its_kind_scheduled_before_it_is_sent() {
        let all = [(DllpKind::Ack, 5), (DllpKind::Ack, 20), (DllpKind::UpdatePosted, 20), (DllpKind::Ack, 41)];
        // The line is free at 40: the first one is sent and covers the second; then the third, and then the fourth.
        assert_eq!(scheduled(&all).before(Ticks(100), Ticks(40)), gone(46, 3));
    }

    #[test]
    fn a_nak_precedes_the_tlp_and_other_dllps_and_arrives_after_the_latency() {
        let mut dllps = scheduled(&[(DllpKind::Ack, 5), (DllpKind::Nak, 10)]);
        assert_eq!(dllps.before(Ticks(10), Ticks(10)), gone(12, 1));
        assert_eq!(dllps.gone.pop_front(), Some(Gone { kind: DllpKind::Nak, went: Ticks(10), comes: Ticks(19) }));
        assert_eq!(scheduled(&[(DllpKind::Nak, 11)]).before(Ticks(10), Ticks(10)), gone(10, 0));
    }

    #[test]
    fn urgent_credits_precede_the_tlp_once() {
        let mut dllps = scheduled(&[(DllpKind::Ack, 5), (DllpKind::UpdatePosted, 10)]);
        dllps.hurry(DllpKind::UpdatePosted, Ticks(10));
        assert_eq!(dllps.before(Ticks(10), Ticks(10)), gone(12, 1));
        assert_eq!(dllps.before(Ticks(500), Ticks(500)), gone(502, 1), "only the Ack is left");
    }

    #[test]
    fn an_observer_sees_the_last_dllps_and_their_times() {
        let went = |most| {
            let mut dllps = scheduled(&[(DllpKind::Ack, 5), (DllpKind::UpdatePosted, 20), (DllpKind::Nak, 30)]);
            dllps.watch = Some(Watch::new(most));
            // None is sent before this call.
            dllps.before(Ticks(100), Ticks(0));
            let Watch { seen, dropped, .. } = dllps.watch.unwrap();
            (seen.into_iter().map(|gone| (gone.kind, gone.went.0)).collect::<Vec<_>>(), dropped)
        };
        let all = [(DllpKind::Ack, 5), (DllpKind::UpdatePosted, 20), (DllpKind::Nak, 30)];
        assert_eq!(went(3), (all.to_vec(), 0));
        assert_eq!(went(2), (all[1..].to_vec(), 1));
    }

    #[test]
    fn the_predicted_start_behind_a_dllp_is_exact() {
        for (from, busy_until, start) in
            (0..120).flat_map(|from| [(from, 0, 60), (from, 20, 60), (from, 60, 60), (from, 59, 60), (from, 58, 60)])
        {
            let mut dllps = Dllps::new(SPEC);
            dllps.schedule_dllp(DllpKind::Ack, Ticks(from));
            let foreseen = dllps.first_behind(Ticks(start), Ticks(start), Ticks(busy_until));
            let goes = dllps.before(Ticks(start), Ticks(busy_until)).busy_until.max(Ticks(start));
            assert_eq!(foreseen, goes, "from {from}, busy until {busy_until}");
        }
    }

    #[test]
    fn sent_dllps_do_not_depend_on_when_they_are_observed() {
        let skp = Some(Skp { interval: Ticks(40), time: Ticks(8) });
        let look = |at: &[u64]| {
            let mut dllps = Dllps::new(Spec { skp, ..SPEC });
            let (mut busy_until, mut count) = (Ticks::ZERO, 0);
            for from in [5, 38, 41, 77, 90, 161] {
                dllps.schedule_dllp(DllpKind::UpdatePosted, Ticks(from));
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
    fn acks_are_delivered_only_to_an_end_that_needs_them() {
        for needs_acks in [false, true] {
            let mut dllps = Dllps::new(Spec { needs_acks, ..SPEC });
            dllps.schedule_dllp(DllpKind::Ack, Ticks(1));
            dllps.schedule_dllp(DllpKind::UpdatePosted, Ticks(3));
            dllps.before(Ticks(90), Ticks(0));
            assert_eq!(dllps.gone.len(), 1 + usize::from(needs_acks));
        }
    }

    #[test]
    fn an_ordered_set_delays_tlps_only_if_it_meets_a_busy_line() {
        let skp = Some(Skp { interval: Ticks(100), time: Ticks(8) });
        let at =
            |start, busy_until| Dllps::new(Spec { skp, ..SPEC }).before(Ticks(start), Ticks(busy_until)).busy_until;
        assert_eq!(at(99, 99), Ticks(99));
        assert_eq!(at(100, 100), Ticks(108));
        assert_eq!(at(50_090, 0), Ticks(50_008), "the last one ended long before");
        assert_eq!(at(50_004, 0), Ticks(50_008), "the last one has not ended");
        let mut busy = Dllps::new(Spec { skp, ..SPEC });
        let first = busy.before(Ticks(250), Ticks(250)).busy_until;
        assert_eq!((first, busy.before(first, first).busy_until), (Ticks(258), Ticks(266)), "two became due meanwhile");
    }
}
