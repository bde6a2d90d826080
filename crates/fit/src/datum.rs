//! One datum of a fit: a measured figure, with the case that simulation and formulas answer.

use crate::data_error::FitDataError;
use lanemark_bench::{Axes, BenchError, Case, Effort, Question, question};
use lanemark_import::Row;
use lanemark_machine::Verb;
use lanemark_method::{Access, AccessPath, Method, Reach, Width};
use lanemark_platform::Platform;
use lanemark_record::{Answer, Quantity};
use lanemark_runner::OpenTarget;
use lanemark_units::MemoryType;

/// Sizes of an IOTLB on which the number of iterations depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Iotlb {
    /// Bytes of a page.
    pub(crate) page_bytes: u64,
    /// Number of translations that it holds; `u64::MAX` if that is fitted.
    pub(crate) entries: u64,
}

/// A measured figure.
#[derive(Clone)]
pub(crate) struct Datum {
    /// Number of the datum, the same in every part of the fit.
    pub(crate) number: usize,
    pub(crate) question: &'static Question,
    pub(crate) case: Case,
    pub(crate) passes: u64,
    /// Whether the measured run had more iterations than a simulation needs.
    pub(crate) is_of_long_run: bool,
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

    /// Window of its transfers, if one was stated, and the identifier of the curve over windows to which it belongs.
    pub(crate) fn of_window(&self) -> Option<(String, u64)> {
        let window = self.case.reach().window_bytes.filter(|_| !self.is_of_both())?;
        let mut method = self.case.method.clone();
        if let Method::Dma { reach, .. } = &mut method {
            reach.window_bytes = None;
        }
        Some((format!("{} {method} {} {}", self.question.name, self.case.alignment, self.case.size), window))
    }

    /// The simulated figure of the same case; `None` for an answer without a figure. `run` gives the figure of so many
    /// iterations, and takes whether these are few transfers.
    ///
    /// Iterations of DMA repeat. Runs of one, two, four iterations and so on are simulated until two runs in turn take
    /// the same time for each added iteration; the others take as long. If `has_memory`, transfers depend on earlier ones
    /// in a window, and all iterations are simulated; fewer or more behind an IOMMU ([`passes`](Datum::passes)).
    pub(crate) fn simulated(
        &self,
        (has_memory, iotlb): (bool, Option<Iotlb>),
        run: &mut impl FnMut(bool, u64) -> Result<Option<f64>, String>,
    ) -> Result<Option<f64>, String> {
        if has_memory || !matches!(self.case.method, Method::Dma { .. }) {
            return run(false, self.passes(iotlb));
        }
        let mut run =
            |passes: u64| run(self.case.size.saturating_mul(passes) <= SHORT_RUN && passes <= SHORT_PASSES, passes);
        settled_figure(self.passes, self.question.quantity == Quantity::Bandwidth, &mut run)
    }

    /// Number of iterations. Behind an IOMMU with this `iotlb`, the warm-up goes to the places of the run, and each transfer of
    /// a bandwidth is followed. There are enough transfers that the warm-up leaves the translations of a long run, if the run was
    /// one and these are not too many bytes.
    pub(crate) fn passes(&self, iotlb: Option<Iotlb>) -> u64 {
        /// Transfers to random places for each page of the window, or for each entry of the IOTLB if these are fewer: 2 % of
        /// the pages are left out, or all entries are in use.
        const OF_A_PAGE: u64 = 4;
        /// Fewest transfers. A share of misses at random places then has a standard deviation below 0.5 %.
        const FEWEST: u64 = 1 << 14;
        /// Shortest time of all transfers, in seconds: the latency of the first one, about 1 us, is then a hundredth.
        const SHORTEST_S: f64 = 100e-6;
        /// Most transfers at random places: formulas follow no more requests.
        const MOST: u64 = 1 << 16;
        /// Most bytes of more iterations than a usual run has: a simulation of them takes less than a second.
        const MOST_BYTES: u64 = 64 << 20;
        let Some(iotlb) = iotlb.filter(|_| self.question.quantity == Quantity::Bandwidth) else { return self.passes };
        let usual = (self.question.simulated_passes)(&self.case);
        let of_an_iteration = (self.question.accesses_per_pass)(&self.case).max(1);
        let of_bytes = MOST_BYTES / of_an_iteration.saturating_mul(self.case.size).max(1);
        let longest = if self.is_of_long_run { self.passes.max(usual).max(of_bytes) } else { self.passes };
        let (Reach { is_random, stride_bytes, .. }, window) = (self.case.reach(), self.case.window);
        let pages = (window / iotlb.page_bytes).max(1);
        let wanted = if is_random {
            OF_A_PAGE.saturating_mul(pages.min(iotlb.entries)).min(MOST)
        } else {
            // A round, or as much of it as evicts every translation before it comes again.
            let most = (OF_A_PAGE * iotlb.page_bytes).saturating_mul(iotlb.entries);
            window.min(most).div_ceil(stride_bytes.unwrap_or(0).max(self.case.size).max(1))
        };
        let of_time = (SHORTEST_S * self.measured / self.case.size.max(1) as f64) as u64;
        wanted.max(FEWEST.max(of_time.min(MOST))).div_ceil(of_an_iteration).min(longest)
    }

    /// The figure of so many iterations on this target; `None` for an answer without a figure.
    pub(crate) fn asked(&self, target: &mut OpenTarget, passes: u64) -> Result<Option<f64>, String> {
        figure(target.ask(self.question, &self.case, &Effort { simulated_passes: Some(passes), ..Effort::default() }))
    }

    /// The formula's figure of the same case; `None` for an answer without a figure.
    pub(crate) fn predicted(&self, target: &mut OpenTarget, iotlb: Option<Iotlb>) -> Result<Option<f64>, String> {
        figure(target.ask_formulas(self.question, &self.case, &self.effort(iotlb)))
    }

    /// The effort of a run of all [`passes`](Datum::passes).
    pub(crate) fn effort(&self, iotlb: Option<Iotlb>) -> Effort {
        Effort { simulated_passes: Some(self.passes(iotlb)), ..Effort::default() }
    }

    pub(crate) fn unit(&self) -> &'static str {
        if self.question.quantity == Quantity::Bandwidth { "B/s" } else { "ns" }
    }
}

/// Longest run of which every transfer is simulated: iterations of about 1 MiB, and bytes of transfers
/// longer than that. Beyond, a search for a steady
/// state takes less time.
const SHORT_PASSES: u64 = 32;
const SHORT_RUN: u64 = 16 << 20;

/// Relative difference of two times of an added iteration below which these have settled.
const SETTLED: f64 = 1e-4;

/// The figure of `passes` iterations from runs of fewer, if their times settle: `run` gives the figure of so many, a rate
/// if `is_rate`, or else the time of one.
fn settled_figure(
    passes: u64,
    is_rate: bool,
    run: &mut impl FnMut(u64) -> Result<Option<f64>, String>,
) -> Result<Option<f64>, String> {
    // The time of so many iterations from their figure, and back.
    let swapped = |passes: u64, figure: f64| if is_rate { passes as f64 / figure } else { passes as f64 * figure };
    let figure_of = |passes: u64, time: f64| if is_rate { passes as f64 / time } else { time / passes as f64 };
    let (mut before, mut added_before): (Option<f64>, Option<f64>) = (None, None);
    let mut some = 1;
    while some < passes {
        let Some(figure) = run(some)? else { return Ok(None) };
        let time = swapped(some, figure);
        let added = before.map(|before| (time - before) / (some / 2) as f64);
        if let (Some(added), Some(added_before)) = (added, added_before)
            && (added / added_before - 1.0).abs() < SETTLED
        {
            return Ok(Some(figure_of(passes, time + (passes - some) as f64 * added)));
        }
        (before, added_before) = (Some(time), added);
        some *= 2;
    }
    run(passes)
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
    // A tool measures for long, as the usual simulated run does; the latency of the first transfer does not count.
    let passes = (question.simulated_passes)(&case).clamp(1, most_passes(question, &case));
    fits.then_some(Datum { number: 0, question, case, passes, is_of_long_run: true, measured: row.figure, name })
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

/// The same for a case: a latency in a stated window is that of all of its places.
fn most_passes(question: &Question, case: &Case) -> u64 {
    let is_of_window = case.reach().window_bytes.is_some() && question.quantity != Quantity::Bandwidth;
    if is_of_window { (question.simulated_passes)(case).max(1) } else { MOST_PASSES }
}

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
        | Method::SmallCopies { .. }
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
        passes: answer.passes.clamp(1, most_passes(question, &case)),
        is_of_long_run: answer.passes >= MOST_PASSES,
        case,
        measured: headline(answer)?,
        name: format!("{} {} {} B", answer.question, answer.method, answer.size_bytes),
    })
}

/// The data for those answers that the platform supports.
///
/// # Errors
/// [`FitDataError::Nothing`] if it supports none.
pub(crate) fn data(platform: &Platform, answers: &[&Answer]) -> Result<Vec<Datum>, FitDataError> {
    let target = OpenTarget::of_platform(platform).ok();
    let datum = |answer: &&Answer| datum(target.as_ref()?, answer);
    let data: Vec<Datum> = answers.iter().filter_map(datum).collect();
    if data.is_empty() {
        return Err(FitDataError::Nothing { answers: answers.len(), platform: platform.name.clone() });
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figure of 64 iterations that take `time` together, and the iterations that were run for it.
    fn of_64(is_rate: bool, time: impl Fn(u64) -> f64) -> (f64, Vec<u64>) {
        let mut runs = Vec::new();
        let mut run = |passes: u64| {
            runs.push(passes);
            Ok(Some(if is_rate { passes as f64 / time(passes) } else { time(passes) / passes as f64 }))
        };
        let found = settled_figure(64, is_rate, &mut run).unwrap().unwrap();
        (found, runs)
    }

    #[test]
    fn iterations_that_take_the_same_time_after_a_start_are_not_all_simulated() {
        let time = |passes: u64| 900.0 + 100.0 * passes as f64;
        for is_rate in [true, false] {
            let (found, runs) = of_64(is_rate, time);
            let all = time(64) / 64.0;
            assert!((found * if is_rate { all } else { 1.0 / all } - 1.0).abs() < 1e-12, "{found}");
            assert_eq!(runs, [1, 2, 4]);
        }
    }

    #[test]
    fn iterations_whose_time_changes_by_more_than_a_ten_thousandth_are_simulated_on() {
        // The times of an added iteration: 100, and then more from the third iteration on.
        let time = |more: f64| move |passes: u64| 100.0 * passes as f64 + more * passes.saturating_sub(2) as f64;
        assert_eq!(of_64(false, time(0.009)).1, [1, 2, 4]);
        assert_eq!(of_64(false, time(0.011)).1, [1, 2, 4, 8]);
        // A time that never settles: all are simulated, exactly.
        let (found, runs) = of_64(false, |passes| (passes * passes) as f64);
        assert_eq!((found.to_bits(), runs), (64.0_f64.to_bits(), vec![1, 2, 4, 8, 16, 32, 64]));
    }
}
