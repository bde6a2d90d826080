//! A figure against a column of numbers, with a line per combination of the other columns.

use super::frame::{ABOVE, BELOW, COLOURS, HEIGHT, LEFT, RIGHT, Scale, WIDTH, start};
use super::selection::{Selected, Selection, SweepPictureError, figure, text};
use crate::svg::words;
use lanemark_record::SweepTable;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Largest number of distinguishable lines: six colours, solid and dashed.
const MOST_LINES: usize = 12;

/// Draws the figure against the column `x`, as an SVG file: a line per combination of all other columns that vary.
/// Points without a figure are gaps.
///
/// # Errors
/// [`SweepPictureError`] with the option that helps.
pub fn lines(table: &SweepTable, selection: &Selection) -> Result<String, SweepPictureError> {
    let selected = Selected::of(table, selection)?;
    let x_name = selected.axis(selection.x.as_ref(), &[], true, "--x")?;
    let others: Vec<&str> = selected.varying().into_iter().filter(|name| *name != x_name).collect();
    let name_of = |row: usize| {
        let named = |name: &&str| match *name {
            "platform" | "question" | "method" => text(table.cell(name, row)),
            name => format!("{name} {}", text(table.cell(name, row))),
        };
        others.iter().map(named).collect::<Vec<String>>().join(", ")
    };
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for row in &selected.rows {
        let Some(x) = table.cell(x_name, *row).number() else { continue };
        let name = name_of(*row);
        let place = *index.entry(name.clone()).or_insert_with(|| {
            series.push((name, Vec::new()));
            series.len() - 1
        });
        series[place].1.push((x, selected.figure_of(*row)));
    }
    if series.len() > MOST_LINES {
        let example = others.first().map(|name| selected.example(name)).unwrap_or_default();
        return Err(SweepPictureError::TooManyLines { count: series.len(), most: MOST_LINES, example });
    }
    for (_, points) in &mut series {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    let all = || series.iter().flat_map(|(_, points)| points);
    let x = Scale::of(all().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Scale::of(all().map(|point| point.1), HEIGHT - BELOW, ABOVE).with_zero();
    let title = format!("{}: {}", selected.figure, selected.title());
    let mut svg = start("sweep-lines", HEIGHT, &title, &format!("{} against {x_name}.", selected.figure));
    for tick in y.ticks() {
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{1:.1}\"/>", y.at(tick), WIDTH - RIGHT);
        words(&mut svg, (LEFT - 8.0, y.at(tick) + 4.0), "end", &figure(&selected.figure, tick));
    }
    let values: Vec<f64> = selected.values(x_name).into_iter().filter_map(lanemark_record::Cell::number).collect();
    let mut free = f64::NEG_INFINITY;
    for value in &values {
        let label = figure(x_name, *value);
        let half = label.chars().count() as f64 * 4.0;
        if x.at(*value) - half > free {
            words(&mut svg, (x.at(*value), HEIGHT - BELOW + 20.0), "middle", &label);
            free = x.at(*value) + half + 6.0;
        }
    }
    words(&mut svg, (f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 8.0), "middle", x_name);
    let mut names: Vec<(f64, &str, usize)> = Vec::new();
    for (nth, (name, points)) in series.iter().enumerate() {
        let path: Vec<String> = points.iter().map(|(px, py)| format!("{:.1} {:.1}", x.at(*px), y.at(*py))).collect();
        let _ = write!(svg, "<path class=\"line\" {} d=\"M{}\"/>", stroke(nth), path.join("L"));
        for (px, py) in points {
            let colour = COLOURS[nth % COLOURS.len()];
            let _ = write!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x.at(*px), y.at(*py));
        }
        names.push((points.last().map_or(0.0, |point| y.at(point.1)), name, nth));
    }
    names.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = ABOVE;
    for (at, name, nth) in names {
        let at = at.max(free);
        free = at + 16.0;
        let _ = write!(svg, "<path class=\"line\" {} d=\"M{:.1} {at:.1}h14\"/>", stroke(nth), WIDTH - RIGHT + 8.0);
        words(&mut svg, (WIDTH - RIGHT + 28.0, at + 4.0), "start", name);
    }
    Ok(svg + "</svg>\n")
}

/// Colour and dashes of a line.
fn stroke(nth: usize) -> String {
    let dashes = if nth < COLOURS.len() { "" } else { " stroke-dasharray=\"6 4\"" };
    format!("stroke=\"{}\"{dashes}", COLOURS[nth % COLOURS.len()])
}
