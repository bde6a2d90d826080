//! Latency against load: the curve of a `loaded_latency` panel.

use crate::figures;
use crate::panel::Panel;
use crate::svg;
use lanemark_record::Answer;
use std::fmt::Write as _;

/// Size of the picture in its own units, and the margins for labels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 22.0;
const BELOW: f64 = 40.0;

/// The curve of one size, from no load to the heaviest.
pub(crate) struct Curve {
    size_bytes: u64,
    points: Vec<Point>,
    /// Unloaded latency by formula.
    unloaded_ns: Option<f64>,
    /// The limit of the heaviest load.
    limit_bytes_per_s: Option<f64>,
}

/// A point of the curve: one load.
struct Point {
    rate_bytes_per_s: f64,
    median_ns: f64,
    p99_ns: f64,
    name: String,
}

impl Point {
    fn of(name: &str, answer: &Answer) -> Option<Point> {
        let (latency, rate) = (answer.latency_ns?, answer.delivered_rate_bytes_per_s?);
        let numbers = [rate.median, latency.median, latency.p99];
        let is_number = numbers.iter().all(|number| number.is_finite() && *number >= 0.0);
        let [rate_bytes_per_s, median_ns, p99_ns] = numbers;
        is_number.then(|| Point { rate_bytes_per_s, median_ns, p99_ns, name: name.to_owned() })
    }
}

impl Curve {
    /// One curve for each size with several loads.
    pub fn of(panel: &Panel) -> Vec<Curve> {
        if !panel.is_loaded() {
            return Vec::new();
        }
        let curve = |size_bytes: u64| {
            let at = || panel.lines.iter().filter_map(move |line| Some((&*line.name, line.at(size_bytes)?.answer)));
            Curve {
                size_bytes,
                points: at().filter_map(|(name, answer)| Point::of(name, answer)).collect(),
                unloaded_ns: at().find_map(|(_, answer)| answer.formula.as_ref()?.latency_ns),
                limit_bytes_per_s: at().filter_map(|(_, answer)| answer.ceiling.rate_bytes_per_s).next_back(),
            }
        };
        panel.sizes().into_iter().map(curve).filter(|curve| curve.points.len() > 1).collect()
    }

    /// The ends of the curve, without a full stop.
    pub fn in_words(&self) -> String {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return String::new() };
        let at =
            |point: &Point| format!("{} at {}", figures::time(point.median_ns), figures::rate(point.rate_bytes_per_s));
        let mut text = format!("{}: from {} to {}", figures::size(self.size_bytes), at(first), at(last));
        if let Some(limit) = self.limit_bytes_per_s.filter(|limit| *limit > 0.0) {
            let share = figures::percent(100.0 * last.rate_bytes_per_s / limit);
            text += &format!(", {share} of the limit {}", figures::rate(limit));
        }
        if let Some(unloaded) = self.unloaded_ns {
            text += &format!("; unloaded latency by formula: {}", figures::time(unloaded));
        }
        text
    }

    /// An SVG with the delivered rate to the right and the latency upwards: dots for medians, lines
    /// up to p99.
    pub fn drawing(&self, id: &str) -> String {
        let most_ns = self.points.iter().map(|point| point.p99_ns.max(point.median_ns)).fold(0.0, f64::max);
        let rates = self.points.iter().map(|point| point.rate_bytes_per_s).chain(self.limit_bytes_per_s);
        let most_rate = rates.fold(0.0, f64::max);
        if most_ns <= 0.0 || most_rate <= 0.0 || !most_rate.is_finite() {
            return String::new();
        }
        let x = |rate: f64| LEFT + (WIDTH - LEFT - RIGHT) * rate / (most_rate * 1.02);
        let y = |ns: f64| TOP + (HEIGHT - TOP - BELOW) * (1.0 - ns / (most_ns * 1.05));
        let mut text = svg::begin("loaded", id, (WIDTH, HEIGHT), "Latency over delivered rate", &self.in_words());
        let (bottom, right) = (y(0.0), WIDTH - RIGHT);
        for part in 0..=4 {
            let share = f64::from(part) / 4.0;
            let (ns, rate) = (most_ns * share, most_rate * share);
            let _ = write!(text, "<path class=\"grid\" d=\"M{LEFT} {:.1}H{right:.1}\"/>", y(ns));
            svg::words(&mut text, (LEFT - 8.0, y(ns) + 4.0), "end", &figures::time(ns));
            let anchor = if part == 4 { "end" } else { "middle" };
            svg::words(&mut text, (x(rate), bottom + 16.0), anchor, &figures::rate(rate));
        }
        svg::words(&mut text, (right, HEIGHT - 6.0), "end", "delivered rate");
        svg::words(&mut text, (4.0, 12.0), "start", "round trip: dot median, line up to p99");
        if let Some(ns) = self.unloaded_ns.filter(|ns| ns.is_finite() && *ns <= most_ns * 1.05) {
            let _ = write!(text, "<path class=\"unloaded\" d=\"M{LEFT} {:.1}H{right:.1}\"/>", y(ns));
            svg::words(&mut text, (LEFT + 6.0, y(ns) - 5.0), "start", "unloaded, by formula");
        }
        if let Some(limit) = self.limit_bytes_per_s.filter(|limit| limit.is_finite()) {
            let _ = write!(text, "<path class=\"limit\" d=\"M{:.1} {TOP}V{bottom:.1}\"/>", x(limit));
            svg::words(&mut text, (x(limit) - 6.0, TOP - 8.0), "end", &format!("limit {}", figures::rate(limit)));
        }
        let _ = write!(text, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom:.1}H{right:.1}\"/>");
        let places: Vec<String> = (self.points.iter())
            .map(|point| format!("{:.1} {:.1}", x(point.rate_bytes_per_s), y(point.median_ns)))
            .collect();
        let _ = write!(text, "<path class=\"curve-line\" d=\"M{}\"/>", places.join("L"));
        for point in &self.points {
            let (at, middle, high) = (x(point.rate_bytes_per_s), y(point.median_ns), y(point.p99_ns));
            let words = format!(
                "{}: {}, p99 {}, {}",
                point.name,
                figures::time(point.median_ns),
                figures::time(point.p99_ns),
                figures::rate(point.rate_bytes_per_s)
            );
            let _ = write!(
                text,
                "<path class=\"reach\" d=\"M{at:.1} {middle:.1}V{high:.1}\"/>\
                 <circle cx=\"{at:.1}\" cy=\"{middle:.1}\" r=\"4\"><title>{}</title></circle>",
                svg::escaped(&words)
            );
        }
        text + "</svg>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_load_is_a_dot_between_formula_and_limit() {
        let record = fixture::loaded();
        let panels = Panel::of(&record);
        let [curve] = &Curve::of(&panels[0])[..] else { panic!("one size, one curve") };
        let svg = curve.drawing("c");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("class=\"unloaded\"") && svg.contains("class=\"limit\""));
        let expected = "512 B: from 675 ns at 0.760 GB/s to 2.17 us at 60.0 GB/s, 99.0 % of the limit 60.6 GB/s; \
                        unloaded latency by formula: 675 ns";
        assert_eq!(curve.in_words().replace("760 MB/s", "0.760 GB/s"), expected);
    }

    #[test]
    fn loads_keep_their_order() {
        let mut record = fixture::loaded();
        record.answers.swap(0, 2);
        let panels = Panel::of(&record);
        assert!(panels[0].lines[0].name.ends_with("256 outstanding"), "{}", panels[0].lines[0].name);
    }

    #[test]
    fn one_load_or_invalid_figures_make_no_curve() {
        let mut record = fixture::loaded();
        for answer in record.answers.iter_mut().skip(1) {
            answer.delivered_rate_bytes_per_s.as_mut().unwrap().median = f64::NAN;
        }
        assert!(Curve::of(&Panel::of(&record)[0]).is_empty());
        assert!(Curve::of(&Panel::of(&fixture::record())[0]).is_empty(), "other questions have no curve");
    }
}
