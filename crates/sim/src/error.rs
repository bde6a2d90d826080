//! The reason why a board cannot be built.

/// The reason why a platform cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("platform {platform} cannot be simulated: {because}")]
pub struct BoardError {
    /// Name of the platform.
    pub platform: String,
    /// The reason, for a person.
    pub because: String,
}
