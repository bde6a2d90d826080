//! Reasons why an experiment cannot be run.

/// Reasons why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A file of the experiment is invalid.
    #[error("experiments/{paper}/{file}: {message}")]
    File {
        /// Name of the experiment.
        paper: String,
        /// Name of the file.
        file: &'static str,
        /// The problem.
        message: String,
    },
    /// A figure could not be computed.
    #[error("experiments/{paper}: {id}: {message}")]
    Figure {
        /// Name of the experiment.
        paper: String,
        /// ID of the figure.
        id: String,
        /// The problem.
        message: String,
    },
    /// The run was interrupted.
    #[error("experiments/{paper}: stopped after {done} of {of} figures")]
    Stopped {
        /// Name of the experiment.
        paper: String,
        /// Number of finished figures.
        done: usize,
        /// Number of all figures.
        of: usize,
    },
}
