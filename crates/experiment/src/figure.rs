//! The files of an experiment, read and checked.

use crate::ask_here::AskHere;
use lanemark_method::{Access, AccessPath, Method, MethodKind};
use lanemark_record::Class;
use lanemark_units::MemoryType;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A file of it is wrong.
    #[error("experiments/{paper}/{file}: {message}")]
    File {
        /// Which experiment.
        paper: String,
        /// Which file.
        file: &'static str,
        /// What is wrong.
        message: String,
    },
    /// A figure could not be asked for.
    #[error("experiments/{paper}: {id}: {message}")]
    Figure {
        /// Which experiment.
        paper: String,
        /// Which figure.
        id: String,
        /// What went wrong.
        message: String,
    },
    /// Whoever watched it had enough.
    #[error("experiments/{paper}: stopped after {done} of {of} figures")]
    Stopped {
        /// Which experiment.
        paper: String,
        /// Figures that were asked for.
        done: usize,
        /// All of them.
        of: usize,
    },
}

/// `experiment.toml` with `published.csv`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What the paper is.
    pub title: String,
    /// The platform its figures are asked of; absent where none has a question, and its machine is a board of its own.
    pub platform: Option<String>,
    /// Which machine that is, in words.
    pub machine: Option<String>,
    /// Its figures, in the order of the paper.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
    /// Tables of many figures that differ by size only.
    #[serde(default, rename = "column")]
    pub columns: Vec<Column>,
    /// Wanted agreement over sets of figures.
    #[serde(default, rename = "bound")]
    pub bounds: Vec<WantedBound>,
    /// Parameters that were fitted, and to what.
    #[serde(default, rename = "fit")]
    pub fits: Vec<FitSpec>,
    /// What the paper argues in words, as pictures, by name.
    #[serde(default)]
    pub pictures: Vec<String>,
    /// What was published, by ID.
    #[serde(skip)]
    pub published: BTreeMap<String, Published>,
}

/// One figure and how it is asked for; exactly one of `ask`, `measure`, `derive`, `rules`, `later` and `given` says how.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its ID.
    pub id: String,
    /// Whether it counts.
    pub class: Class,
    /// How far ours may be from theirs; absent if it is only listed.
    pub tolerance_percent: Option<f64>,
    /// The text contradicts itself or carries an error: listed with what is known, not judged.
    #[serde(default)]
    pub sic: bool,
    /// Outside its tolerance, and `DEVIATIONS.md` says why.
    #[serde(default)]
    pub known_gap: bool,
    /// What a reader should know.
    #[serde(default)]
    pub note: String,
    /// A question.
    pub ask: Option<Ask>,
    /// A number that is counted on a board, by name.
    pub measure: Option<String>,
    /// Arithmetic over other figures.
    pub derive: Option<String>,
    /// Rules that must hold, by name.
    #[serde(default)]
    pub rules: Vec<String>,
    /// What is missing before it can be asked.
    pub later: Option<String>,
    /// It is an input, and stands in the platform or in what is derived from it.
    #[serde(default)]
    pub given: bool,
    /// What the machine this runs on can be asked about the same thing.
    #[serde(default)]
    pub here: Vec<AskHere>,
}

/// One column of a table: the same method at every size, figures called `ID:column:size`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The ID up to the size: `F1:burst`.
    pub id: String,
    /// The question, asked at the size of each row.
    pub ask: Ask,
    /// How far ours may be from theirs.
    pub tolerance_percent: Option<f64>,
    /// Sizes whose cell a parameter was fitted to.
    #[serde(default)]
    pub fitted_sizes: Vec<u64>,
    /// Sizes that lie outside the tolerance, and `DEVIATIONS.md` says why.
    #[serde(default)]
    pub known_gap_sizes: Vec<u64>,
}

/// A question with its variant and the figure that is wanted of its answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// By catalogue name.
    pub question: String,
    /// The whole method, as records have it.
    pub method: Option<Method>,
    /// Instead of the method, its kind.
    pub kind: Option<MethodKind>,
    /// Instead of both, how a core reaches the memory; a pointer where nothing is said.
    pub path: Option<AccessPath>,
    /// The instruction; load or store is the question's.
    pub access: Option<Access>,
    /// The memory type.
    pub memory_type: Option<MemoryType>,
    /// The fence, or `none`.
    pub fence: Option<String>,
    /// The region, by name.
    pub region: Option<String>,
    /// The flows of devices: `["0:host", "1:host"]`.
    pub flows: Option<Vec<String>>,
    /// Numbers of the platform that are others for this figure, by their paths.
    #[serde(default)]
    pub with: BTreeMap<String, f64>,
    /// Writes to registers of its ports before, as `--setpci` takes them.
    #[serde(default)]
    pub setpci: Vec<String>,
    /// Bytes; for columns the row's size.
    pub size: Option<u64>,
    /// Passes between two time stamps.
    pub passes: Option<u64>,
    /// Fewer passes where all together would move more than this.
    pub at_most_bytes: Option<u64>,
    /// Which figure of the answer.
    pub figure: Wanted,
}

/// Which figure of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// Median latency, cost or overhead in ns.
    #[default]
    LatencyNs,
    /// The same in us.
    LatencyUs,
    /// The same in ms.
    LatencyMs,
    /// The same in s.
    LatencyS,
    /// From p1 to p99 of the latency in ns: how far samples lie apart.
    SpreadNs,
    /// What a whole run of copies takes in s, by those that were made.
    WholeRunS,
    /// The same of the run that took longest.
    WorstRunS,
    /// Median issue rate in GB/s.
    IssueGbPerS,
    /// Median delivered rate in GB/s.
    DeliveredGbPerS,
    /// The same in MiB/s.
    DeliveredMibPerS,
    /// Of several flows at once, the mean rate of one while all go, in MiB/s.
    FlowMibPerS,
}

impl Wanted {
    /// Its unit, as `published.csv` writes it.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Wanted::LatencyNs | Wanted::SpreadNs => "ns",
            Wanted::LatencyUs => "us",
            Wanted::LatencyMs => "ms",
            Wanted::LatencyS | Wanted::WholeRunS | Wanted::WorstRunS => "s",
            Wanted::IssueGbPerS | Wanted::DeliveredGbPerS => "GB/s",
            Wanted::DeliveredMibPerS | Wanted::FlowMibPerS => "MiB/s",
        }
    }

    /// Whether of two answers the first is the better one: the less time, the more bytes a second.
    pub(crate) fn is_better(self, one: f64, than: f64) -> bool {
        match self {
            Wanted::IssueGbPerS | Wanted::DeliveredGbPerS | Wanted::DeliveredMibPerS | Wanted::FlowMibPerS => {
                one > than
            }
            Wanted::LatencyNs
            | Wanted::LatencyUs
            | Wanted::LatencyMs
            | Wanted::LatencyS
            | Wanted::SpreadNs
            | Wanted::WholeRunS
            | Wanted::WorstRunS => one < than,
        }
    }
}

/// Wanted agreement over a set of figures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedBound {
    /// What it is about.
    pub name: String,
    /// IDs; a trailing `*` stands for any ending.
    pub rows: Vec<String>,
    /// `median` or `worst`.
    pub statistic: Statistic,
    /// At most this, in percent.
    pub wanted_percent: f64,
}

/// Which statistic of absolute errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The middle one.
    Median,
    /// The largest.
    Worst,
}

/// Parameters fitted together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    /// Keys of the platform, such as `root_complex.core_round_trip_ns`, with bounds.
    pub parameters: Vec<FitParameter>,
    /// IDs of the figures they are fitted to.
    pub to: Vec<String>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitParameter {
    /// The key.
    pub key: String,
    /// The least it may be.
    pub low: f64,
    /// The most it may be.
    pub high: f64,
}

/// A row of `published.csv`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The figure's ID.
    pub id: String,
    /// What it says.
    pub what: String,
    /// The value as printed; empty for rules.
    #[serde(rename = "published")]
    pub printed: Option<f64>,
    /// The value to compare with where the printed one is known to be wrong.
    pub corrected: Option<f64>,
    /// Of both.
    pub unit: String,
}

impl Published {
    /// What ours is held against.
    #[must_use]
    pub fn target(&self) -> Option<f64> {
        self.corrected.or(self.printed)
    }
}

impl Experiment {
    /// Reads an experiment from its two files.
    ///
    /// # Errors
    /// [`ExperimentError::File`] for what is malformed, unknown, missing or twice there.
    pub fn read(paper: &str, experiment: &str, published: &str) -> Result<Experiment, ExperimentError> {
        let wrong = |file, message: String| ExperimentError::File { paper: paper.to_owned(), file, message };
        let toml = |message| wrong("experiment.toml", message);
        let csv = |message| wrong("published.csv", message);
        let mut read: Experiment = toml::from_str(experiment).map_err(|error| toml(error.to_string()))?;
        for row in csv::Reader::from_reader(published.as_bytes()).deserialize() {
            let row: Published = row.map_err(|error: csv::Error| csv(error.to_string()))?;
            if let Some(twice) = read.published.insert(row.id.clone(), row) {
                return Err(csv(format!("{} stands twice", twice.id)));
            }
        }
        for figure in &read.figures {
            if !read.published.contains_key(&figure.id) {
                return Err(csv(format!("{} is in experiment.toml and not here", figure.id)));
            }
            let ways = usize::from(figure.ask.is_some())
                + usize::from(figure.measure.is_some())
                + usize::from(figure.derive.is_some())
                + usize::from(!figure.rules.is_empty())
                + usize::from(figure.later.is_some())
                + usize::from(figure.given);
            if ways != 1 {
                let message = format!(
                    "{}: needs exactly one of ask, measure, derive, rules, later, given; has {ways}",
                    figure.id
                );
                return Err(toml(message));
            }
        }
        if read.platform.is_some() == read.machine.is_some() {
            return Err(toml("needs exactly one of platform and machine".to_owned()));
        }
        for id in read.published.keys() {
            let in_column = read.columns.iter().any(|column| size_of(&column.id, id).is_some());
            if !in_column && !read.figures.iter().any(|figure| figure.id == *id) {
                return Err(toml(format!("{id} is published and nobody asks for it")));
            }
        }
        Ok(read)
    }
}

/// The size of a cell `ID:column:size` of this column.
pub(crate) fn size_of(column: &str, id: &str) -> Option<u64> {
    id.strip_prefix(column)?.strip_prefix(':')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::PAPERS;

    #[test]
    fn every_experiment_is_read() {
        for paper in PAPERS {
            Experiment::read(paper.name, paper.experiment, paper.published).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    const EXPERIMENT: &str =
        "title = \"t\"\nplatform = \"p\"\n[[figure]]\nid = \"A\"\nclass = \"given\"\ngiven = true\n";
    const PUBLISHED: &str = "id,what,published,corrected,unit\nA,a,1,,ns\n";

    #[test]
    fn a_figure_without_a_published_row_and_a_row_without_a_figure_are_refused() {
        assert!(Experiment::read("x", EXPERIMENT, PUBLISHED).is_ok());
        let error =
            |experiment: &str, published: &str| Experiment::read("x", experiment, published).unwrap_err().to_string();
        assert!(error(EXPERIMENT, "id,what,published,corrected,unit\n").contains("published.csv: A"));
        assert!(error(EXPERIMENT, &format!("{PUBLISHED}B,b,1,,ns\n")).contains("B is published and nobody asks"));
        assert!(error(EXPERIMENT, &format!("{PUBLISHED}A,b,1,,ns\n")).contains("A stands twice"));
    }

    #[test]
    fn a_figure_with_two_ways_or_none_is_refused() {
        let two = EXPERIMENT.replace("given = true", "given = true\nderive = \"1\"");
        let none = EXPERIMENT.replace("given = true", "");
        for text in [two, none] {
            let error = Experiment::read("x", &text, PUBLISHED).unwrap_err().to_string();
            assert!(error.contains("exactly one of"), "{error}");
        }
    }
}
