//! Data of a fit: the answers of a record or the figures of a table, compared with a platform.

use crate::held_out::held_out;
use crate::table::Row;
use crate::whole::{Grid, between};
use crate::{Parameter, Table};
use lanemark_bench::{Axes, BenchError, Case, Effort, Question, question};
use lanemark_machine::Facts;
use lanemark_method::{Access, AccessPath, Method, Width};
use lanemark_model::FormulaMachine;
use lanemark_platform::{Draft, Origin, Platform};
use lanemark_record::{Answer, Quantity, Record, Residual};
use lanemark_runner::OpenTarget;
use lanemark_units::MemoryType;

/// Data of a fit: answers of one target of a record, or figures of a table. Each is simulated again on a platform while
/// some of its numbers vary.
#[derive(Clone)]
pub struct FitData {
    platform: Platform,
    keys: Vec<String>,
    /// Allowed values of each key that takes integers only.
    grids: Vec<Grid>,
    /// Lower bound, start and upper bound of each key; `None`: derived from the platform's own values.
    searched: Option<Vec<(f64, f64, f64)>>,
    data: Vec<Datum>,
    /// Data that are held out from the fit, to judge it.
    held_out: Vec<Datum>,
}

#[derive(Clone)]
struct Datum {
    question: &'static Question,
    case: Case,
    passes: u64,
    measured: f64,
    name: String,
}

/// Reasons why data cannot be used for a fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitDataError {
    /// No target given although the record has several, or an unknown target.
    #[error("the record has answers of {targets}: name one of them as the target")]
    WhichTarget {
        /// Names of the targets in the record.
        targets: String,
    },
    /// A record without answers.
    #[error("the record has no answers")]
    NoAnswers,
    /// A key that is not a number of the platform.
    #[error(
        "{platform} has no number '{key}': {}use a path such as root_complex.core_round_trip_ns or region.NAME.read_ns",
        hint.as_deref().map(|hint| format!("{hint} ")).unwrap_or_default()
    )]
    Key {
        /// Name of the platform.
        platform: String,
        /// The key given.
        key: String,
        /// A suggestion of similar keys of the platform.
        hint: Option<String>,
    },
    /// A key that takes integers only.
    #[error("'{key}' takes integers only in {platform}, and a fit needs continuous values: fit times, rates or cycles")]
    Whole {
        /// Name of the platform.
        platform: String,
        /// The key given.
        key: String,
    },
    /// A platform file without unknown numbers.
    #[error("{platform} has no unknown number: name those to fit with --parameter KEY")]
    NothingUnknown {
        /// Name of the platform.
        platform: String,
    },
    /// An error of the platform with the start values.
    #[error("{0}")]
    Start(String),
    /// A figure of a table that the platform does not support.
    #[error(
        "{place}: {question} of {size_bytes} B is not possible on {platform}: [dma] or [memory] is missing or too small"
    )]
    NotAsked {
        /// File and line of the figure.
        place: String,
        /// Name of the question.
        question: &'static str,
        /// Size of one transfer, in bytes.
        size_bytes: u64,
        /// Name of the platform.
        platform: String,
    },
    /// A record of which the platform supports no answer.
    #[error("{platform} supports none of the {answers} answers: its regions, instructions or memory types differ")]
    Nothing {
        /// Number of answers of the target.
        answers: usize,
        /// Name of the platform.
        platform: String,
    },
}

/// Relative step of derivatives for loads and stores by cores.
const STEP_SHARE: f64 = 1e-4;

/// Relative step of derivatives for DMA. Transfers overlap and times are whole ticks, so their sum jumps by some
/// hundredths of a percent; the step must exceed these jumps.
const TRANSFERS_STEP_SHARE: f64 = 0.02;

impl FitData {
    /// The name of the target: `target`, or the only target of the record.
    fn target(record: &Record, target: Option<&str>) -> Result<String, FitDataError> {
        let mut targets: Vec<&str> = Vec::new();
        for answer in &record.answers {
            if !targets.contains(&answer.target.as_str()) {
                targets.push(&answer.target);
            }
        }
        let target = match (target, targets.as_slice()) {
            (Some(name), names) if names.contains(&name) => name,
            (None, [only]) => only,
            (_, []) => return Err(FitDataError::NoAnswers),
            _ => return Err(FitDataError::WhichTarget { targets: targets.join(", ") }),
        };
        Ok(target.to_owned())
    }

    /// Prepares a fit of `keys` of `platform` to the answers of `target`, or of the only target.
    ///
    /// # Errors
    /// [`FitDataError`] if target or key are unknown, or if the platform supports no answer.
    pub fn new(
        record: &Record,
        target: Option<&str>,
        platform: &Platform,
        keys: &[String],
    ) -> Result<FitData, FitDataError> {
        let target = Self::target(record, target)?;
        let mut distinct: Vec<String> = Vec::new();
        for key in keys {
            let (name, key) = (platform.name.clone(), key.clone());
            match platform.number(&key) {
                None => {
                    let hint = platform.similar_keys(&key);
                    return Err(FitDataError::Key { platform: name, key, hint });
                }
                Some((now, origin)) if platform.with(&key, now + now.max(1.0) / 8192.0, origin.clone()).is_err() => {
                    return Err(FitDataError::Whole { platform: name, key });
                }
                Some(_) if distinct.contains(&key) => {}
                Some(_) => distinct.push(key),
            }
        }
        let answers: Vec<&Answer> = record.answers.iter().filter(|answer| answer.target == target).collect();
        let data = data(platform, &answers)?;
        let grids = vec![None; distinct.len()];
        Ok(FitData { platform: platform.clone(), keys: distinct, grids, searched: None, data, held_out: Vec::new() })
    }

    /// Prepares a fit of every unknown number of `draft` to the answers of `target`, or of the only target.
    ///
    /// All DMA answers are used. Of a question about cores, at most 12 answers up to 4 KiB are used, evenly spread.
    /// Every second size of a curve with six or more sizes is held out.
    ///
    /// # Errors
    /// [`FitDataError`] if the target is unknown, the draft has no unknown number, or the platform supports no answer.
    pub fn of_draft(record: &Record, target: Option<&str>, draft: &Draft) -> Result<FitData, FitDataError> {
        let target = Self::target(record, target)?;
        let started = started(draft)?;
        let answers: Vec<&Answer> = record.answers.iter().filter(|answer| answer.target == target).collect();
        let data = data(&started, &selected(&answers))?;
        Ok(Self::of_data(draft, started, data))
    }

    /// Prepares a fit of every unknown number of `draft` to the figures of a table. Every second size of a curve with
    /// six or more sizes is held out.
    ///
    /// # Errors
    /// [`FitDataError`] if the draft has no unknown number, or the platform does not support a figure.
    pub fn of_table(table: &Table, draft: &Draft) -> Result<FitData, FitDataError> {
        let started = started(draft)?;
        let target = OpenTarget::of_platform(&started).map_err(|error| FitDataError::Start(error.to_string()))?;
        let mut data = Vec::new();
        for row in &table.rows {
            let datum = point(&target, row).ok_or_else(|| FitDataError::NotAsked {
                place: format!("{}:{}", table.file, row.line),
                question: row.question,
                size_bytes: row.size_bytes,
                platform: started.name.clone(),
            })?;
            data.push(datum);
        }
        Ok(Self::of_data(draft, started, data))
    }

    fn of_data(draft: &Draft, started: Platform, data: Vec<Datum>) -> FitData {
        let curves: Vec<String> = data.iter().map(Datum::curve).collect();
        let sizes = data.iter().map(|datum| datum.case.size);
        let which = held_out(curves.iter().map(String::as_str).zip(sizes));
        let (held_out, data): (Vec<_>, Vec<_>) = data.into_iter().zip(which).partition(|(_, is_held_out)| *is_held_out);
        let unknowns = draft.unknowns();
        FitData {
            keys: unknowns.iter().map(|row| row.key.clone()).collect(),
            grids: unknowns.iter().map(|row| row.is_whole.then(|| grid(&started, &row.key, row.bounds))).collect(),
            searched: Some(unknowns.iter().map(|row| (row.bounds.0, row.start, row.bounds.1)).collect()),
            platform: started,
            data: data.into_iter().map(|(datum, _)| datum).collect(),
            held_out: held_out.into_iter().map(|(datum, _)| datum).collect(),
        }
    }

    /// The keys as parameters of a fit. Bounds: the search range of the key in a draft, or a tenth to ten times the
    /// platform's value.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        let step_share = if self.is_about_transfers() { TRANSFERS_STEP_SHARE } else { STEP_SHARE };
        let parameter = |(place, key): (usize, &String)| {
            let name = key.clone();
            if let Some((low, start, high)) = self.searched.as_ref().map(|searched| searched[place]) {
                return Parameter { name, start, low, high, step_share };
            }
            let start = self.platform.number(key).map_or(0.0, |number| number.0);
            Parameter { name, start, low: start / 10.0, high: start * 10.0, step_share }
        };
        self.keys.iter().enumerate().map(parameter).collect()
    }

    /// The questions of the data, each with its number of answers.
    #[must_use]
    pub fn questions(&self) -> Vec<(&'static str, usize)> {
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
        for datum in &self.data {
            match counts.iter_mut().find(|(name, _)| *name == datum.question.name) {
                Some((_, count)) => *count += 1,
                None => counts.push((datum.question.name, 1)),
            }
        }
        counts
    }

    /// The allowed values of each key; `None` for a continuous key.
    pub(crate) fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// Whether the data contain DMA transfers. A DMA transfer has several possible bottlenecks, and a search that
    /// starts at the wrong one may not leave it; such a search needs several starting points.
    pub(crate) fn is_about_transfers(&self) -> bool {
        self.data.iter().any(|datum| matches!(datum.case.method, Method::Dma { .. }))
    }

    /// Number of answers that are held out.
    #[must_use]
    pub fn held_out(&self) -> usize {
        self.held_out.len()
    }

    /// Compares each fitted answer with simulation and formula at `values` of the keys.
    ///
    /// # Errors
    /// The error of the platform or the simulation for these values.
    pub fn compare(&self, values: &[f64]) -> Result<Vec<Residual>, String> {
        self.compared(&self.data, values)
    }

    /// Compares each held-out answer, like [`FitData::compare`].
    ///
    /// # Errors
    /// As [`FitData::compare`].
    pub fn compare_held_out(&self, values: &[f64]) -> Result<Vec<Residual>, String> {
        self.compared(&self.held_out, values)
    }

    fn compared(&self, data: &[Datum], values: &[f64]) -> Result<Vec<Residual>, String> {
        let platform = self.platform_with(values)?;
        let mut target = opened(&platform)?;
        let mut row = |datum: &Datum| {
            let simulated = datum.simulated(&mut target)?.ok_or("the simulation gave no figure")?;
            // A missing closed form is not an error.
            let formula = datum.predicted(&mut target).ok().flatten();
            Ok(Residual {
                what: datum.name.clone(),
                unit: datum.unit().to_owned(),
                measured: datum.measured,
                simulated,
                formula,
                error_percent: 100.0 * (simulated / datum.measured - 1.0),
            })
        };
        data.iter().map(&mut row).collect()
    }

    /// Question, method and size of each residual.
    pub fn data(&self) -> impl Iterator<Item = &str> {
        self.data.iter().map(|datum| datum.name.as_str())
    }

    /// Natural logarithm of simulated over measured at `values` of the keys, for each fitted answer. The logarithm
    /// gives twice and half of a figure the same weight. Keys that take integers only are interpolated between allowed
    /// values.
    ///
    /// # Errors
    /// The error of the platform or the simulation for these values.
    pub fn residuals(&self, values: &[f64]) -> Result<Vec<f64>, String> {
        between(&self.grids, values, |values| {
            let mut target = opened(&self.platform_with(values)?)?;
            self.residuals_by(|datum| datum.simulated(&mut target))
        })
    }

    /// Residuals of the formulas, like [`FitData::residuals`].
    ///
    /// # Errors
    /// As [`FitData::residuals`]; also for an answer without a closed form.
    pub(crate) fn formula_residuals(&self, facts: &Facts, values: &[f64]) -> Result<Vec<f64>, String> {
        between(&self.grids, values, |values| {
            // No simulation is built: most evaluations of a search use the formulas only.
            let mut formulas = FormulaMachine::new(&self.platform_with(values)?, facts);
            self.residuals_by(|datum| {
                figure(lanemark_bench::ask(datum.question, &mut formulas, &datum.case, &datum.effort()))
            })
        })
    }

    /// Facts of the simulated machine with the start values; they do not depend on the keys.
    pub(crate) fn facts(&self) -> Result<Facts, String> {
        Ok(opened(&self.platform)?.facts().clone())
    }

    fn residuals_by(&self, mut ask: impl FnMut(&Datum) -> Result<Option<f64>, String>) -> Result<Vec<f64>, String> {
        let mut residual = |datum: &Datum| {
            let given = ask(datum)?.ok_or_else(|| format!("there is no figure of {}", datum.name))?;
            Ok((given / datum.measured).ln())
        };
        self.data.iter().map(&mut residual).collect()
    }

    fn platform_with(&self, values: &[f64]) -> Result<Platform, String> {
        let mut platform = self.platform.clone();
        for (key, value) in self.keys.iter().zip(values) {
            let origin = Origin::FittedTo(vec!["a record".to_owned()]);
            platform = platform.with(key, *value, origin).map_err(|error| error.to_string())?;
        }
        Ok(platform)
    }
}

fn opened(platform: &Platform) -> Result<OpenTarget, String> {
    OpenTarget::of_platform(platform).map_err(|error| error.to_string())
}

/// The platform with the start values of its unknown numbers.
fn started(draft: &Draft) -> Result<Platform, FitDataError> {
    let unknowns = draft.unknowns();
    if unknowns.is_empty() {
        return Err(FitDataError::NothingUnknown { platform: draft.name().to_owned() });
    }
    let origin = Origin::Assumed("the start of the search".to_owned());
    let started = unknowns.iter().try_fold(draft.clone(), |draft, row| draft.fill(&row.key, row.start, &origin));
    started.and_then(Draft::complete).map_err(|error| FitDataError::Start(error.to_string()))
}

/// The allowed integers of a key between its bounds.
fn grid(platform: &Platform, key: &str, (low, high): (f64, f64)) -> Vec<f64> {
    let origin = Origin::Assumed("tried by the search".to_owned());
    let whole = (low.ceil() as u64..=high.floor() as u64).map(|whole| whole as f64);
    whole.filter(|value| platform.with(key, *value, origin.clone()).is_ok()).collect()
}

impl Datum {
    /// Identifier of the datum's curve: question, method and alignment.
    fn curve(&self) -> String {
        format!("{} {} {}", self.question.name, self.case.method, self.case.alignment)
    }

    /// The simulated figure of the same case; `None` for an answer without a figure.
    fn simulated(&self, target: &mut OpenTarget) -> Result<Option<f64>, String> {
        figure(target.ask(self.question, &self.case, &self.effort()))
    }

    /// The formula's figure of the same case; `None` for an answer without a figure.
    fn predicted(&self, target: &mut OpenTarget) -> Result<Option<f64>, String> {
        figure(target.ask_formulas(self.question, &self.case, &self.effort()))
    }

    fn effort(&self) -> Effort {
        Effort { simulated_passes: Some(self.passes), ..Effort::default() }
    }

    fn unit(&self) -> &'static str {
        if self.question.quantity == Quantity::Bandwidth { "B/s" } else { "ns" }
    }
}

/// Largest number of fitted answers of one question about cores; more add no information.
const MOST_OF_A_QUESTION: usize = 12;

/// Largest fitted size of a question about cores, in bytes; larger sizes add no information about latencies.
const LARGEST_BYTES: u64 = 4096;

/// Selects the answers to fit: all DMA answers, and of each question about cores a few, evenly spread.
fn selected<'a>(answers: &[&'a Answer]) -> Vec<&'a Answer> {
    let (mut chosen, mut left): (Vec<&Answer>, Vec<&Answer>) =
        answers.iter().copied().partition(|answer| matches!(answer.method, Method::Dma { .. }));
    left.retain(|answer| answer.size_bytes <= LARGEST_BYTES);
    while let Some(question) = left.first().map(|answer| answer.question.clone()) {
        let (of_it, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|answer| answer.question == question);
        let wanted = of_it.len().min(MOST_OF_A_QUESTION);
        chosen.extend((0..wanted).map(|place| of_it[place * of_it.len() / wanted]));
        left = others;
    }
    chosen
}

/// The data for those answers that the platform supports.
fn data(platform: &Platform, answers: &[&Answer]) -> Result<Vec<Datum>, FitDataError> {
    let target = OpenTarget::of_platform(platform).ok();
    let datum = |answer: &&Answer| datum(target.as_ref()?, answer);
    let data: Vec<Datum> = answers.iter().filter_map(datum).collect();
    if data.is_empty() {
        return Err(FitDataError::Nothing { answers: answers.len(), platform: platform.name.clone() });
    }
    Ok(data)
}

/// A row of a table as a datum of the target's first card; `None` if the target does not support it.
fn point(target: &OpenTarget, row: &Row) -> Option<Datum> {
    let question = question(row.question)?;
    let (sizes, alignments) = (Some(vec![row.size_bytes]), Some(vec![row.alignment_bytes]));
    let axes = Axes { sizes, alignments, reach: row.reach, ..Axes::default() };
    // The options of the row must be those of the case, as in a run of `lanemark bench`.
    let case = target.cases(question, &axes).into_iter().find(|case| case.reach().is_as_asked(&row.reach))?;
    let name = match row.alignment_bytes {
        0 => format!("{} {} {} B", row.question, case.method, row.size_bytes),
        offset => format!("{} {} {} B, {offset} B into a page", row.question, case.method, row.size_bytes),
    };
    let fits = row.size_bytes <= case.room(target.facts());
    fits.then_some(Datum { question, case, passes: 1, measured: row.figure, name })
}

/// The headline figure of an answer.
fn figure(answer: Result<Answer, BenchError>) -> Result<Option<f64>, String> {
    Ok(headline(&answer.map_err(|error| error.to_string())?))
}

/// The headline figure: the delivered rate, or else the latency.
fn headline(answer: &Answer) -> Option<f64> {
    let summary = answer.delivered_rate_bytes_per_s.or(answer.latency_ns)?;
    Some(summary.median).filter(|median| *median > 0.0)
}

/// Largest number of simulated iterations; a real sample has more, because its timer needs them.
const MOST_PASSES: u64 = 64;

/// Variants for accesses of a core without a fence.
fn of_core(memory_type: MemoryType, access: Access, alignments: Option<Vec<u64>>) -> Axes {
    Axes {
        memory_types: Some(vec![memory_type]),
        accesses: Some(vec![access]),
        fences: Some(vec![None]),
        alignments,
        ..Axes::default()
    }
}

fn datum(target: &OpenTarget, answer: &Answer) -> Option<Datum> {
    let question = question(&answer.question)?;
    let (sizes, alignments) = (Some(vec![answer.size_bytes]), Some(vec![answer.alignment_bytes]));
    let axes = match &answer.method {
        Method::Dma { reach, .. } => Axes { sizes, alignments, reach: *reach, ..Axes::default() },
        Method::Core(core) => Axes {
            sizes: sizes.filter(|_| core.path == AccessPath::Pointer),
            fences: Some(vec![core.fence]),
            ..of_core(core.memory_type, core.access, alignments)
        },
        Method::CacheLines { memory_type, access, .. } => of_core(*memory_type, *access, alignments),
        Method::LineLoad { .. } => of_core(MemoryType::Wb, Access::Plain(Width::B8), alignments),
        // Fits use loads, stores and plain DMA only.
        Method::Fence { .. }
        | Method::Clock { .. }
        | Method::KernelCall { .. }
        | Method::Wake { .. }
        | Method::DmaPages { .. }
        | Method::DmaUnderLoad { .. }
        | Method::DmaCall { .. }
        | Method::Relay { .. }
        | Method::RuntimeCopy { .. }
        | Method::Launch { .. }
        | Method::Argument { .. }
        | Method::Compute { .. }
        | Method::MapUnmap { .. }
        | Method::SharedBuffer { .. } => return None,
    };
    let mut cases = target.cases(question, &axes).into_iter();
    let case = cases.find(|case| case.method == answer.method && case.size == answer.size_bytes)?;
    Some(Datum {
        question,
        case,
        passes: answer.passes.clamp(1, MOST_PASSES),
        measured: headline(answer)?,
        name: format!("{} {} {} B", answer.question, answer.method, answer.size_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit;
    use lanemark_bench::ask;
    use lanemark_machine::Machine as _;
    use lanemark_record::Record;
    use lanemark_sim::SimulatedMachine;

    const ROUND_TRIP: &str = "root_complex.core_round_trip_ns";

    fn card(round_trip: f64) -> Platform {
        let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        card.with(ROUND_TRIP, round_trip, Origin::Given("a test".to_owned())).unwrap()
    }

    /// Answers of a card to 8 B stores of three sizes to UC and WC memory.
    fn record(card: &Platform) -> Record {
        let mut machine = SimulatedMachine::new(card).unwrap();
        let question = question("mmio_write_bandwidth").unwrap();
        let axes = Axes {
            sizes: Some(vec![64, 256, 1024]),
            accesses: Some(vec!["8".parse().unwrap()]),
            memory_types: Some(vec!["uc".parse().unwrap(), "wc".parse().unwrap()]),
            ..Axes::default()
        };
        let cases = (question.cases)(machine.facts(), &axes);
        let answers = cases.iter().map(|case| ask(question, &mut machine, case, &Effort::default()).unwrap()).collect();
        Record { answers, ..Record::new(vec![]) }
    }

    #[test]
    fn number_used_for_a_record_is_recovered() {
        let made_with = record(&card(217.0));
        let problem = FitData::new(&made_with, None, &card(120.0), &[ROUND_TRIP.to_owned()]).unwrap();
        assert_eq!(problem.data().count(), 6);
        let found = fit(&problem.parameters(), |values| problem.residuals(values)).unwrap();
        assert!((found.found[0].value - 217.0).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn unknown_targets_and_keys_are_rejected() {
        let made_with = record(&card(120.0));
        let new = |target, key: &str| FitData::new(&made_with, target, &card(120.0), &[key.to_owned()]).err();
        assert!(matches!(new(Some("other"), ROUND_TRIP), Some(FitDataError::WhichTarget { .. })));
        assert!(matches!(new(None, "link.speed"), Some(FitDataError::Key { .. })));
        let mistyped = new(None, "link.latncy_ns").unwrap().to_string();
        assert!(mistyped.contains("'link.latncy_ns': did you mean link.latency_ns"), "{mistyped}");
        let key = [ROUND_TRIP.to_owned()];
        let empty = FitData::new(&Record::new(vec![]), None, &card(120.0), &key).err();
        assert_eq!(empty, Some(FitDataError::NoAnswers));
        assert!(matches!(new(None, "core.wc_buffers"), Some(FitDataError::Whole { .. })));
        assert_eq!(new(Some("card-gen5-x16"), ROUND_TRIP), None);
    }
}
