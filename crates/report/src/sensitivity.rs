//! What a changed parameter of the platform would bring, for the answers that were asked for it.

use crate::figures;
use crate::grid::{Column, Grid};
use crate::panel::{Line, Panel, Point};
use lanemark_machine::Cause;
use lanemark_record::{Answer, Quantity, Sensitivity};

/// Effects below this are summed up in one line, in percent.
const SMALL_PERCENT: f64 = 1.0;
/// Largest number of parameters shown in one direction.
const MOST: usize = 8;

/// The sensitivities of an answer, one line each: what improves the figure, then what makes it worse, the largest effect
/// first; empty if they were not asked.
pub(crate) fn lines(panel: &Panel, width: Option<u16>) -> Vec<String> {
    let points = panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, *point)));
    points
        .filter(|(_, point)| !point.answer.sensitivities.is_empty())
        .flat_map(|(line, point)| of(line, point, width))
        .collect()
}

fn of(line: &Line, point: Point, width: Option<u16>) -> Vec<String> {
    let answer = point.answer;
    let bound = point.bound_in_words().map(|bound| format!(", bound by {bound}")).unwrap_or_default();
    let mut lines = vec![format!("what if: {}, {}{bound}", line.name, figures::size(answer.size_bytes))];
    let is_rate = answer.quantity == Quantity::Bandwidth;
    let what = if is_rate { "rate" } else { "latency" };
    let columns = vec![
        Column::words("parameter"),
        Column::words("changed"),
        Column::figures(what),
        Column::figures("by formula"),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    let gain = |one: &Sensitivity| if is_rate { one.change_percent } else { -one.change_percent };
    let better = answer.sensitivities.iter().filter(|one| gain(one) >= SMALL_PERCENT);
    let worse = answer.sensitivities.iter().rev().filter(|one| gain(one) <= -SMALL_PERCENT);
    let shown: Vec<&Sensitivity> = better.take(MOST).chain(worse.take(MOST)).collect();
    for one in &shown {
        grid.rows.push(vec![
            one.key.clone(),
            format!("{} to {}", plain(one.value), plain(one.changed_to)),
            figures::difference(one.change_percent),
            one.formula_change_percent.map(figures::difference).unwrap_or_default(),
        ]);
    }
    grid.drop_empty_columns();
    lines.extend(grid.lines(width));
    let others = answer.sensitivities.len() - shown.len();
    lines.push(match shown.len() {
        0 => format!("none of {others} changes of a parameter to twice or half its value has an effect of 1 %"),
        _ => format!("{others} other changes of a parameter to twice or half its value have smaller effects"),
    });
    lines.extend(disagreement(answer, gain));
    lines
}

/// A value of a parameter, with at most four decimals.
fn plain(value: f64) -> String {
    ((value * 1e4).round() / 1e4).to_string()
}

/// A sentence, if the parameter with the largest effect does not act on the longest share of the critical path.
fn disagreement(answer: &Answer, gain: impl Fn(&Sensitivity) -> f64) -> Option<String> {
    let best = answer.sensitivities.iter().max_by(|one, other| gain(one).total_cmp(&gain(other)))?;
    let cause = Cause::named(&answer.waits.first()?.cause)?;
    if gain(best) < SMALL_PERCENT || cause.is_changed_by(&best.key) {
        return None;
    }
    Some(format!(
        "disagreement: the critical path names {}, and the largest effect has {}",
        cause.name().replace('_', " "),
        best.key
    ))
}
