//! Reasons why a platform file cannot be filled in.

use crate::{FitDataError, FitError};
use lanemark_platform::PlatformError;

/// Reasons why a platform file cannot be filled in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The data are not usable for a fit.
    #[error(transparent)]
    Record(#[from] FitDataError),
    /// The fit failed.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A fitted number is not valid in the platform.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// The filled-in platform cannot be simulated.
    #[error("{0}")]
    Simulation(String),
    /// [`FillOptions::cancel`] was set.
    #[error("the fit was cancelled")]
    Cancelled,
}
