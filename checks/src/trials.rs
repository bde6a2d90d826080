//! Tests whose requirements are only known when they run.
//!
//! The standard harness can ignore a test at compile time only. Files with such tests therefore have `harness = false` and
//! list their tests in `main`. A test that cannot run is ignored, with the reason: the closing line of the run counts it.

pub use libtest_mimic::Trial;
use libtest_mimic::{Arguments, Failed};
use std::process::ExitCode;

/// Whether tests can run, or the reason why they cannot.
#[derive(Clone, Debug)]
pub struct Available {
    missing: Option<String>,
    /// Whether a test that cannot run fails.
    is_required: bool,
}

impl Available {
    /// Nothing is required.
    pub const ALWAYS: Available = Available { missing: None, is_required: false };

    /// A requirement. If it is missing and the environment variable `variable` is not empty, the tests fail.
    #[must_use]
    pub fn new(found: Result<(), String>, variable: &str) -> Available {
        let is_required = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        Available { missing: found.err(), is_required }
    }

    /// A requirement whose tests never fail for its lack.
    #[must_use]
    pub fn optional(found: Result<(), String>) -> Available {
        Available { missing: found.err(), is_required: false }
    }

    /// The requirement of `make` targets that fetch what they need: `skipped` is an environment variable with the reason why
    /// nothing could be fetched; empty or absent if it could.
    #[must_use]
    pub fn unless(skipped: &str) -> Available {
        let because = std::env::var(skipped).ok().filter(|because| !because.is_empty());
        Available::optional(because.map_or(Ok(()), Err))
    }

    /// This requirement and another one; the first missing one is the reason.
    #[must_use]
    pub fn and(&self, other: &Available) -> Available {
        if self.missing.is_some() { self.clone() } else { other.clone() }
    }

    /// The test `body` with these requirements.
    #[must_use]
    pub fn test(&self, name: &str, body: fn()) -> Trial {
        match self.missing.clone() {
            None => Trial::test(name, move || {
                body();
                Ok(())
            }),
            Some(because) => {
                let kind = format!("needs {because}");
                let trial = Trial::test(name, move || Err(Failed::from(because)));
                trial.with_kind(kind).with_ignored_flag(!self.is_required)
            }
        }
    }
}

/// The named functions as tests with the requirements `$available`.
#[macro_export]
macro_rules! trials {
    ($available:expr; $($test:path),+ $(,)?) => {
        [$($available.test(stringify!($test), $test)),+]
    };
}

/// Runs the tests with the arguments of the command line, as the standard harness does.
#[must_use]
pub fn run(tests: Vec<Trial>) -> ExitCode {
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// Runs the tests as [`run`], but starts all at once by default: tests that wait for what they share.
#[must_use]
pub fn run_all_at_once(tests: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(tests.len().max(1));
    libtest_mimic::run(&arguments, tests).exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes() {}

    fn outcome(available: &Available) -> (u64, u64, u64) {
        // The test that fails here is none of this run's.
        let logfile = Some("/dev/null".to_owned());
        let arguments = Arguments { quiet: true, test_threads: Some(1), logfile, ..Arguments::default() };
        let end = libtest_mimic::run(&arguments, trials!(available; passes).into());
        (end.num_passed, end.num_failed, end.num_ignored)
    }

    #[test]
    fn a_test_that_cannot_run_is_counted_as_ignored_and_fails_if_required() {
        assert_eq!(outcome(&Available::ALWAYS), (1, 0, 0));
        let missing = Available { missing: Some("a card".to_owned()), is_required: false };
        assert_eq!(outcome(&missing), (0, 0, 1));
        assert_eq!(outcome(&Available { is_required: true, ..missing.clone() }), (0, 1, 0));
        assert_eq!(outcome(&Available::ALWAYS.and(&missing)), (0, 0, 1));
    }
}
