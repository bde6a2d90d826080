//! Frame of a picture: title, axes and scales.

use crate::svg::{begin, words};
use std::fmt::Write as _;

/// Size of a picture in its own units.
pub(super) const WIDTH: f64 = 860.0;
pub(super) const HEIGHT: f64 = 420.0;
/// Margins for ticks (left, below), the title (above) and the names of lines (right).
pub(super) const LEFT: f64 = 96.0;
pub(super) const RIGHT: f64 = 250.0;
pub(super) const ABOVE: f64 = 40.0;
pub(super) const BELOW: f64 = 50.0;
/// Colours of Okabe and Ito without yellow and black.
pub(super) const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

const STYLE: &str = "<style>text{font:13px system-ui,sans-serif;fill:#222}.title{font-size:16px;font-weight:600}\
.grid{stroke:#8886;stroke-width:1}.line{fill:none;stroke-width:2.2}.background{fill:#fff}.dark{fill:#fff}.light{fill:#222}\
@media(prefers-color-scheme:dark){text{fill:#ddd}.background{fill:#161616}.dark{fill:#fff}.light{fill:#222}}</style>";

/// Begin of a picture, with its title.
pub(super) fn start(id: &str, height: f64, title: &str, desc: &str) -> String {
    let svg = begin("plot", id, (WIDTH, height), title, desc);
    let mut svg = svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    svg += STYLE;
    let _ = write!(svg, "<rect class=\"background\" width=\"{WIDTH}\" height=\"{height}\"/><g class=\"title\">");
    let most = 100;
    let shown: String = title.chars().take(most).collect();
    words(&mut svg, (16.0, 24.0), "start", &if title.chars().count() > most { format!("{shown}...") } else { shown });
    svg + "</g>"
}

/// A scale from values to positions. Logarithmic, if all values are above 0 and differ by more than a factor of 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    least: f64,
    most: f64,
    is_logarithmic: bool,
    from: f64,
    to: f64,
}

impl Scale {
    pub(super) fn of(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let (least, most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
        Scale { least, most, is_logarithmic: least > 0.0 && most > least * 8.0, from, to }
    }

    /// The same from 0 on, if it is linear and has no negative values.
    pub(super) fn with_zero(self) -> Scale {
        if self.is_logarithmic || self.least < 0.0 { self } else { Scale { least: 0.0, ..self } }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let place = if self.is_logarithmic { value.ln() } else { value };
        let (low, high) = if self.is_logarithmic { (self.least.ln(), self.most.ln()) } else { (self.least, self.most) };
        let share = if high > low { (place - low) / (high - low) } else { 0.5 };
        self.from + (self.to - self.from) * share
    }

    /// Values of lines across the picture, in ascending order: powers of ten, or round steps.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let powers = self.least.log10().ceil() as i32..=self.most.log10().floor() as i32;
            let ticks: Vec<f64> = powers.map(|power| 10_f64.powi(power)).collect();
            return if ticks.len() > 1 { ticks } else { vec![self.least, self.most] };
        }
        let span = self.most - self.least;
        if span <= 0.0 {
            return vec![self.least];
        }
        let rough = span / 5.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.least / step).ceil() as i64;
        let ticks = (0..8).map(|nth| (first + nth) as f64 * step);
        ticks.take_while(|tick| *tick <= self.most + step * 1e-9).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_logarithmic_over_more_than_a_factor_of_eight() {
        let scale = Scale::of([10.0, 1000.0].into_iter(), 0.0, 100.0);
        assert!((scale.at(100.0) - 50.0).abs() < 1e-9);
        assert_eq!(scale.ticks(), [10.0, 100.0, 1000.0]);
        let scale = Scale::of([10.0, 20.0].into_iter(), 0.0, 100.0);
        assert_eq!(scale.at(15.0), 50.0);
        assert_eq!(scale.with_zero().ticks(), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(Scale::of([5.0].into_iter(), 0.0, 100.0).at(5.0), 50.0);
    }
}
