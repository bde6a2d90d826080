//! The effects of changed parameters on one answer, as a picture: a bar per parameter, the widest first.

use crate::figures;
use crate::svg::{begin, words};
use lanemark_record::Sensitivity;
use std::fmt::Write as _;

/// Size of the picture in its own units.
const WIDTH: f64 = 720.0;
const BAR: f64 = 24.0;
/// Room for the names of parameters at the left, and for labels on either side of the bars.
const NAMES: f64 = 250.0;
const LABELS: f64 = 62.0;

/// The effects on one answer as an SVG; empty without effects. `id` has letters, digits and `-` only.
pub(crate) fn drawing(id: &str, of: &str, effects: &[&Sensitivity]) -> String {
    let mut bars: Vec<(&str, f64, f64)> = Vec::new();
    for effect in effects {
        let percent = effect.change_percent;
        match bars.iter_mut().find(|(key, ..)| *key == effect.key) {
            None => bars.push((&effect.key, percent.min(0.0), percent.max(0.0))),
            Some((_, low, high)) => (*low, *high) = (low.min(percent), high.max(percent)),
        }
    }
    if bars.is_empty() {
        return String::new();
    }
    bars.sort_by(|one, other| (other.2 - other.1).total_cmp(&(one.2 - one.1)));
    let low = bars.iter().map(|bar| bar.1).fold(0.0, f64::min);
    let high = bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
    let room = WIDTH - NAMES - 2.0 * LABELS;
    let x = |percent: f64| NAMES + LABELS + room * if high > low { (percent - low) / (high - low) } else { 0.5 };
    let height = BAR * bars.len() as f64 + 8.0;
    let desc = "change of the figure by twice and by half the value of each parameter, the widest first";
    let mut svg = begin("tornado", id, (WIDTH, height), of, desc);
    for (nth, (key, least, most)) in bars.iter().enumerate() {
        let y = BAR * nth as f64 + 4.0;
        words(&mut svg, (NAMES - 8.0, y + 14.0), "end", key);
        for (percent, anchor, beside, class) in [(*least, "end", -5.0, "less"), (*most, "start", 5.0, "more")] {
            if percent == 0.0 {
                continue;
            }
            let (from, to) = (x(percent.min(0.0)), x(percent.max(0.0)));
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                (to - from).max(1.0),
                BAR - 6.0
            );
            words(&mut svg, (x(percent) + beside, y + 14.0), anchor, &figures::difference(percent));
        }
    }
    let _ = write!(svg, "<path d=\"M{0:.1} 0V{height:.1}\"/>", x(0.0));
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(key: &str, change_percent: f64) -> Sensitivity {
        let (value, changed_to) = (1.0, 2.0);
        Sensitivity { key: key.to_owned(), value, changed_to, change_percent, formula_change_percent: None }
    }

    #[test]
    fn a_parameter_has_one_row_with_a_bar_on_each_side_and_the_widest_is_first() {
        let effects = [effect("dma.tags", 5.0), effect("link.<x>", 80.0), effect("link.<x>", -40.0)];
        let svg = drawing("t", "an answer", &effects.iter().collect::<Vec<_>>());
        assert_eq!((svg.matches("class=\"more\"").count(), svg.matches("class=\"less\"").count()), (2, 1));
        assert!(svg.find("link.&lt;x&gt;").unwrap() < svg.find("dma.tags").unwrap(), "{svg}");
        assert!(svg.contains("+80.0 %") && svg.contains("-40.0 %"));
        assert_eq!(drawing("t", "an answer", &[]), "");
    }
}
