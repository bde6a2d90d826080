//! Errors that links repair themselves.

use lanemark_wire::config::AerError;

/// Correctable errors of one kind that one port counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corrected {
    /// Which port, by its name in the platform.
    pub port: String,
    /// Which error.
    pub error: AerError,
    /// How many.
    pub count: u64,
}
