//! Two records side by side.

use crate::{Interval, Method, Quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What changed from one record to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Answers that both records have.
    pub pairs: Vec<Pair>,
    /// Answers that one of them has alone.
    pub alone: Vec<Alone>,
    /// What a reader should know before believing the verdicts.
    pub warnings: Vec<String>,
}

/// One answer of each record, to the same question about the same method, size and alignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The question.
    pub question: String,
    /// The target, as the first record calls it.
    pub target: String,
    /// As the second calls it; absent where that is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_after: Option<String>,
    /// The method.
    pub method: Method,
    /// The cores it is about; none where it is about no core more than about another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// The size.
    pub size_bytes: u64,
    /// The distance from a 64 B boundary.
    pub alignment_bytes: u64,
    /// What the figures of both answers are.
    pub quantity: Quantity,
    /// Median time of a pass or an access in the first record; absent where it has no samples.
    pub before_ns: Option<f64>,
    /// The same in the second.
    pub after_ns: Option<f64>,
    /// The second time over the first: above 1 it became slower.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio; of two simulations, which are the same every time, it has no width.
    pub ratio_ci95: Option<Interval>,
    /// What that means.
    pub verdict: Change,
    /// Doubts that either answer carries, in words.
    pub doubts: Vec<String>,
}

/// What became of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The whole interval of the ratio lies below 1.
    Faster,
    /// The whole interval lies above 1.
    Slower,
    /// The interval holds 1.
    NoDifferenceSeen,
    /// There is no interval: too few samples, or times that are not positive.
    Undecided,
}

impl Change {
    /// In words.
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

/// An answer without a partner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alone {
    /// Which record has it: `first` or `second`.
    pub record: String,
    /// The question.
    pub question: String,
    /// The target.
    pub target: String,
    /// The method.
    pub method: Method,
    /// The cores it is about; none where it is about no core more than about another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// The size.
    pub size_bytes: u64,
    /// The distance from a 64 B boundary.
    pub alignment_bytes: u64,
}

impl Comparison {
    /// The pairs that became slower by more than `percent`, beyond doubt: the whole interval lies above.
    pub fn slower_by_more_than(&self, percent: f64) -> impl Iterator<Item = &Pair> {
        let most = 1.0 + percent / 100.0;
        self.pairs.iter().filter(move |pair| pair.ratio_ci95.is_some_and(|interval| interval.low > most))
    }

    /// The pairs that a limit says nothing about: without an interval nobody knows whether they became slower.
    pub fn undecided(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.verdict == Change::Undecided)
    }

    /// The answers that the first record has and the second has not.
    pub fn lost(&self) -> impl Iterator<Item = &Alone> {
        self.alone.iter().filter(|alone| alone.record == "first")
    }
}
