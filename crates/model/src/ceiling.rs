//! A ceiling: a limit and its derivation.

use lanemark_units::Rate;

/// A computed limit and its derivation.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Payload bytes per second that no transfer of this size exceeds.
    pub rate: Rate,
    /// The parameters that determine it.
    pub because: String,
}
