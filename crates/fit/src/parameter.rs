//! A parameter of a fit.

use lanemark_platform::default_of;

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

/// Whether a parameter is a time of the engine that is 0 by default, which means that its mechanism is not there.
pub(crate) fn may_be_nothing(key: &str) -> bool {
    key.starts_with("dma") && default_of(key) == Some(0.0)
}

/// Share of the lower end of its search range that such a parameter may reach: 0.5 ns for each request of 128 B would be a
/// fifth of the time on the fastest links.
pub(crate) const NEARLY_NOTHING: f64 = 0.2;

/// Lower bound of a parameter whose search range begins at `low`.
pub(crate) fn least(key: &str, low: f64) -> f64 {
    if may_be_nothing(key) { low * NEARLY_NOTHING } else { low }
}
