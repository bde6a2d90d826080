//! Why a board cannot be built.

/// Why a platform cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("platform {platform} cannot be simulated: {because}")]
pub struct BoardError {
    /// Which one.
    pub platform: String,
    /// Why not.
    pub because: String,
}
