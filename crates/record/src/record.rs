//! A record, its targets, and what a run adds to its answers.

use crate::answer::Answer;
use crate::card::Card;
use crate::design::Design;
use crate::host::Host;
use crate::imported::Imported;
use crate::link::Link;
use crate::runtime::Runtime;
use crate::tool::Tool;
use lanemark_method::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the record format that this code reads and writes.
pub const SCHEMA: u32 = 4;

/// The results of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Version of this format.
    pub schema: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// The command line, as given.
    pub command: Vec<String>,
    /// Time of writing, in seconds since 1970-01-01 UTC; absent if nothing real was measured.
    pub written_unix_s: Option<u64>,
    /// The machine that ran this program; absent if nothing real was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// Figures of another tool, from which `lanemark import` made this record; absent if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The targets.
    pub targets: Vec<Target>,
    /// The answers, in order of measurement.
    pub answers: Vec<Answer>,
    /// Cases without an answer, with reasons.
    pub skipped: Vec<Skipped>,
    /// Warnings that a reader needs before using the figures.
    pub warnings: Vec<String>,
    /// The best method per target, direction and size.
    pub advice: Vec<Advice>,
    /// Remarkable results, with reasons.
    pub findings: Vec<Finding>,
    /// Whether the run was stopped early; only the results obtained until then are included.
    pub interrupted: bool,
}

impl Record {
    /// An empty record of this program.
    #[must_use]
    pub fn new(command: Vec<String>) -> Record {
        Record {
            schema: SCHEMA,
            tool: Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            command,
            written_unix_s: None,
            host: None,
            imported: None,
            targets: Vec::new(),
            answers: Vec::new(),
            skipped: Vec::new(),
            warnings: Vec::new(),
            advice: Vec::new(),
            findings: Vec::new(),
            interrupted: false,
        }
    }
}

/// A target of questions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name used by answers.
    pub name: String,
    /// Summary in one line.
    pub summary: String,
    /// Kind of its answers.
    pub kind: TargetKind,
    /// Implementation behind the access `memcpy`.
    pub memcpy: String,
    /// The platform as used, with all defaults; absent for real machines and for designs.
    pub platform: Option<serde_json::Value>,
    /// Number of given, assumed and fitted parameters of the platform, or of that of the design.
    pub origins: Option<Origins>,
    /// The device, its accessed ranges and its state; absent unless a real card was measured.
    pub card: Option<Card>,
    /// Links of the target, those of switches first; empty if unknown.
    #[serde(default)]
    pub links: Vec<Link>,
    /// The device of a runtime and its software; absent for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// The design and its simulated host; absent unless the card is compiled from its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<Design>,
}

/// Kind of a target's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Virtual time on a simulated platform.
    Simulated,
    /// Real time on a real machine.
    Real,
    /// A real backend in an emulator: the bytes are real, but timings are not meaningful. Such
    /// answers have no ceiling and are never compared with real ones.
    Emulated,
    /// Formulas only.
    Formula,
    /// Figures that another tool measured on a real machine: one number each, without samples.
    Imported,
}

/// Number of a platform's parameters by origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origins {
    /// From a data sheet, a manual or a paper.
    pub given: u32,
    /// Assumed, with a reason.
    pub assumed: u32,
    /// Fitted to measurements by `lanemark fit`.
    pub fitted: u32,
    /// Unknown; absent if there are none, as in every simulated platform.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unknown: u32,
    /// Inherited from files that the platform file names, and not counted above; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited: Option<Inherited>,
}

/// Number of inherited parameters by their origin in the file that states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inherited {
    /// From a data sheet, a manual or a paper.
    pub given: u32,
    /// Assumed, with a reason.
    pub assumed: u32,
    /// Fitted to measurements by `lanemark fit`.
    pub fitted: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(unknown: &u32) -> bool {
    *unknown == 0
}

/// A case without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// The question.
    pub question: String,
    /// The target.
    pub target: String,
    /// The variants.
    pub what: String,
    /// The reason.
    pub because: String,
}

/// The best method for one size and direction on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The question whose answers were compared.
    pub question: String,
    /// The target.
    pub target: String,
    /// The transfer size.
    pub size_bytes: u64,
    /// The best method.
    pub method: Method,
    /// Delivered rate of the best method.
    pub delivered_rate_bytes_per_s_median: f64,
    /// Delivered rate of the best method divided by that of the slowest.
    pub times_the_slowest: f64,
    /// The reason, in one sentence.
    pub reason: String,
    /// Conditions under which the method is correct, one sentence each; absent without conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

/// A remarkable result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The question.
    pub question: String,
    /// The target.
    pub target: String,
    /// The result and its reason, without a full stop.
    pub text: String,
}

/// The JSON Schema of [`Record`] as text, with a final newline.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Record);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
