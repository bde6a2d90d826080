//! What is left between a measured figure and a platform's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One answer of a record beside what a platform gives for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// Which answer: question, method and size.
    pub what: String,
    /// The unit of the three: `ns` or `B/s`.
    pub unit: String,
    /// What the record has.
    pub measured: f64,
    /// What the simulation gives.
    pub simulated: f64,
    /// What the formula gives; absent where there is no closed form.
    pub formula: Option<f64>,
    /// 100 x (simulated - measured) / measured.
    pub error_percent: f64,
}
