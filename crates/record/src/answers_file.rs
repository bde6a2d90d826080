//! The answers of a record as a table, one row per answer, for spreadsheets and other tools.

use crate::table::{Column, Table, Values, Words};
use crate::{Answer, Ceiling, Formula, Record, Summary};
use lanemark_method::Method;
use std::collections::BTreeSet;

/// Collects the answers in a table.
///
/// First come the question, the target and the requested parameters; then every parameter of a method
/// ([`Method::COLUMNS`]), absent if the method has none of that name; then the figures, with units in their names; then a
/// column `varied.KEY` for every changed key.
#[must_use]
pub fn answers_table(record: &Record) -> Table {
    let answers = &record.answers;
    let cells: Vec<_> = answers.iter().map(|answer| answer.method.cells()).collect();
    let of_method = |name: &'static str| {
        let values = cells.iter().map(|cells| Some(cells.iter().find(|(column, _)| *column == name)?.1.clone()));
        if Method::WHOLE_COLUMNS.contains(&name) {
            let values = values.map(|text| text?.parse().ok()).collect();
            Column { name: name.to_owned(), values: Values::Whole(values) }
        } else {
            texts(name.to_owned(), values)
        }
    };
    let column = |(name, figure): &(&'static str, Figure)| match figure {
        Figure::Text(of) => texts((*name).to_owned(), answers.iter().map(of)),
        Figure::Whole(of) => {
            // Larger numbers than 2^63 - 1 do not occur.
            let values = answers.iter().map(|answer| Some(i64::try_from(of(answer)).unwrap_or(i64::MAX)));
            Column { name: (*name).to_owned(), values: Values::Whole(values.collect()) }
        }
        Figure::Number(of) => {
            Column { name: (*name).to_owned(), values: Values::Number(answers.iter().map(of).collect()) }
        }
    };
    let varied: BTreeSet<&String> = answers.iter().flat_map(|answer| answer.varied.keys()).collect();
    let varied = varied.into_iter().map(|key| {
        let mut words = Words::default();
        for (row, answer) in answers.iter().enumerate() {
            if let Some(value) = answer.varied.get(key) {
                words.set(row, value);
            }
        }
        words.numeric(format!("varied.{key}"), answers.len())
    });
    let asked = ASKED.iter().map(column);
    let figures = FIGURES.iter().map(column);
    let columns = asked.chain(Method::COLUMNS.into_iter().map(of_method)).chain(figures).chain(varied).collect();
    Table { rows: answers.len(), columns }
}

/// Column of texts.
fn texts(name: String, values: impl ExactSizeIterator<Item = Option<String>>) -> Column {
    let (mut words, rows) = (Words::default(), values.len());
    for (row, value) in values.enumerate() {
        if let Some(value) = value {
            words.set(row, &value);
        }
    }
    words.text(name, rows)
}

/// Source of a column's values.
enum Figure {
    Text(fn(&Answer) -> Option<String>),
    Whole(fn(&Answer) -> u64),
    Number(fn(&Answer) -> Option<f64>),
}

/// Columns of the question and the target.
const ASKED: [(&str, Figure); 6] = [
    ("question", Figure::Text(|answer| Some(answer.question.clone()))),
    ("target", Figure::Text(|answer| Some(answer.target.clone()))),
    ("quantity", Figure::Text(|answer| Some(answer.quantity.name().to_owned()))),
    ("size_bytes", Figure::Whole(|answer| answer.size_bytes)),
    ("alignment_bytes", Figure::Whole(|answer| answer.alignment_bytes)),
    (
        "cores",
        Figure::Text(|answer| {
            let cores: Vec<String> = answer.cores().iter().map(u32::to_string).collect();
            (!cores.is_empty()).then(|| cores.join(" "))
        }),
    ),
];

/// Columns of figures.
const FIGURES: [(&str, Figure); 23] = [
    ("latency_ns_median", Figure::Number(|answer| median(answer.latency_ns))),
    ("latency_ns_p1", Figure::Number(|answer| Some(answer.latency_ns?.p1))),
    ("latency_ns_p99", Figure::Number(|answer| Some(answer.latency_ns?.p99))),
    ("latency_ns_mad", Figure::Number(|answer| Some(answer.latency_ns?.mad))),
    ("issue_rate_bytes_per_s_median", Figure::Number(|answer| median(answer.issue_rate_bytes_per_s))),
    ("delivered_rate_bytes_per_s_median", Figure::Number(|answer| median(answer.delivered_rate_bytes_per_s))),
    ("delivered_rate_bytes_per_s_p1", Figure::Number(|answer| Some(answer.delivered_rate_bytes_per_s?.p1))),
    ("delivered_rate_bytes_per_s_p99", Figure::Number(|answer| Some(answer.delivered_rate_bytes_per_s?.p99))),
    ("delivered_rate_bytes_per_s_mad", Figure::Number(|answer| Some(answer.delivered_rate_bytes_per_s?.mad))),
    ("ceiling_rate_bytes_per_s", Figure::Number(|answer| answer.ceiling.rate_bytes_per_s)),
    ("ceiling_kind", Figure::Text(|answer| Some(ceiling_kind(&answer.ceiling)))),
    ("share_of_ceiling_percent", Figure::Number(|answer| answer.share_of_ceiling_percent)),
    ("bound", Figure::Text(|answer| formula(answer)?.bound.clone())),
    ("bound_cause", Figure::Text(|answer| formula(answer)?.cause.clone())),
    ("longest_wait_cause", Figure::Text(|answer| Some(answer.waits.first()?.cause.clone()))),
    ("longest_wait_percent", Figure::Number(|answer| Some(answer.waits.first()?.share_percent))),
    ("formula_latency_ns", Figure::Number(|answer| formula(answer)?.latency_ns)),
    ("formula_delivered_rate_bytes_per_s", Figure::Number(|answer| formula(answer)?.delivered_rate_bytes_per_s)),
    ("twin", Figure::Text(|answer| Some(answer.twin.as_ref()?.platform.clone()))),
    ("samples", Figure::Whole(|answer| answer.samples_ns.len() as u64)),
    ("passes", Figure::Whole(|answer| answer.passes)),
    ("timer_cost_ns", Figure::Number(|answer| Some(answer.timer_cost_ns))),
    (
        "doubts",
        Figure::Text(|answer| {
            let doubts: Vec<&str> = answer.doubts.iter().map(|doubt| doubt.text.as_str()).collect();
            (!doubts.is_empty()).then(|| doubts.join("; "))
        }),
    ),
];

fn median(summary: Option<Summary>) -> Option<f64> {
    Some(summary?.median)
}

fn formula(answer: &Answer) -> Option<&Formula> {
    answer.formula.as_ref()
}

fn ceiling_kind(ceiling: &Ceiling) -> String {
    match ceiling.kind {
        crate::CeilingKind::Computed => "computed",
        crate::CeilingKind::Measured => "measured",
        crate::CeilingKind::Unknown => "unknown",
    }
    .to_owned()
}
