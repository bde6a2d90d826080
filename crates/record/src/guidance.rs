//! Results of `lanemark advise`: the method for a workload, the effect of changes of the machine, and whether goals are met.

use crate::{Ceiling, Origins, Tool, WaitShare};
use lanemark_method::{CopyDirection, Method};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the guidance format that this code writes.
pub const SCHEMA: u32 = 1;

/// Advice for a workload on a simulated platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guidance {
    /// Version of this format.
    pub schema: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// The command line.
    pub command: Vec<String>,
    /// Name of the platform.
    pub target: String,
    /// The platform in one line.
    pub summary: String,
    /// Number of parameters of the platform, by origin.
    pub origins: Origins,
    /// Differences of the platform from its file, for this run.
    pub warnings: Vec<String>,
    /// The workload and its goals.
    pub workload: Workload,
    /// The best methods, for each direction, traffic and size.
    pub choices: Vec<Choice>,
    /// Goals, in the order of the choices that they are about.
    pub goals: Vec<Goal>,
    /// Changes of the machine with an effect, the largest gain first.
    pub changes: Vec<MachineChange>,
    /// Changes that were computed and have no effect of [`LEAST_GAIN_PERCENT`] or more.
    pub without_effect: Vec<String>,
    /// Kinds of methods without an answer, with the reason.
    pub unanswered: Vec<String>,
}

/// Smallest gain of a change that is listed, in percent.
pub const LEAST_GAIN_PERCENT: f64 = 1.0;

/// Transfers that a program makes, and their goals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Directions of the transfers.
    pub directions: Vec<CopyDirection>,
    /// Bytes of one transfer.
    pub sizes_bytes: Vec<u64>,
    /// Smallest wanted rate of a stream of transfers; absent without a goal.
    pub rate_bytes_per_s: Option<f64>,
    /// Upper limit of the latency of one transfer, exclusive; absent without a goal.
    pub latency_below_ns: Option<f64>,
}

/// Traffic for which methods are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// One transfer on idle links, timed until its bytes are usable.
    Single,
    /// Transfers back to back, by their delivered rate.
    Stream,
}

/// The best methods for one direction, traffic and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Direction of the transfers.
    pub direction: CopyDirection,
    /// Traffic.
    pub traffic: Traffic,
    /// Bytes of one transfer.
    pub size_bytes: u64,
    /// The best method of each kind, the best kind first; never empty.
    pub ranked: Vec<Ranked>,
    /// Number of kinds that are more than 20 times slower than the best, and not simulated.
    pub far_slower: u64,
}

/// A method and its predicted figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ranked {
    /// The method.
    pub method: Method,
    /// The question whose simulation gave the figure.
    pub question: String,
    /// Rate of a stream in bytes per second, or latency of a single transfer in nanoseconds.
    pub figure: f64,
    /// The same figure by formula; absent without a formula.
    pub formula: Option<f64>,
    /// Factor by which the fastest method of this choice is faster. The first method is at most 2 % slower.
    pub times_slower: f64,
    /// The limit of a stream; absent for single transfers.
    pub ceiling: Option<Ceiling>,
    /// Share of the limit, in percent; absent for single transfers and unknown limits.
    pub share_of_ceiling_percent: Option<f64>,
    /// The cause with the largest share of the critical path.
    pub bound: Option<WaitShare>,
    /// Conditions under which the method is correct; empty if there are none.
    pub rules: Vec<String>,
}

/// A goal for one direction and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Direction of the transfers.
    pub direction: CopyDirection,
    /// Traffic.
    pub traffic: Traffic,
    /// Bytes of one transfer.
    pub size_bytes: u64,
    /// Wanted rate in bytes per second, or limit of the latency in nanoseconds.
    pub wanted: f64,
    /// Predicted figure of the fastest method, in the same unit; absent if no method has an answer, so that the goal is not met.
    pub best: Option<f64>,
    /// The fastest method for this size.
    pub method: Option<Method>,
    /// Whether the fastest method meets the goal.
    pub is_met: bool,
    /// Distance of the prediction from the goal, in percent of the goal; positive if it is better than the goal.
    pub margin_percent: Option<f64>,
    /// The cause with the largest share of the critical path of the best method.
    pub bound: Option<WaitShare>,
    /// Changes that alone meet the goal, if it is not met.
    pub met_with: Vec<String>,
}

/// Kind of a change of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The program or driver uses another method.
    Software,
    /// A setting of the installed hardware.
    Setting,
    /// All settings with an effect together.
    AllSettings,
    /// Other hardware.
    Hardware,
}

/// A change of the machine and its effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MachineChange {
    /// Kind of the change.
    pub kind: ChangeKind,
    /// The change: `Max_Payload_Size of 512 B instead of 256 B`.
    pub what: String,
    /// Steps of the change.
    pub how: String,
    /// Changed keys of the platform with their new values; empty for another method.
    pub with: Vec<(String, String)>,
    /// Effect for each direction, traffic and size for which it was computed.
    pub effects: Vec<Effect>,
}

impl MachineChange {
    /// The largest gain, in percent.
    #[must_use]
    pub fn largest_gain_percent(&self) -> f64 {
        self.effects.iter().map(|effect| effect.gain_percent).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Effect of a change on one choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// Direction of the transfers.
    pub direction: CopyDirection,
    /// Traffic.
    pub traffic: Traffic,
    /// Bytes of one transfer.
    pub size_bytes: u64,
    /// Figure without the change: bytes per second, or nanoseconds.
    pub before: f64,
    /// Figure with the change.
    pub after: f64,
    /// Gain in speed, in percent: rate after over rate before, or latency before over latency after.
    pub gain_percent: f64,
    /// The cause with the largest share of the critical path without the change.
    pub bound_before: Option<WaitShare>,
    /// The cause with the largest share of the critical path after the change.
    pub bound_after: Option<WaitShare>,
}

/// The JSON Schema of [`Guidance`] as text, with a final newline.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Guidance);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
