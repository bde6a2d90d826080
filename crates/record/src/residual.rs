//! Differences between a record and a fitted platform.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer of a record, with the simulated and computed figures of a platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// Question, method and size of the answer.
    pub what: String,
    /// Unit of the three figures: `ns` or `B/s`.
    pub unit: String,
    /// Measured figure of the record.
    pub measured: f64,
    /// Simulated figure.
    pub simulated: f64,
    /// Figure of the formula; absent without a closed form.
    pub formula: Option<f64>,
    /// 100 x (simulated - measured) / measured.
    pub error_percent: f64,
}
