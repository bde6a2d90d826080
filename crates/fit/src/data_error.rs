//! Reasons why data cannot be used for a fit.

/// Reasons why data cannot be used for a fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitDataError {
    /// No target given although the record has several, or an unknown target.
    #[error("the record has answers of {targets}: name one of them as the target")]
    WhichTarget {
        /// Names of the targets in the record.
        targets: String,
    },
    /// A record without answers.
    #[error("the record has no answers")]
    NoAnswers,
    /// A key that is not a number of the platform.
    #[error(
        "{platform} has no number '{key}': {}use a path such as root_complex.core_round_trip_ns or region.NAME.read_ns",
        hint.as_deref().map(|hint| format!("{hint} ")).unwrap_or_default()
    )]
    Key {
        /// Name of the platform.
        platform: String,
        /// The key given.
        key: String,
        /// A suggestion of similar keys of the platform.
        hint: Option<String>,
    },
    /// A key that takes integers only.
    #[error("'{key}' takes integers only in {platform}, and a fit needs continuous values: fit times, rates or cycles")]
    Whole {
        /// Name of the platform.
        platform: String,
        /// The key given.
        key: String,
    },
    /// A platform file without unknown numbers.
    #[error(
        "{platform} has no unknown number: in its file, replace each number to be fitted by {{ unknown = \"reason\" }}; on the \
         command line, --parameter KEY does the same"
    )]
    NothingUnknown {
        /// Name of the platform.
        platform: String,
    },
    /// An error of the platform with the start values.
    #[error("{0}")]
    Start(String),
    /// A figure of a table that the platform does not support.
    #[error(
        "{place}: {question} of {size_bytes} B is not possible on {platform}: [dma] or [memory] is missing or too small"
    )]
    NotAsked {
        /// File and line of the figure.
        place: String,
        /// Name of the question.
        question: &'static str,
        /// Size of one transfer, in bytes.
        size_bytes: u64,
        /// Name of the platform.
        platform: String,
    },
    /// A record of which the platform supports no answer.
    #[error("{platform} supports none of the {answers} answers: its regions, instructions or memory types differ")]
    Nothing {
        /// Number of answers of the target.
        answers: usize,
        /// Name of the platform.
        platform: String,
    },
}
