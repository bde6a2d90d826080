//! Imported figures beside their limits, and what is remarkable about them, for a terminal.

use crate::figures;
use crate::grid::{Column, Grid, wrap};
use lanemark_record::{Imported, ImportedFigure, Measured};

/// Renders imported figures for a terminal of `width` characters. `answers` is the number of figures that are also answers
/// of the record, `on` the name of the platform or listing whose links are the limits.
#[must_use]
pub fn import_table(imported: &Imported, answers: usize, on: Option<&str>, width: Option<u16>) -> String {
    let Imported { tool, version, file, figures: all, unknown, notes, left_out, skipped_lines, findings } = imported;
    let version = version.as_ref().map_or_else(|| "version unknown".to_owned(), Clone::clone);
    let head = format!(
        "{file}: {} of {tool} ({version}), {answers} of them as answers; {} left out, {} skipped",
        figures::counted(all.len(), "figure"),
        figures::counted(left_out.len(), "figure"),
        figures::counted(*skipped_lines as usize, "line")
    );
    let mut lines = vec![wrap(&head, width, 2)];
    lines.extend(unknown.iter().map(|fact| wrap(&format!("unknown: {fact}"), width, 2)));
    lines.extend(notes.iter().map(|note| wrap(&format!("note: {note}"), width, 2)));
    lines
        .extend(left_out.iter().map(|left| wrap(&format!("left out: line {}: {}", left.line, left.because), width, 2)));
    let mut columns = vec![Column::figures("line")];
    columns.extend(["test", "direction", "device"].map(Column::words));
    columns.extend(["size", "figure", "limit", "share"].map(Column::figures));
    let mut grid = Grid { columns, rows: all.iter().map(row).collect() };
    grid.drop_empty_columns();
    let mut blocks = vec![lines.join("\n"), grid.lines(width).join("\n")];
    let mut lines = vec!["Does this look right?".to_owned()];
    if on.is_none() {
        let text = "  the link is unknown, so rates have no limit: name it with --on PLATFORM or --on LSPCI.txt";
        lines.push(wrap(text, width, 4));
    }
    if findings.is_empty() {
        let count = all.iter().filter(|figure| figure.limit_bytes_per_s.is_some()).count();
        let text = format!("  no finding; {} compared with a limit", figures::counted(count, "figure"));
        lines.push(wrap(&text, width, 4));
    }
    for finding in findings {
        let text =
            format!("  - {}: line {}: {}; {}", finding.kind.in_words(), finding.line, finding.text, finding.try_this);
        lines.push(wrap(&text, width, 4));
    }
    blocks.push(lines.join("\n"));
    blocks.join("\n\n") + "\n"
}

fn row(figure: &ImportedFigure) -> Vec<String> {
    let value = match figure.value {
        Measured::RateBytesPerS(rate) => figures::rate(rate),
        Measured::LatencyNs(ns) => figures::time(ns),
    };
    let limit = figure.limit_bytes_per_s;
    let share = limit.zip(figure.value.rate()).map(|(limit, rate)| format!("{:.0} %", 100.0 * rate / limit));
    vec![
        figure.line.to_string(),
        figure.test.clone(),
        figure.path.in_words().to_owned(),
        figure.device.clone().unwrap_or_default(),
        figure.size_bytes.map(figures::size).unwrap_or_default(),
        value,
        limit.map(figures::rate).unwrap_or_default(),
        share.unwrap_or_default(),
    ]
}
