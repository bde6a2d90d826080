//! An answer of several runs: its variation between them.

use crate::{Method, Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answers of several records to the same question, with the same method, size and alignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeated {
    /// The question.
    pub question: String,
    /// The target.
    pub target: String,
    /// The method.
    pub method: Method,
    /// The cores of the answer; empty if it is not about particular cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// Size.
    pub size_bytes: u64,
    /// Offset from a 64 B boundary.
    pub alignment_bytes: u64,
    /// Quantity of the answers.
    pub quantity: Quantity,
    /// Number of records with samples of this answer.
    pub records: u64,
    /// Median over the records of their median times per iteration or access; absent without samples.
    pub median_ns: Option<f64>,
    /// The shortest of these medians.
    pub shortest_ns: Option<f64>,
    /// The longest of these medians.
    pub longest_ns: Option<f64>,
    /// Standard deviation between the records, in percent of the time; absent for one record, for
    /// simulations, and for times that are not positive.
    pub between_runs_percent: Option<f64>,
}
