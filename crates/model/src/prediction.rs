//! The prediction for one sample of a plan.

use crate::bound::Bound;

/// Prediction for one sample of a plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// Time from the first timestamp until the last instruction has been issued.
    pub issue_ns: f64,
    /// Time from the first timestamp until the last byte has been accepted (stores) or has arrived (loads).
    pub delivered_ns: f64,
    /// Largest term of the time until delivery.
    pub bound: Bound,
    /// Ratio of the largest term to the next one. Near 1, several limits interact and the true time may exceed all of
    /// them. If it is much larger, the formula is exact up to rounding.
    pub lead: f64,
    /// Conditions under which the formula is valid.
    pub holds_for: &'static str,
}
