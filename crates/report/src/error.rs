//! What can go wrong on the way to a page.

/// Why a report could not be made.
///
/// Terminal tables cannot fail; only the page can, and only through a mistake of this program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The template of the page refused what it was given.
    #[error("filling in the page's template: {source}")]
    Template {
        /// What it said.
        source: askama::Error,
    },
    /// The figures for the plots could not be written as JSON.
    #[error("writing the figures for the plots as JSON: {source}")]
    Plots {
        /// What the writer said.
        source: serde_json::Error,
    },
}
