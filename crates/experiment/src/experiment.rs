//! Reading and checking the files of an experiment.

use crate::error::ExperimentError;
use crate::local_question::LocalQuestion;
use crate::metric::Metric;
use crate::note;
use lanemark_method::{Access, AccessPath, Method, MethodKind};
use lanemark_platform::{Platform, preset};
use lanemark_units::MemoryType;
use serde::Deserialize;
use std::collections::BTreeMap;

/// `experiment.toml` with `published.csv`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Title of the paper.
    pub title: String,
    /// The platform of its figures; absent if the machine is not a platform file and no figure has a question.
    pub platform: Option<String>,
    /// The machine in words, where there is no platform.
    pub machine: Option<String>,
    /// The figures, in the order of the paper.
    #[serde(rename = "figure")]
    pub figures: Vec<Figure>,
    /// Columns of tables, whose figures differ in size only.
    #[serde(default, rename = "column")]
    pub columns: Vec<Column>,
    /// Required agreement over sets of figures.
    #[serde(default, rename = "bound")]
    pub bounds: Vec<WantedBound>,
    /// Fitted parameters, with the figures that they are fitted to.
    #[serde(default, rename = "fit")]
    pub fits: Vec<FitSpec>,
    /// Names of pictures for arguments that the paper makes in words.
    #[serde(default)]
    pub pictures: Vec<String>,
    /// Published values, by ID.
    #[serde(skip)]
    pub published: BTreeMap<String, Published>,
}

/// A figure and its source: exactly one of `ask`, `measure`, `derive`, `rules`, `later` and `given`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// ID of the figure.
    pub id: String,
    /// Largest difference from the published value, in percent; absent for a figure that is only listed.
    pub tolerance_percent: Option<f64>,
    /// The published text contradicts itself or contains an error: the figure is listed and not judged.
    #[serde(default)]
    pub sic: bool,
    /// The figure is outside its tolerance, and `DEVIATIONS.md` gives the reason.
    #[serde(default)]
    pub known_gap: bool,
    /// Remark for readers; numbers of the run are placeholders: `{R12}` is the simulated value of row R12 with its
    /// unit, `{R12|published}` and `{R12|error}` its other numbers, and `{=100*R12/R9:1}` is arithmetic.
    #[serde(default)]
    pub note: String,
    /// A question to run.
    pub ask: Option<FigureQuery>,
    /// Name of a number that is counted on a board.
    pub measure: Option<String>,
    /// Arithmetic over other figures.
    pub derive: Option<String>,
    /// Names of rules that must hold.
    #[serde(default)]
    pub rules: Vec<String>,
    /// Reason why the figure cannot be computed yet.
    pub later: Option<String>,
    /// The figure is an input, part of the platform or of derived figures.
    #[serde(default)]
    pub given: bool,
    /// Equivalent questions for this machine.
    #[serde(default, rename = "here")]
    pub local: Vec<LocalQuestion>,
}

/// A column of a table: the same question at every size, with figures named `ID:column:size`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The ID without the size: `F1:burst`.
    pub id: String,
    /// The question, run at the size of each row.
    pub ask: FigureQuery,
    /// Largest difference from the published value, in percent.
    pub tolerance_percent: Option<f64>,
    /// Sizes outside the tolerance, explained in `DEVIATIONS.md`.
    #[serde(default)]
    pub known_gap_sizes: Vec<u64>,
}

/// A question, its case, and the figure to take from its answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureQuery {
    /// Name in the catalogue of questions.
    pub question: String,
    /// The whole method, as records have it.
    pub method: Option<Method>,
    /// Kind of the method, instead of the whole method.
    pub kind: Option<MethodKind>,
    /// Path of a core's accesses, instead of both; a pointer by default.
    pub path: Option<AccessPath>,
    /// The instruction; the question decides between load and store.
    pub access: Option<Access>,
    /// The memory type.
    pub memory_type: Option<MemoryType>,
    /// The fence, or `none`.
    pub fence: Option<String>,
    /// Name of the region.
    pub region: Option<String>,
    /// Sources and destinations of DMA: `["0:host", "1:host"]`.
    pub flows: Option<Vec<String>>,
    /// Platform keys that are changed for this figure, with their values.
    #[serde(default)]
    pub with: BTreeMap<String, f64>,
    /// Writes to registers of ports before the run, in the format of `--setpci`.
    #[serde(default)]
    pub setpci: Vec<String>,
    /// Size in bytes; for columns the size of the row.
    pub size: Option<u64>,
    /// Iterations between two time stamps.
    pub passes: Option<u64>,
    /// Most bytes of all iterations together; larger sizes run fewer iterations.
    pub at_most_bytes: Option<u64>,
    /// Metric of the answer.
    pub figure: Metric,
}

/// Required agreement over a set of figures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedBound {
    /// Name of the set, for people.
    pub name: String,
    /// IDs; a trailing `*` matches any ending.
    pub rows: Vec<String>,
    /// Statistic of the errors: `median` or `worst`.
    pub statistic: Statistic,
    /// Largest allowed value of the statistic, in percent.
    pub wanted_percent: f64,
}

/// Statistic of absolute errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// Median.
    Median,
    /// Largest.
    Worst,
}

/// Parameters that are fitted together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSpec {
    /// Keys of the platform, such as `root_complex.core_round_trip_ns`, with bounds.
    pub parameters: Vec<FitParameter>,
    /// IDs of the figures that they are fitted to.
    pub to: Vec<String>,
}

/// A fitted parameter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitParameter {
    /// Key of the platform.
    pub key: String,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A row of `published.csv`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// ID of the figure.
    pub id: String,
    /// Description of the figure.
    pub what: String,
    /// The value as printed; empty for rules.
    #[serde(rename = "published")]
    pub printed: Option<f64>,
    /// The value to compare with, where the printed one is known to be wrong.
    pub corrected: Option<f64>,
    /// Unit of both values.
    pub unit: String,
}

impl Published {
    /// The value to compare with.
    #[must_use]
    pub fn target(&self) -> Option<f64> {
        self.corrected.or(self.printed)
    }
}

impl Experiment {
    /// Reads an experiment from its two files.
    ///
    /// # Errors
    /// [`ExperimentError::File`] for malformed, unknown, missing or duplicate entries.
    pub fn read(paper: &str, experiment: &str, published: &str) -> Result<Experiment, ExperimentError> {
        let wrong = |file, message: String| ExperimentError::File { paper: paper.to_owned(), file, message };
        let toml = |message| wrong("experiment.toml", message);
        let csv = |message| wrong("published.csv", message);
        let mut read: Experiment = toml::from_str(experiment).map_err(|error| toml(error.to_string()))?;
        for row in csv::Reader::from_reader(published.as_bytes()).deserialize() {
            let row: Published = row.map_err(|error: csv::Error| csv(error.to_string()))?;
            if let Some(twice) = read.published.insert(row.id.clone(), row) {
                return Err(csv(format!("{} is listed twice", twice.id)));
            }
        }
        for figure in &read.figures {
            if !read.published.contains_key(&figure.id) {
                return Err(csv(format!("{} is in experiment.toml but has no row here", figure.id)));
            }
            let sources = usize::from(figure.ask.is_some())
                + usize::from(figure.measure.is_some())
                + usize::from(figure.derive.is_some())
                + usize::from(!figure.rules.is_empty())
                + usize::from(figure.later.is_some())
                + usize::from(figure.given);
            if sources != 1 {
                let message = format!(
                    "{}: needs exactly one of ask, measure, derive, rules, later, given, but has {sources}",
                    figure.id
                );
                return Err(toml(message));
            }
        }
        let is_row = |id: &str| read.published.contains_key(id);
        let of_platform = read.platform.as_deref().and_then(preset).and_then(Result::ok);
        for figure in &read.figures {
            note::check(&figure.note, &is_row, of_platform.as_ref())
                .map_err(|message| toml(format!("the note of {}: {message}", figure.id)))?;
        }
        if read.platform.is_some() == read.machine.is_some() {
            return Err(toml("needs exactly one of the keys platform and machine".to_owned()));
        }
        for id in read.published.keys() {
            let in_column = read.columns.iter().any(|column| size_of(&column.id, id).is_some());
            if !in_column && !read.figures.iter().any(|figure| figure.id == *id) {
                return Err(toml(format!("{id} is in published.csv but has no [[figure]] or [[column]]")));
            }
        }
        Ok(read)
    }
}

/// The platform of an experiment; `None` if it has none.
pub(crate) fn platform_of(paper: &str, experiment: &Experiment) -> Result<Option<Platform>, ExperimentError> {
    let wrong = |message: String| ExperimentError::File { paper: paper.to_owned(), file: "experiment.toml", message };
    let Some(name) = &experiment.platform else { return Ok(None) };
    let found = preset(name).ok_or_else(|| wrong(format!("there is no platform '{name}'")))?;
    found.map(Some).map_err(|error| wrong(error.to_string()))
}

/// The size of the cell `id` (`ID:column:size`) of `column`; `None` if it is in another column.
pub(crate) fn size_of(column: &str, id: &str) -> Option<u64> {
    id.strip_prefix(column)?.strip_prefix(':')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::PAPERS;

    #[test]
    fn every_experiment_is_valid() {
        for paper in PAPERS {
            Experiment::read(paper.name, paper.experiment, paper.published).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn every_rule_is_in_an_experiment_and_every_named_rule_exists() {
        let mut named: Vec<String> = Vec::new();
        for paper in PAPERS {
            let experiment = Experiment::read(paper.name, paper.experiment, paper.published).unwrap();
            named.extend(experiment.figures.into_iter().flat_map(|figure| figure.rules));
        }
        named.sort_unstable();
        named.dedup();
        let mut rules: Vec<&str> = lanemark_rules::RULES.iter().map(|rule| rule.name).collect();
        rules.sort_unstable();
        assert_eq!(named, rules, "left: the rules in experiments/; right: RULES of lanemark-rules");
    }

    const EXPERIMENT: &str = "title = \"t\"\nplatform = \"p\"\n[[figure]]\nid = \"A\"\ngiven = true\n";
    const PUBLISHED: &str = "id,what,published,corrected,unit\nA,a,1,,ns\n";

    #[test]
    fn figures_and_published_rows_must_match() {
        assert!(Experiment::read("x", EXPERIMENT, PUBLISHED).is_ok());
        let error =
            |experiment: &str, published: &str| Experiment::read("x", experiment, published).unwrap_err().to_string();
        assert!(error(EXPERIMENT, "id,what,published,corrected,unit\n").contains("published.csv: A"));
        assert!(error(EXPERIMENT, &format!("{PUBLISHED}B,b,1,,ns\n")).contains("B is in published.csv but has no"));
        assert!(error(EXPERIMENT, &format!("{PUBLISHED}A,b,1,,ns\n")).contains("A is listed twice"));
    }

    #[test]
    fn a_note_names_rows_only() {
        let with = |note: &str| EXPERIMENT.replace("given = true", &format!("given = true\nnote = \"{note}\""));
        assert!(Experiment::read("x", &with("{A|published}"), PUBLISHED).is_ok());
        let error = Experiment::read("x", &with("{B}"), PUBLISHED).unwrap_err().to_string();
        assert!(error.contains("the note of A: there is no row 'B'"), "{error}");
    }

    #[test]
    fn a_figure_needs_exactly_one_source() {
        let two = EXPERIMENT.replace("given = true", "given = true\nderive = \"1\"");
        let none = EXPERIMENT.replace("given = true", "");
        for text in [two, none] {
            let error = Experiment::read("x", &text, PUBLISHED).unwrap_err().to_string();
            assert!(error.contains("exactly one of"), "{error}");
        }
    }
}
