//! One point of a sweep with its figures, a line of a log.

use crate::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One point of a sweep with its figures, or with the reason why it has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepRow {
    /// Hash of everything that the figures depend on, as 32 hexadecimal digits in lower case: the platform, its changed keys, the
    /// question with its options, and the program.
    #[schemars(length(equal = 32), regex(pattern = "^[0-9a-f]*$"))]
    pub key: String,
    /// Name of the platform.
    pub platform: String,
    /// Changed keys of the platform, with their values. Each name ends in its unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub varied: BTreeMap<String, String>,
    /// Options of the question, with their values. Each name ends in its unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Name of the question in the catalogue.
    pub question: String,
    /// Source of the figures.
    pub by: SweptBy,
    /// Label of the method; empty if no case of the question applies to any platform of the space.
    pub method: String,
    /// Bytes per iteration; for a latency, bytes per access. Absent without a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Offset of the first byte from a 64 B boundary. Absent without a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alignment_bytes: Option<u64>,
    /// Quantity of the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Quantity>,
    /// Latency; absent for bandwidths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<f64>,
    /// Delivered rate; absent for latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_rate_bytes_per_s: Option<f64>,
    /// Rate of the ceiling; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_rate_bytes_per_s: Option<f64>,
    /// Delivered rate over the rate of the ceiling, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_ceiling_percent: Option<f64>,
    /// Bound of the figure in words, as in tables. For a simulation: the cause with the largest share of the critical
    /// path, and the place of a cause at a link; `longest_wait_percent` is that share. For formulas, and for a
    /// simulation without a critical path: the bound of the formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<String>,
    /// Bound of the transfer by the formula, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<String>,
    /// Name of the stall cause whose remedies raise that bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_cause: Option<String>,
    /// Name of the stall cause with the largest share of the critical path; absent for formulas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wait_cause: Option<String>,
    /// Share of that cause, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wait_percent: Option<f64>,
    /// Latency by the formula, beside a simulated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula_latency_ns: Option<f64>,
    /// Delivered rate by the formula, beside a simulated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula_delivered_rate_bytes_per_s: Option<f64>,
    /// Reason why the point has no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// Source of the figures of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweptBy {
    /// Closed formulas.
    Formulas,
    /// Simulation, with the figures of the formulas beside it.
    Simulation,
}

impl SweptBy {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SweptBy::Formulas => "formulas",
            SweptBy::Simulation => "simulation",
        }
    }
}

impl SweepRow {
    /// A row without figures.
    #[must_use]
    pub fn without_figure(key: String, platform: String, question: String, by: SweptBy) -> SweepRow {
        SweepRow {
            key,
            platform,
            varied: BTreeMap::new(),
            options: BTreeMap::new(),
            question,
            by,
            method: String::new(),
            size_bytes: None,
            alignment_bytes: None,
            quantity: None,
            latency_ns: None,
            delivered_rate_bytes_per_s: None,
            ceiling_rate_bytes_per_s: None,
            share_of_ceiling_percent: None,
            bound_by: None,
            bound: None,
            bound_cause: None,
            longest_wait_cause: None,
            longest_wait_percent: None,
            formula_latency_ns: None,
            formula_delivered_rate_bytes_per_s: None,
            because: None,
        }
    }
}
