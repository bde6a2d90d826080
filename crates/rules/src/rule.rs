//! A rule, and the outcome of its test.

use lanemark_platform::Platform;

/// A named rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Name of the rule, a statement.
    pub name: &'static str,
    /// The test; it returns the observation, or the violation as an error.
    pub check: Check,
}

/// Test of a rule, by its target.
#[derive(Clone, Copy)]
pub enum Check {
    /// On the experiment's platform.
    Platform(fn(&Platform) -> Result<String, String>),
    /// On a board that the rule builds itself.
    Board(fn() -> Result<String, String>),
}

/// The observation of a rule, or its violation.
pub(crate) type Outcome = Result<String, String>;

/// The observation `seen` if `holds`, and otherwise the violation.
pub(crate) fn hold(holds: bool, seen: String) -> Outcome {
    if holds { Ok(seen) } else { Err(seen) }
}

/// An error of another crate, as text.
pub(crate) fn as_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
