//! What a changed parameter of the platform would bring, for the answers that were asked for it.

use crate::bottleneck::acts_on_bottleneck;
use crate::figures;
use crate::grid::{Column, Grid};
use crate::occupation;
use crate::panel::{Line, Panel, Point};
use crate::tornado;
use lanemark_machine::Cause;
use lanemark_record::{Answer, Quantity, Sensitivity};

/// Effects below this are summed up in one line, in percent.
const SMALL_PERCENT: f64 = 1.0;
/// Largest number of parameters shown in one direction.
const MOST: usize = 8;

/// The effect of each changed parameter on one answer, with the use of its resources.
pub(crate) struct WhatIf {
    /// Method, size and bottleneck.
    pub(crate) of: String,
    /// Use and share of the critical path of each resource; without rows if it was not observed.
    pub(crate) resources: Grid,
    /// Effects of the parameters: what improves the figure, then what makes it worse, the largest effect first.
    pub(crate) effects: Grid,
    /// The effects as a picture; empty without effects.
    pub(crate) svg: String,
    /// Number of the other parameters, and disagreements.
    pub(crate) notes: Vec<String>,
}

impl WhatIf {
    /// The tables that have rows.
    pub(crate) fn grids(&self) -> Vec<&Grid> {
        [&self.resources, &self.effects].into_iter().filter(|grid| !grid.rows.is_empty()).collect()
    }
}

/// One of these for each answer that was asked for its sensitivities. `id` begins the names of the pictures.
pub(crate) fn what_ifs(panel: &Panel, id: &str) -> Vec<WhatIf> {
    let points = panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, *point)));
    let asked = points.filter(|(_, point)| !point.answer.sensitivities.is_empty()).enumerate();
    asked.map(|(nth, (line, point))| of(line, point, &format!("{id}-{nth}"))).collect()
}

/// The same as text.
pub(crate) fn lines(panel: &Panel, width: Option<u16>) -> Vec<String> {
    let of = |what_if: WhatIf| {
        let mut lines = vec![format!("what if: {}", what_if.of)];
        what_if.grids().iter().for_each(|grid| lines.extend(grid.lines(width)));
        lines.extend(what_if.notes);
        lines
    };
    what_ifs(panel, "").into_iter().flat_map(of).collect()
}

fn of(line: &Line, point: Point, id: &str) -> WhatIf {
    let answer = point.answer;
    let bound = point.bound_in_words().map(|bound| format!(", bound by {bound}")).unwrap_or_default();
    let is_rate = answer.quantity == Quantity::Bandwidth;
    let what = if is_rate { "rate" } else { "latency" };
    let columns = vec![
        Column::words("parameter"),
        Column::words("changed"),
        Column::figures(what),
        Column::figures("by formula"),
    ];
    let mut effects = Grid { columns, rows: Vec::new() };
    let gain = |one: &Sensitivity| if is_rate { one.change_percent } else { -one.change_percent };
    let better = answer.sensitivities.iter().filter(|one| gain(one) >= SMALL_PERCENT);
    let worse = answer.sensitivities.iter().rev().filter(|one| gain(one) <= -SMALL_PERCENT);
    let shown: Vec<&Sensitivity> = better.take(MOST).chain(worse.take(MOST)).collect();
    for one in &shown {
        effects.rows.push(vec![
            one.key.clone(),
            format!("{} to {}", plain(one.value), plain(one.changed_to)),
            figures::difference(one.change_percent),
            one.formula_change_percent.map(figures::difference).unwrap_or_default(),
        ]);
    }
    effects.drop_empty_columns();
    let others = answer.sensitivities.len() - shown.len();
    let others = match shown.len() {
        0 => format!("none of {others} changes of a parameter to twice or half its value has an effect of 1 %"),
        _ => format!("{others} other changes of a parameter to twice or half its value have smaller effects"),
    };
    let (resources, left_out) = occupation::grid(answer);
    let disagreements = disagreement(answer, gain).into_iter().chain(occupation::disagreement(answer));
    let notes = left_out.into_iter().chain([others]).chain(disagreements);
    let of = format!("{}, {}{bound}", line.name, figures::size(answer.size_bytes));
    WhatIf { svg: tornado::drawing(id, &of, &shown), of, resources, effects, notes: notes.collect() }
}

/// A value of a parameter, with at most four decimals.
fn plain(value: f64) -> String {
    ((value * 1e4).round() / 1e4).to_string()
}

/// A sentence, if the parameter with the largest effect does not act on the longest share of the critical path.
fn disagreement(answer: &Answer, gain: impl Fn(&Sensitivity) -> f64) -> Option<String> {
    let best = answer.sensitivities.iter().max_by(|one, other| gain(one).total_cmp(&gain(other)))?;
    let cause = Cause::named(&answer.waits.first()?.cause)?;
    if gain(best) < SMALL_PERCENT || acts_on_bottleneck(answer, &best.key) == Some(true) {
        return None;
    }
    Some(format!(
        "disagreement: the critical path names {}, and the largest effect has {}",
        cause.name().replace('_', " "),
        best.key
    ))
}
