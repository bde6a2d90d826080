//! Further results of some answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Further results of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Detail {
    /// The number of buffers, and the curve that shows it.
    Buffers(Buffers),
    /// The two cores of an exchange.
    Pair(CorePair),
    /// The rate of each of several devices.
    Flows(Flows),
    /// The times of whole runs of copies.
    Runs(Runs),
    /// The core that called a runtime.
    Caller(CallerCores),
    /// The use of a bounce buffer by mappings for a device.
    BounceBuffer(BounceBuffer),
}

/// The use of a bounce buffer (swiotlb) by mappings of host memory for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BounceBuffer {
    /// Pages of a mapping.
    pub mapped_pages: u64,
    /// Pages that are mapped through a bounce buffer, so that the kernel copies their bytes.
    pub bounced_pages: u64,
}

/// Runs of copies; each copy completes before the next is issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Copies per measured run.
    pub copies: u64,
    /// Copies per whole run, which is longer by this ratio if all copies take the same time.
    pub whole_copies: u64,
    /// Number of runs.
    pub runs: u64,
    /// Time of the shortest run.
    pub shortest_s: f64,
    /// Median time.
    pub median_s: f64,
    /// Time of the longest run.
    pub longest_s: f64,
}

/// The core and the processors of a thread that called a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallerCores {
    /// The core of the pinned thread, numbered as in plans; absent for an unpinned thread.
    pub core: Option<u32>,
    /// Processors on which counted samples ended, as numbered by the operating system, ascending;
    /// empty without an operating system.
    pub cpus: Vec<CpuSamples>,
}

/// Number of samples that ended on one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuSamples {
    /// The processor, as numbered by the operating system.
    pub cpu: u32,
    /// Number of samples.
    pub samples: u64,
}

/// Rates of several concurrent devices, which began together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// Time from the start until the first of them completed.
    pub common_ns: f64,
    /// Total rate over that time.
    pub common_rate_bytes_per_s: f64,
    /// Time from the start until the last of them completed.
    pub all_ns: f64,
    /// Total rate over the whole time.
    pub all_rate_bytes_per_s: f64,
    /// The flows.
    pub each: Vec<FlowRate>,
}

/// Rate of one of several flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRate {
    /// The flow: `0:host`, `host:0`, `0:1`.
    pub flow: String,
    /// Rate over the common time.
    pub common_rate_bytes_per_s: f64,
    /// Rate over its own time.
    pub rate_bytes_per_s: f64,
}

/// Number of write-combining or fill buffers of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Buffers {
    /// Largest number of open lines without partial flushes; absent if the curves do not show it or
    /// do not agree.
    pub count: Option<u64>,
    /// Evidence of the curves, or the reason why there is no count.
    pub because: String,
    /// Number of independent curves, of all accesses to this memory together.
    pub curves: u64,
    /// Number of these curves that show the count most often found.
    pub agreeing_curves: u64,
    /// Counts that other curves show, ascending, one entry per curve.
    pub other_counts: Vec<u64>,
    /// Probability that a further curve shows this count, in percent, by Laplace's rule of
    /// succession; absent without a count and for simulations, which are deterministic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_percent: Option<f64>,
    /// Number of writes per line with more open lines than buffers: one per access.
    pub flushes_per_line: u64,
    /// Time of one such write, the median over the curve beyond the count; absent without a count.
    pub flush_ns: Option<f64>,
    /// Largest deviation of the curve from that median beyond the count, in percent.
    pub flush_spread_percent: Option<f64>,
    /// Time per line by number of open lines, ascending, over all curves of this access.
    pub curve: Vec<CurvePoint>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// Number of open lines.
    pub lines: u64,
    /// Time per line, 5th percentile.
    pub line_ns_p5: f64,
    /// Time per line, median.
    pub line_ns_median: f64,
}

/// Two cores, numbered as in plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CorePair {
    /// The core that takes the time stamps.
    pub from_core: u32,
    /// The core that answers.
    pub to_core: u32,
}
