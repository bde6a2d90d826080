//! A published figure beside ours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What reproducing one paper gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reproduction {
    /// The experiment's folder name.
    pub paper: String,
    /// What the paper is.
    pub title: String,
    /// The platform it was asked of, or which other machine.
    pub platform: String,
    /// Its figures, row by row.
    pub rows: Vec<Row>,
    /// Agreement over sets of rows, as the experiment wants it.
    pub bounds: Vec<Bound>,
    /// What the paper argues in words, or leaves open, as pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// What the machine this runs on says to the same things, if it was asked; it is another than the paper's, and
    /// nothing of this counts as agreement.
    pub here: Vec<Here>,
}

/// Lines over a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// The parameter, with its unit.
    pub along: String,
    /// What is drawn over it, with its unit.
    pub shows: String,
    /// Values of the parameter, from small to large.
    pub at: Vec<f64>,
    /// The lines.
    pub lines: Vec<PictureLine>,
    /// What a reader should know: where the lines come from, and what they say.
    pub note: String,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureLine {
    /// What it is of.
    pub name: String,
    /// Its values, one for each of the parameter's; absent where there is none.
    pub values: Vec<Option<f64>>,
}

/// A published figure beside that of the machine this runs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Here {
    /// The figure's ID.
    pub id: String,
    /// What was asked here.
    pub what: String,
    /// Who was asked: `host`, or a device behind a runtime and what it is.
    pub asked: String,
    /// The question and the method that answered, and from which core where several were asked; or the arithmetic over other rows.
    pub method: String,
    /// What the paper says of its machine; absent where it gives no number.
    pub published: Option<f64>,
    /// What was said here, the median unless `what` says otherwise; of several cores or pairs of cores, that of the best. Absent if there is
    /// no answer.
    pub here: Option<f64>,
    /// Below which 1 % of the samples lie; of runs of many copies the shortest. Absent where one sample is all.
    pub from: Option<f64>,
    /// Below which 99 % of them lie; of runs the longest.
    pub to: Option<f64>,
    /// Of all of them.
    pub unit: String,
    /// Why it does not; empty if it does.
    pub because: String,
}

/// Wanted agreement over the predicted rows of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// What it is about.
    pub name: String,
    /// Which statistic: `median` or `worst` of the absolute errors.
    pub statistic: String,
    /// How many predicted rows it covers.
    pub rows: u64,
    /// The statistic found, in percent.
    pub found_percent: f64,
    /// The statistic wanted, in percent.
    pub wanted_percent: f64,
    /// Whether it is met.
    pub met: bool,
}

/// One published figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The figure's ID, and which cell of it.
    pub id: String,
    /// What it says.
    pub what: String,
    /// The published value; absent for rules.
    pub published: Option<f64>,
    /// The value to compare with where the text contradicts itself or carries a tool's error.
    pub corrected: Option<f64>,
    /// What the simulation gives.
    pub simulated: Option<f64>,
    /// What the formula gives.
    pub formula: Option<f64>,
    /// The unit of the four.
    pub unit: String,
    /// Whether it counts as agreement.
    pub class: Class,
    /// 100 x (simulated - published) / published, with the corrected value where there is one and the
    /// formula's where nothing is simulated.
    pub error_percent: Option<f64>,
    /// What that may be at most; absent where nothing is wanted.
    pub tolerance_percent: Option<f64>,
    /// How it stands.
    pub verdict: Verdict,
    /// What a reader should know.
    pub note: String,
}

/// Whether a figure of ours counts as agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An input.
    Given,
    /// A parameter was fitted to it.
    Fitted,
    /// Neither: only these count.
    Predicted,
}

/// How a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within its tolerance; for a rule: it holds.
    Agrees,
    /// Outside its tolerance, and nobody has said why; for a rule: it is broken.
    Disagrees,
    /// Outside its tolerance, known, and explained in the experiment's DEVIATIONS.md.
    KnownGap,
    /// Printed without being compared.
    Listed,
    /// The text contradicts itself or carries a tool's error.
    Sic,
    /// Not there yet.
    Later,
}
