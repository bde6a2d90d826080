//! Flow-control credits of one direction, and the slots of its replay buffer, which are returned in the same way.
//!
//! Ports: [`Account::covered_at`] returns when a TLP has enough credits, [`Account::take`] consumes them. The
//! receiver frees space with [`Account::free`]; the sender gets the credits when the DLLP arrives, [`Account::update_sent`].
//!
//! Credits in flight are kept in a queue and added when the next TLP is sent. They need no event, because their
//! arrival times are known.

use crate::critical_path::Milestone;
use crate::fabric::dllp::DllpKind;
use crate::tlp::Tlp;
use lanemark_engine::{Queue, Visitor, Wire};
use lanemark_machine::{Cause, CreditsLeft};
use lanemark_units::Ticks;
use lanemark_wire::FlowClass;

/// Credits of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Header credits, one a TLP.
    pub header: u32,
    /// Data credits, 16 B each.
    pub data: u32,
}

impl Pool {
    /// Infinite credits, as advertised at initialisation.
    pub const INFINITE: Pool = Pool { header: u32::MAX / 2, data: u32::MAX / 2 };

    const fn covers(self, data: u32) -> bool {
        self.header >= 1 && self.data >= data
    }

    #[inline]
    const fn add(&mut self, more: Pool) {
        self.header += more.header;
        self.data += more.data;
    }
}

/// Flow-control credits by class, in the order of [`FlowClass::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits(pub [Pool; FlowClass::ALL.len()]);

impl Credits {
    /// Infinite credits of every class.
    #[cfg(test)]
    pub const INFINITE: Credits = Credits([Pool::INFINITE; FlowClass::ALL.len()]);
}

/// Credits that a TLP consumes: a header credit of its class, and data credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Flow-control class.
    pub class: FlowClass,
    /// Data credits of 16 B.
    pub data: u32,
}

impl Cost {
    /// Returns the credits of a TLP.
    #[must_use]
    pub const fn of(tlp: &Tlp) -> Cost {
        Cost { class: tlp.kind.class(), data: tlp.payload_bytes().div_ceil(16) }
    }
}

/// When a TLP has enough credits, and its stall cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The time; [`Ticks::NEVER`] while the credits in flight do not suffice.
    pub at: Ticks,
    /// The stall cause; `None` if the credits are available.
    pub because: Option<Cause>,
    /// When the receiver freed the last of them.
    pub milestone: Milestone,
}

/// Space freed at the receiver and not yet returned by a DLLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Freed {
    from: Ticks,
    data: u32,
    because: Cause,
    milestone: Milestone,
}

/// Credits in flight in a DLLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Returned {
    pool: usize,
    back: Pool,
    because: Cause,
    milestone: Milestone,
}

/// Account of credits and replay-buffer slots, by [`DllpKind::pool`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    left: [Pool; DllpKind::POOLS],
    /// Available credits and those in flight.
    granted: [Pool; DllpKind::POOLS],
    /// Whether each pool is finite.
    is_counted: [bool; DllpKind::POOLS],
    freed: [Queue<Freed>; DllpKind::POOLS],
    returning: Wire<Returned>,
    /// Time up to which arrived credits have been added.
    collected_at: Ticks,
    /// For each pool: a tick after the departure of its last DLLP, and the arrival time of that DLLP.
    updates: [(Ticks, Ticks); DllpKind::POOLS],
}

const REPLAY: usize = DllpKind::Ack.pool();

impl Account {
    /// Creates an account with the advertised credits and an empty replay buffer of `replay_tlps` TLPs.
    #[must_use]
    pub fn new(credits: &Credits, replay_tlps: u32) -> Account {
        let mut left = [Pool { header: replay_tlps, data: Pool::INFINITE.data }; DllpKind::POOLS];
        for class in FlowClass::ALL {
            left[DllpKind::update(class).pool()] = credits.0[class as usize];
        }
        Account {
            left,
            granted: left,
            is_counted: left.map(|pool| pool.header < Pool::INFINITE.header || pool.data < Pool::INFINITE.data),
            freed: std::array::from_fn(|_| Queue::default()),
            returning: Wire::default(),
            collected_at: Ticks::ZERO,
            updates: [(Ticks::ZERO, Ticks::ZERO); DllpKind::POOLS],
        }
    }

    /// Returns whether the pool of a DLLP kind is finite.
    #[inline]
    #[must_use]
    pub fn counts(&self, kind: DllpKind) -> bool {
        self.is_counted[kind.pool()]
    }

    /// Returns the credits of a class that have arrived at the sender and are unused.
    #[must_use]
    pub fn left(&self, class: FlowClass) -> CreditsLeft {
        let Pool { header, data } = self.left[DllpKind::update(class).pool()];
        // Infinite credits are counted down if those of the other kind are finite.
        let finite = |left: u32| (left < Pool::INFINITE.header / 2).then_some(left);
        CreditsLeft { header: finite(header), data: finite(data) }
    }

    /// Returns when `cost` is covered, and the stall cause.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    #[must_use]
    pub fn covered_at(&self, cost: Cost) -> Covered {
        let credits = self.pool_covers(DllpKind::update(cost.class).pool(), cost.data);
        if !self.is_counted[REPLAY] {
            return credits;
        }
        let room = self.pool_covers(REPLAY, 0);
        if room.at > credits.at { room } else { credits }
    }

    #[inline]
    fn pool_covers(&self, pool: usize, data: u32) -> Covered {
        let mut have = self.left[pool];
        if have.covers(data) {
            return Covered { at: Ticks::ZERO, because: None, milestone: Milestone::NONE };
        }
        for (at, returned) in self.returning.iter().filter(|(_, returned)| returned.pool == pool) {
            have.add(returned.back);
            if have.covers(data) {
                return Covered { at: *at, because: Some(returned.because), milestone: returned.milestone };
            }
        }
        Covered { at: Ticks::NEVER, because: None, milestone: Milestone::NONE }
    }

    /// Consumes the credits of a TLP.
    #[inline]
    pub fn take(&mut self, cost: Cost) {
        let pool = DllpKind::update(cost.class).pool();
        if self.is_counted[pool] {
            for left in [&mut self.left[pool], &mut self.granted[pool]] {
                left.header -= 1;
                left.data -= cost.data;
            }
        }
        if self.is_counted[REPLAY] {
            self.left[REPLAY].header -= 1;
            self.granted[REPLAY].header -= 1;
        }
    }

    /// Returns whether the receiver must return credits immediately: every granted credit is used, or fewer than
    /// `most` data credits are left, those of a maximum payload.
    ///
    /// Source: PCI Express Base Specification 5.0, section 2.6.1.2, on when an `UpdateFC` must be scheduled.
    #[inline]
    #[must_use]
    pub fn is_exhausted(&self, kind: DllpKind, most: u32) -> bool {
        let granted = self.granted[kind.pool()];
        granted.header == 0 || granted.data < most
    }

    /// Grants credits that arrive at `at`.
    #[inline]
    fn grant(&mut self, pool: usize, at: Ticks, back: Pool, because: Cause, milestone: Milestone) {
        self.granted[pool].add(back);
        // A late call must give the same account as one in time.
        if at <= self.collected_at {
            return self.left[pool].add(back);
        }
        match self.returning.last_mut() {
            Some((last, returned)) if *last == at && returned.pool == pool => {
                returned.back.add(back);
                (returned.because, returned.milestone) = (because, milestone);
            }
            _ => self.returning.send(at, Returned { pool, back, because, milestone }),
        }
    }

    /// Frees space at the receiver from `from` on, to be returned by a DLLP of this kind; `because` is the cause of
    /// the delay.
    #[inline]
    pub fn free(&mut self, kind: DllpKind, from: Ticks, data: u32, because: Cause, milestone: Milestone) {
        let pool = kind.pool();
        let (until, comes) = self.updates[pool];
        if from < until {
            // A DLLP that was sent at this time returns it.
            self.grant(pool, comes.max(self.returning.last_due()), Pool { header: 1, data }, because, milestone);
        } else {
            self.freed[pool].push(Freed { from, data, because, milestone });
        }
    }

    /// Records a DLLP sent at `went` that arrives at `at`: it returns all space freed before it was sent.
    #[inline]
    pub fn update_sent(&mut self, kind: DllpKind, went: Ticks, at: Ticks) {
        let pool = kind.pool();
        self.updates[pool] = (went + Ticks(1), at);
        let mut back = Pool { header: 0, data: 0 };
        let (mut because, mut milestone) = (Cause::Credit, Milestone::NONE);
        let freed = &mut self.freed[pool];
        while let Some(room) = freed.first()
            && room.from <= went
        {
            back.add(Pool { header: 1, data: room.data });
            (because, milestone) = (room.because, room.milestone);
            freed.drop_first();
        }
        if back.header > 0 {
            self.grant(pool, at, back, because, milestone);
        }
    }

    /// Returns the arrival time of the last credits in flight; zero if there are none.
    #[must_use]
    pub fn last_due(&self) -> Ticks {
        self.returning.last_due()
    }

    /// Visits the state. The level of an infinite pool does not matter.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        // Granted credits follow from the rest.
        let Account { left, granted: _, is_counted: _, freed, returning, collected_at, updates } = self;
        for Pool { header, data } in left {
            view.state(u64::from(*header) << 32 | u64::from(*data));
        }
        for freed in freed {
            view.count(freed.len());
            for Freed { from, data, because, milestone: _ } in freed.as_mut_slice() {
                view.moment(from);
                view.state(u64::from(*data));
                view.count(because.index());
            }
        }
        returning.visit(view, |view, Returned { pool, back, because, milestone: _ }| {
            view.count(*pool);
            view.state(u64::from(back.header) << 32 | u64::from(back.data));
            view.count(because.index());
        });
        view.time(collected_at);
        for (until, comes) in updates {
            view.time(until);
            view.time(comes);
        }
    }

    /// Adds the credits that have arrived by `now`.
    #[inline]
    pub fn collect(&mut self, now: Ticks) {
        while let Some(returned) = self.returning.take(now) {
            self.left[returned.pool].add(returned.back);
        }
        self.collected_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const ONE: Cost = Cost { class: FlowClass::Posted, data: 4 };
    const KIND: DllpKind = DllpKind::UpdatePosted;

    fn account(header: u32, data: u32, replay_tlps: u32) -> Account {
        let posted = Pool { header, data };
        Account::new(&Credits([posted, Pool::INFINITE, Pool::INFINITE]), replay_tlps)
    }

    #[test]
    fn unused_credits_are_counted_and_infinite_ones_are_not() {
        let pools = [Pool { header: 2, data: Pool::INFINITE.data }, Pool { header: 1, data: 0 }, Pool::INFINITE];
        let mut account = Account::new(&Credits(pools), Pool::INFINITE.header);
        account.take(Cost { class: FlowClass::Posted, data: 4 });
        assert_eq!(account.left(FlowClass::Posted), CreditsLeft { header: Some(1), data: None });
        assert_eq!(account.left(FlowClass::NonPosted), CreditsLeft { header: Some(1), data: Some(0) });
        assert_eq!(account.left(FlowClass::Completion), CreditsLeft::default());
    }

    #[test]
    fn a_tlp_is_covered_by_exactly_its_header_and_data_credits() {
        for (header, data, covers) in [(1, 4, true), (0, 4, false), (1, 3, false)] {
            let at = account(header, data, Pool::INFINITE.header).covered_at(ONE).at;
            assert_eq!(at == Ticks::ZERO, covers, "{header} and {data}");
        }
    }

    #[test]
    fn freed_space_is_returned_by_the_next_dllp_only() {
        let mut account = account(1, 4, Pool::INFINITE.header);
        account.take(ONE);
        account.free(KIND, Ticks(10), 4, Cause::Device, Milestone::NONE);
        account.update_sent(KIND, Ticks(9), Ticks(19));
        assert_eq!(account.covered_at(ONE).at, Ticks::NEVER);
        account.update_sent(KIND, Ticks(10), Ticks(20));
        assert_eq!(
            account.covered_at(ONE),
            Covered { at: Ticks(20), because: Some(Cause::Device), milestone: Milestone::NONE }
        );
        account.collect(Ticks(19));
        assert_eq!(account.covered_at(ONE).at, Ticks(20));
        account.collect(Ticks(20));
        assert_eq!(account.covered_at(ONE), Covered { at: Ticks::ZERO, because: None, milestone: Milestone::NONE });
    }

    #[test]
    fn lazy_and_eager_dllp_delivery_yield_the_same_credits() {
        // A TLP is sent every 7 ticks. Its space is freed 5 ticks later, when a DLLP returns it within 20 ticks, or
        // one DLLP returns two.
        let received_every = |ticks: u64| {
            let mut account = account(200, 800, Pool::INFINITE.header);
            let mut unreceived = VecDeque::new();
            for now in 0..=700 {
                if now % 7 == 0 {
                    account.collect(Ticks(now));
                    account.take(ONE);
                }
                if now % 14 == 5 || now % 21 == 12 {
                    unreceived.push_back(now);
                }
                if now % ticks == 0 || now == 700 {
                    unreceived.drain(..).for_each(|went| account.update_sent(KIND, Ticks(went), Ticks(went + 20)));
                }
                // A DLLP sent at this time returns it, whether it has been delivered or not.
                if now % 7 == 5 {
                    account.free(
                        KIND,
                        Ticks(now),
                        4,
                        if now % 2 == 0 { Cause::Device } else { Cause::Fifo },
                        Milestone::NONE,
                    );
                }
            }
            account
        };
        let in_time = received_every(1);
        assert!(
            in_time.left[KIND.pool()].header > 0 && in_time.last_due() > Ticks(700),
            "some credits have arrived and some are in flight"
        );
        for ticks in [2, 3, 20, 64, 700] {
            assert_eq!(received_every(ticks), in_time, "every {ticks} ticks");
        }
    }

    #[test]
    fn a_full_replay_buffer_stalls_until_an_ack_even_with_credits() {
        let mut account = account(9, 99, 1);
        account.take(ONE);
        assert_eq!(account.covered_at(ONE).at, Ticks::NEVER);
        account.free(DllpKind::Ack, Ticks(5), 0, Cause::Replay, Milestone::NONE);
        account.update_sent(DllpKind::Ack, Ticks(7), Ticks(9));
        assert_eq!(
            account.covered_at(ONE),
            Covered { at: Ticks(9), because: Some(Cause::Replay), milestone: Milestone::NONE }
        );
    }
}
