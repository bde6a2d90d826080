//! One answer: a question, a target, a way, and what came out.

use crate::{CorrectedErrors, Delivery, Detail, Doubt, LinkUse, Reach, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one question found on one target for one way and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question, by its catalogue name.
    pub question: String,
    /// The target, by its name in `targets`.
    pub target: String,
    /// Which way the bytes went.
    pub way: Way,
    /// Bytes one pass moves; for a latency, the bytes of one access.
    pub size_bytes: u64,
    /// Distance of the first byte from a 64 B boundary.
    pub alignment_bytes: u64,
    /// What the headline figure is.
    pub quantity: Quantity,
    /// Latency of one pass or access, which one the question says; absent for bandwidths.
    pub latency_ns: Option<Summary>,
    /// Bytes over the time until the last instruction was issued.
    pub issue_rate_bytes_per_s: Option<Summary>,
    /// Bytes over the time until the last byte was accepted; this one is held against the ceiling.
    pub delivered_rate_bytes_per_s: Option<Summary>,
    /// The limit.
    pub ceiling: Ceiling,
    /// Delivered rate over the ceiling's, in percent; absent where the ceiling is unknown or this is a latency.
    pub share_of_ceiling_percent: Option<f64>,
    /// What the core waited for, as shares of the time, largest first; empty where it cannot be seen.
    pub waits: Vec<WaitShare>,
    /// What the formula says; absent for real machines without a platform file.
    pub formula: Option<Formula>,
    /// Packets on the link in one sample; absent where they cannot be seen.
    pub tlps: Option<Tlps>,
    /// What each direction of each link carried, of those that carried anything; empty where it cannot be seen.
    #[serde(default)]
    pub links: Vec<LinkUse>,
    /// Errors that links repaired in the samples, by port; absent where there were none or they cannot be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrected: Vec<CorrectedErrors>,
    /// How the end of what was stored is known; absent where the target sees it itself, or nothing was stored.
    pub delivery: Option<Delivery>,
    /// Bytes that were to arrive and did; absent where it cannot be checked.
    pub bytes: Option<Bytes>,
    /// What an empty sample costs, already subtracted.
    pub timer_cost_ns: f64,
    /// Passes of one sample.
    pub passes: u64,
    /// The samples themselves, in the order they were taken: nanoseconds of one pass, to delivery.
    pub samples_ns: Vec<f64>,
    /// All samples, one list a plan of the question.
    #[serde(default)]
    pub raw: Vec<RawSamples>,
    /// Samples that were taken and thrown away, by reason; absent where nobody counted.
    pub dropped: Option<Dropped>,
    /// What makes the headline figure doubtful.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// What was not simulated step by step, where more passes than usual were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// Straight-line fit over call counts, where the question makes one.
    pub fit: Option<LineFit>,
    /// What else the question found out.
    pub detail: Option<Detail>,
}

impl Answer {
    /// The cores it is about, counted as plans count them; none where it is about no core more than about another.
    #[must_use]
    pub fn cores(&self) -> Vec<u32> {
        match &self.detail {
            Some(Detail::Pair(pair)) => vec![pair.from_core, pair.to_core],
            Some(Detail::Caller(caller)) => caller.core.into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Holds the delivered rate against `ceiling` and keeps both.
    pub fn hold_against(&mut self, ceiling: Ceiling) {
        self.share_of_ceiling_percent = match (self.delivered_rate_bytes_per_s, ceiling.rate_bytes_per_s) {
            (Some(delivered), Some(limit)) if limit > 0.0 => Some(100.0 * delivered.median / limit),
            _ => None,
        };
        self.ceiling = ceiling;
    }
}

/// Transfers that a simulation left out, because it was where it had been before. All figures are as if it had not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Transfers of all devices.
    pub transfers: u64,
    /// Those of them that were not simulated one by one.
    pub skipped_transfers: u64,
    /// Transfers of the first device after which everything is as before; 0 where nothing was left out.
    pub period_transfers: u64,
    /// Why nothing was left out; absent where something was.
    pub because: Option<String>,
}

impl Steady {
    /// In a sentence.
    ///
    /// ```
    /// use lanemark_record::Steady;
    /// let steady = Steady { transfers: 1000, skipped_transfers: 999, period_transfers: 32, because: None };
    /// assert_eq!(steady.in_words(), "99.9 % of 1000 transfers skipped, a steady state of 32");
    /// let detailed = Steady { skipped_transfers: 0, because: Some("they go to places at random".to_owned()), ..steady };
    /// assert_eq!(detailed.in_words(), "none of 1000 transfers skipped: they go to places at random");
    /// ```
    #[must_use]
    pub fn in_words(&self) -> String {
        let Steady { transfers, skipped_transfers, period_transfers, because } = self;
        if let Some(because) = because {
            return format!("none of {transfers} transfers skipped: {because}");
        }
        // Cut, not rounded: it is never all of them.
        let permille = u128::from(*skipped_transfers) * 1000 / u128::from(*transfers).max(1);
        format!(
            "{}.{} % of {transfers} transfers skipped, a steady state of {period_transfers}",
            permille / 10,
            permille % 10
        )
    }
}

/// The samples of one plan as they were taken: the lists, but for those that are empty, are of one length, a sample a place. Times are of whole
/// samples, with the timer's cost subtracted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawSamples {
    /// Which of the question's plans; empty where it has one.
    pub plan: String,
    /// Passes of one sample.
    pub passes: u64,
    /// The round in which each was taken, from 0.
    pub round: Vec<u64>,
    /// Until the last instruction was issued.
    pub issue_ns: Vec<f64>,
    /// Until the last byte was accepted.
    pub delivered_ns: Vec<f64>,
    /// The system's number of the processor on which each ended; empty where the target does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<u32>,
    /// Those that were dropped, by their places in the lists; no other is.
    pub dropped: Vec<DroppedSample>,
}

/// Why a sample was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DroppedSample {
    /// Its place in the lists, from 0.
    pub place: u64,
    /// `context_switch` or `clock_step`.
    pub reason: String,
}

/// Samples that tell of something else than the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// The core was given to somebody else, or the thread to another core.
    pub context_switches: u64,
    /// Two clocks disagree on how long the sample took.
    pub clock_steps: u64,
}

impl Dropped {
    /// All of them.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.context_switches.saturating_add(self.clock_steps)
    }
}

/// A straight line through measured points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineFit {
    /// Cost of one call more.
    pub per_call_ns: f64,
    /// Time left over at no calls.
    pub fixed_ns: f64,
    /// Share of the variance the line explains, 0 to 1.
    pub r_squared: f64,
}

/// Which way the bytes go, or what is done where none do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// `uc`, `wc`, `wt`, `wp` or `wb`; `none` where no memory is touched.
    pub memory_type: String,
    /// The instruction: `4`, `memcpy`, `nt32`, `movdir64b`, ...; or the fence, clock or call that is asked about; or,
    /// where memory is lent, who is told and when it is taken out of reach: `strict`, `deferred`, `page_table_strict`,
    /// `page_table_deferred`, and `take` for an object of a pool; or, where memory is shared with a device, what for:
    /// `coherent`, `flushed_by_clflushopt`, `uncached`, `write_combining`, `streaming_stores`, `bounced`, `bounced_write_combining`; or,
    /// where devices move the bytes themselves, which way: `host_to_device`, `device_to_host`, or flows: `0:1`,
    /// `0-7:host`.
    pub access: String,
    /// The fence after it, if any.
    pub fence: Option<String>,
    /// Through whom: `user` for a pointer, `driver` for a call, `poll` for calls that read a flag and a value,
    /// `mmap` for mapping a page and giving it back. Or how: `alone` for a fence with nothing before it, `hot` and
    /// `cold` for a copy's destination, `lend_` and a strategy for memory that is lent to a device, `shared_to_device` and `shared_from_device` for a buffer that a core writes or reads, `launch_1` and `launch_100` for so many launches of a runtime before a wait (with `_unpinned` behind it where the calling thread was held on no core), `launch_1_with_4_buffer` and `launch_1_with_4_usm` where the kernel is given as much memory, `argument_buffer` and `argument_usm` for one piece more of it, and `runtime_to_device` and `runtime_from_device`, `runtime_usm_to_device`, `runtime_host_usm_to_device` and `runtime_mapped_to_device` for a copy by one (`access` is `finish` or `event` then: by what it is known that they are over), `compute_` and the work for kernels that compute on memory of their device (`access` as before), `one_line` and `two_lines` between cores, `memory` for a line that no cache has, `remote_memory` for one of the other socket, `core` and `remote_core` for one that another core has changed, `clock`, `kernel`, `wake`,
    /// `dma` for a device that moves the bytes itself, `dma_under_way_4` for one with so many transfers under way (where
    /// flows go beside another, it is those that have), `dma_pages_4` for one that takes so many pages in turn, `dma_relay` for cards that hand bytes on, `loads` for a core that does it instead. Where a core asks the device
    /// and is told of the end: `dma_`, what it does for that (`doorbell`, `list` or `call`; before it `uc_`, `wc_` or
    /// `fetched_` for the descriptors), and how it is told (`_flag`, `_register`, `_interrupt`).
    pub through: String,
    /// Where devices move the bytes: how far and how densely, if somebody asked for something else than usual.
    #[serde(default, skip_serializing_if = "Reach::is_usual")]
    pub reach: Reach,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(pinned) = self.through.strip_suffix("_unpinned") {
            return write!(f, "{}, unpinned", Way { through: pinned.to_owned(), ..self.clone() });
        }
        if let Some(strategy) = self.through.strip_prefix("lend_") {
            return write!(f, "{}, {}", strategy.replace('_', " "), self.access.replace('_', " "));
        }
        if let Some(launches) = self.through.strip_prefix("launch_") {
            let (launches, unpinned) = match launches.strip_suffix("_unpinned") {
                Some(launches) => (launches, ", unpinned"),
                None => (launches, ""),
            };
            let (launches, given) = launches.split_once("_with_").unwrap_or((launches, ""));
            let what = if launches == "1" { "launch".to_owned() } else { format!("{launches} launches") };
            let with = if given.is_empty() { String::new() } else { format!(" with {}", given.replace('_', " ")) };
            return write!(f, "{what}{with}, told by {}{unpinned}", self.access);
        }
        if let Some(allocation) = self.through.strip_prefix("argument_") {
            return write!(f, "one more {} argument, told by {}", allocation.replace('_', " "), self.access);
        }
        if let Some(work) = self.through.strip_prefix("compute_") {
            return write!(f, "{}, told by {}", work.replace('_', " "), self.access);
        }
        if let Some(direction) = self.through.strip_prefix("runtime_") {
            return write!(f, "{} by runtime, told by {}", direction.replace('_', " "), self.access);
        }
        if let Some(direction) = self.through.strip_prefix("shared_") {
            return write!(f, "{}, {}", direction.replace('_', " "), self.access.replace('_', " "));
        }
        if self.memory_type != "none" {
            write!(f, "{} ", self.memory_type.to_uppercase())?;
        }
        match self.access.as_str() {
            way @ ("host_to_device" | "device_to_host") => f.write_str(&way.replace('_', "-"))?,
            access => f.write_str(access)?,
        }
        if let Some(fence) = &self.fence {
            write!(f, "+{fence}")?;
        }
        self.fmt_through(f)?;
        self.reach.fmt(f)
    }
}

impl Way {
    fn fmt_through(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.through.as_str() {
            "user" | "clock" | "kernel" => Ok(()),
            "dma" => f.write_str(" by DMA"),
            "dma_relay" => f.write_str(" by DMA, handed on"),
            "poll" => f.write_str(" via driver, polling"),
            "alone" => f.write_str(" alone"),
            "memory" => f.write_str(" from memory"),
            "remote_memory" => f.write_str(" from memory of the other socket"),
            "core" => f.write_str(" from another core"),
            "remote_core" => f.write_str(" from a core of the other socket"),
            "wake" => f.write_str(" that wakes a thread, one way"),
            how @ ("hot" | "cold" | "one_line" | "two_lines") => write!(f, ", {}", how.replace('_', " ")),
            "loads" => f.write_str(", loads"),
            other if other.starts_with("dma_under_way_") => {
                write!(f, " by DMA, {} under way", other.trim_start_matches("dma_under_way_"))
            }
            other if other.starts_with("dma_pages_") => {
                write!(f, " by DMA, {} pages in turn", other.trim_start_matches("dma_pages_"))
            }
            other => match other.strip_prefix("dma_").and_then(|asked| asked.rsplit_once('_')) {
                Some((asked, told)) => write!(f, " by DMA, {}, {told}", asked.replace('_', " ")),
                None => write!(f, " via {other}"),
            },
        }
    }
}

/// What the headline figure of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Time from the core to acceptance at the device.
    OneWayLatency,
    /// Time from the core to the device and back.
    RoundTripLatency,
    /// Bytes per second.
    Bandwidth,
    /// Time a call costs beyond what it moves.
    Overhead,
    /// Time that one of what is asked about takes or adds: an instruction, a call, a flush.
    Cost,
}

/// The limit of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// Where it comes from.
    pub kind: CeilingKind,
    /// The rate; absent where it is unknown.
    pub rate_bytes_per_s: Option<f64>,
    /// How it was computed, what stood in for it, or why it is unknown.
    pub because: String,
}

/// Where a ceiling comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingKind {
    /// From link speed, width, encoding, packet sizes and direction.
    Computed,
    /// From a measurement of a named stand-in.
    Measured,
    /// Nobody knows.
    Unknown,
}

/// A share of the time a core spent waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitShare {
    /// What for, by the cause's name.
    pub cause: String,
    /// In a clause a person understands.
    pub explanation: String,
    /// Of the samples' time, in percent.
    pub share_percent: f64,
}

/// What a closed form says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Formula {
    /// The latency in nanoseconds; absent for bandwidths.
    pub latency_ns: Option<f64>,
    /// The delivered rate; absent for latencies.
    pub delivered_rate_bytes_per_s: Option<f64>,
    /// What the formula finds to limit the transfer, in words.
    pub bound: String,
    /// The stall cause whose remedies raise that bound, by its name in `waits`.
    pub cause: String,
    /// Where the formula holds.
    pub holds_for: String,
}

/// Packets on the link, per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tlps {
    /// Memory writes.
    pub writes: u64,
    /// Memory reads.
    pub reads: u64,
    /// Completions.
    pub completions: u64,
    /// Payload bytes of all of them.
    pub payload_bytes: u64,
}

/// Bytes that were to arrive and bytes that did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    /// Distinct bytes that one pass stores.
    pub claimed_bytes: u64,
    /// Those of them found at the far end with the values stored last.
    pub confirmed_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_reads_as_what_is_done() {
        let way = |memory_type: &str, access: &str, fence: Option<&str>, through: &str| {
            let fence = fence.map(str::to_owned);
            let [memory_type, access, through] = [memory_type, access, through].map(str::to_owned);
            Way { memory_type, access, fence, through, reach: Reach::default() }.to_string()
        };
        assert_eq!(way("wc", "nt32", Some("sfence"), "user"), "WC nt32+sfence");
        assert_eq!(way("wb", "8", None, "driver"), "WB 8 via driver");
        assert_eq!(way("none", "rdtscp", None, "clock"), "rdtscp");
        assert_eq!(way("none", "sfence", None, "alone"), "sfence alone");
        assert_eq!(way("wb", "memcpy", None, "cold"), "WB memcpy, cold");
        assert_eq!(way("wb", "8", None, "one_line"), "WB 8, one line");
        assert_eq!(way("none", "device_to_host", None, "dma"), "device-to-host by DMA");
        let lent = way("none", "page_table_strict", None, "lend_baseline_free_list");
        assert_eq!(lent, "baseline free list, page table strict");
        let shared = way("none", "flushed_by_clwb", None, "shared_to_device");
        assert_eq!(shared, "to device, flushed by clwb");
        assert_eq!(way("none", "host:0-7:host", None, "dma_relay"), "host:0-7:host by DMA, handed on");
        assert_eq!(way("none", "event", None, "launch_1"), "launch, told by event");
        assert_eq!(way("none", "event", None, "launch_1_with_4_usm"), "launch with 4 usm, told by event");
        assert_eq!(
            way("none", "finish", None, "launch_100_with_2_buffer"),
            "100 launches with 2 buffer, told by finish"
        );
        assert_eq!(way("none", "event", None, "argument_usm"), "one more usm argument, told by event");
        assert_eq!(
            way("none", "event", None, "runtime_host_usm_to_device"),
            "host usm to device by runtime, told by event"
        );
        let asked = way("none", "0:host", None, "dma_fetched_call_interrupt");
        assert_eq!(asked, "0:host by DMA, fetched call, interrupt");
        let loaded = way("none", "host_to_device", None, "dma_under_way_16");
        assert_eq!(loaded, "host-to-device by DMA, 16 under way");
        assert_eq!(way("none", "finish", None, "launch_1_unpinned"), "launch, told by finish, unpinned");
        let paged = way("none", "host_to_device", None, "dma_pages_16");
        assert_eq!(paged, "host-to-device by DMA, 16 pages in turn");
    }
}
