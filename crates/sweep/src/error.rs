//! Errors of a space.

use lanemark_runner::RunError;

/// A space that cannot be listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// The file is not TOML.
    #[error("{file}: {message}")]
    Toml {
        /// The file.
        file: String,
        /// The error, with line and column.
        message: String,
    },
    /// A key of the file, or a value, is wrong.
    #[error("{file}: {key}: {message}")]
    Key {
        /// The file.
        file: String,
        /// Path of the key.
        key: String,
        /// The problem of its value, and the values that it takes.
        message: String,
    },
    /// A platform cannot be opened.
    #[error("{file}: platforms: {source}")]
    Platform {
        /// The file.
        file: String,
        /// The error.
        source: Box<RunError>,
    },
}

impl SpaceError {
    /// An error of one key.
    pub(crate) fn key(file: &str, key: impl Into<String>, message: impl Into<String>) -> SpaceError {
        SpaceError::Key { file: file.to_owned(), key: key.into(), message: message.into() }
    }
}
