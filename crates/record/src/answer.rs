//! One answer: question, target, method and figures.

use crate::dropped::{Dropped, DroppedSample};
use crate::{CorrectedErrors, Delivery, Detail, Doubt, LinkUse, ResourceUse, Summary};
use lanemark_method::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of one question on one target, for one method and size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Name of the question in the catalogue.
    pub question: String,
    /// Name of the target in `targets`.
    pub target: String,
    /// The method of moving bytes, or the operation if none are moved.
    pub method: Method,
    /// Changes to the target for this run: keys of the platform with their values, `setpci` and
    /// `fault`; absent without changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub varied: BTreeMap<String, String>,
    /// Bytes per iteration; for a latency, bytes per access.
    pub size_bytes: u64,
    /// Offset of the first byte from a 64 B boundary.
    pub alignment_bytes: u64,
    /// Quantity of the headline figure.
    pub quantity: Quantity,
    /// Latency per iteration or access, as defined by the question; absent for bandwidths.
    pub latency_ns: Option<Summary>,
    /// Bytes over the time until the last instruction is issued.
    pub issue_rate_bytes_per_s: Option<Summary>,
    /// Bytes over the time until the last byte is accepted; the ceiling limits this rate.
    pub delivered_rate_bytes_per_s: Option<Summary>,
    /// The limit.
    pub ceiling: Ceiling,
    /// Delivered rate over the rate of the ceiling, in percent; absent for an unknown ceiling and
    /// for latencies.
    pub share_of_ceiling_percent: Option<f64>,
    /// Causes of the critical path with their share of the time, largest first; empty if not visible.
    pub waits: Vec<WaitShare>,
    /// The critical path until delivery, by place and cause, the largest share first; the shares add up to 100 %.
    /// Empty if not visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_path: Vec<PathPart>,
    /// What a changed parameter of the platform would do, the largest improvement first; absent if not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitivities: Vec<Sensitivity>,
    /// Figures of the formula; absent for real machines without a platform file.
    pub formula: Option<Formula>,
    /// The twin of a real target: the simulated platform that supplies `waits`, `critical_path`, `links`, `resources`,
    /// `sensitivities` and `formula`; absent without one, and for simulated targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<Twin>,
    /// TLPs on the link per sample; absent if not visible.
    pub tlps: Option<Tlps>,
    /// Traffic of each used direction of each link; empty if not visible.
    #[serde(default)]
    pub links: Vec<LinkUse>,
    /// Use of the other resources, the busiest first; empty if not visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceUse>,
    /// Errors that links corrected during the samples, by port; absent if there were none or they
    /// are not visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrected: Vec<CorrectedErrors>,
    /// Detection of the end of stores; absent if the target observes it itself, or nothing is
    /// stored.
    pub delivery: Option<Delivery>,
    /// Expected and confirmed bytes; absent if they cannot be checked.
    pub bytes: Option<Bytes>,
    /// Time of an empty sample, already subtracted.
    pub timer_cost_ns: f64,
    /// Iterations per sample.
    pub passes: u64,
    /// The samples in order: nanoseconds per iteration, to delivery.
    pub samples_ns: Vec<f64>,
    /// All samples, one list per plan of the question.
    #[serde(default)]
    pub raw: Vec<RawSamples>,
    /// Number of dropped samples, by reason; absent if not counted.
    pub dropped: Option<Dropped>,
    /// Reasons to doubt the headline figure.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// Steady state that the simulation skipped; absent unless many iterations were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// Straight line over call counts, if the question fits one.
    pub fit: Option<LineFit>,
    /// Further results of the question.
    pub detail: Option<Detail>,
}

impl Answer {
    /// Whether the figure is the difference of two plans.
    #[must_use]
    pub fn is_difference(&self) -> bool {
        self.raw.iter().any(|raw| raw.is_subtracted)
    }

    /// The cores of this answer, numbered as in plans; empty if it is not about particular cores.
    #[must_use]
    pub fn cores(&self) -> Vec<u32> {
        match &self.detail {
            Some(Detail::Pair(pair)) => vec![pair.from_core, pair.to_core],
            Some(Detail::Caller(caller)) => caller.core.into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Sets the ceiling and the share of it.
    pub fn set_ceiling(&mut self, ceiling: Ceiling) {
        self.share_of_ceiling_percent = match (self.delivered_rate_bytes_per_s, ceiling.rate_bytes_per_s) {
            (Some(delivered), Some(limit)) if limit > 0.0 => Some(100.0 * delivered.median / limit),
            _ => None,
        };
        self.ceiling = ceiling;
    }
}

/// Transfers that a simulation skipped because it was in a steady state. All figures are as without
/// skipping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steady {
    /// Number of transfers of all devices.
    pub transfers: u64,
    /// Number of skipped transfers.
    pub skipped_transfers: u64,
    /// Period of the steady state, in transfers of the first device; 0 if nothing was skipped.
    pub period_transfers: u64,
    /// Reason for not skipping; absent if transfers were skipped.
    pub because: Option<String>,
}

impl Steady {
    /// The steady state as a phrase.
    ///
    /// ```
    /// use lanemark_record::Steady;
    /// let steady = Steady { transfers: 1000, skipped_transfers: 999, period_transfers: 32, because: None };
    /// assert_eq!(steady.in_words(), "99.9 % of 1000 transfers skipped, a steady state of 32");
    /// let detailed = Steady { skipped_transfers: 0, because: Some("the offsets are random".to_owned()), ..steady };
    /// assert_eq!(detailed.in_words(), "none of 1000 transfers skipped: the offsets are random");
    /// ```
    #[must_use]
    pub fn in_words(&self) -> String {
        let Steady { transfers, skipped_transfers, period_transfers, because } = self;
        if let Some(because) = because {
            return format!("none of {transfers} transfers skipped: {because}");
        }
        // Rounded down, because some transfers are always simulated.
        let permille = u128::from(*skipped_transfers) * 1000 / u128::from(*transfers).max(1);
        format!(
            "{}.{} % of {transfers} transfers skipped, a steady state of {period_transfers}",
            permille / 10,
            permille % 10
        )
    }
}

/// The samples of one plan, in order. All lists except empty ones have the same length, one entry
/// per sample. Times are those of whole samples, with the timer's cost subtracted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawSamples {
    /// Name of the plan within the question; empty if it is the only one.
    pub plan: String,
    /// Iterations per sample.
    pub passes: u64,
    /// Round of each sample, from 0.
    pub round: Vec<u64>,
    /// Time until the last instruction was issued.
    pub issue_ns: Vec<f64>,
    /// Time until the last byte was accepted.
    pub delivered_ns: Vec<f64>,
    /// Number of the processor on which each sample ended, as counted by the operating system;
    /// empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<u32>,
    /// Dropped samples, by index into the lists.
    pub dropped: Vec<DroppedSample>,
    /// Whether its times are subtracted from those of the first plan.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_subtracted: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A straight line through measured points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineFit {
    /// Additional time per call.
    pub per_call_ns: f64,
    /// Time at zero calls.
    pub fixed_ns: f64,
    /// Share of the variance that the line explains, 0 to 1.
    pub r_squared: f64,
}

/// Quantity of the headline figure of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Time from the core to acceptance at the device.
    OneWayLatency,
    /// Time from the core to the device and back.
    RoundTripLatency,
    /// Bytes per second.
    Bandwidth,
    /// Time of a call in addition to the bytes that it moves.
    Overhead,
    /// Time that one operation takes or adds: an instruction, a call, a flush.
    Cost,
}

impl Quantity {
    /// Name of the quantity in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Quantity::OneWayLatency => "one_way_latency",
            Quantity::RoundTripLatency => "round_trip_latency",
            Quantity::Bandwidth => "bandwidth",
            Quantity::Overhead => "overhead",
            Quantity::Cost => "cost",
        }
    }
}

/// The limit of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// Origin of the limit.
    pub kind: CeilingKind,
    /// The rate; absent if unknown.
    pub rate_bytes_per_s: Option<f64>,
    /// Derivation of the rate, its stand-in, or the reason why it is unknown.
    pub because: String,
}

/// Origin of a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingKind {
    /// From link speed, width, encoding, packet sizes and direction.
    Computed,
    /// From a measurement of a named stand-in.
    Measured,
    /// Unknown.
    Unknown,
}

/// The twin of a real target, and its own figure for the same case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Twin {
    /// Name of the platform.
    pub platform: String,
    /// Median of its simulated latency; absent for bandwidths.
    pub latency_ns: Option<f64>,
    /// Median of its simulated rate; absent for latencies.
    pub delivered_rate_bytes_per_s: Option<f64>,
}

/// A part of the critical path: time that a place took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathPart {
    /// The place: a link with its direction, a DMA engine, a card, memory, the root complex, the IOMMU or a core.
    pub place: String,
    /// Name of the cause: the work of the place, or the limit of concurrency that kept latency from overlapping.
    pub cause: String,
    /// Whether the time is latency, and not work of the place.
    pub is_latency: bool,
    /// Share of the samples' time, in percent; of a difference of two plans, the share of it, negative if the subtracted
    /// plan spends more time there.
    pub share_percent: f64,
}

/// The figure with one parameter of the simulated platform changed, everything else being the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sensitivity {
    /// Path of the parameter: `dma.tags`.
    pub key: String,
    /// Value of the parameter before the change, in the unit of the key.
    pub value: f64,
    /// The value to which it was changed: twice, half, or the next one that the key takes.
    pub changed_to: f64,
    /// Change of the simulated figure, in percent: of the rate, or of the latency.
    pub change_percent: f64,
    /// Change of the formula's figure, in percent; absent without a formula.
    pub formula_change_percent: Option<f64>,
}

/// A cause of the critical path, and its share of the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitShare {
    /// Name of the cause.
    pub cause: String,
    /// The place; of latency at several places, the one with the largest part.
    pub place: String,
    /// Whether the time is latency, and not work of the place.
    pub is_latency: bool,
    /// Explanation of the cause, as a clause.
    pub explanation: String,
    /// Share of the samples' time, in percent.
    pub share_percent: f64,
}

/// Causes at links, whose place says which link.
const AT_LINKS: [&str; 3] = ["link_busy", "transit", "replay"];

impl WaitShare {
    /// Cause and share, and the place of a cause at a link: `link busy 98 % (card up)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let share = self.share_percent;
        let percent = if share > 0.0 && share < 1.0 { "<1 %".to_owned() } else { format!("{share:.0} %") };
        self.with_place(&format!("{} {percent}", self.cause.replace('_', " ")))
    }

    /// Cause without share, and the place of a cause at a link.
    ///
    /// ```
    /// use lanemark_record::WaitShare;
    /// let wait = WaitShare {
    ///     cause: "link_busy".to_owned(),
    ///     place: "card up".to_owned(),
    ///     is_latency: false,
    ///     explanation: "the link is busy".to_owned(),
    ///     share_percent: 98.0,
    /// };
    /// assert_eq!(wait.bound_by(), "link busy (card up)");
    /// assert_eq!(wait.in_words(), "link busy 98 % (card up)");
    /// ```
    #[must_use]
    pub fn bound_by(&self) -> String {
        self.with_place(&self.cause.replace('_', " "))
    }

    fn with_place(&self, named: &str) -> String {
        if AT_LINKS.contains(&self.cause.as_str()) { format!("{named} ({})", self.place) } else { named.to_owned() }
    }
}

/// Figures of a closed form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Formula {
    /// Latency in nanoseconds; absent for bandwidths.
    pub latency_ns: Option<f64>,
    /// Delivered rate; absent for latencies.
    pub delivered_rate_bytes_per_s: Option<f64>,
    /// The bound of the transfer according to the formula, in words; absent if the figure is the difference of two
    /// plans: the bound of each is not that of the difference.
    pub bound: Option<String>,
    /// Name in `waits` of the stall cause whose remedies raise that bound.
    pub cause: Option<String>,
    /// Range of validity of the formula.
    pub holds_for: String,
}

/// Number of TLPs on the link, per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tlps {
    /// Memory writes.
    pub writes: u64,
    /// Memory reads.
    pub reads: u64,
    /// Completions.
    pub completions: u64,
    /// Payload bytes of all these TLPs.
    pub payload_bytes: u64,
}

/// Expected and confirmed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bytes {
    /// Distinct bytes stored per iteration.
    pub claimed_bytes: u64,
    /// Number of these bytes that have the last stored value at the destination.
    pub confirmed_bytes: u64,
}
