//! A figure over two columns, as coloured cells.

use super::frame::{ABOVE, WIDTH, start};
use super::selection::{Selected, Selection, SweepPictureError, figure, text};
use crate::svg::words;
use lanemark_record::{Cell, SweepTable};
use std::fmt::Write as _;

/// Height of a cell.
const CELL: f64 = 34.0;
/// Margin for the values of the vertical axis.
const LEFT: f64 = 150.0;

/// Draws the figure over the columns `x` and `y` as an SVG file. Each cell has its figure, and the darkest the largest;
/// points without a figure are empty.
///
/// # Errors
/// [`SweepPictureError`] with the option that helps.
pub fn heat_map(table: &SweepTable, selection: &Selection) -> Result<String, SweepPictureError> {
    let selected = Selected::of(table, selection)?;
    let avoided: Vec<&str> = selection.y.iter().map(String::as_str).collect();
    let x_name = selected.axis(selection.x.as_ref(), &avoided, false, "--x")?;
    let y_name = selected.axis(selection.y.as_ref(), &[x_name], false, "--y")?;
    selected.check_fixed("heat map", &[x_name, y_name])?;
    let (columns, rows) = (selected.values(x_name), selected.values(y_name));
    let width = ((WIDTH - LEFT - 16.0) / columns.len() as f64).min(120.0);
    let height = ABOVE + CELL * rows.len() as f64 + 56.0;
    let figures = || selected.rows.iter().map(|row| selected.figure_of(*row));
    let (least, most) = (figures().fold(f64::INFINITY, f64::min), figures().fold(f64::NEG_INFINITY, f64::max));
    let title = format!("{}: {}", selected.figure, selected.title());
    let mut svg = start("sweep-heat-map", height, &title, &format!("{} by {x_name} and {y_name}.", selected.figure));
    let at = |column: usize, row: usize| {
        // The first value of the vertical axis is at the bottom.
        (LEFT + width * column as f64, ABOVE + CELL * (rows.len() - 1 - row) as f64)
    };
    for row in &selected.rows {
        let place = |values: &[Cell<'_>], name| values.iter().position(|value| *value == table.cell(name, *row));
        let (Some(column), Some(line)) = (place(&columns, x_name), place(&rows, y_name)) else { continue };
        let value = selected.figure_of(*row);
        let share = if most > least { (value - least) / (most - least) } else { 1.0 };
        let ((x, y), colour) = (at(column, line), shade(share));
        let class = if share > 0.5 { "dark" } else { "light" };
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            width - 2.0,
            CELL - 2.0
        );
        if width >= 30.0 {
            let label = figure(&selected.figure, value);
            let label = if width >= 64.0 { label } else { label.split(' ').next().unwrap_or_default().to_owned() };
            let _ = write!(
                svg,
                "<g><text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">",
                x + width / 2.0 - 1.0,
                y + CELL / 2.0 + 4.0
            );
            svg += &crate::svg::escaped(&label);
            svg += "</text></g>";
        }
    }
    let label = |name: &str, cell: &Cell<'_>| cell.number().map_or_else(|| text(*cell), |value| figure(name, value));
    let every = (28.0 / width).ceil().max(1.0) as usize;
    for (column, cell) in columns.iter().enumerate().step_by(every) {
        let x = at(column, 0).0 + width / 2.0;
        words(&mut svg, (x, height - 38.0), "middle", &label(x_name, cell));
    }
    for (row, cell) in rows.iter().enumerate() {
        words(&mut svg, (LEFT - 8.0, at(0, row).1 + CELL / 2.0 + 4.0), "end", &label(y_name, cell));
    }
    words(&mut svg, (LEFT, height - 12.0), "start", &format!("{x_name}; upwards: {y_name}"));
    Ok(svg + "</svg>\n")
}

/// A colour from light to dark blue.
fn shade(share: f64) -> String {
    let mix = |light: f64, dark: f64| (light + (dark - light) * share.clamp(0.0, 1.0)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(222.0, 8.0), mix(235.0, 69.0), mix(247.0, 148.0))
}
