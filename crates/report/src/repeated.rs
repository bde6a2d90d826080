//! The answers of several runs for a terminal, with their variation between runs.

use crate::figures;
use crate::grid::{Column, Grid, wrap};
use crate::panel::{cores_in_words, title};
use lanemark_record::{Quantity, Repeated};

/// Renders the answers of `runs` runs for a terminal of `width` characters: one table per question
/// and target, with the median of the runs, the fastest and the slowest run, and the standard
/// deviation between runs.
#[must_use]
pub fn repeated_table(answers: &[Repeated], runs: usize, width: Option<u16>) -> String {
    let text = format!(
        "{}: medians of all samples of a run; between runs is the standard deviation of these medians",
        figures::counted(runs, "run")
    );
    let mut blocks = vec![wrap(&text, width, 2)];
    let is_same = |a: &Repeated, b: &Repeated| (&a.question, &a.target) == (&b.question, &b.target);
    for panel in answers.chunk_by(is_same) {
        let question = &panel[0].question;
        let head = format!("{} of {} ({question})", title(question), panel[0].target);
        let mut grid = Grid { columns: columns(), rows: panel.iter().map(|answer| row(answer, runs)).collect() };
        grid.drop_empty_columns();
        let lines: Vec<String> = std::iter::once(wrap(&head, width, 2)).chain(grid.lines(width)).collect();
        blocks.push(lines.join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

fn columns() -> Vec<Column> {
    let mut columns = vec![Column::words("method")];
    columns.extend(["size", "median", "fastest run", "slowest run", "between runs", "runs"].map(Column::figures));
    columns
}

fn row(answer: &Repeated, runs: usize) -> Vec<String> {
    let figure = |ns: Option<f64>| match (ns, answer.quantity) {
        (None, _) => "none".to_owned(),
        (Some(ns), Quantity::Bandwidth) if ns > 0.0 => figures::rate(answer.size_bytes as f64 * 1e9 / ns),
        (Some(ns), _) => figures::time(ns),
    };
    let alignment = match answer.alignment_bytes {
        0 => String::new(),
        bytes => format!(" at +{bytes} B"),
    };
    vec![
        format!("{}{alignment}{}", answer.method, cores_in_words(&answer.cores)),
        figures::size(answer.size_bytes),
        figure(answer.median_ns),
        figure(answer.shortest_ns),
        figure(answer.longest_ns),
        answer.between_runs_percent.map(|percent| format!("{percent:.2} %")).unwrap_or_default(),
        // Only where some runs lack the answer.
        if answer.records == runs as u64 { String::new() } else { answer.records.to_string() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_variation_between_runs_is_a_column() {
        let answer = Repeated {
            question: "mmio_write_bandwidth".to_owned(),
            target: "host".to_owned(),
            method: fixture::method("wb", "8", None),
            cores: vec![],
            size_bytes: 4096,
            alignment_bytes: 0,
            quantity: Quantity::Bandwidth,
            records: 5,
            median_ns: Some(1000.0),
            shortest_ns: Some(990.0),
            longest_ns: Some(1024.0),
            between_runs_percent: Some(1.234),
        };
        let absent = Repeated {
            records: 4,
            median_ns: None,
            shortest_ns: None,
            longest_ns: None,
            between_runs_percent: None,
            ..answer.clone()
        };
        let expected = "\
5 runs: medians of all samples of a run; between runs is the standard deviation of these medians

MMIO write bandwidth of host (mmio_write_bandwidth)
method   size     median  fastest run  slowest run  between runs  runs
──────────────────────────────────────────────────────────────────────
WB 8    4 KiB  4.10 GB/s    4.14 GB/s    4.00 GB/s        1.23 %
WB 8    4 KiB       none         none         none                   4
";
        let text = repeated_table(&[answer, absent], 5, None);
        assert_eq!(text, expected, "{text}");
    }
}
