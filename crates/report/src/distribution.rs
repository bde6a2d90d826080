//! The samples of the methods of a panel as distributions, one above the other.

use crate::figures;
use crate::panel::Panel;
use crate::svg::{begin, escaped, words};
use lanemark_record::Summary;
use std::fmt::Write as _;

/// Smallest number of samples that are drawn: with fewer, the figures say as much.
const LEAST: usize = 20;
/// Largest number of methods that are drawn, the best first.
const METHODS: usize = 12;
/// Size of the picture in its own units.
const WIDTH: f64 = 720.0;
const ROW: f64 = 34.0;
/// Room for the names of methods at the left, and for the scale below.
const NAMES: f64 = 230.0;
const BELOW: f64 = 22.0;
/// Number of bars of a row.
const BINS: usize = 80;

/// A picture of the samples of a panel, with its description; `None` if no method has enough samples.
pub(crate) fn distributions(panel: &Panel, id: &str) -> Option<(String, String)> {
    let rows: Vec<(String, &[f64], f64)> = (panel.lines.iter())
        .filter_map(|line| {
            let answer = line.largest().answer;
            let samples: &[f64] = &answer.samples_ns;
            let is_drawn = samples.len() >= LEAST && samples.iter().all(|ns| ns.is_finite() && *ns > 0.0);
            let median = Summary::of(samples).filter(|_| is_drawn)?.median;
            Some((format!("{}, {}", line.name, figures::size(answer.size_bytes)), samples, median))
        })
        .take(METHODS)
        .collect();
    let all = || rows.iter().flat_map(|row| row.1.iter().copied());
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    if rows.is_empty() || most <= least {
        return None;
    }
    let in_words = format!(
        "samples of {}, nanoseconds per iteration on a logarithmic scale; the line is the median",
        figures::counted(rows.len(), "method")
    );
    // Samples of a method may be a thousand times those of another one.
    let place = |ns: f64| (ns / least).ln() / (most / least).ln();
    let x = |ns: f64| NAMES + (WIDTH - NAMES - 8.0) * place(ns);
    let height = ROW * rows.len() as f64 + BELOW;
    let mut svg = begin("distribution", id, (WIDTH, height), &panel.title(), &in_words);
    for (nth, (name, samples, median)) in rows.iter().enumerate() {
        let base = ROW * (nth + 1) as f64;
        let mut bins = [0_usize; BINS];
        for ns in *samples {
            bins[((place(*ns) * BINS as f64) as usize).min(BINS - 1)] += 1;
        }
        let fullest = bins.iter().copied().max().unwrap_or(1).max(1);
        let step = (WIDTH - NAMES - 8.0) / BINS as f64;
        let _ = write!(
            svg,
            "<g><title>{}: {} samples, median {}</title>",
            escaped(name),
            samples.len(),
            figures::time(*median)
        );
        words(&mut svg, (NAMES - 8.0, base - 4.0), "end", name);
        for (bin, count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (from, tall) = (NAMES + step * bin as f64, (ROW - 8.0) * *count as f64 / fullest as f64);
            let (y, tall) = (base - tall.max(1.0), tall.max(1.0));
            let _ = write!(svg, "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{step:.1}\" height=\"{tall:.1}\"/>");
        }
        let _ = write!(svg, "<path class=\"median\" d=\"M{:.1} {:.1}V{base:.1}\"/>", x(*median), base - ROW + 4.0);
        let _ = write!(svg, "<path d=\"M{NAMES} {base:.1}H{:.1}\"/></g>", WIDTH - 8.0);
    }
    words(&mut svg, (NAMES, height - 6.0), "start", &figures::time(least));
    words(&mut svg, (WIDTH - 8.0, height - 6.0), "end", &figures::time(most));
    Some((in_words, svg + "</svg>"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_sample_is_in_a_bar_and_too_few_samples_are_not_drawn() {
        let mut record = fixture::record();
        record.answers[0].samples_ns = (0..LEAST - 1).map(|sample| 10.0 + sample as f64).collect();
        let drawn = |record: &lanemark_record::Record| {
            Panel::of(record).iter().filter_map(|panel| distributions(panel, "d")).collect::<Vec<_>>()
        };
        assert_eq!(drawn(&record).len(), 0);
        for answer in &mut record.answers {
            answer.samples_ns = (0..LEAST).map(|sample| 10.0 * (sample as f64).exp2()).collect();
        }
        let pictures = drawn(&record);
        assert!(!pictures.is_empty());
        for (in_words, svg) in pictures {
            let rows = svg.matches("<g>").count();
            assert_eq!(svg.matches("<rect").count(), LEAST * rows, "each sample is in a bar of its own");
            assert_eq!(svg.matches("class=\"median\"").count(), rows);
            assert!(in_words.starts_with("samples of ") && svg.contains("10.0 ns"), "{svg}");
        }
    }

    #[test]
    fn equal_samples_have_no_picture() {
        let mut record = fixture::record();
        for answer in &mut record.answers {
            answer.samples_ns = vec![10.0; LEAST];
        }
        assert!(Panel::of(&record).iter().all(|panel| distributions(panel, "d").is_none()));
    }
}
