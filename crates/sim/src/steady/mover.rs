//! Moves a board by a number of periods.

use super::{Leg, Period, Survey};
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::{Slab, Slot, Visitor};
use lanemark_machine::Verb;
use lanemark_units::Ticks;
use std::slice::Iter;

/// Visits the state in the same order as the [`Writer`](super::Writer) of the snapshots.
pub(crate) struct Mover<'a> {
    times: u64,
    span: Ticks,
    legs: &'a [Leg],
    /// Transfers by which each leg moves.
    by: Vec<u64>,
    moving_times: Iter<'a, bool>,
    moving_marks: Iter<'a, bool>,
    growth: Iter<'a, u64>,
    logs: Iter<'a, usize>,
    slab: &'a mut Slab,
    /// TLPs whose payload must be regenerated.
    pub(crate) to_fill: Vec<Tlp>,
}

impl<'a> Mover<'a> {
    /// Creates a mover by `times` periods, at most [`Period::most_times`].
    pub(crate) fn new(period: &'a Period, times: u64, legs: &'a [Leg], slab: &'a mut Slab) -> Mover<'a> {
        Mover {
            times,
            span: period.span * times,
            legs,
            by: period.transfers.iter().map(|transfers| transfers * times).collect(),
            moving_times: period.moving_times.iter(),
            moving_marks: period.moving_marks.iter(),
            growth: period.growth.iter(),
            logs: period.logs.iter(),
            slab,
            to_fill: Vec::new(),
        }
    }

    fn leg(&self, owner: u16, verb: Verb) -> Option<(&'a Leg, u64)> {
        let mut legs = self.legs.iter().zip(&self.by);
        legs.find(|(leg, _)| leg.owner == owner && leg.verb == verb).map(|(leg, by)| (leg, *by))
    }
}

impl Visitor for Mover<'_> {
    fn state(&mut self, _value: u64) {}

    fn moment(&mut self, at: &mut Ticks) {
        if *at != Ticks::NEVER {
            *at += self.span;
        }
    }

    fn time(&mut self, at: &mut Ticks) {
        if self.moving_times.next() == Some(&true) {
            *at += self.span;
        }
    }

    fn mark(&mut self, at: &mut Ticks) {
        if self.moving_marks.next() == Some(&true) {
            *at += self.span;
        }
    }

    fn counter(&mut self, count: &mut u64) {
        *count += self.growth.next().copied().unwrap_or(0) * self.times;
    }

    fn log(&mut self, entries: &mut Vec<Ticks>, most: usize) {
        let from = self.logs.next().copied().unwrap_or(0);
        let of_period = entries.len() - from;
        let all = (of_period as u64).saturating_mul(self.times).min((most - entries.len().min(most)) as u64);
        for place in from..from + all as usize {
            entries.push(entries[place]);
        }
    }
}

impl Survey for Mover<'_> {
    fn tlp(&mut self, tlp: &mut Tlp) {
        let verb = if tlp.kind == TlpKind::MWr { Verb::Store } else { Verb::Load };
        let Some((leg, by)) = self.leg(tlp.requester, verb) else { return };
        let Some(number) = leg.number_of(tlp, self.slab) else { return };
        let skip = u64::from(tlp.first_be.trailing_zeros().min(3));
        let Some(within) = leg.within(number, tlp.address + skip) else { return };
        tlp.address = leg.address_of(number + by) + within - skip;
        if tlp.payload != Slot::NONE {
            if leg.verb == Verb::Store {
                self.slab.note(tlp.payload, number + by);
            }
            self.to_fill.push(*tlp);
        }
    }

    fn place(&mut self, owner: u16, verb: Verb, number: u64, address: &mut u64) {
        if let Some((leg, by)) = self.leg(owner, verb)
            && let Some(within) = leg.within(number, *address)
        {
            *address = leg.address_of(number + by) + within;
        }
    }

    fn tag(&mut self, _owner: u16, tag: u16) -> u64 {
        tag.into()
    }
}
