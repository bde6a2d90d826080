//! The state of one direction of a link.

use super::{Crossed, Spec, Transmitter};
use crate::steady::Survey;
use lanemark_units::Ticks;

impl Transmitter {
    /// Returns the constants.
    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns whether a log of DLLPs is kept.
    pub(crate) fn is_watched(&self) -> bool {
        self.dllps.watch.is_some()
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey, now: Ticks) {
        // Whether TLPs are in the lane has no effect.
        self.leave_lane(0);
        let Transmitter {
            spec: _,
            dw: _,
            flits,
            framing_dw: _,
            lane: _,
            lane_of: _,
            has_lane: _,
            slots: _,
            completion_slots: _,
            inputs,
            active,
            queued,
            free,
            offered,
            served,
            account,
            dllps,
            busy_until,
            tlp_from,
            tlp_until,
            departed: _,
            again_at,
            damaged_at,
            replay_num,
            trains_until,
            damaged,
            tried,
            crossed,
        } = self;
        // FLITs begin at multiples of their time, counted from zero.
        view.state(flits.map_or(0, |line| now.0 % line.flit().0));
        let before = *offered;
        view.counter(offered);
        let moved = *offered - before;
        for input in inputs {
            input.visit(view, before, moved);
        }
        view.count(active.len());
        for input in active {
            view.count(*input);
        }
        view.count(*queued);
        view.count(*free);
        view.count(*served);
        account.visit(view);
        dllps.visit(view);
        view.time(busy_until);
        view.time(tlp_from);
        view.time(tlp_until);
        view.moment_if_any(again_at);
        view.moment_if_any(damaged_at);
        view.state((*replay_num).into());
        // Always taken in the same event.
        view.flag(trains_until.is_some());
        view.flag(damaged.is_some());
        view.state(*tried);
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
        } = crossed;
        for count in [writes, reads, completions, payload_bytes, wire_bytes, dllps, replays, replay_timeouts, rollovers]
        {
            view.counter(count);
        }
    }
}
