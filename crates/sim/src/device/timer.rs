//! A timer of a card: a register that counts clock ticks while it runs.
//!
//! It counts clock edges, as a hardware counter does: a span of ten and a half ticks counts ten or eleven, depending
//! on when it begins.

use crate::steady::Survey;
use lanemark_units::Ticks;

/// State of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timer {
    /// The count up to its last start.
    counted: u64,
    /// Start time, if it runs.
    since: Option<Ticks>,
}

impl Timer {
    /// Starts the timer at `now`, unless it runs.
    pub fn start(&mut self, now: Ticks) {
        self.since.get_or_insert(now);
    }

    /// Stops the timer, if it runs; `tick` is the card's clock period.
    pub fn stop(&mut self, at: Ticks, tick: Ticks) {
        self.counted = self.at(at, tick);
        self.since = None;
    }

    /// Returns the count at an instant.
    #[must_use]
    pub fn at(&self, at: Ticks, tick: Ticks) -> u64 {
        let edges = |until: Ticks| until.0 / tick.0.max(1);
        let more = self.since.map_or(0, |since| edges(at).saturating_sub(edges(since)));
        self.counted.wrapping_add(more)
    }

    /// Writes the count; a running timer continues from it.
    pub fn set(&mut self, now: Ticks, value: u64) {
        self.counted = value;
        if let Some(since) = &mut self.since {
            *since = now;
        }
    }

    /// Visits the state.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Timer { counted, since } = self;
        // Reports only; neither changes during DMA.
        view.counter(counted);
        view.flag(since.is_some());
        if let Some(since) = since {
            view.mark(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Ticks = Ticks(10);

    #[test]
    fn a_timer_counts_clock_edges_between_start_and_stop() {
        let counted = |from, to| {
            let mut timer = Timer::default();
            timer.start(Ticks(from));
            timer.stop(Ticks(to), TICK);
            timer.at(Ticks(1000), TICK)
        };
        assert_eq!([counted(0, 99), counted(0, 100), counted(99, 100), counted(100, 109)], [9, 10, 1, 0]);
        let mut timer = Timer::default();
        assert_eq!(timer.at(Ticks(500), TICK), 0);
        timer.start(Ticks(20));
        timer.start(Ticks(50));
        assert_eq!([timer.at(Ticks(29), TICK), timer.at(Ticks(30), TICK)], [0, 1]);
    }

    #[test]
    fn spans_add_up_until_a_write_sets_the_count() {
        let mut timer = Timer::default();
        for start in [100, 200] {
            timer.start(Ticks(start));
            timer.stop(Ticks(start + 30), TICK);
        }
        assert_eq!(timer.at(Ticks(300), TICK), 6);
        timer.set(Ticks(300), 2);
        assert_eq!(timer.at(Ticks(400), TICK), 2);
        timer.start(Ticks(400));
        timer.set(Ticks(455), u64::MAX);
        assert_eq!([timer.at(Ticks(459), TICK), timer.at(Ticks(460), TICK)], [u64::MAX, 0]);
    }
}
