//! Errors of the HTML page.

/// A report could not be rendered.
///
/// Terminal tables cannot fail. The page fails only through a bug of this program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The template of the page failed.
    #[error("filling in the page's template: {source}")]
    Template {
        /// The error of the template.
        source: askama::Error,
    },
    /// The figures for the plots could not be written as JSON.
    #[error("writing the figures for the plots as JSON: {source}")]
    Plots {
        /// The error of the JSON writer.
        source: serde_json::Error,
    },
}
