//! The points that no other point beats in two figures.

use super::frame::{ABOVE, BELOW, COLOURS, HEIGHT, LEFT, RIGHT, Scale, WIDTH, start};
use super::selection::{Selected, Selection, SweepPictureError, figure, is_more_better, text};
use crate::svg::words;
use lanemark_record::SweepTable;
use std::fmt::Write as _;

/// Largest number of points of the front that are named.
const MOST_NAMES: usize = 14;

/// Draws the figure against the column `x` as an SVG file: all points, and a line through those that no other point
/// beats in both. Rates and shares of a limit are better if larger; everything else, such as a number of tags, is
/// better if smaller.
///
/// # Errors
/// [`SweepPictureError`] with the option that helps.
pub fn pareto(table: &SweepTable, selection: &Selection) -> Result<String, SweepPictureError> {
    let selection =
        &Selection { figure: selection.y.clone().or_else(|| selection.figure.clone()), ..selection.clone() };
    let selected = Selected::of(table, selection)?;
    let x_name = selected.axis(selection.x.as_ref(), &[], true, "--x")?;
    let y_name = selected.figure.as_str();
    let point = |row: &usize| Some((table.cell(x_name, *row).number()?, selected.figure_of(*row), *row));
    let points: Vec<(f64, f64, usize)> = selected.rows.iter().filter_map(point).collect();
    if points.is_empty() {
        return Err(SweepPictureError::NoPoint { column: x_name.to_owned() });
    }
    let front = front(&points, is_more_better(x_name), is_more_better(y_name));
    let x = Scale::of(points.iter().map(|point| point.0), LEFT, WIDTH - RIGHT);
    let y = Scale::of(points.iter().map(|point| point.1), HEIGHT - BELOW, ABOVE).with_zero();
    let better = |name: &str| if is_more_better(name) { "more" } else { "less" };
    let title =
        format!("{y_name} ({} is better) by {x_name} ({}): {}", better(y_name), better(x_name), selected.title());
    let desc = "Every point, and a line through the points that no other point beats in both figures.";
    let mut svg = start("sweep-pareto", HEIGHT, &title, desc);
    for tick in y.ticks() {
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{1:.1}\"/>", y.at(tick), WIDTH - RIGHT);
        words(&mut svg, (LEFT - 8.0, y.at(tick) + 4.0), "end", &figure(y_name, tick));
    }
    for tick in x.ticks() {
        words(&mut svg, (x.at(tick), HEIGHT - BELOW + 20.0), "middle", &figure(x_name, tick));
    }
    words(&mut svg, (f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 8.0), "middle", x_name);
    // Points that coincide in the picture are drawn once.
    let mut drawn = std::collections::BTreeSet::new();
    for (px, py, _) in &points {
        if drawn.insert((x.at(*px) as i64, y.at(*py) as i64)) {
            let _ = write!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"#8888\"/>", x.at(*px), y.at(*py));
        }
    }
    let path: Vec<String> = front.iter().map(|(px, py, _)| format!("{:.1} {:.1}", x.at(*px), y.at(*py))).collect();
    let _ = write!(svg, "<path class=\"line\" stroke=\"{}\" d=\"M{}\"/>", COLOURS[1], path.join("L"));
    let varying = selected.varying();
    let mut free = ABOVE + 12.0;
    for (nth, (px, py, row)) in front.iter().enumerate() {
        let _ = write!(
            svg,
            "<circle class=\"front\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{}\"/>",
            x.at(*px),
            y.at(*py),
            COLOURS[1]
        );
        if nth < MOST_NAMES {
            let keys = varying.iter().filter(|name| **name != x_name);
            let keys: Vec<String> = keys.map(|name| text(table.cell(name, *row))).collect();
            let of = if keys.is_empty() { String::new() } else { format!(" ({})", keys.join(", ")) };
            let name = format!("{}: {}{of}", figure(x_name, *px), figure(y_name, *py));
            words(&mut svg, (WIDTH - RIGHT + 12.0, free), "start", &name);
            free += 18.0;
        }
    }
    Ok(svg + "</svg>\n")
}

/// The points that no other beats, in the order of the first figure.
fn front(points: &[(f64, f64, usize)], x_more: bool, y_more: bool) -> Vec<(f64, f64, usize)> {
    let cost = |value: f64, is_more: bool| if is_more { -value } else { value };
    let mut sorted: Vec<&(f64, f64, usize)> = points.iter().collect();
    sorted.sort_by(|one, other| {
        let x = cost(one.0, x_more).total_cmp(&cost(other.0, x_more));
        x.then(cost(one.1, y_more).total_cmp(&cost(other.1, y_more))).then(one.2.cmp(&other.2))
    });
    let mut front: Vec<(f64, f64, usize)> = Vec::new();
    for point in sorted {
        if front.last().is_none_or(|last| cost(point.1, y_more) < cost(last.1, y_more)) {
            front.push(*point);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_has_no_point_that_another_beats() {
        let points = [(1.0, 5.0, 0), (2.0, 5.0, 1), (2.0, 9.0, 2), (3.0, 8.0, 3), (4.0, 12.0, 4)];
        let rows = |points: Vec<(f64, f64, usize)>| points.into_iter().map(|point| point.2).collect::<Vec<usize>>();
        assert_eq!(rows(front(&points, false, true)), [0, 2, 4]);
        assert_eq!(rows(front(&points, false, false)), [0]);
        assert_eq!(rows(front(&points, true, true)), [4]);
    }
}
