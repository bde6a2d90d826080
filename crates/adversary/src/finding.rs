//! A rule that a device has broken.

use crate::rule::Rule;
use std::fmt;

/// A broken rule, and where it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What was seen.
    pub what: String,
    /// Clock of the observation.
    pub clock: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.rule.row();
        write!(f, "{} ({}: {}): {} at clock {}", row.name, row.source, row.statement, self.what, self.clock)
    }
}

impl std::error::Error for Finding {}
