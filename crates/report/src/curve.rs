//! The curve that reveals write-combining buffers, as words and as a picture.

use crate::figures;
use lanemark_record::{Answer, Buffers, Detail};
use std::fmt::Write as _;

/// Size of the picture in its own units.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
/// Margin for labels, at the left and below.
const LEFT: f64 = 64.0;
const BELOW: f64 = 34.0;

/// The buffer count of an answer, if it has one.
pub(crate) fn buffers(answer: &Answer) -> Option<&Buffers> {
    if let Some(Detail::Buffers(buffers)) = &answer.detail { Some(buffers) } else { None }
}

/// The count and its reason, without a full stop.
pub(crate) fn in_words(buffers: &Buffers) -> String {
    let (Some(count), Some(flush_ns)) = (buffers.count, buffers.flush_ns) else {
        return format!("buffer count unknown: {}", buffers.because);
    };
    let spread = buffers
        .flush_spread_percent
        .map_or_else(String::new, |spread| format!(", within {}", figures::percent(spread)));
    let confidence =
        buffers.confidence_percent.map_or_else(String::new, |percent| format!(" (confidence {percent:.0} %)"));
    format!(
        "{count} buffers{confidence}: {}; with more lines, each of the {} partial writes of a line costs {}{spread}",
        buffers.because,
        buffers.flushes_per_line,
        figures::time(flush_ns)
    )
}

/// An SVG with the number of open lines to the right and the time per line upwards.
pub(crate) fn drawing(buffers: &Buffers) -> String {
    let most = buffers.curve.iter().map(|point| point.line_ns_p5.max(point.line_ns_median)).fold(0.0, f64::max);
    let last = buffers.curve.iter().map(|point| point.lines).max().unwrap_or(0);
    if most <= 0.0 || !most.is_finite() || last < 2 {
        return String::new();
    }
    let x = |lines: f64| LEFT + (WIDTH - LEFT - 8.0) * lines / last as f64;
    let y = |ns: f64| 8.0 + (HEIGHT - BELOW - 8.0) * (1.0 - ns / most);
    let mut svg = format!("<svg class=\"curve\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
    let mut text = |at: (f64, f64), anchor: &str, words: &str| {
        let _ = write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{words}</text>", at.0, at.1);
    };
    text((LEFT - 8.0, y(most) + 8.0), "end", &figures::time(most));
    text((LEFT - 8.0, y(0.0)), "end", "0");
    text((x(last as f64), HEIGHT - 4.0), "end", &format!("{last} open lines"));
    if let Some(count) = buffers.count {
        let at = x(count as f64 + 0.5);
        text((at, HEIGHT - 4.0), "middle", &count.to_string());
        let _ = write!(svg, "<path class=\"step\" d=\"M{at:.1} 8V{:.1}\"/>", y(0.0));
    }
    let _ = write!(svg, "<path class=\"axis\" d=\"M{LEFT} 8V{:.1}H{:.1}\"/>", y(0.0), x(last as f64));
    for point in &buffers.curve {
        let (at, low, middle) = (x(point.lines as f64), y(point.line_ns_p5), y(point.line_ns_median));
        let words = format!("{} lines: {} a line", point.lines, figures::time(point.line_ns_p5));
        let _ = write!(
            svg,
            "<path class=\"reach\" d=\"M{at:.1} {low:.1}V{middle:.1}\"/>\
             <circle cx=\"{at:.1}\" cy=\"{low:.1}\" r=\"3\"><title>{words}</title></circle>"
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_record::CurvePoint;

    fn sixteen() -> Buffers {
        let height = |lines: u64| if lines <= 16 { 20.0 } else { 360.0 };
        let point = |lines| CurvePoint { lines, line_ns_p5: height(lines), line_ns_median: height(lines) + 1.0 };
        Buffers {
            count: Some(16),
            because: "a line takes 20 ns with 16".to_owned(),
            curves: 6,
            agreeing_curves: 6,
            other_counts: vec![],
            confidence_percent: Some(87.5),
            flushes_per_line: 8,
            flush_ns: Some(45.0),
            flush_spread_percent: Some(2.0),
            curve: (1..=40).map(point).collect(),
        }
    }

    #[test]
    fn the_drawing_has_every_point_and_a_mark_at_the_count() {
        let svg = drawing(&sixteen());
        assert_eq!(svg.matches("<circle").count(), 40);
        assert!(svg.contains("class=\"step\"") && svg.contains(">16</text>") && svg.ends_with("</svg>"));
        assert!(!drawing(&Buffers { count: None, ..sixteen() }).contains("class=\"step\""));
    }

    #[test]
    fn an_empty_curve_has_no_picture() {
        assert_eq!(drawing(&Buffers { curve: vec![], ..sixteen() }), "");
        let nan = CurvePoint { lines: 2, line_ns_p5: f64::INFINITY, line_ns_median: 1.0 };
        assert_eq!(drawing(&Buffers { curve: vec![nan; 2], ..sixteen() }), "");
    }

    #[test]
    fn a_count_and_a_missing_count_are_both_given_with_a_reason() {
        let text = in_words(&sixteen());
        assert!(
            text.starts_with("16 buffers (confidence 88 %): a line takes 20 ns")
                && text.ends_with("45.0 ns, within 2.00 %"),
            "{text}"
        );
        let none = Buffers { count: None, flush_ns: None, because: "there is no step".to_owned(), ..sixteen() };
        assert_eq!(in_words(&none), "buffer count unknown: there is no step");
    }
}
