//! One datum of a fit: a measured figure, with the case that simulation and formulas answer.

use crate::table::Row;
use lanemark_bench::{Axes, BenchError, Case, Effort, Question, question};
use lanemark_machine::Verb;
use lanemark_method::{Access, AccessPath, Method, Width};
use lanemark_record::{Answer, Quantity};
use lanemark_runner::OpenTarget;
use lanemark_units::MemoryType;

/// A measured figure.
#[derive(Clone)]
pub(crate) struct Datum {
    /// Number of the datum, the same in every part of the fit.
    pub(crate) number: usize,
    pub(crate) question: &'static Question,
    pub(crate) case: Case,
    pub(crate) passes: u64,
    pub(crate) measured: f64,
    pub(crate) name: String,
}

impl Datum {
    /// The direction of its transfers, if it is one.
    pub(crate) fn verb(&self) -> Option<Verb> {
        match self.question.name {
            "dma_read_bandwidth" | "dma_read_latency" => Some(Verb::Load),
            "dma_write_bandwidth" => Some(Verb::Store),
            _ => None,
        }
    }

    /// Whether it is of reads and writes at once.
    pub(crate) fn is_of_both(&self) -> bool {
        self.question.name == "dma_read_write_mix"
    }

    /// Identifier of the datum's curve: question, method and alignment.
    pub(crate) fn curve(&self) -> String {
        format!("{} {} {}", self.question.name, self.case.method, self.case.alignment)
    }

    /// The simulated figure of the same case; `None` for an answer without a figure.
    pub(crate) fn simulated(&self, target: &mut OpenTarget) -> Result<Option<f64>, String> {
        figure(target.ask(self.question, &self.case, &self.effort()))
    }

    /// The formula's figure of the same case; `None` for an answer without a figure.
    pub(crate) fn predicted(&self, target: &mut OpenTarget) -> Result<Option<f64>, String> {
        figure(target.ask_formulas(self.question, &self.case, &self.effort()))
    }

    pub(crate) fn effort(&self) -> Effort {
        Effort { simulated_passes: Some(self.passes), ..Effort::default() }
    }

    pub(crate) fn unit(&self) -> &'static str {
        if self.question.quantity == Quantity::Bandwidth { "B/s" } else { "ns" }
    }
}

/// Largest number of fitted answers of one question about cores; more add no information.
const MOST_OF_A_QUESTION: usize = 12;

/// Largest fitted size of a question about cores, in bytes; larger sizes add no information about latencies.
const LARGEST_BYTES: u64 = 4096;

/// Selects the answers to fit: all DMA answers, and of each question about cores a few, evenly spread.
pub(crate) fn selected<'a>(answers: &[&'a Answer]) -> Vec<&'a Answer> {
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

/// A row of a table as a datum of the target's first card; `None` if the target does not support it.
pub(crate) fn point(target: &OpenTarget, row: &Row) -> Option<Datum> {
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
    fits.then_some(Datum { number: 0, question, case, passes: 1, measured: row.figure, name })
}

/// The headline figure of an answer.
pub(crate) fn figure(answer: Result<Answer, BenchError>) -> Result<Option<f64>, String> {
    Ok(headline(&answer.map_err(|error| error.to_string())?))
}

/// The headline figure: the delivered rate, or else the latency.
pub(crate) fn headline(answer: &Answer) -> Option<f64> {
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

pub(crate) fn datum(target: &OpenTarget, answer: &Answer) -> Option<Datum> {
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
        number: 0,
        question,
        case,
        passes: answer.passes.clamp(1, MOST_PASSES),
        measured: headline(answer)?,
        name: format!("{} {} {} B", answer.question, answer.method, answer.size_bytes),
    })
}
