//! Error for a failed allocation of host memory.

use lanemark_units::format_size;

/// The system did not provide host memory for the program's end of a copy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot allocate {} of host memory: {because}; use a smaller size, or raise the limit (ulimit -v)", format_size(*.bytes))]
pub struct NoHostMemory {
    /// Requested size in bytes.
    pub bytes: u64,
    /// Error of the system call.
    pub because: String,
}
