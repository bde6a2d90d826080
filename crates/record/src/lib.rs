//! The answers, and the only room that knows how a result file looks.
//!
//! A [`Record`] is what one run found: on which targets, which questions, which answers, what was
//! skipped and why. It is plain data with units at the end of its keys, written as JSON whole or not
//! at all ([`file`]), described by a JSON Schema generated from these types ([`schema`]).
//! A [`Capture`] is TLPs as they passed one place, in a file that other tools read too.

#![forbid(unsafe_code)]

mod answer;
mod answers_file;
mod capture;
mod card;
mod comparison;
mod corrected;
mod delivery;
mod detail;
pub mod diagnosis;
mod doubt;
mod experiment;
pub mod file;
#[cfg(test)]
mod fixture;
pub mod gate;
mod host;
mod interval;
mod link;
pub mod recovery;
mod residual;
mod runtime;
mod samples_file;
mod summary;

pub use answer::{
    Answer, Bytes, Ceiling, CeilingKind, Dropped, DroppedSample, Formula, LineFit, Quantity, RawSamples, Steady, Tlps,
    WaitShare,
};
pub use answers_file::answers_table;
pub use capture::{Capture, CaptureError, Exchange, Exchanges, Passed, RequesterLatency, Unread};
pub use card::{Card, CardLink, CardMapping, CardRange};
pub use comparison::{Alone, Change, Comparison, Pair};
pub use corrected::CorrectedErrors;
pub use delivery::{Delivery, KnownBy};
pub use detail::{Buffers, CallerCores, CorePair, CpuSamples, CurvePoint, Detail, FlowRate, Flows, Runs};
pub use doubt::{Doubt, DoubtKind, TwoHumps, doubts, drift, two_humps};
pub use experiment::{Bound, Class, Here, Picture, PictureLine, Reproduction, Row, Verdict};
pub use file::{RecordError, read, write};
pub use host::{Governor, Host, IdleState, Load, SocketCpus};
pub use interval::{Interval, LEAST_SAMPLES};
pub use lanemark_method::{CacheState, Method, Reach, Socket};
pub use link::{Direction, Link, LinkUse};
pub use residual::Residual;
pub use runtime::{DeviceKind, Runtime, Software};
pub use samples_file::samples_table;
pub use summary::Summary;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the record format that this code writes and reads.
pub const SCHEMA: u32 = 3;

/// What one run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of this format.
    pub schema: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// The command line, as it was given.
    pub command: Vec<String>,
    /// When it was written, in seconds since 1970-01-01 UTC; absent where nothing real was measured.
    pub written_unix_s: Option<u64>,
    /// The machine that this program ran on, where anything real was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// Whom the questions were asked of.
    pub targets: Vec<Target>,
    /// The answers, in the order they were asked.
    pub answers: Vec<Answer>,
    /// What was not asked or not answered, and why.
    pub skipped: Vec<Skipped>,
    /// What a reader should know before believing the figures.
    pub warnings: Vec<String>,
    /// The best method per target, direction and size.
    pub advice: Vec<Advice>,
    /// What stands out in the answers, and why.
    pub findings: Vec<Finding>,
    /// Whether the run was ended early; what was measured until then is here.
    pub interrupted: bool,
}

impl Record {
    /// A record of this program with nothing in it yet.
    #[must_use]
    pub fn new(command: Vec<String>) -> Record {
        Record {
            schema: SCHEMA,
            tool: Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            command,
            written_unix_s: None,
            host: None,
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

/// The program that wrote a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Whom a question was asked of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// How answers refer to it.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// What kind of answer it gives.
    pub kind: TargetKind,
    /// The `memcpy` behind the access `memcpy`.
    pub memcpy: String,
    /// The platform as it was used, all defaults filled in; absent for real machines.
    pub platform: Option<serde_json::Value>,
    /// How many numbers of the platform are given, assumed and fitted.
    pub origins: Option<Origins>,
    /// The device, what of it was touched and how it was found; absent where no real card was measured.
    pub card: Option<Card>,
    /// Its links, those of switches first; empty where they are not known.
    #[serde(default)]
    pub links: Vec<Link>,
    /// The device and the programs in between, where a runtime was asked; absent for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
}

/// What kind of answer a target gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Virtual time on a simulated platform.
    Simulated,
    /// Real time on a real machine.
    Real,
    /// A real backend, within an emulator: the bytes are real, and the times say nothing about any machine. Such answers
    /// are held against no ceiling and never compared with real ones.
    Emulated,
    /// Formulas only.
    Formula,
}

/// How many numbers of a platform come from where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origins {
    /// From a data sheet, a manual, a paper.
    pub given: u32,
    /// Assumed, with a reason.
    pub assumed: u32,
    /// Fitted to measurements by `lanemark fit`.
    pub fitted: u32,
    /// Not known to anybody yet; absent where there are none, and none are where something was simulated.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unknown: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(unknown: &u32) -> bool {
    *unknown == 0
}

/// Something that was not asked or not answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// The question.
    pub question: String,
    /// Of whom.
    pub target: String,
    /// Which variants.
    pub what: String,
    /// Why not.
    pub because: String,
}

/// The best method for one size and direction on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// The question whose answers were compared.
    pub question: String,
    /// On which target.
    pub target: String,
    /// For this transfer size.
    pub size_bytes: u64,
    /// The best method.
    pub method: Method,
    /// Its delivered rate.
    pub delivered_rate_bytes_per_s_median: f64,
    /// That rate over the rate of the slowest method.
    pub times_the_slowest: f64,
    /// Why, in one sentence.
    pub reason: String,
}

/// Something that stands out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The question whose answers show it.
    pub question: String,
    /// On which target.
    pub target: String,
    /// What it is and why, in a sentence without a full stop.
    pub text: String,
}

/// The JSON Schema of [`Record`], as text with a final newline.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Record);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
