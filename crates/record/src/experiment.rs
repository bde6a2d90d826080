//! Published figures compared with simulation and formula.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reproduction of one paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reproduction {
    /// Folder name of the experiment.
    pub paper: String,
    /// Title of the paper.
    pub title: String,
    /// The platform, or another machine.
    pub platform: String,
    /// Its figures, row by row.
    pub rows: Vec<Row>,
    /// Required agreement over sets of rows.
    pub bounds: Vec<Bound>,
    /// Pictures of statements that the paper makes in words, or leaves open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
    /// Figures of this machine for the same questions, if measured. It is not the paper's machine,
    /// so they do not count as agreement.
    pub here: Vec<Here>,
}

/// Lines over a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// Title of the picture.
    pub title: String,
    /// The parameter, with its unit.
    pub along: String,
    /// The quantity of the lines, with its unit.
    pub shows: String,
    /// Values of the parameter, from small to large.
    pub at: Vec<f64>,
    /// The lines.
    pub lines: Vec<PictureLine>,
    /// Note on the origin and the meaning of the lines.
    pub note: String,
}

/// A line of a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureLine {
    /// Name of the line.
    pub name: String,
    /// One value per value of the parameter; absent values are missing.
    pub values: Vec<Option<f64>>,
}

/// A published figure beside that of this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Here {
    /// ID of the figure.
    pub id: String,
    /// The measured quantity.
    pub what: String,
    /// The target: `host`, or a device behind a runtime and its kind.
    pub asked: String,
    /// The question and the method, with the core if several were measured; or the arithmetic over
    /// other rows.
    pub method: String,
    /// The published value for the paper's machine; absent if the paper has no number.
    pub published: Option<f64>,
    /// The value of this machine: the median unless `what` says otherwise, and that of the best
    /// core or pair of cores. Absent without an answer.
    pub here: Option<f64>,
    /// 1st percentile of the samples; for runs of many copies the shortest. Absent for a single
    /// sample.
    pub from: Option<f64>,
    /// 99th percentile of the samples; for runs the longest.
    pub to: Option<f64>,
    /// Unit of the four values.
    pub unit: String,
    /// Reason for a missing answer; empty otherwise.
    pub because: String,
}

/// Required agreement over the predicted rows of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Name of the set.
    pub name: String,
    /// Statistic of the absolute errors: `median` or `worst`.
    pub statistic: String,
    /// Number of predicted rows.
    pub rows: u64,
    /// Value of the statistic, in percent.
    pub found_percent: f64,
    /// Largest accepted value, in percent.
    pub wanted_percent: f64,
    /// Whether the requirement is met.
    pub met: bool,
}

/// One published figure with the simulated and the computed one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// ID of the figure, with its cell.
    pub id: String,
    /// The quantity.
    pub what: String,
    /// The published value; absent for rules.
    pub published: Option<f64>,
    /// Corrected value for the comparison, if the text contradicts itself or has an error of a
    /// tool.
    pub corrected: Option<f64>,
    /// Simulated value.
    pub simulated: Option<f64>,
    /// Value of the formula.
    pub formula: Option<f64>,
    /// Unit of the four values.
    pub unit: String,
    /// Class of the row.
    pub class: Class,
    /// IDs of the rows that this row repeats: given and fitted rows of an identity, an earlier predicted row of a
    /// predicted one. Empty for a distinct row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_as: Vec<String>,
    /// 100 x (simulated - published) / published, with the corrected value if there is one, and
    /// with the formula if nothing is simulated.
    pub error_percent: Option<f64>,
    /// Largest accepted error; absent without a requirement.
    pub tolerance_percent: Option<f64>,
    /// Verdict.
    pub verdict: Verdict,
    /// Note for readers.
    pub note: String,
}

/// Class of a row: whether its agreement could have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// An input of the model, or arithmetic on inputs.
    Given,
    /// A value of the platform was fitted to it or chosen by it.
    Fitted,
    /// A repetition of given and fitted rows: it agrees because they do.
    Identity,
    /// A statement that is tested on a simulated machine.
    Rule,
    /// None of the others; only these rows count as agreement.
    Predicted,
    /// Not computed.
    Unanswered,
}

impl Class {
    /// Every class, in the order of the summary.
    pub const ALL: [Class; 6] =
        [Class::Given, Class::Fitted, Class::Identity, Class::Rule, Class::Predicted, Class::Unanswered];

    /// Name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Class::Given => "given",
            Class::Fitted => "fitted",
            Class::Identity => "identity",
            Class::Rule => "rule",
            Class::Predicted => "predicted",
            Class::Unanswered => "unanswered",
        }
    }

    /// The class with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// Verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Within its tolerance; for a rule: it holds.
    Agrees,
    /// Outside its tolerance without an explanation; for a rule: it is violated.
    Disagrees,
    /// Outside its tolerance, known, and explained in the experiment's DEVIATIONS.md.
    KnownGap,
    /// Printed without a comparison.
    Listed,
    /// The text contradicts itself, or has an error of a tool.
    Sic,
    /// Not implemented.
    Later,
}
