//! Progress events of a run.

use lanemark_units::Ticks;
use std::time::Instant;

/// A step of a run. Order: `Begun` once, then for each question and target `Asking` and any number of `Done`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The start: all targets are open and all cases are planned.
    Begun {
        /// The number of cases of the whole run.
        cases: usize,
    },
    /// The start of the cases of one question on one target.
    Asking {
        /// The question's name.
        question: &'a str,
        /// The target's name.
        target: &'a str,
    },
    /// Progress within the cases.
    Done {
        /// Cases completed since the start of the run, including the completed fraction of those in progress.
        cases: f64,
    },
}

/// The number of completed cases, out of `all`, estimated from the elapsed share of `budget` since `begun`. Needed for
/// cases measured in rounds, which all end at about the same time.
pub(crate) fn by_time(begun: Instant, budget: Ticks, all: usize) -> f64 {
    let share = begun.elapsed().as_secs_f64() * 1e9 / budget.as_ns().max(1.0);
    share.min(1.0) * all as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn completed_cases_are_proportional_to_the_elapsed_share_of_the_budget() {
        let begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let seconds = |seconds: u64| Ticks::whole_ns(seconds * 1_000_000_000);
        let is_all = |budget| (by_time(begun, budget, 7) - 7.0).abs() < 1e-9;
        assert!(is_all(seconds(1)) && is_all(Ticks::ZERO));
        assert!((0.8..1.0).contains(&by_time(begun, seconds(1000), 90)));
        assert!((49.9..=60.0).contains(&by_time(begun, seconds(20), 100)));
    }
}
