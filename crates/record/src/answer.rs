//! One answer: a question, a target, a method, and what came out.

use crate::{CorrectedErrors, Delivery, Detail, Doubt, LinkUse, Summary};
use lanemark_method::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one question found on one target for one method and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The question, by its catalogue name.
    pub question: String,
    /// The target, by its name in `targets`.
    pub target: String,
    /// How the bytes were moved, or what was done where none were.
    pub method: Method,
    /// What was changed of the target for this run, by what changed it: keys of the platform with their values, `setpci` and
    /// `fault`; absent where nothing was.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub varied: BTreeMap<String, String>,
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
