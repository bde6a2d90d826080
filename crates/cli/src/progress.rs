//! What moves on standard error while somebody waits, if that is a terminal.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use lanemark_units::Ticks;
use std::fmt::Write;
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

/// A bar of so many cases that moves within one too.
pub struct Cases(ProgressBar);

impl Cases {
    /// Steps of one case: a bar has but 32 places, and time left is told from steps.
    const STEPS: u64 = 1000;

    /// None of `all` is done.
    pub fn of(all: usize) -> Cases {
        let bar = progress(all as u64 * Cases::STEPS);
        let count = |state: &ProgressState, out: &mut dyn Write| {
            // What cannot be written stands on no screen.
            let _ = out.write_str(&Cases::count(state.pos(), state.len().unwrap_or(0)));
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {cases} {eta} left  {msg}") {
            // Eighths of a place, for what moves slowly.
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏░").with_key("cases", count));
        }
        Cases(bar)
    }

    /// What is under way.
    pub fn say(&self, what: String) {
        self.0.set_message(what);
    }

    /// So many are done, with the part of the one under way that is.
    pub fn done(&self, cases: f64) {
        self.0.set_position(Cases::steps(cases));
    }

    /// Takes it off the screen.
    pub fn end(self) {
        self.0.finish_and_clear();
    }

    /// Whole cases, and the share of all of them to a tenth of a percent.
    fn count(steps: u64, all: u64) -> String {
        let percent = 100.0 * steps as f64 / all.max(1) as f64;
        format!("{}/{}, {percent:.1} %,", steps / Cases::STEPS, all / Cases::STEPS)
    }

    fn steps(cases: f64) -> u64 {
        (cases * Cases::STEPS as f64) as u64
    }
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
pub fn by_time(begun: Instant, budget: Ticks, all: usize) -> f64 {
    let share = begun.elapsed().as_secs_f64() * 1e9 / budget.as_ns().max(1.0);
    share.min(1.0) * all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_the_budget_is_spent_all_is_done_and_before_as_much_as_of_it_is() {
        let begun = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let seconds = |seconds: u64| Ticks::whole_ns(seconds * 1_000_000_000);
        let is_all = |budget| (by_time(begun, budget, 7) - 7.0).abs() < 1e-9;
        assert!(is_all(seconds(1)) && is_all(Ticks::ZERO));
        assert!((0.8..1.0).contains(&by_time(begun, seconds(1000), 90)));
        assert!((49.9..=60.0).contains(&by_time(begun, seconds(20), 100)));
    }

    #[test]
    fn a_bar_of_cases_moves_within_one_and_is_full_when_all_are_done() {
        let bar = Cases::of(8);
        assert_eq!(bar.0.length(), Some(8000));
        for (cases, steps) in [(0.0, 0), (0.01, 10), (2.5, 2500), (8.0, 8000)] {
            bar.done(cases);
            assert_eq!(bar.0.position(), steps);
        }
        let counts = [0, 10, 999, 2500, 8000].map(|steps| Cases::count(steps, 8000));
        assert_eq!(counts, ["0/8, 0.0 %,", "0/8, 0.1 %,", "0/8, 12.5 %,", "2/8, 31.2 %,", "8/8, 100.0 %,"]);
        bar.end();
    }
}
