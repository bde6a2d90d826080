//! The measurement that tells two structures apart.

use crate::fit_data::FitData;
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
    /// Unit of both figures: `B/s` or `ns`.
    pub unit: &'static str,
    /// The figure by the formula with the chosen structure, in `unit`.
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

/// Percentage from which on two figures can be told apart by a measurement: several times the usual noise.
const DISTINCT_PERCENT: f64 = 3.0;

/// The figure at which two structures differ most; `None` if no figure tells them apart, or one has no formula.
pub(crate) fn distinction(chosen: &Fitted<'_>, other: &Fitted<'_>) -> Option<Distinction> {
    let row = |question, size_bytes| Row {
        line: 0,
        question,
        size_bytes,
        figure: 1.0,
        alignment_bytes: 0,
        reach: Reach::default(),
    };
    let all = QUESTIONS.iter().flat_map(|question| SIZES.map(|size| (question, size)));
    let rows: Vec<Row> = all.clone().map(|((question, _), size)| row(*question, size)).collect();
    let figures = |fitted: &Fitted<'_>| {
        let asked = fitted.problem.asked(&rows)?.formula_residuals(fitted.facts, fitted.values).ok()?;
        // Both have a figure for each row, or the rows of one could be those of others.
        (asked.len() == rows.len()).then(|| asked.into_iter().map(f64::exp).collect::<Vec<f64>>())
    };
    let predicted = figures(chosen)?.into_iter().zip(figures(other)?);
    all.zip(predicted)
        .map(|(((question, unit), size_bytes), (chosen, other))| Distinction {
            question,
            size_bytes,
            unit,
            chosen,
            other,
        })
        .filter(|one| one.percent() >= DISTINCT_PERCENT)
        .max_by(|one, other| one.percent().total_cmp(&other.percent()))
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
            distinction(
                &Fitted { problem: one, facts: &facts, values: &[120.0] },
                &Fitted { problem: other, facts: &other_facts, values: &[120.0] },
            )
        };
        let found = compare(&narrow, &wide).unwrap();
        // With its header of 16 B.
        assert_eq!((found.question, found.size_bytes), ("dma_write_bandwidth", 48), "{found:?}");
        assert!(found.chosen > found.other && (found.percent() - 100.0).abs() < 0.1, "{found:?}");
        assert_eq!(compare(&wide, &as_wide), None);
        assert_eq!(compare(&wide, &wide), None);
    }
}
