//! Residuals between a record and a platform that was fitted to it.

use crate::figures;
use crate::grid::{Column, Grid};
use lanemark_record::Residual;

/// One row per answer: measured, simulated, formula, the error of the simulation, and the error of the same answer in
/// `held_out`, where it was predicted without its half of the curve.
#[must_use]
pub fn residual_table(residuals: &[Residual], held_out: &[Residual], width: Option<u16>) -> String {
    let columns = vec![
        Column::words("case"),
        Column::figures("measured"),
        Column::figures("simulated"),
        Column::figures("formula"),
        Column::figures("error %"),
        Column::figures("held out %"),
    ];
    let with_held_out = |row: &Residual| {
        let same = held_out.iter().find(|other| other.what == row.what && other.measured == row.measured);
        let mut cells = cells(row);
        cells.push(same.map(|other| percent(other.error_percent)).unwrap_or_default());
        cells
    };
    let mut grid = Grid { columns, rows: residuals.iter().map(with_held_out).collect() };
    grid.drop_empty_columns();
    grid.lines(width).join("\n") + "\n"
}

fn cells(row: &Residual) -> Vec<String> {
    let figure = |value: f64| if row.unit == "ns" { figures::time(value) } else { figures::rate(value) };
    vec![
        row.what.clone(),
        figure(row.measured),
        figure(row.simulated),
        row.formula.map(figure).unwrap_or_default(),
        percent(row.error_percent),
    ]
}

fn percent(error: f64) -> String {
    figures::difference(error).trim_end_matches(" %").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_are_rendered_as_a_table() {
        let row = |what: &str, unit: &str, measured, simulated, formula, error_percent| Residual {
            what: what.to_owned(),
            unit: unit.to_owned(),
            measured,
            simulated,
            formula,
            error_percent,
        };
        let rows = [
            row("mmio_read_latency UC 8 8 B", "ns", 800.0, 808.0, Some(809.0), 1.0),
            row("mmio_write_bandwidth WC 64 4096 B", "B/s", 4e9, 3.9e9, None, -2.5),
        ];
        let expected = "\
case                                measured  simulated  formula  error %
─────────────────────────────────────────────────────────────────────────
mmio_read_latency UC 8 8 B            800 ns     808 ns   809 ns     +1.0
mmio_write_bandwidth WC 64 4096 B  4.00 GB/s  3.90 GB/s              -2.5
";
        assert_eq!(residual_table(&rows, &[], None), expected);
        let held_out = [row("mmio_read_latency UC 8 8 B", "ns", 800.0, 816.0, None, 2.0)];
        let table = residual_table(&rows, &held_out, None);
        assert!(table.contains("error %  held out %\n") && table.contains("+1.0        +2.0\n"), "{table}");
    }
}
