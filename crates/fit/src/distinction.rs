//! The measurement that tells two structures apart.

use crate::fit_data::FitData;
use crate::mechanism::WALKERS;
use crate::walkers;
use lanemark_import::Row;
use lanemark_machine::Facts;
use lanemark_record::Reach;

/// A figure that was not measured, and that another structure predicts differently from the chosen one, although both follow
/// the measured figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Distinction {
    /// Name of the question.
    pub question: &'static str,
    /// Size of one transfer, in bytes.
    pub size_bytes: u64,
    /// Window of transfers at random places, in bytes; `None` for the usual one in order.
    pub window_bytes: Option<u64>,
    /// Unit of both figures: `B/s` or `ns`.
    pub unit: &'static str,
    /// The figure by the formula with the chosen structure, in `unit`. For a window behind an IOMMU, with the most concurrent
    /// page walks that give the measured figures; the file has the fewest.
    pub chosen: f64,
    /// The figure by the formula with the other structure, in `unit`.
    pub other: f64,
}

impl Distinction {
    /// Difference of both figures, in percent of the smaller one.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * ((self.chosen / self.other).ln().abs().exp() - 1.0)
    }
}

/// A structure with its best values.
pub(crate) struct Fitted<'a> {
    pub(crate) problem: &'a FitData,
    pub(crate) facts: &'a Facts,
    pub(crate) values: &'a [f64],
}

/// Questions that could be asked next.
const QUESTIONS: [(&str, &str); 3] =
    [("dma_read_bandwidth", "B/s"), ("dma_write_bandwidth", "B/s"), ("dma_read_latency", "ns")];

/// Sizes that could be measured next, in bytes: whole DWs, most of them between the powers of two that are usually measured.
const SIZES: [u64; 30] = [
    4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 132, 160, 192, 224, 256, 260, 320, 384, 512, 516, 640, 768, 1024, 1032,
    1536, 2048, 3072, 4096, 8192, 65536,
];

/// Windows of writes of a line at random places that could be measured next, if windows were measured, in bytes: a cache makes
/// reads of larger windows slower, and an IOMMU slows writes too.
const WINDOWS: [u64; 4] = [1 << 20, 1 << 22, 1 << 24, 1 << 26];
const WRITES: (&str, &str) = ("dma_write_bandwidth", "B/s");
const LINE_BYTES: u64 = 64;

/// Percentage from which on two figures can be told apart by a measurement: several times the usual noise.
const DISTINCT_PERCENT: f64 = 3.0;

/// The figures that could be measured next, as the chosen structure predicts them.
pub(crate) struct Next {
    all: Vec<Candidate>,
    chosen: Vec<f64>,
}

impl Next {
    /// The figures by the formulas of the chosen structure; `None` if one has no formula.
    pub(crate) fn of(chosen: &Fitted<'_>) -> Option<Next> {
        let all = candidates(chosen.problem.has_windows(), chosen.facts);
        let figures = predicted(chosen, &all)?;
        Some(Next { all, chosen: figures })
    }

    /// The figure at which another structure differs most from the chosen one; `None` if no figure tells them apart, or one has
    /// no formula.
    pub(crate) fn distinction(&self, other: &Fitted<'_>) -> Option<Distinction> {
        let both = self.chosen.iter().copied().zip(predicted(other, &self.all)?);
        self.all
            .iter()
            .zip(both)
            .map(|(Candidate { question: (question, unit), size_bytes, window_bytes }, (chosen, other))| Distinction {
                question,
                size_bytes: *size_bytes,
                window_bytes: *window_bytes,
                unit,
                chosen,
                other,
            })
            .filter(|one| one.percent() >= DISTINCT_PERCENT)
            .max_by(|one, other| one.percent().total_cmp(&other.percent()))
    }
}

/// These figures by the formulas; `None` if one has no formula.
fn predicted(fitted: &Fitted<'_>, all: &[Candidate]) -> Option<Vec<f64>> {
    let rows: Vec<Row> = all.iter().map(Candidate::row).collect();
    let problem = with_most_walkers(fitted);
    let asked = problem.asked(&rows)?.formula_residuals(fitted.facts, fitted.values).ok()?;
    // Both structures have a figure for each row, or the rows of one could be those of others.
    (asked.len() == rows.len()).then(|| asked.into_iter().map(f64::exp).collect())
}

/// The fit with the most concurrent page walks that give the same measured figures. With fewer, writes of large windows are
/// slower, and differ even more from those of a structure without walks.
fn with_most_walkers(fitted: &Fitted<'_>) -> FitData {
    let is_chosen = fitted.problem.translates() && fitted.problem.is_open(WALKERS);
    let most = is_chosen.then(|| walkers::alike(fitted.problem, fitted.values).pop()).flatten();
    most.map_or_else(|| fitted.problem.clone(), |(_, problem)| problem)
}

/// A figure that could be measured next.
struct Candidate {
    /// Name and unit.
    question: (&'static str, &'static str),
    size_bytes: u64,
    window_bytes: Option<u64>,
}

impl Candidate {
    /// The figure as a row of a table, with a measured value of 1.
    fn row(&self) -> Row {
        let (question, size_bytes) = (self.question.0, self.size_bytes);
        let reach =
            Reach { window_bytes: self.window_bytes, is_random: self.window_bytes.is_some(), ..Reach::default() };
        Row { line: 0, question, size_bytes, figure: 1.0, alignment_bytes: 0, reach }
    }
}

/// The figures that could be measured next, of windows of host memory too if these `has_windows`.
fn candidates(has_windows: bool, facts: &Facts) -> Vec<Candidate> {
    let of_size = |question| move |size_bytes| Candidate { question, size_bytes, window_bytes: None };
    let of_window = |window| Candidate { question: WRITES, size_bytes: LINE_BYTES, window_bytes: Some(window) };
    let windows = if has_windows { &WINDOWS[..] } else { &[] };
    let usual = QUESTIONS.iter().flat_map(|question| SIZES.map(of_size(*question)));
    let is_mapped = |window: &u64| facts.dma.is_some_and(|dma| *window <= dma.mapped_bytes);
    usual.chain(windows.iter().copied().filter(is_mapped).map(of_window)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HEADER, Table};
    use lanemark_platform::Draft;

    #[test]
    fn beats_of_twice_the_width_and_time_differ_most_where_a_write_fills_one_of_the_narrow_ones() {
        let of = |beat_bytes: f64, beat_ns: f64| {
            let text = include_str!("../../../platforms/card-gen5-x16.toml");
            let text = text.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
            let draft = Draft::parse("card.toml", &text).unwrap();
            let table = Table::parse("card.csv", &format!("{HEADER}\ndma_read_bandwidth,4096,6 GB/s\n")).unwrap();
            let problem = FitData::of_table(&table, &draft).unwrap();
            problem.with_value("dma.beat_bytes", beat_bytes).unwrap().with_value("dma.beat_ns", beat_ns).unwrap()
        };
        let (narrow, wide, as_wide) = (of(64.0, 16.0), of(128.0, 32.0), of(128.0, 32.1));
        let compare = |one: &FitData, other: &FitData| {
            let (facts, other_facts) = (one.facts().unwrap(), other.facts().unwrap());
            let next = Next::of(&Fitted { problem: one, facts: &facts, values: &[120.0] }).unwrap();
            next.distinction(&Fitted { problem: other, facts: &other_facts, values: &[120.0] })
        };
        let found = compare(&narrow, &wide).unwrap();
        // With its header of 16 B.
        assert_eq!((found.question, found.size_bytes), ("dma_write_bandwidth", 48), "{found:?}");
        assert!(found.chosen > found.other && (found.percent() - 100.0).abs() < 0.1, "{found:?}");
        assert_eq!(compare(&wide, &as_wide), None);
        assert_eq!(compare(&wide, &wide), None);
    }

    #[test]
    fn windows_of_writes_tell_a_cache_from_an_iommu() {
        let text = include_str!("../../../platforms/card-gen5-x16.toml");
        let text = text.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
        let draft = Draft::parse("card.toml", &text).unwrap();
        let lines = ["65536", "67108864"].map(|window| format!("dma_read_latency,64,900 ns,{window},yes\n"));
        let table = format!("question,size_bytes,figure,window,random\n{}", lines.concat());
        let problem = FitData::of_table(&Table::parse("card.csv", &table).unwrap(), &draft).unwrap();
        let with = |numbers: &[(&str, f64)]| {
            numbers.iter().fold(problem.clone(), |problem, (key, value)| problem.with_value(key, *value).unwrap())
        };
        let of_iommu =
            with(&[("iommu.pass_through", 0.0), ("iommu.iotlb_entries", 1024.0), ("iommu.walk_read_ns", 80.0)]);
        let of_cache = with(&[("memory.cache_bytes", f64::from(4 << 20)), ("memory.cached_read_ns", 200.0)]);
        // Of the figures of writes, only those of windows that the IOTLB does not hold differ.
        let facts = problem.facts().unwrap();
        let all: Vec<Candidate> =
            candidates(true, &facts).into_iter().filter(|one| one.question.0 == WRITES.0).collect();
        let figures = |problem: &FitData| {
            let facts = problem.facts().unwrap();
            predicted(&Fitted { problem, facts: &facts, values: &[120.0] }, &all).unwrap()
        };
        let both = figures(&of_iommu).into_iter().zip(figures(&of_cache)).zip(&all);
        let differ: Vec<Option<u64>> = both
            .filter(|((one, other), _)| 100.0 * ((one / other).ln().abs().exp() - 1.0) >= DISTINCT_PERCENT)
            .map(|(_, candidate)| candidate.window_bytes)
            .collect();
        assert_eq!(differ, [Some(1 << 24), Some(1 << 26)]);
        assert!(candidates(false, &facts).iter().all(|candidate| candidate.window_bytes.is_none()));
        let mut small = facts.clone();
        small.dma.as_mut().unwrap().mapped_bytes = 1 << 22;
        let windows: Vec<u64> =
            candidates(true, &small).iter().filter_map(|candidate| candidate.window_bytes).collect();
        assert_eq!(windows, [1 << 20, 1 << 22]);
        // With latencies only, any number of concurrent walks is as good: the one that slows writes least is compared.
        let most = with_most_walkers(&Fitted { problem: &of_iommu, facts: &facts, values: &[120.0] });
        assert_eq!([&of_iommu, &most].map(|problem| problem.number("iommu.walkers")), [Some(1.0), Some(16.0)]);
        assert_eq!(figures(&of_iommu), figures(&of_iommu.with_value(WALKERS, 16.0).unwrap()));
    }
}
