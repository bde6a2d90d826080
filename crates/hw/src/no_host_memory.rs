//! Why a program has no memory for what it copies.

use lanemark_units::format_size;

/// The machine has not so much memory for the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this machine has no memory for {} of the program: {because}; ask for less, or allow more (ulimit -v)", format_size(*.bytes))]
pub struct NoHostMemory {
    /// What was asked for.
    pub bytes: u64,
    /// What the system said.
    pub because: String,
}
