//! Errors that links corrected.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Corrected errors of one kind at one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorrectedErrors {
    /// Name of the port in the platform.
    pub port: String,
    /// Bit of its Correctable Error Status register, as named by `lspci`: `BadTLP`, `BadDLLP`,
    /// `Timeout`, `Rollover`.
    pub error: String,
    /// Number of errors.
    pub count: u64,
}

impl std::fmt::Display for CorrectedErrors {
    /// For example `3 BadTLP at card`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} at {}", self.count, self.error, self.port)
    }
}
