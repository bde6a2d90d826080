//! Comparison of two records.

use crate::{Interval, Method, Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes from one record to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Answers in both records.
    pub pairs: Vec<Pair>,
    /// Answers in only one record.
    pub alone: Vec<Alone>,
    /// Warnings that a reader needs before using the verdicts.
    pub warnings: Vec<String>,
}

/// The answers of both records to the same question, with the same method, size and alignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The question.
    pub question: String,
    /// Name of the target in the first record.
    pub target: String,
    /// Name of the target in the second record; absent if it is the same.
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
    /// Median time per iteration or access in the first record; absent without samples.
    pub before_ns: Option<f64>,
    /// The same time in the second record.
    pub after_ns: Option<f64>,
    /// The second time over the first; values above 1 are slower.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio; it has no width for two simulations, which are
    /// deterministic.
    pub ratio_ci95: Option<Interval>,
    /// Verdict.
    pub verdict: Change,
    /// Doubts about either answer, in words.
    pub doubts: Vec<String>,
}

/// Change of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The whole interval of the ratio lies below 1.
    Faster,
    /// The whole interval lies above 1.
    Slower,
    /// The interval contains 1.
    NoDifferenceSeen,
    /// There is no interval: too few samples, or times that are not positive.
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

/// An answer in only one record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alone {
    /// The record with the answer: `first` or `second`.
    pub record: String,
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

impl Comparison {
    /// The pairs that are certainly slower by more than `percent`: the whole interval lies above.
    pub fn slower_by_more_than(&self, percent: f64) -> impl Iterator<Item = &Pair> {
        let most = 1.0 + percent / 100.0;
        self.pairs.iter().filter(move |pair| pair.ratio_ci95.is_some_and(|interval| interval.low > most))
    }

    /// The pairs without an interval, for which a slow-down cannot be decided.
    pub fn undecided(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.verdict == Change::Undecided)
    }

    /// The answers that only the first record has.
    pub fn lost(&self) -> impl Iterator<Item = &Alone> {
        self.alone.iter().filter(|alone| alone.record == "first")
    }
}
