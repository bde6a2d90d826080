//! Progress bars on standard error, if it is a terminal.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use lanemark_runner::Event;
use std::fmt::Write;
use std::time::Duration;

/// Interval between updates of the remaining time.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// A bar with `length` steps and the estimated remaining time.
pub fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // The template is a constant and valid; on an error the plain bar is used.
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} {eta} left  {msg}") {
        bar.set_style(style);
    }
    tick(&bar);
    bar
}

/// Updates a bar on a thread of its own. Without one, because the system permits no more, it advances with the work only.
fn tick(bar: &ProgressBar) {
    // The bar panics if it cannot create its thread.
    let is_permitted = || std::thread::Builder::new().spawn(|| {}).map(std::thread::JoinHandle::join).is_ok();
    if !bar.is_hidden() && is_permitted() {
        bar.enable_steady_tick(UPDATE_INTERVAL);
    }
}

/// A progress bar of cases that also advances within a case.
pub struct Cases(ProgressBar);

impl Cases {
    /// Steps of one case: finer than the 32 columns of the bar, because the remaining time is computed from steps.
    const STEPS: u64 = 1000;

    /// A bar before the start of a run.
    pub fn new() -> Cases {
        let bar = progress(0);
        let count = |state: &ProgressState, out: &mut dyn Write| {
            // An error of this write has no effect.
            let _ = out.write_str(&Cases::count(state.pos(), state.len().unwrap_or(0)));
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {cases} {eta} left  {msg}") {
            // Eighths of a column, for slow progress.
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏░").with_key("cases", count));
        }
        Cases(bar)
    }

    /// Shows an event of a run.
    pub fn show(&self, event: Event<'_>) {
        match event {
            Event::Begun { cases } => self.0.set_length(Cases::steps(cases as f64)),
            Event::Asking { question, target } => self.0.set_message(format!("{question} on {target}")),
            Event::Done { cases } => self.0.set_position(Cases::steps(cases)),
            _ => {}
        }
    }

    /// Removes the bar from the screen.
    pub fn end(self) {
        self.0.finish_and_clear();
    }

    /// Number of complete cases, and the overall progress to a tenth of a percent.
    fn count(steps: u64, all: u64) -> String {
        let percent = 100.0 * steps as f64 / all.max(1) as f64;
        format!("{}/{}, {percent:.1} %,", steps / Cases::STEPS, all / Cases::STEPS)
    }

    fn steps(cases: f64) -> u64 {
        (cases * Cases::STEPS as f64) as u64
    }
}

/// A spinner with the elapsed time, for work of unknown length.
pub fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    tick(&bar);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_advances_within_a_case_and_is_full_at_the_end() {
        let bar = Cases::new();
        bar.show(Event::Begun { cases: 8 });
        assert_eq!(bar.0.length(), Some(8000));
        for (cases, steps) in [(0.0, 0), (0.01, 10), (2.5, 2500), (8.0, 8000)] {
            bar.show(Event::Done { cases });
            assert_eq!(bar.0.position(), steps);
        }
        let counts = [0, 10, 999, 2500, 8000].map(|steps| Cases::count(steps, 8000));
        assert_eq!(counts, ["0/8, 0.0 %,", "0/8, 0.1 %,", "0/8, 12.5 %,", "2/8, 31.2 %,", "8/8, 100.0 %,"]);
        bar.end();
    }
}
