//! Effects of single parameters on a figure, largest first.

use super::frame::{ABOVE, COLOURS, WIDTH, start};
use super::selection::{Selected, Selection, SweepPictureError, text};
use crate::svg::words;
use lanemark_record::{Cell, SweepTable};
use std::fmt::Write as _;

/// The effect of one change of one parameter on a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The parameter.
    pub key: String,
    /// The change: a factor such as `2x`, or a value.
    pub change: String,
    /// Change of the figure, in percent.
    pub effect_percent: f64,
}

/// Draws the smallest and the largest effect of each parameter as an SVG file, the widest span first.
#[must_use]
pub fn tornado(title: &str, effects: &[Sensitivity]) -> String {
    const BAR: f64 = 26.0;
    const NAMES: f64 = 270.0;
    const LABELS: f64 = 110.0;
    let mut bars: Vec<(&str, &Sensitivity, &Sensitivity)> = Vec::new();
    for effect in effects {
        match bars.iter_mut().find(|(key, ..)| *key == effect.key) {
            None => bars.push((&effect.key, effect, effect)),
            Some((_, least, most)) => {
                if effect.effect_percent < least.effect_percent {
                    *least = effect;
                }
                if effect.effect_percent > most.effect_percent {
                    *most = effect;
                }
            }
        }
    }
    let span = |bar: &(&str, &Sensitivity, &Sensitivity)| bar.2.effect_percent.max(0.0) - bar.1.effect_percent.min(0.0);
    bars.sort_by(|one, other| span(other).total_cmp(&span(one)).then(one.0.cmp(other.0)));
    let height = ABOVE + BAR * bars.len() as f64 + 24.0;
    let ends = || effects.iter().map(|effect| effect.effect_percent);
    let (least, most) = (ends().fold(0.0, f64::min), ends().fold(0.0, f64::max));
    let width = WIDTH - NAMES - 2.0 * LABELS;
    let x = |percent: f64| NAMES + LABELS + width * if most > least { (percent - least) / (most - least) } else { 0.5 };
    let mut svg = start("sweep-tornado", height, title, "Effect of each parameter on the figure, in percent.");
    for (nth, (key, low, high)) in bars.iter().enumerate() {
        let y = ABOVE + BAR * nth as f64;
        words(&mut svg, (NAMES - 8.0, y + 15.0), "end", key);
        for (effect, colour, anchor, beside) in [(low, COLOURS[1], "end", -6.0), (high, COLOURS[0], "start", 6.0)] {
            let percent = effect.effect_percent;
            let is_on_its_side = if anchor == "end" { percent < 0.0 } else { percent >= 0.0 };
            if !is_on_its_side {
                continue;
            }
            let (from, to) = (x(percent.min(0.0)), x(percent.max(0.0)));
            let _ = write!(
                svg,
                "<rect class=\"bar\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                (to - from).max(1.0),
                BAR - 6.0
            );
            let label = format!("{} {percent:+.1} %", effect.change);
            words(&mut svg, (x(percent) + beside, y + 15.0), anchor, &label);
        }
    }
    let _ = write!(svg, "<path class=\"grid\" d=\"M{0:.1} {ABOVE}V{1:.1}\"/>", x(0.0), height - 16.0);
    svg + "</svg>\n"
}

/// The effects of single columns in a sweep: every point that differs from the middle one in one column. The middle
/// point has the middle value of each column that varies. Returns its description and the effects.
///
/// # Errors
/// [`SweepPictureError`] if there is no such point, or platforms, questions or methods vary.
pub fn sensitivities(
    table: &SweepTable,
    selection: &Selection,
) -> Result<(String, Vec<Sensitivity>), SweepPictureError> {
    let selected = Selected::of(table, selection)?;
    let varying = selected.varying();
    let numbers: Vec<&str> =
        varying.iter().copied().filter(|name| !matches!(*name, "platform" | "question" | "by" | "method")).collect();
    selected.check_fixed("tornado", &numbers)?;
    let middle: Vec<Cell<'_>> = numbers
        .iter()
        .map(|name| {
            let values = selected.values(name);
            values[values.len() / 2]
        })
        .collect();
    let differing = |row: usize| -> Vec<usize> {
        (0..numbers.len()).filter(|nth| table.cell(numbers[*nth], row) != middle[*nth]).collect()
    };
    let no_middle = || SweepPictureError::NoPoint { column: selected.figure.clone() };
    let base = selected.rows.iter().copied().find(|row| differing(*row).is_empty()).ok_or_else(no_middle)?;
    let of_base = selected.figure_of(base);
    let mut effects = Vec::new();
    for row in &selected.rows {
        let [nth] = differing(*row)[..] else { continue };
        let (cell, from) = (table.cell(numbers[nth], *row), middle[nth]);
        let change = match (cell.number(), from.number()) {
            (Some(to), Some(from)) if from > 0.0 => format!("{}x", (to / from * 1000.0).round() / 1000.0),
            _ => text(cell),
        };
        let effect_percent = 100.0 * (selected.figure_of(*row) / of_base - 1.0);
        effects.push(Sensitivity { key: numbers[nth].to_owned(), change, effect_percent });
    }
    let at: Vec<String> = numbers.iter().zip(&middle).map(|(name, cell)| format!("{name} {}", text(*cell))).collect();
    let title = format!("effect on {} from {}: {}", selected.figure, at.join(", "), selected.title());
    Ok((title, effects))
}
