//! A parameter of a fit.

/// A parameter of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name, for messages.
    pub name: String,
    /// Start value of the search.
    pub start: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Step of derivatives, as a share of the value, or of the distance between the bounds where the value is 0. It
    /// must be large enough to change the residuals by more than their discontinuities.
    pub step_share: f64,
}
