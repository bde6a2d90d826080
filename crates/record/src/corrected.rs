//! Errors that links repaired themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Correctable errors of one kind that one port counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectedErrors {
    /// The port, by its name in the platform.
    pub port: String,
    /// The bit of its Correctable Error Status register, by the name that `lspci` gives it: `BadTLP`, `BadDLLP`, `Timeout`,
    /// `Rollover`.
    pub error: String,
    /// How many.
    pub count: u64,
}

impl std::fmt::Display for CorrectedErrors {
    /// `3 BadTLP at card`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} at {}", self.count, self.error, self.port)
    }
}
