//! Plot of every bandwidth of a record against size, as a self-contained SVG file.
//!
//! Both axes are logarithmic. A solid line is a method, a dashed line a limit. The colours are those of Okabe and Ito,
//! which remain distinct with colour vision deficiency. The style is included, for light and dark backgrounds; there is
//! no script.

use crate::figures;
use crate::panel::{Line, Panel};
use crate::svg::{begin, words};
use lanemark_record::Record;
use std::fmt::Write as _;

/// Size of the drawing in its own units.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
/// Margins for ticks (left, below), the title (above) and the names of the lines (right).
const LEFT: f64 = 78.0;
const RIGHT: f64 = 240.0;
const ABOVE: f64 = 40.0;
const BELOW: f64 = 44.0;
/// Smallest distance between the names of two lines.
const NAME_HEIGHT: f64 = 16.0;
/// Largest number of distinguishable lines.
const MOST_LINES: usize = 8;
/// Colours of Okabe and Ito without yellow and black.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

const STYLE: &str = "<style>text{font:13px system-ui,sans-serif;fill:#222}.title{font-size:16px;font-weight:600}\
.grid{stroke:#8886;stroke-width:1}.limit{stroke:#777;stroke-dasharray:7 5;stroke-width:1.5;fill:none}\
.line{fill:none;stroke-width:2.2}.background{fill:#fff}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.background{fill:#161616}}</style>";

/// A named series of (bytes, bytes per second).
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    is_limit: bool,
}

/// Draws the bandwidths of `record` as an SVG document; `None` without a bandwidth of two sizes.
///
/// At most eight methods are drawn: of more, the fastest and the slowest of each question. A limit common to several
/// methods is drawn once.
#[must_use]
pub fn bandwidth_plot(record: &Record) -> Option<String> {
    let panels = Panel::of(record);
    let rates: Vec<&Panel> = panels.iter().filter(|panel| panel.is_rate() && !panel.is_loaded()).collect();
    let is_crowded = rates.iter().map(|panel| panel.lines.len()).sum::<usize>() > MOST_LINES;
    let mut methods: Vec<Series> = Vec::new();
    for panel in &rates {
        let mut drawn: Vec<Series> = panel.lines.iter().filter_map(|line| method(&rates, panel, line)).collect();
        // The lines of a panel are sorted, the fastest first.
        if is_crowded && drawn.len() > 2 {
            drawn.drain(1..drawn.len() - 1);
        }
        methods.append(&mut drawn);
    }
    methods.sort_by(|one, other| last_rate(other).total_cmp(&last_rate(one)));
    methods.truncate(MOST_LINES);
    let mut limits: Vec<Series> = Vec::new();
    for line in rates.iter().flat_map(|panel| &panel.lines) {
        let points: Vec<(f64, f64)> = line
            .points
            .iter()
            .filter_map(|point| Some((point.answer.size_bytes as f64, point.answer.ceiling.rate_bytes_per_s?)))
            .collect();
        let Some(&(_, rate)) = points.last() else { continue };
        let name = format!("limit {}", figures::rate(rate));
        match limits.iter_mut().find(|limit| limit.name == name) {
            Some(known) if known.points.len() >= points.len() => {}
            Some(known) => known.points = points,
            None => limits.push(Series { name, points, is_limit: true }),
        }
    }
    let drawn: Vec<&Series> = methods.iter().chain(&limits).filter(|series| series.points.len() > 1).collect();
    if !drawn.iter().any(|series| !series.is_limit) {
        return None;
    }
    let targets: Vec<&str> = record.targets.iter().map(|target| target.name.as_str()).collect();
    Some(drawing(&targets.join(", "), &drawn))
}

/// The line of a method. Its name contains the target if there are several, and load or store if the method does not
/// imply it.
fn method(all: &[&Panel], panel: &Panel, line: &Line) -> Option<Series> {
    let is_one_target = all.iter().all(|other| other.target == panel.target);
    let verb = match panel.question {
        "mmio_write_bandwidth" => "stores, ",
        "mmio_read_bandwidth" | "streaming_load_bandwidth" => "loads, ",
        _ => "",
    };
    let target = if is_one_target { String::new() } else { format!("{}: ", panel.target) };
    let points: Vec<(f64, f64)> = line
        .points
        .iter()
        .filter_map(|point| Some((point.answer.size_bytes as f64, point.value.filter(|rate| *rate > 0.0)?)))
        .collect();
    (!points.is_empty()).then(|| Series { name: format!("{target}{verb}{}", line.name), points, is_limit: false })
}

fn last_rate(series: &Series) -> f64 {
    series.points.last().map_or(0.0, |(_, rate)| *rate)
}

fn drawing(title: &str, series: &[&Series]) -> String {
    let all = || series.iter().flat_map(|series| &series.points);
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        all().map(of).fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)))
    };
    let ((first, last), (slowest, fastest)) = (bounds(|point| point.0), bounds(|point| point.1));
    let (bottom, top) = (slowest.log10().floor(), fastest.log10().ceil());
    let x = |bytes: f64| LEFT + (WIDTH - LEFT - RIGHT) * (bytes / first).log2() / (last / first).log2().max(1.0);
    let y = |rate: f64| {
        let share = (rate.log10() - bottom) / (top - bottom).max(1.0);
        HEIGHT - BELOW - (HEIGHT - ABOVE - BELOW) * share
    };
    let desc =
        "Bandwidth in bytes per second against transfer size in bytes, both logarithmic; dashed lines are limits.";
    let mut svg = begin("plot", "bandwidth", (WIDTH, HEIGHT), title, desc).replacen(
        "<svg ",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" ",
        1,
    );
    svg += STYLE;
    let _ = write!(svg, "<rect class=\"background\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/><g class=\"title\">");
    words(&mut svg, (LEFT, 24.0), "start", &format!("Bandwidth by size: {title}"));
    svg += "</g>";
    for power in bottom as i32..=top as i32 {
        let rate = 10_f64.powi(power);
        let _ = write!(svg, "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{1:.1}\"/>", y(rate), WIDTH - RIGHT);
        words(&mut svg, (LEFT - 8.0, y(rate) + 4.0), "end", &figures::rate(rate));
    }
    let mut bytes = first;
    while bytes <= last {
        words(&mut svg, (x(bytes), HEIGHT - BELOW + 20.0), "middle", &figures::size(bytes as u64));
        bytes *= 16.0;
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    words(&mut svg, (middle, HEIGHT - 6.0), "middle", "size of one transfer");
    let mut names: Vec<(f64, String, &str)> = Vec::new();
    let mut colours = COLOURS.iter().cycle();
    for series in series {
        let points: Vec<String> =
            series.points.iter().map(|(bytes, rate)| format!("{:.1} {:.1}", x(*bytes), y(*rate))).collect();
        let path = points.join("L");
        let colour = if series.is_limit { "#777" } else { colours.next().copied().unwrap_or("#222") };
        let _ = if series.is_limit {
            write!(svg, "<path class=\"limit\" d=\"M{path}\"/>")
        } else {
            write!(svg, "<path class=\"line\" stroke=\"{colour}\" d=\"M{path}\"/>")
        };
        let text = if series.is_limit {
            series.name.clone()
        } else {
            format!("{} {}", figures::rate(last_rate(series)), series.name)
        };
        names.push((y(last_rate(series)), text, colour));
    }
    names.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = ABOVE;
    for (at, name, colour) in names {
        let at = at.max(free);
        free = at + NAME_HEIGHT;
        let _ =
            write!(svg, "<path d=\"M{:.1} {at:.1}h12\" stroke=\"{colour}\" stroke-width=\"3\"/>", WIDTH - RIGHT + 8.0);
        words(&mut svg, (WIDTH - RIGHT + 26.0, at + 4.0), "start", &name);
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::record;

    #[test]
    fn every_method_and_each_limit_once_is_drawn() {
        let record = record();
        let svg = bandwidth_plot(&record).expect("the fixture has bandwidths");
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
        let lines = svg.matches("class=\"line\"").count();
        assert!(lines >= 1 && svg.contains("class=\"limit\""), "{lines} lines");
        let labels: Vec<&str> = svg.match_indices(">limit ").map(|(at, _)| &svg[at..at + 14]).collect();
        assert!(labels.windows(2).all(|pair| pair[0] != pair[1]), "{labels:?}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_record_without_bandwidths_has_no_plot() {
        let mut record = record();
        record.answers.retain(|answer| answer.quantity != lanemark_record::Quantity::Bandwidth);
        assert_eq!(bandwidth_plot(&record), None);
    }
}
