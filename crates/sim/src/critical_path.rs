//! The critical path of a sample: which constraint each part waited for last, followed backwards from its end.
//!
//! A [`Milestone`] is an instant at which a TLP, a credit, a tag or a core became ready. Its record names the milestone
//! that it waited for last, and what took the time between the two: a place and a [`Cause`]. Parts keep the milestone
//! of each thing that can be waited for, beside its time, and add one when the wait ends
//! ([`CriticalPath::add`], [`CriticalPath::add_after`]).
//!
//! [`CriticalPath::shares`] follows the records from the end of a sample to its start. The spans add up to the time of
//! the sample exactly, because each record ends where the next one begins.
//!
//! - The time in which a place processes something else, or this thing, belongs to the place (`LinkBusy`, `DataPath`).
//!   A full queue in front of a busy place gets nothing.
//! - Latency ([`Cause::Transit`]) overlaps with other latencies. If the path came to it by a limit of concurrency (the
//!   last free tag, credit or buffer), the latency belongs to that limit: more of them would hide it.
//!
//! The number of records is bounded. When the log is full, the path through its first half is summed up, and that half is
//! dropped; a path that comes to it continues on the one that was summed up. Periods that the simulation
//! [skips](CriticalPath::skip) repeat the last one.

use crate::index::{CardIndex, DirectionIndex};
use lanemark_machine::Cause;
use lanemark_units::Ticks;

/// Number of records from which the log is summed up, and the number that it never exceeds.
///
/// The log fits into the second-level cache of a processor, and its half holds all that is in flight on a link with
/// hundreds of tags.
const MOST: usize = 1 << 16;
const HARD_LIMIT: usize = 1 << 17;

/// An instant at which something became ready: a reference into the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Milestone(u32);

impl Milestone {
    /// Before the sample.
    pub const NONE: Milestone = Milestone(0);
}

/// Where the time between two milestones was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u16);

/// A kind of place, in the upper bits of a [`Place`].
const KIND_BITS: u32 = 12;

impl Place {
    /// The root complex: requests of cores, ingress and root ports.
    pub const ROOT_COMPLEX: Place = Place(1 << KIND_BITS);
    /// Host memory and its caches.
    pub const MEMORY: Place = Place(2 << KIND_BITS);
    /// The IOMMU.
    pub const IOMMU: Place = Place(3 << KIND_BITS);

    const fn of(kind: u16, number: usize) -> Place {
        Place(kind << KIND_BITS | number as u16 & ((1 << KIND_BITS) - 1))
    }

    /// A core.
    pub const fn core(number: usize) -> Place {
        Place::of(4, number)
    }

    /// A direction of a link.
    pub(crate) const fn link(direction: DirectionIndex) -> Place {
        Place::of(5, direction.0)
    }

    /// The DMA engine of a card.
    pub const fn engine(card: CardIndex) -> Place {
        Place::of(6, card.0)
    }

    /// The regions of a card, and what is behind them.
    pub const fn card(card: CardIndex) -> Place {
        Place::of(7, card.0)
    }

    /// Returns what it is, for names.
    pub(crate) fn kind(self) -> PlaceKind {
        let number = usize::from(self.0 & ((1 << KIND_BITS) - 1));
        match self.0 >> KIND_BITS {
            1 => PlaceKind::RootComplex,
            2 => PlaceKind::Memory,
            3 => PlaceKind::Iommu,
            5 => PlaceKind::Link(DirectionIndex(number)),
            6 => PlaceKind::Engine(CardIndex(number)),
            7 => PlaceKind::Card(CardIndex(number)),
            _ => PlaceKind::Core(number),
        }
    }
}

/// A place, for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    RootComplex,
    Memory,
    Iommu,
    Core(usize),
    Link(DirectionIndex),
    Engine(CardIndex),
    Card(CardIndex),
}

/// A record of a milestone.
#[derive(Clone, Copy, Debug)]
struct Record {
    at: Ticks,
    /// The milestone that it waited for last.
    before: Milestone,
    /// Where the time since then was spent, and for what.
    place: Place,
    cause: Cause,
    /// The limit of concurrency by which the path came to `before`; `Transit` if it was none.
    limit: Cause,
}

/// Time on the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) place: Place,
    pub(crate) cause: Cause,
    /// Whether it is latency. Then the cause is the limit of concurrency, or `Transit`.
    pub(crate) is_latency: bool,
    pub(crate) span: Ticks,
}

/// Shares of a stretch of the path, in the order in which they were found from its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares(pub(crate) Vec<Share>);

impl Shares {
    pub(crate) fn add(&mut self, share: Share) {
        if share.span == Ticks::ZERO {
            return;
        }
        let same = |other: &&mut Share| {
            (other.place, other.cause, other.is_latency) == (share.place, share.cause, share.is_latency)
        };
        match self.0.iter_mut().find(same) {
            Some(other) => other.span += share.span,
            None => self.0.push(share),
        }
    }

    fn add_all(&mut self, others: &Shares, times: u64) {
        others.0.iter().for_each(|share| self.add(Share { span: share.span * times, ..*share }));
    }

    /// Adds shares in proportion to `others`, which add up to `total`; nothing if there are no others.
    fn add_in_proportion(&mut self, others: &Shares, total: Ticks) {
        let all: u128 = others.0.iter().map(|share| u128::from(share.span.0)).sum();
        // The sum of the shares up to each one is rounded, so that they add up to the total exactly.
        let (mut up_to, mut added) = (0_u128, 0);
        for share in &others.0 {
            up_to += u128::from(share.span.0);
            let end = (up_to * u128::from(total.0) / all) as u64;
            self.add(Share { span: Ticks(end - added), ..*share });
            added = end;
        }
    }
}

/// Periods that the simulation skipped.
#[derive(Clone, Copy, Debug)]
struct Skipped {
    /// Number of the first record after them, and the time at which they were skipped.
    first: u32,
    at: Ticks,
    /// Their length and number.
    span: Ticks,
    times: u64,
    /// By how much they moved the time of the board.
    moved: Ticks,
}

/// The log of a board. It records nothing until [`CriticalPath::begin`].
#[derive(Clone, Debug, Default)]
pub struct CriticalPath {
    is_on: bool,
    is_left_out: bool,
    records: Vec<Record>,
    /// Number of the first record; numbers wrap around.
    first: u32,
    /// The path up to this time, before the first record.
    since: Ticks,
    before: Shares,
    skipped: Vec<Skipped>,
}

impl CriticalPath {
    /// Leaves out all paths: [`CriticalPath::begin`] has no effect.
    pub(crate) fn leave_out(&mut self) {
        self.is_left_out = true;
    }

    /// Begins the path of a sample.
    pub(crate) fn begin(&mut self, now: Ticks) {
        self.is_on = !self.is_left_out;
        self.forget(now);
        self.before = Shares::default();
    }

    /// Ends the recording.
    pub(crate) fn end(&mut self) {
        self.is_on = false;
    }

    /// Drops the records; the path before `now` is in `before`.
    fn forget(&mut self, now: Ticks) {
        // 0 is never the number of a record.
        self.first = self.first.wrapping_add(self.records.len() as u32).max(1);
        self.records.clear();
        self.skipped.clear();
        self.since = now;
    }

    /// Returns whether milestones are recorded.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Adds a milestone at `at`: since `before`, `place` has spent the time for `cause`.
    #[inline]
    pub(crate) fn add(&mut self, before: Milestone, at: Ticks, place: Place, cause: Cause) -> Milestone {
        self.add_after(Cause::Transit, before, at, place, cause)
    }

    /// Adds a milestone as [`CriticalPath::add`], if `before` is the release of what `limit` lacked.
    #[inline]
    pub(crate) fn add_after(
        &mut self,
        limit: Cause,
        before: Milestone,
        at: Ticks,
        place: Place,
        cause: Cause,
    ) -> Milestone {
        if !self.is_on {
            return Milestone::NONE;
        }
        if self.records.len() == HARD_LIMIT {
            self.sum_up(self.latest());
        }
        let number = self.first.wrapping_add(self.records.len() as u32);
        self.records.push(Record { at, before, place, cause, limit });
        Milestone(number)
    }

    fn record(&self, milestone: Milestone) -> Option<&Record> {
        self.records.get(milestone.0.wrapping_sub(self.first) as usize)
    }

    /// Returns the milestone added last.
    pub(crate) fn latest(&self) -> Milestone {
        Milestone(self.first.wrapping_add(self.records.len() as u32).wrapping_sub(1))
    }

    /// Returns whether the log is so long that it should be [summed up](CriticalPath::sum_up).
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.records.len() >= MOST
    }

    /// Drops the first half of the records, after the path from `milestone` through them has been summed up.
    ///
    /// A later path meets this one in the second half, unless something waits for longer than that, or flows share
    /// nothing: `milestone` belongs to the flow whose path is wanted.
    #[cold]
    pub(crate) fn sum_up(&mut self, milestone: Milestone) {
        let half = self.first.wrapping_add(self.records.len() as u32 / 2);
        let mut number = milestone;
        let (mut spent, mut limit) = ((Place::core(0), Cause::Transit), Cause::Transit);
        while let Some(record) = self.record(number)
            && number.0.wrapping_sub(half).cast_signed() >= 0
        {
            (spent, number) = ((record.place, record.cause), record.before);
            if record.limit != Cause::Transit {
                limit = record.limit;
            }
        }
        let later = self.skipped.iter().position(|skipped| skipped.first.wrapping_sub(half).cast_signed() > 0);
        let later = self.skipped.split_off(later.unwrap_or(self.skipped.len()));
        let is_before = |skipped: &&Skipped| number.0.wrapping_sub(skipped.first).cast_signed() < 0;
        let moved: Ticks = self.skipped.iter().filter(is_before).map(|skipped| skipped.moved).sum();
        let since = self.record(number).map_or(self.since, |record| record.at.max(self.since)) + moved;
        self.before = self.followed_from(number, since, None, spent, limit).0;
        (self.since, self.skipped) = (since, later);
        self.records.drain(..self.records.len() / 2);
        self.first = half;
    }

    /// Records that the simulation skips `times` periods of length `span` at `at`, all equal to the last one, and that
    /// it moves the time of the board by `moved`.
    pub(crate) fn skip(&mut self, at: Ticks, span: Ticks, times: u64, moved: Ticks) {
        if !self.is_on {
            return;
        }
        let first = self.first.wrapping_add(self.records.len() as u32);
        self.skipped.push(Skipped { first, at, span, times, moved });
    }

    /// Returns the shares of the path that ends at `at` with `milestone`; they add up to the time since the start.
    pub(crate) fn shares(&self, milestone: Milestone, at: Ticks) -> Shares {
        if self.is_left_out {
            return Shares::default();
        }
        self.followed(milestone, at)
    }

    /// Follows the path from `milestone` at `end` back to the start of the log.
    fn followed(&self, milestone: Milestone, end: Ticks) -> Shares {
        // The time from the last milestone to the end is of the kind before it.
        let spent = self.record(milestone).map(|record| (record.place, record.cause));
        self.followed_from(milestone, end, None, spent.unwrap_or((Place::core(0), Cause::Transit)), Cause::Transit).0
    }

    /// Follows the path from `end` back to the start of the log, or to `until` without the skipped periods: the time
    /// since `milestone` was spent for `spent`, and `limit` is the last limit of concurrency before. Also returns the
    /// last limit of the path.
    fn followed_from(
        &self,
        milestone: Milestone,
        end: Ticks,
        until: Option<Ticks>,
        spent: (Place, Cause),
        limit: Cause,
    ) -> (Shares, Cause) {
        let mut shares = Shares::default();
        let floor = until.unwrap_or(self.since);
        // Another flow may go on, and be skipped, after the end.
        let before_end = self.skipped.partition_point(|skipped| skipped.at < end);
        let mut skipped = if until.is_some() { &[] } else { &self.skipped[..before_end] };
        let (mut cursor, mut number, mut limit, (mut place, mut cause)) = (end, milestone, limit, spent);
        loop {
            let record = self.record(number);
            let is_before =
                |skipped: &Skipped| record.is_none_or(|_| number.0.wrapping_sub(skipped.first).cast_signed() < 0);
            let (earlier, crossed) = skipped.split_at(skipped.iter().take_while(|skipped| !is_before(skipped)).count());
            // Records before a skip are earlier by its time.
            let later: Ticks = crossed.iter().map(|skipped| skipped.moved).sum();
            let begins = (record.map_or(floor, |record| record.at.max(floor)) + later).min(cursor);
            let is_latency = cause == Cause::Transit;
            let cause_of_span = if is_latency { limit } else { cause };
            let share = |span| Share { place, cause: cause_of_span, is_latency, span };
            shares.add(share(cursor.since(begins)));
            cursor = Ticks(begins.0.saturating_sub(later.0));
            for Skipped { span, times, .. } in crossed {
                if record.is_some() && cursor >= *span && cursor > floor {
                    // A long period began before the log: its last part stands for it.
                    let from = cursor.since(*span).max(floor);
                    let (period, last) = self.followed_from(number, cursor, Some(from), (place, cause), limit);
                    shares.add_in_proportion(&period, *span * *times);
                    limit = last;
                } else {
                    shares.add(share(*span * *times));
                }
            }
            skipped = earlier;
            let Some(record) = record.filter(|_| cursor > floor) else { break };
            (number, place, cause) = (record.before, record.place, record.cause);
            if record.limit != Cause::Transit {
                limit = record.limit;
            }
        }
        if until.is_none() {
            shares.add_all(&self.before, 1);
        }
        (shares, limit)
    }
}
