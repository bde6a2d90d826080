//! Reasons for which no formula is computed.

use lanemark_platform::PlatformError;

/// The formulas of a page cannot be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// A message of the script, or the platform of the record, is not the JSON that is expected.
    #[error("the data of the page cannot be read: {0}; make the page again with lanemark report")]
    Json(#[from] serde_json::Error),
    /// The platform of the record cannot be written as a platform file.
    #[error("the platform of the record is not a platform file: {0}; make the page again with lanemark report")]
    Toml(#[from] toml::ser::Error),
    /// The platform does not take its keys or the changes of them.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// A change of a method has a value that methods do not take.
    #[error("{key}: {value} is not possible; it takes {takes}")]
    Method {
        /// Name of the change.
        key: String,
        /// The value.
        value: String,
        /// The possible values.
        takes: &'static str,
    },
    /// A panel that is not among the opened ones.
    #[error("panel {panel} is asked, and the page has {panels}")]
    Panel {
        /// Number of the panel.
        panel: usize,
        /// Number of panels.
        panels: usize,
    },
}
