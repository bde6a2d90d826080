//! Comparison of records: base records and new ones.

use crate::percentile::median;
use crate::{Interval, Method, Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes from the base records to the new records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Number of base records.
    pub base_records: u64,
    /// Number of new records.
    pub new_records: u64,
    /// Conditions of the verdicts.
    pub criteria: Criteria,
    /// Number of answers among which the probabilities are corrected: those with a probability.
    pub judged: u64,
    /// Answers of both sides.
    pub pairs: Vec<Pair>,
    /// Answers of only one side.
    pub alone: Vec<Alone>,
    /// Warnings that a reader needs before using the verdicts.
    pub warnings: Vec<String>,
}

/// Conditions of the verdicts of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    /// Smallest change of interest, in percent of the time; absent for the default, which is
    /// [`Criteria::MIN_EFFECT_PERCENT`] for measurements and 0 for simulations.
    pub min_effect_percent: Option<f64>,
    /// Largest acceptable increase of a time, in percent; absent if none is checked.
    pub fail_above_percent: Option<f64>,
    /// Assumed standard deviation between runs of one machine, in percent of the time. It applies
    /// if a side has fewer than [`Criteria::ENOUGH_RECORDS`] records.
    pub between_runs_percent: f64,
}

impl Criteria {
    /// Default smallest change of interest of measurements, in percent.
    pub const MIN_EFFECT_PERCENT: f64 = 2.0;
    /// Default assumption about the standard deviation between runs, in percent. On a shared
    /// virtual machine, nine of ten answers stayed below 4 %, and the largest had 18 %.
    pub const BETWEEN_RUNS_PERCENT: f64 = 10.0;
    /// Records per side from which the variation between runs is estimated without an assumption.
    /// With fewer, two modes of a machine look like a change too often: if each run is in one of
    /// two modes, the sides differ by chance in 2 of 4^n comparisons of n records a side.
    pub const ENOUGH_RECORDS: usize = 5;

    /// The smallest change of interest of an answer.
    #[must_use]
    pub fn min_effect_percent_of(&self, is_simulated: bool) -> f64 {
        self.min_effect_percent.unwrap_or(if is_simulated { 0.0 } else { Criteria::MIN_EFFECT_PERCENT })
    }
}

impl Default for Criteria {
    fn default() -> Criteria {
        let between_runs_percent = Criteria::BETWEEN_RUNS_PERCENT;
        Criteria { min_effect_percent: None, fail_above_percent: None, between_runs_percent }
    }
}

/// The answers of both sides to the same question, with the same method, size and alignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The question.
    pub question: String,
    /// Name of the target in the base records.
    pub target: String,
    /// Name of the target in the new records; absent if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_after: Option<String>,
    /// The method.
    pub method: Method,
    /// The cores of the answer; empty if it is not about particular cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// Size.
    pub size_bytes: u64,
    /// Offset from a 64 B boundary.
    pub alignment_bytes: u64,
    /// Quantity of both answers.
    pub quantity: Quantity,
    /// Number of base records with samples of this answer.
    pub base_records: u64,
    /// Number of new records with samples of this answer.
    pub new_records: u64,
    /// Time per iteration or access in the base records: the geometric mean of the medians of the
    /// records; absent without samples or if a median is not positive. For one record it is its
    /// median.
    pub before_ns: Option<f64>,
    /// The same time in the new records.
    pub after_ns: Option<f64>,
    /// The new time over the base time; values above 1 are slower.
    pub ratio: Option<f64>,
    /// The 95 % interval of this ratio alone, from the variation between runs; it has no width for
    /// simulations, which are deterministic.
    pub ratio_ci95: Option<Interval>,
    /// Standard deviation between the records of a side, pooled over both sides, in percent of the
    /// time; absent with one record a side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_runs_percent: Option<f64>,
    /// Whether the assumption of [`Criteria::between_runs_percent`] was used.
    pub is_variation_assumed: bool,
    /// Probability of so large a ratio without a change above the smallest change of interest,
    /// corrected for the number of answers; absent for simulations and without a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_corrected: Option<f64>,
    /// Verdict.
    pub verdict: Change,
    /// Reason why there is no verdict; absent if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided_because: Option<String>,
    /// Whether the new time is slower by more than [`Criteria::fail_above_percent`], by the same
    /// corrected test.
    pub exceeds_limit: bool,
    /// Doubts about the answers, in words.
    pub doubts: Vec<String>,
}

/// Change of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The time became shorter by more than the smallest change of interest.
    Faster,
    /// The time became longer by more than the smallest change of interest.
    Slower,
    /// Chance, or a change below the smallest one of interest, explains the ratio.
    NoDifferenceSeen,
    /// The answer cannot be judged: too few samples, or times that are not positive.
    Undecided,
}

impl Change {
    /// The change in words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Change::Faster => "faster",
            Change::Slower => "slower",
            Change::NoDifferenceSeen => "no difference seen",
            Change::Undecided => "undecided",
        }
    }
}

/// An answer of only one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alone {
    /// The side with the answer.
    pub side: Side,
    /// The question.
    pub question: String,
    /// The target.
    pub target: String,
    /// The method.
    pub method: Method,
    /// The cores of the answer; empty if it is not about particular cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// Size.
    pub size_bytes: u64,
    /// Offset from a 64 B boundary.
    pub alignment_bytes: u64,
}

/// A side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The records compared with.
    Base,
    /// The records that are judged.
    New,
}

impl Comparison {
    /// The pairs that are slower by more than the largest acceptable increase.
    pub fn above_limit(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.exceeds_limit)
    }

    /// The pairs that cannot be judged.
    pub fn undecided(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.verdict == Change::Undecided)
    }

    /// The answers that only the base records have.
    pub fn lost(&self) -> impl Iterator<Item = &Alone> {
        self.alone.iter().filter(|alone| alone.side == Side::Base)
    }

    /// Half the width of a typical 95 % interval, in percent: the median over the judged answers.
    #[must_use]
    pub fn typical_uncertainty_percent(&self) -> Option<f64> {
        let judged = self.pairs.iter().filter(|pair| pair.p_corrected.is_some());
        let widths: Vec<f64> = judged
            .filter_map(|pair| Some(50.0 * (pair.ratio_ci95?.high - pair.ratio_ci95?.low) / pair.ratio?))
            .collect();
        (!widths.is_empty()).then(|| median(widths))
    }
}
