//! A timer of a card: a register that counts ticks of the card's clock while it runs.
//!
//! It counts the edges of that clock, as a counter in a circuit does: a span of ten ticks and a half is ten of them or eleven, and
//! which depends on when it begins.

use crate::steady::Survey;
use lanemark_units::Ticks;

/// Everything that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timer {
    /// What it had counted before it was started.
    counted: u64,
    /// Since when it runs, if it does.
    since: Option<Ticks>,
}

impl Timer {
    /// It runs from `now` on, if it did not before.
    pub fn start(&mut self, now: Ticks) {
        self.since.get_or_insert(now);
    }

    /// It stops, if it runs, and keeps what it has counted; `tick` is that of the card's clock.
    pub fn stop(&mut self, at: Ticks, tick: Ticks) {
        self.counted = self.at(at, tick);
        self.since = None;
    }

    /// What it shows at an instant.
    #[must_use]
    pub fn at(&self, at: Ticks, tick: Ticks) -> u64 {
        let edges = |until: Ticks| until.0 / tick.0.max(1);
        let more = self.since.map_or(0, |since| edges(at).saturating_sub(edges(since)));
        self.counted.wrapping_add(more)
    }

    /// Somebody writes to it: it shows that now, and goes on from there if it runs.
    pub fn set(&mut self, now: Ticks, value: u64) {
        self.counted = value;
        if let Some(since) = &mut self.since {
            *since = now;
        }
    }

    /// Shows everything that changes.
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Timer { counted, since } = self;
        // Nothing depends on either, and neither changes while devices move bytes by themselves.
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
    fn it_counts_edges_between_start_and_stop_and_nothing_else() {
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
    fn spans_add_up_until_somebody_writes_to_it() {
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
