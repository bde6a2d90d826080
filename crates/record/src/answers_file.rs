//! The answers of a record as a CSV file, one row per answer, for spreadsheets and other tools.

use crate::{Answer, Ceiling, Formula, Record, Summary};
use lanemark_method::Method;
use std::collections::BTreeSet;

/// Formats the answers as a CSV file, to be written by [`write_whole`](crate::file::write_whole).
///
/// The first row names the columns. First come the question, the target and the requested
/// parameters; then every parameter of a method ([`Method::COLUMNS`]), empty if the method has none
/// of that name; then the figures, with units in their names; then a column `varied.KEY` for every
/// changed key.
///
/// # Errors
/// The error of the writer, which only a bug of this program can cause.
pub fn answers_table(record: &Record) -> Result<String, csv::Error> {
    let varied: BTreeSet<&String> = record.answers.iter().flat_map(|answer| answer.varied.keys()).collect();
    let mut table = csv::Writer::from_writer(Vec::new());
    let heads = ASKED.into_iter().chain(Method::COLUMNS).chain(FIGURES.iter().map(|(name, _)| *name));
    table.write_record(heads.map(str::to_owned).chain(varied.iter().map(|key| format!("varied.{key}"))))?;
    for answer in &record.answers {
        let cells = answer.method.cells();
        let of_method = Method::COLUMNS.iter().map(|column| {
            cells.iter().find(|(name, _)| name == column).map(|(_, text)| text.clone()).unwrap_or_default()
        });
        let quantity = serde_json::to_value(answer.quantity).ok();
        let asked = [
            answer.question.clone(),
            answer.target.clone(),
            quantity.as_ref().and_then(|name| name.as_str()).unwrap_or_default().to_owned(),
            answer.size_bytes.to_string(),
            answer.alignment_bytes.to_string(),
            answer.cores().iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        ];
        let figures = FIGURES.iter().map(|(_, figure)| figure(answer).unwrap_or_default());
        let changed = varied.iter().map(|key| answer.varied.get(*key).cloned().unwrap_or_default());
        table.write_record(asked.into_iter().chain(of_method).chain(figures).chain(changed))?;
    }
    let bytes = table.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Columns of the question and the target.
const ASKED: [&str; 6] = ["question", "target", "quantity", "size_bytes", "alignment_bytes", "cores"];

/// A column of figures: its name, and its cell, which is empty without a figure.
type Figure = (&'static str, fn(&Answer) -> Option<String>);

const FIGURES: [Figure; 23] = [
    ("latency_ns_median", |answer| median(answer.latency_ns)),
    ("latency_ns_p1", |answer| number(answer.latency_ns?.p1)),
    ("latency_ns_p99", |answer| number(answer.latency_ns?.p99)),
    ("latency_ns_mad", |answer| number(answer.latency_ns?.mad)),
    ("issue_rate_bytes_per_s_median", |answer| median(answer.issue_rate_bytes_per_s)),
    ("delivered_rate_bytes_per_s_median", |answer| median(answer.delivered_rate_bytes_per_s)),
    ("delivered_rate_bytes_per_s_p1", |answer| number(answer.delivered_rate_bytes_per_s?.p1)),
    ("delivered_rate_bytes_per_s_p99", |answer| number(answer.delivered_rate_bytes_per_s?.p99)),
    ("delivered_rate_bytes_per_s_mad", |answer| number(answer.delivered_rate_bytes_per_s?.mad)),
    ("ceiling_rate_bytes_per_s", |answer| number(answer.ceiling.rate_bytes_per_s?)),
    ("ceiling_kind", |answer| Some(ceiling_kind(&answer.ceiling))),
    ("share_of_ceiling_percent", |answer| number(answer.share_of_ceiling_percent?)),
    ("bound", |answer| formula(answer)?.bound.clone()),
    ("bound_cause", |answer| formula(answer)?.cause.clone()),
    ("longest_wait_cause", |answer| Some(answer.waits.first()?.cause.clone())),
    ("longest_wait_percent", |answer| number(answer.waits.first()?.share_percent)),
    ("formula_latency_ns", |answer| number(formula(answer)?.latency_ns?)),
    ("formula_delivered_rate_bytes_per_s", |answer| number(formula(answer)?.delivered_rate_bytes_per_s?)),
    ("twin", |answer| Some(answer.twin.as_ref()?.platform.clone())),
    ("samples", |answer| Some(answer.samples_ns.len().to_string())),
    ("passes", |answer| Some(answer.passes.to_string())),
    ("timer_cost_ns", |answer| number(answer.timer_cost_ns)),
    ("doubts", |answer| {
        let doubts: Vec<&str> = answer.doubts.iter().map(|doubt| doubt.text.as_str()).collect();
        (!doubts.is_empty()).then(|| doubts.join("; "))
    }),
];

fn median(summary: Option<Summary>) -> Option<String> {
    number(summary?.median)
}

#[allow(clippy::unnecessary_wraps, reason = "most figures may be absent")]
fn number(value: f64) -> Option<String> {
    Some(value.to_string())
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
