//! All raw samples of a record as a table, for analysis with other tools.

use crate::table::{Column, Table, Values, Words};
use crate::{Answer, RawSamples, Record};

/// Collects the samples in a table.
///
/// One row per sample, including dropped ones, in the order of answers and then of time. Columns:
/// `question`, `target`, `method` (its label), `kind`, `memory_type`, `access` and `fence` (empty:
/// none), `size_bytes`, `alignment_bytes`, `plan` (empty if the question has only one), `passes`,
/// `round` and `sample` (from 0; within the answer and plan), `issue_ns` and `delivered_ns` of the
/// whole sample, and `dropped`, the reason, which is absent for a counted sample.
#[must_use]
pub fn samples_table(record: &Record) -> Table {
    let labels: Vec<String> = record.answers.iter().map(|answer| answer.method.to_string()).collect();
    let cells: Vec<Cells> = record.answers.iter().map(|answer| answer.method.cells()).collect();
    let described = record.answers.iter().zip(labels.iter().zip(&cells));
    let rows: Vec<Row> = described.flat_map(|(answer, (label, cells))| rows(answer, label, cells)).collect();
    let columns = COLUMNS.iter().map(|(name, source)| source.column(name, &rows)).collect();
    Table { rows: rows.len(), columns }
}

/// Fields of a method by column.
type Cells = Vec<(&'static str, String)>;

/// One sample.
struct Row<'a> {
    answer: &'a Answer,
    label: &'a str,
    cells: &'a Cells,
    raw: &'a RawSamples,
    place: usize,
    dropped: Option<&'a str>,
}

impl<'a> Row<'a> {
    /// A field of the method; empty if it has none of this name.
    fn cell(&self, column: &str) -> &'a str {
        self.cells.iter().find(|(name, _)| *name == column).map_or("", |(_, text)| text.as_str())
    }
}

fn rows<'a>(answer: &'a Answer, label: &'a str, cells: &'a Cells) -> impl Iterator<Item = Row<'a>> {
    answer.raw.iter().flat_map(move |raw| {
        // Lists of different lengths in a damaged record are truncated to the shortest.
        let count = raw.round.len().min(raw.issue_ns.len()).min(raw.delivered_ns.len());
        let reason = |place: usize| {
            raw.dropped.iter().find(|dropped| dropped.place == place as u64).map(|dropped| dropped.reason.as_str())
        };
        (0..count).map(move |place| Row { answer, label, cells, raw, place, dropped: reason(place) })
    })
}

/// Source of a column's values.
enum Source {
    Text(for<'a> fn(&Row<'a>) -> &'a str),
    TextOrNull(for<'a> fn(&Row<'a>) -> Option<&'a str>),
    Whole(fn(&Row) -> u64),
    Time(fn(&Row) -> f64),
}

const COLUMNS: [(&str, Source); 16] = [
    ("question", Source::Text(|row| &row.answer.question)),
    ("target", Source::Text(|row| &row.answer.target)),
    ("method", Source::Text(|row| row.label)),
    ("kind", Source::Text(|row| row.cell("kind"))),
    ("memory_type", Source::Text(|row| row.cell("memory_type"))),
    ("access", Source::Text(|row| row.cell("access"))),
    ("fence", Source::Text(|row| if row.cell("fence") == "none" { "" } else { row.cell("fence") })),
    ("size_bytes", Source::Whole(|row| row.answer.size_bytes)),
    ("alignment_bytes", Source::Whole(|row| row.answer.alignment_bytes)),
    ("plan", Source::Text(|row| &row.raw.plan)),
    ("passes", Source::Whole(|row| row.raw.passes)),
    ("round", Source::Whole(|row| row.raw.round[row.place])),
    ("sample", Source::Whole(|row| row.place as u64)),
    ("issue_ns", Source::Time(|row| row.raw.issue_ns[row.place])),
    ("delivered_ns", Source::Time(|row| row.raw.delivered_ns[row.place])),
    ("dropped", Source::TextOrNull(|row| row.dropped)),
];

impl Source {
    fn column(&self, name: &str, rows: &[Row]) -> Column {
        let texts = |of: &dyn for<'a> Fn(&Row<'a>) -> Option<&'a str>| {
            let mut words = Words::default();
            for (number, row) in rows.iter().enumerate() {
                if let Some(text) = of(row) {
                    words.set(number, text);
                }
            }
            words.text(name.to_owned(), rows.len())
        };
        let values = match self {
            Source::Text(of) => return texts(&|row| Some(of(row))),
            Source::TextOrNull(of) => return texts(of),
            // Sizes and counts stay far below 2^63.
            Source::Whole(of) => {
                Values::Whole(rows.iter().map(|row| Some(i64::try_from(of(row)).unwrap_or(i64::MAX))).collect())
            }
            Source::Time(of) => Values::Number(rows.iter().map(|row| Some(of(row))).collect()),
        };
        Column { name: name.to_owned(), values }
    }
}
