//! Results of `lanemark fleet`: the same questions to several machines, and the machines that differ.

use crate::{Method, Quantity, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the fleet format that this code writes.
pub const SCHEMA: u32 = 1;

/// Several machines, and their answers that differ from those of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    /// Version of this format.
    pub schema: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// The machines, in the order given.
    pub machines: Vec<Machine>,
    /// Number of answers that enough machines have for a judgement.
    pub judged: u64,
    /// Number of answers that fewer than four machines have.
    pub not_judged: u64,
    /// Least difference from the median of the others that counts, in percent of the time.
    pub min_effect_percent: f64,
    /// Answers of one machine that differ from those of the others, the largest difference first.
    pub outliers: Vec<Outlier>,
}

/// A machine of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the machine.
    pub name: String,
    /// Number of its answers.
    pub answers: u64,
    /// Number of its outliers.
    pub outliers: u64,
    /// Findings of `doctor` that most others do not have; absent without a diagnosis, or without one of another machine.
    pub only_here: Option<Vec<OnlyHere>>,
    /// Reason why there is no diagnosis; absent if there is one, or if none was asked for.
    pub no_diagnosis: Option<String>,
    /// Reason why answers are missing; absent if none are.
    pub problem: Option<String>,
}

/// A finding of `doctor` that most other machines do not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnlyHere {
    /// Name of the check.
    pub check: String,
    /// Affected functions; empty for the machine as a whole.
    pub functions: Vec<String>,
    /// The problem and its reason.
    pub reason: String,
    /// Number of other machines with a finding of the same check.
    pub others: u64,
}

/// An answer of one machine that differs from those of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outlier {
    /// Name of the machine.
    pub machine: String,
    /// Name of the question.
    pub question: String,
    /// The target on this machine.
    pub target: String,
    /// The method.
    pub method: Method,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Offset from a 64 B boundary.
    pub alignment_bytes: u64,
    /// Quantity of the answer.
    pub quantity: Quantity,
    /// Number of machines with this answer.
    pub machines: u64,
    /// Median time per iteration or access on this machine.
    pub time_ns: f64,
    /// Median of that time over the machines that are no outliers.
    pub others_ns: f64,
    /// Time on this machine over that median: above 1, it is slower.
    pub ratio: f64,
    /// Distance of the logarithm of the time from the mean of the others, in standard deviations of the others; absent if
    /// they do not vary.
    pub deviations: Option<f64>,
}

/// The JSON Schema of [`Fleet`], as text with a final newline.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Fleet);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
