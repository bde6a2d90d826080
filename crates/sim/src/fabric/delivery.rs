//! Delivery of DLLPs between the two directions of a link, return of credits, and the schedule of the directions.
//!
//! The sending times of DLLPs do not depend on their delivery. They are delivered only when a TLP waits for one, when
//! many have been sent, or when the state of a link is read.

use super::{Direction, Fabric};
use crate::critical_path::Milestone;
use crate::events::Events;
use crate::fabric::credit::Cost;
use crate::fabric::dllp::DllpKind;
use crate::index::DirectionIndex;
use crate::ports::Port;
use crate::tlp::Tlp;
use lanemark_machine::Cause;
use lanemark_units::Ticks;

impl Fabric {
    /// Returns a direction and the opposite one.
    #[inline]
    pub(crate) fn pair(&mut self, direction: DirectionIndex) -> (&mut Direction, &mut Direction) {
        let [down, up] = &mut self.directions.as_chunks_mut::<2>().0[direction.link().0];
        if direction.is_downstream() { (down, up) } else { (up, down) }
    }

    /// Schedules the next TLP of a direction, or the DLLP that it waits for.
    #[inline(never)]
    pub(crate) fn refresh(&mut self, events: &mut Events, direction: DirectionIndex) {
        let (line, back) = self.pair(direction);
        Fabric::refresh_pair(events, direction, line, back);
    }

    /// Schedules the next TLP of `line`, which is `direction`; `back` is the opposite direction.
    #[allow(clippy::inline_always)] // For every TLP, several times.
    #[inline(always)]
    pub(crate) fn refresh_pair(
        events: &mut Events,
        direction: DirectionIndex,
        line: &mut Direction,
        back: &mut Direction,
    ) {
        let now = events.now;
        let due = line.transmitter.due(now);
        if due.awaits_dllp || line.awaits_dllp {
            return Fabric::refresh_awaiting(events, direction, line, back);
        }
        Fabric::set_send(events, direction, line, back.awaits_dllp, due.at);
    }

    /// Schedules both directions as [`Fabric::refresh_pair`], if the first one waits or waited for a DLLP.
    #[inline(never)]
    fn refresh_awaiting(events: &mut Events, direction: DirectionIndex, line: &mut Direction, back: &mut Direction) {
        let now = events.now;
        let mut due = line.transmitter.due(now);
        if due.awaits_dllp && back.transmitter.tell(now, &mut line.transmitter) {
            due = line.transmitter.due(now);
        }
        let awaited = std::mem::replace(&mut line.awaits_dllp, due.awaits_dllp);
        Fabric::set_send(events, direction, line, back.awaits_dllp, due.at);
        if awaited || due.awaits_dllp {
            let next_tlp = back.transmitter.due(now).at;
            Fabric::set_send(events, direction.opposite(), back, due.awaits_dllp, next_tlp);
        }
    }

    /// Schedules a direction: at its next TLP, or at a DLLP that the other end waits for.
    #[inline]
    fn set_send(events: &mut Events, direction: DirectionIndex, line: &Direction, is_awaited: bool, next_tlp: Ticks) {
        let at = if is_awaited { next_tlp.min(line.transmitter.next_dllp_at()) } else { next_tlp };
        events.set(Port::Send(direction), at.max(events.now));
    }

    /// Delivers the DLLPs sent to a direction up to now; returns whether there were any.
    #[inline(never)]
    pub(crate) fn receive_dllps(&mut self, now: Ticks, direction: DirectionIndex) -> bool {
        let (receiver, sender) = self.pair(direction);
        sender.transmitter.tell(now, &mut receiver.transmitter)
    }

    /// Delivers the DLLPs sent up to now, in every direction.
    pub(crate) fn deliver_all_dllps(&mut self, events: &mut Events) {
        for direction in self.each_direction() {
            if self.receive_dllps(events.now, direction) && self.directions[direction].awaits_dllp {
                self.refresh(events, direction);
            }
        }
    }

    /// Delivers the DLLPs of this direction, if the other direction waits for one.
    #[inline]
    pub(crate) fn pass_on_dllps(&mut self, events: &mut Events, direction: DirectionIndex) {
        let other = direction.opposite();
        if self.directions[other].awaits_dllp && self.receive_dllps(events.now, other) {
            self.refresh(events, other);
        }
    }

    /// Schedules a DLLP of a direction for the other one.
    #[allow(clippy::inline_always)] // For every TLP, several times: all such calls are 3 % of a run.
    #[inline(always)]
    pub(crate) fn schedule_dllp(
        &mut self,
        events: &mut Events,
        direction: DirectionIndex,
        kind: DllpKind,
        from: Ticks,
    ) {
        let (line, back) = self.pair(direction);
        let are_many = line.transmitter.schedule_dllp(kind, from);
        if back.awaits_dllp {
            self.pass_on_dllps(events, direction);
            self.refresh(events, direction);
        } else if are_many {
            line.transmitter.tell(events.now, &mut back.transmitter);
        }
    }

    /// Queues a TLP at an input of a direction, ready at `at`.
    #[inline]
    pub(crate) fn offer(&mut self, events: &mut Events, direction: DirectionIndex, input: usize, at: Ticks, tlp: Tlp) {
        let (line, back) = self.pair(direction);
        if line.transmitter.offer(input, at, tlp) {
            Fabric::refresh_pair(events, direction, line, back);
        }
    }

    /// Returns the credits of a TLP that left the receive buffer of a direction; `because` is the stall cause of a
    /// sender that waits for them, and `milestone` is when the TLP left.
    #[inline]
    pub(crate) fn return_credits(
        &mut self,
        events: &mut Events,
        direction: DirectionIndex,
        cost: Cost,
        because: Cause,
        milestone: Milestone,
    ) {
        let (now, kind) = (events.now, DllpKind::update(cost.class));
        let (line, back) = self.pair(direction);
        if !line.transmitter.counts(kind) {
            return;
        }
        line.transmitter.free(kind, now, cost.data, because, milestone);
        let are_many = back.transmitter.schedule_dllp(kind, now);
        if line.awaits_dllp || line.transmitter.is_exhausted(kind) {
            return self.return_awaited_credits(events, direction, kind);
        }
        if are_many {
            back.transmitter.tell(now, &mut line.transmitter);
        }
    }

    /// Sends the DLLP that returns credits, if the sender waits for it or has no others.
    #[inline(never)]
    fn return_awaited_credits(&mut self, events: &mut Events, direction: DirectionIndex, kind: DllpKind) {
        let (now, opposite) = (events.now, direction.opposite());
        if self.directions[direction].awaits_dllp {
            self.pass_on_dllps(events, opposite);
            self.refresh(events, opposite);
        }
        if self.is_exhausted(now, direction, kind) {
            self.directions[opposite].transmitter.hurry(now, kind);
            self.refresh(events, opposite);
            self.pass_on_dllps(events, opposite);
        }
        if self.directions[direction].awaits_dllp {
            self.refresh(events, direction);
        }
    }

    /// Returns whether the sender of a direction has used every credit returned up to now.
    #[inline]
    fn is_exhausted(&mut self, now: Ticks, direction: DirectionIndex, kind: DllpKind) -> bool {
        let is_exhausted = |fabric: &Fabric| fabric.directions[direction].transmitter.is_exhausted(kind);
        is_exhausted(self) && {
            self.receive_dllps(now, direction);
            is_exhausted(self)
        }
    }

    /// Sends and delivers every scheduled DLLP.
    pub(crate) fn settle_all(&mut self, now: Ticks) {
        for direction in self.each_direction() {
            self.directions[direction].transmitter.settle_all();
            self.receive_dllps(now, direction.opposite());
        }
    }

    /// Sends and delivers every scheduled DLLP that is due before `due`; returns whether these were all.
    pub(crate) fn settle_before(&mut self, now: Ticks, due: Ticks) -> bool {
        for direction in self.each_direction() {
            if !self.directions[direction].transmitter.settle_before(due) {
                return false;
            }
            self.receive_dllps(now, direction.opposite());
        }
        true
    }
}
