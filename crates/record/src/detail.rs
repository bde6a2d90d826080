//! What some answers have besides their headline figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an answer has besides its headline figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Detail {
    /// How many buffers there are, and the curve that shows it.
    Buffers(Buffers),
    /// Which two cores it is about.
    Pair(CorePair),
    /// What each of several devices moved.
    Flows(Flows),
    /// What whole runs of copies took.
    Runs(Runs),
    /// From which core a runtime was called.
    Caller(CallerCores),
}

/// Runs of as many copies, one behind the other, each waited for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Copies of one run.
    pub copies: u64,
    /// Copies that a whole run would have: it is so many times longer, if every copy takes as long as another.
    pub whole_copies: u64,
    /// How many runs there were.
    pub runs: u64,
    /// The shortest.
    pub shortest_s: f64,
    /// The middle one.
    pub median_s: f64,
    /// The longest.
    pub longest_s: f64,
}

/// Where the thread was that called a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallerCores {
    /// The core that it was held on, counted as plans count them; absent where it was held on none.
    pub core: Option<u32>,
    /// The processors on which samples ended that count, by the system's numbers, ascending; empty where there is no system.
    pub cpus: Vec<CpuSamples>,
}

/// Samples that ended on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuSamples {
    /// The system's number of it.
    pub cpu: u32,
    /// How many.
    pub samples: u64,
}

/// What several devices moved at once; all began together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// From their beginning until the first of them was done.
    pub common_ns: f64,
    /// Their bytes in that time over that time.
    pub common_rate_bytes_per_s: f64,
    /// From their beginning until the last of them was done.
    pub all_ns: f64,
    /// All bytes over all of the time.
    pub all_rate_bytes_per_s: f64,
    /// Each of them.
    pub each: Vec<FlowRate>,
}

/// One of several flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRate {
    /// Who moves bytes where: `0:host`, `host:0`, `0:1`.
    pub flow: String,
    /// In the time that all have in common.
    pub common_rate_bytes_per_s: f64,
    /// Over its own time.
    pub rate_bytes_per_s: f64,
}

/// How many write-combining or fill buffers a core has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Buffers {
    /// The most lines that can be written at once before lines leave partly filled; absent where the curve does
    /// not show it.
    pub count: Option<u64>,
    /// How the curve shows it, or why it does not.
    pub because: String,
    /// Pieces that a line leaves in where there are more lines than buffers: one an access.
    pub flushes_per_line: u64,
    /// Time of one of those pieces, the median over the curve beyond the count; absent without a count.
    pub flush_ns: Option<f64>,
    /// How far the curve beyond the count lies from that at most, in percent.
    pub flush_spread_percent: Option<f64>,
    /// Time of a line by lines written at once, ascending.
    pub curve: Vec<CurvePoint>,
}

/// One place of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// Lines written at once.
    pub lines: u64,
    /// Time of one line in the calmest samples: 5 % of them took less.
    pub line_ns_p5: f64,
    /// Time of one line in the middle one.
    pub line_ns_median: f64,
}

/// Two cores, counted as plans count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorePair {
    /// The one whose timestamps count.
    pub from_core: u32,
    /// The one that answers.
    pub to_core: u32,
}
