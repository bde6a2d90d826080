//! A record's answers, or a table's figures, as data for the parameters of a platform.

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

/// Answers of one target of a record, or figures of a table, asked again of a platform while some of its numbers are
/// varied.
#[derive(Clone)]
pub struct OfRecord {
    platform: Platform,
    keys: Vec<String>,
    /// The whole values that each key may have.
    grids: Vec<Grid>,
    /// Lowest, start and highest of each key; from a platform's own value where there are none.
    searched: Option<Vec<(f64, f64, f64)>>,
    data: Vec<Datum>,
    /// Those that tell how good a fit to the others is.
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

/// Why a record cannot be fitted to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfRecordError {
    /// Several targets, or one that is not there.
    #[error("the record has answers of {targets}: name one of them")]
    WhichTarget {
        /// The targets of the record.
        targets: String,
    },
    /// A key that is no number of the platform.
    #[error(
        "{platform} has no number '{key}': use a path such as root_complex.core_round_trip_ns or region.NAME.read_ns"
    )]
    Key {
        /// Which platform.
        platform: String,
        /// What was asked for.
        key: String,
    },
    /// A key whose numbers are whole.
    #[error("'{key}' is a whole number in {platform}, and a fit takes small steps: fit times, rates and cycles")]
    Whole {
        /// Which platform.
        platform: String,
        /// What was asked for.
        key: String,
    },
    /// Nothing in a platform file is unknown.
    #[error("{platform} has no unknown number: name those to fit with --parameter KEY")]
    NothingUnknown {
        /// Which platform.
        platform: String,
    },
    /// What the platform says against the start of the search.
    #[error("{0}")]
    Start(String),
    /// A figure that cannot be asked of the platform.
    #[error(
        "{place}: {question} of {size_bytes} B cannot be asked of {platform}: it has no [dma] or no [memory], or too little of it"
    )]
    NotAsked {
        /// File and line.
        place: String,
        /// Which question.
        question: &'static str,
        /// Of which size.
        size_bytes: u64,
        /// Which platform.
        platform: String,
    },
    /// Nothing in the record can be asked of the platform.
    #[error(
        "none of the {answers} answers can be asked of {platform}: it has other regions, instructions or memory types"
    )]
    Nothing {
        /// Answers of the target.
        answers: usize,
        /// Which platform.
        platform: String,
    },
}

/// The step of derivatives where cores move the bytes.
const STEP_SHARE: f64 = 1e-4;

/// The step of derivatives where devices do: one transfer goes while another one does, so their sum jumps by some
/// hundredths of a percent, and a time is whole ticks.
const TRANSFERS_STEP_SHARE: f64 = 0.02;

impl OfRecord {
    /// The target of this name, or the only one.
    fn target(record: &Record, target: Option<&str>) -> Result<String, OfRecordError> {
        let mut targets: Vec<&str> = Vec::new();
        for answer in &record.answers {
            if !targets.contains(&answer.target.as_str()) {
                targets.push(&answer.target);
            }
        }
        let target = match (target, targets.as_slice()) {
            (Some(name), names) if names.contains(&name) => name,
            (None, [only]) => only,
            _ => return Err(OfRecordError::WhichTarget { targets: targets.join(", ") }),
        };
        Ok(target.to_owned())
    }

    /// The answers of `target` (or of the only one), to vary `keys` of `platform`.
    ///
    /// # Errors
    /// [`OfRecordError`] if target or key are not there, or no answer can be asked of the platform.
    pub fn new(
        record: &Record,
        target: Option<&str>,
        platform: &Platform,
        keys: &[String],
    ) -> Result<OfRecord, OfRecordError> {
        let target = Self::target(record, target)?;
        let mut distinct: Vec<String> = Vec::new();
        for key in keys {
            let (name, key) = (platform.name.clone(), key.clone());
            match platform.number(&key) {
                None => return Err(OfRecordError::Key { platform: name, key }),
                Some((now, origin)) if platform.with(&key, now + now.max(1.0) / 8192.0, origin.clone()).is_err() => {
                    return Err(OfRecordError::Whole { platform: name, key });
                }
                Some(_) if distinct.contains(&key) => {}
                Some(_) => distinct.push(key),
            }
        }
        let answers: Vec<&Answer> = record.answers.iter().filter(|answer| answer.target == target).collect();
        let data = data(platform, &answers)?;
        let grids = vec![None; distinct.len()];
        Ok(OfRecord { platform: platform.clone(), keys: distinct, grids, searched: None, data, held_out: Vec::new() })
    }

    /// The answers of `target` (or of the only one), to find every unknown number of `draft`: of a question about
    /// cores at most 12, of up to 4 KiB, evenly spread; of one about devices' transfers all. Of a curve of six sizes and
    /// more, every second size is held out.
    ///
    /// # Errors
    /// [`OfRecordError`] if the target is not there, nothing is unknown, or no answer can be asked of the platform.
    pub fn of_draft(record: &Record, target: Option<&str>, draft: &Draft) -> Result<OfRecord, OfRecordError> {
        let target = Self::target(record, target)?;
        let started = started(draft)?;
        let answers: Vec<&Answer> = record.answers.iter().filter(|answer| answer.target == target).collect();
        let data = data(&started, &few(&answers))?;
        Ok(Self::of_data(draft, started, data))
    }

    /// The figures of a table, to find every unknown number of `draft`. Of a curve of six sizes and more, every second
    /// size is held out.
    ///
    /// # Errors
    /// [`OfRecordError`] if nothing is unknown, or a figure cannot be asked of the platform.
    pub fn of_table(table: &Table, draft: &Draft) -> Result<OfRecord, OfRecordError> {
        let started = started(draft)?;
        let target = OpenTarget::of_platform(&started).map_err(|error| OfRecordError::Start(error.to_string()))?;
        let mut data = Vec::new();
        for row in &table.rows {
            let datum = point(&target, row).ok_or_else(|| OfRecordError::NotAsked {
                place: format!("{}:{}", table.file, row.line),
                question: row.question,
                size_bytes: row.size_bytes,
                platform: started.name.clone(),
            })?;
            data.push(datum);
        }
        Ok(Self::of_data(draft, started, data))
    }

    fn of_data(draft: &Draft, started: Platform, data: Vec<Datum>) -> OfRecord {
        let curves: Vec<String> = data.iter().map(Datum::curve).collect();
        let sizes = data.iter().map(|datum| datum.case.size);
        let which = held_out(curves.iter().map(String::as_str).zip(sizes));
        let (held_out, data): (Vec<_>, Vec<_>) = data.into_iter().zip(which).partition(|(_, is_held_out)| *is_held_out);
        let unknowns = draft.unknowns();
        OfRecord {
            keys: unknowns.iter().map(|row| row.key.clone()).collect(),
            grids: unknowns.iter().map(|row| row.is_whole.then(|| grid(&started, &row.key, row.bounds))).collect(),
            searched: Some(unknowns.iter().map(|row| (row.bounds.0, row.start, row.bounds.1)).collect()),
            platform: started,
            data: data.into_iter().map(|(datum, _)| datum).collect(),
            held_out: held_out.into_iter().map(|(datum, _)| datum).collect(),
        }
    }

    /// The keys as parameters: from a tenth to ten times of what the platform has now; of a draft, from where
    /// and between what its keys are searched, whatever the machine.
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

    /// The questions whose answers are used, with how many of each.
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

    /// What whole values each key may have; `None` where it need not be whole.
    pub(crate) fn grids(&self) -> &[Grid] {
        &self.grids
    }

    /// Whether devices move the bytes themselves. What limits such a transfer is one of several bounds, and a search that
    /// begins under the wrong one may stay there.
    pub(crate) fn is_about_transfers(&self) -> bool {
        self.data.iter().any(|datum| matches!(datum.case.method, Method::Dma { .. }))
    }

    /// How many answers are held out.
    #[must_use]
    pub fn held_out(&self) -> usize {
        self.held_out.len()
    }

    /// Each answer that is fitted to beside what simulation and formula give with these values of the keys.
    ///
    /// # Errors
    /// What the platform or the simulation says against the values.
    pub fn compare(&self, values: &[f64]) -> Result<Vec<Residual>, String> {
        self.compared(&self.data, values)
    }

    /// As [`OfRecord::compare`], each answer that is held out.
    ///
    /// # Errors
    /// As [`OfRecord::compare`].
    pub fn compare_held_out(&self, values: &[f64]) -> Result<Vec<Residual>, String> {
        self.compared(&self.held_out, values)
    }

    fn compared(&self, data: &[Datum], values: &[f64]) -> Result<Vec<Residual>, String> {
        let platform = self.platform_with(values)?;
        let mut target = opened(&platform)?;
        let mut row = |datum: &Datum| {
            let simulated = datum.simulated(&mut target)?.ok_or("the simulation gave no figure")?;
            // No closed form is no error.
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

    /// The question and method of each residual.
    pub fn data(&self) -> impl Iterator<Item = &str> {
        self.data.iter().map(|datum| datum.name.as_str())
    }

    /// The natural logarithm of simulated over measured, for each answer that is fitted to, with these values of the
    /// keys: twice too much weighs as heavily as half of it. Between whole values of a key that has no others, it is
    /// interpolated.
    ///
    /// # Errors
    /// What the platform or the simulation says against the values.
    pub fn residuals(&self, values: &[f64]) -> Result<Vec<f64>, String> {
        between(&self.grids, values, |values| {
            let mut target = opened(&self.platform_with(values)?)?;
            self.left(|datum| datum.simulated(&mut target))
        })
    }

    /// As [`OfRecord::residuals`], of the formulas.
    ///
    /// # Errors
    /// As [`OfRecord::residuals`], and where there is no closed form.
    pub(crate) fn formula_residuals(&self, facts: &Facts, values: &[f64]) -> Result<Vec<f64>, String> {
        between(&self.grids, values, |values| {
            // The simulation is not built: most of a search is asked of the formulas alone.
            let mut formulas = FormulaMachine::new(&self.platform_with(values)?, facts);
            self.left(|datum| figure(lanemark_bench::ask(datum.question, &mut formulas, &datum.case, &datum.effort())))
        })
    }

    /// What a machine with the starting values says about itself; no value of a key changes it.
    pub(crate) fn facts(&self) -> Result<Facts, String> {
        Ok(opened(&self.platform)?.facts().clone())
    }

    fn left(&self, mut ask: impl FnMut(&Datum) -> Result<Option<f64>, String>) -> Result<Vec<f64>, String> {
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

/// The platform where the search begins.
fn started(draft: &Draft) -> Result<Platform, OfRecordError> {
    let unknowns = draft.unknowns();
    if unknowns.is_empty() {
        return Err(OfRecordError::NothingUnknown { platform: draft.name().to_owned() });
    }
    let origin = Origin::Assumed("where the search begins".to_owned());
    let started = unknowns.iter().try_fold(draft.clone(), |draft, row| draft.fill(&row.key, row.start, &origin));
    started.and_then(Draft::complete).map_err(|error| OfRecordError::Start(error.to_string()))
}

/// The whole values that a key takes between its bounds.
fn grid(platform: &Platform, key: &str, (low, high): (f64, f64)) -> Vec<f64> {
    let origin = Origin::Assumed("a try".to_owned());
    let whole = (low.ceil() as u64..=high.floor() as u64).map(|whole| whole as f64);
    whole.filter(|value| platform.with(key, *value, origin.clone()).is_ok()).collect()
}

impl Datum {
    /// What it is a point of: its question and method.
    fn curve(&self) -> String {
        format!("{} {} {}", self.question.name, self.case.method, self.case.alignment)
    }

    /// The simulated figure of the same case; `None` where the answer has none.
    fn simulated(&self, target: &mut OpenTarget) -> Result<Option<f64>, String> {
        figure(target.ask(self.question, &self.case, &self.effort()))
    }

    /// The formula's figure of the same case; `None` where the answer has none.
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

/// At most this many answers of a question are fitted to: what a hundred more say, they say as well.
const MOST_OF_A_QUESTION: usize = 12;

/// Larger transfers say nothing about a time that a small one does not.
const LARGEST_BYTES: u64 = 4096;

/// Of the answers about cores a few of each question, evenly spread over all of them; those about devices' transfers all.
fn few<'a>(answers: &[&'a Answer]) -> Vec<&'a Answer> {
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

/// Those answers that can be asked of the platform.
fn data(platform: &Platform, answers: &[&Answer]) -> Result<Vec<Datum>, OfRecordError> {
    let target = OpenTarget::of_platform(platform).ok();
    let datum = |answer: &&Answer| datum(target.as_ref()?, answer);
    let data: Vec<Datum> = answers.iter().filter_map(datum).collect();
    if data.is_empty() {
        return Err(OfRecordError::Nothing { answers: answers.len(), platform: platform.name.clone() });
    }
    Ok(data)
}

/// A row as a figure of the target's first card; `None` if that cannot be asked.
fn point(target: &OpenTarget, row: &Row) -> Option<Datum> {
    let question = question(row.question)?;
    let axes = Axes { sizes: Some(vec![row.size_bytes]), ..Axes::default() };
    let case = target.cases(question, &axes).into_iter().next()?;
    let name = format!("{} {} {} B", row.question, case.method, row.size_bytes);
    let fits = row.size_bytes <= case.room(target.facts());
    fits.then_some(Datum { question, case, passes: 1, measured: row.figure, name })
}

/// The figure of an answer to a case.
fn figure(answer: Result<Answer, BenchError>) -> Result<Option<f64>, String> {
    Ok(headline(&answer.map_err(|error| error.to_string())?))
}

/// The figure an answer is about.
fn headline(answer: &Answer) -> Option<f64> {
    let summary = answer.delivered_rate_bytes_per_s.or(answer.latency_ns)?;
    Some(summary.median).filter(|median| *median > 0.0)
}

/// The most passes that are simulated again; a real sample has as many as its timer needs.
const MOST_PASSES: u64 = 64;

/// The axes of a core's accesses without a fence.
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

    /// What a card answers to 8 B stores of three sizes to UC and WC memory.
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
    fn the_number_a_record_was_made_with_is_recovered() {
        let made_with = record(&card(217.0));
        let problem = OfRecord::new(&made_with, None, &card(120.0), &[ROUND_TRIP.to_owned()]).unwrap();
        assert_eq!(problem.data().count(), 6);
        let found = fit(&problem.parameters(), |values| problem.residuals(values)).unwrap();
        assert!((found.found[0].value - 217.0).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn a_target_or_key_that_is_not_there_is_refused() {
        let made_with = record(&card(120.0));
        let new = |target, key: &str| OfRecord::new(&made_with, target, &card(120.0), &[key.to_owned()]).err();
        assert!(matches!(new(Some("other"), ROUND_TRIP), Some(OfRecordError::WhichTarget { .. })));
        assert!(matches!(new(None, "link.speed"), Some(OfRecordError::Key { .. })));
        assert!(matches!(new(None, "core.wc_buffers"), Some(OfRecordError::Whole { .. })));
        assert_eq!(new(Some("card-gen5-x16"), ROUND_TRIP), None);
    }
}
