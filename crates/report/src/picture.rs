//! A picture of a reproduction: lines over a parameter, as a table and as an SVG.

use crate::exact::exact;
use crate::grid::{Column, Grid, wrap};
use crate::svg;
use lanemark_record::Picture;
use std::fmt::Write as _;

/// Size of the drawing in its own units, and the margins for labels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BELOW: f64 = 44.0;
/// Number of line colours.
const COLOURS: usize = 6;

/// The title, one row per value of the parameter, and the note.
pub(crate) fn in_words(picture: &Picture, width: Option<u16>) -> String {
    let mut text = wrap(&format!("{}: {}", picture.title, picture.shows), width, 2) + "\n";
    text += &grid(picture).lines(width).join("\n");
    if !picture.note.is_empty() {
        text += "\n";
        text += &wrap(&picture.note, width, 2);
    }
    text
}

/// The lines as columns; a missing value is `-`.
pub(crate) fn grid(picture: &Picture) -> Grid {
    let heads = std::iter::once(picture.along.clone()).chain(picture.lines.iter().map(|line| line.name.clone()));
    let row = |(place, at): (usize, &f64)| {
        let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), exact);
        let values = picture.lines.iter().map(|line| value(line.values.get(place).copied().flatten()));
        std::iter::once(exact(*at)).chain(values).collect()
    };
    Grid { columns: heads.map(Column::figures).collect(), rows: picture.at.iter().enumerate().map(row).collect() }
}

/// The lines as an SVG with equidistant parameter values; empty without values to draw.
pub(crate) fn drawing(picture: &Picture, id: &str) -> String {
    let values = || picture.lines.iter().flat_map(|line| line.values.iter().copied().flatten());
    let (most, least) = (values().fold(0.0, f64::max), values().fold(0.0, f64::min));
    if picture.at.len() < 2 || most <= least || !(most - least).is_finite() {
        return String::new();
    }
    let steps = (picture.at.len() - 1) as f64;
    let x = |place: usize| LEFT + (WIDTH - LEFT - RIGHT) * place as f64 / steps;
    let y = |value: f64| TOP + (HEIGHT - TOP - BELOW) * (1.0 - (value - least) / ((most - least) * 1.02));
    let mut text = svg::begin("picture", id, (WIDTH, HEIGHT), &picture.title, &picture.note);
    svg::words(&mut text, (4.0, 14.0), "start", &picture.shows);
    svg::words(&mut text, (WIDTH - RIGHT, HEIGHT - 6.0), "end", &picture.along);
    let (bottom, right) = (y(least), WIDTH - RIGHT);
    for part in 0..=4 {
        let value = least + (most - least) * f64::from(part) / 4.0;
        let _ = write!(text, "<path class=\"grid\" d=\"M{LEFT} {:.1}H{right:.1}\"/>", y(value));
        svg::words(&mut text, (LEFT - 8.0, y(value) + 4.0), "end", &exact(value));
    }
    for (place, at) in picture.at.iter().enumerate() {
        let anchor = if place + 1 == picture.at.len() { "end" } else { "middle" };
        svg::words(&mut text, (x(place), bottom + 18.0), anchor, &exact(*at));
    }
    let _ = write!(text, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom:.1}H{right:.1}\"/>");
    for (number, line) in picture.lines.iter().enumerate() {
        let colour = number % COLOURS;
        let mut path = String::new();
        for (place, value) in line.values.iter().enumerate() {
            let Some(value) = value else {
                // A line continues after a missing value.
                path.push(' ');
                continue;
            };
            let to = if path.is_empty() || path.ends_with(' ') { "M" } else { "L" };
            let _ = write!(path, "{to}{:.1} {:.1}", x(place), y(*value));
        }
        let _ = write!(text, "<path class=\"line-{colour}\" d=\"{}\"/>", path.trim());
        for (place, value) in line.values.iter().enumerate() {
            let (Some(value), Some(at)) = (value, picture.at.get(place)) else { continue };
            let words = svg::escaped(&format!("{}, {}: {}", line.name, exact(*at), exact(*value)));
            let _ = write!(
                text,
                "<circle class=\"line-{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{words}</title></circle>",
                x(place),
                y(*value)
            );
        }
    }
    text + "</svg>"
}

/// The key: the colour and the name of each line.
pub(crate) fn key(picture: &Picture) -> Vec<(usize, &str)> {
    picture.lines.iter().enumerate().map(|(number, line)| (number % COLOURS, line.name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::picture;

    #[test]
    fn a_picture_is_rendered_as_a_table() {
        let expected = "\
Misses: misses a page
wc_buffers  ours  <theirs>
──────────────────────────
         1     1         8
         2   1.5         -
         4     2         -
a note of a test";
        assert_eq!(in_words(&picture(), Some(80)), expected);
    }

    #[test]
    fn every_value_is_a_dot_and_missing_values_are_left_out() {
        let svg = drawing(&picture(), "a");
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(svg.contains("&lt;theirs&gt;") && !svg.contains("<theirs>"));
        assert_eq!(key(&picture()), [(0, "ours"), (1, "<theirs>")]);
    }

    #[test]
    fn an_empty_picture_is_not_drawn() {
        let nothing = Picture { lines: vec![], ..picture() };
        assert_eq!(drawing(&nothing, "a"), "");
        assert_eq!(drawing(&Picture { at: vec![1.0], ..picture() }, "a"), "");
    }
}
