//! Progress of a run.

use lanemark_units::Ticks;
use std::time::Instant;

/// What happens during a run, in order: `Begun` once, then for each question and target `Asking` and any number of `Done`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// All targets are open and all cases are known.
    Begun {
        /// The number of cases of the whole run.
        cases: usize,
    },
    /// The cases of one question on one target begin.
    Asking {
        /// The question's name.
        question: &'a str,
        /// The target's name.
        target: &'a str,
    },
    /// Cases are done.
    Done {
        /// Cases done since the run began, with the completed fraction of those in progress.
        cases: f64,
    },
}

/// How many of `all` cases are as good as done when they are visited in rounds from `begun` until `budget` is spent: none of
/// them ends much before the others.
pub(crate) fn by_time(begun: Instant, budget: Ticks, all: usize) -> f64 {
    let share = begun.elapsed().as_secs_f64() * 1e9 / budget.as_ns().max(1.0);
    share.min(1.0) * all as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn when_the_budget_is_spent_all_is_done_and_before_as_much_as_of_it_is() {
        let begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let seconds = |seconds: u64| Ticks::whole_ns(seconds * 1_000_000_000);
        let is_all = |budget| (by_time(begun, budget, 7) - 7.0).abs() < 1e-9;
        assert!(is_all(seconds(1)) && is_all(Ticks::ZERO));
        assert!((0.8..1.0).contains(&by_time(begun, seconds(1000), 90)));
        assert!((49.9..=60.0).contains(&by_time(begun, seconds(20), 100)));
    }
}
