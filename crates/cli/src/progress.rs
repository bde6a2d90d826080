//! What moves on standard error while somebody waits, if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use lanemark_units::Ticks;
use std::time::{Duration, Instant};

/// Between two looks at how long it still takes.
const LOOK: Duration = Duration::from_millis(200);

/// A bar of so many steps, with the time that is left by the pace until now.
pub fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // The template is ours and known to be right; the plain bar would do as well.
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} {eta} left  {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(LOOK);
    bar
}

/// Something that moves while the end cannot be told, with the time that is over.
pub fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(LOOK);
    bar
}

/// How many of `all` cases are as good as done that are visited in rounds since `begun` until `budget` is spent, for none of
/// them ends much before the others.
pub fn by_time(begun: Instant, budget: Ticks, all: usize) -> usize {
    let share = begun.elapsed().as_secs_f64() * 1e9 / budget.as_ns().max(1.0);
    (share.min(1.0) * all as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_the_budget_is_spent_all_is_done_and_before_as_much_as_of_it_is() {
        let begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let seconds = |seconds: u64| Ticks::whole_ns(seconds * 1_000_000_000);
        assert_eq!(by_time(begun, seconds(1), 7), 7);
        assert_eq!(by_time(begun, seconds(1000), 90), 0);
        assert!((49..=60).contains(&by_time(begun, seconds(20), 100)));
        assert_eq!(by_time(begun, Ticks::ZERO, 7), 7);
    }
}
