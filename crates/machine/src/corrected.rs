//! Correctable link errors.

use lanemark_wire::config::AerError;

/// Correctable errors of one kind, counted at one port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Corrected {
    /// Name of the port in the platform.
    pub port: String,
    /// Kind of error.
    pub error: AerError,
    /// Number of errors.
    pub count: u64,
}
