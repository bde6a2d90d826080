//! Stall causes as bars, as shares, and with their remedies.

use crate::figures;
use crate::grid::{Column, Grid};
use crate::panel::{Line, Panel, Point, words};
use lanemark_machine::Cause;
use lanemark_record::Record;

/// Number of colours for causes; further causes reuse them and differ in name.
const CAUSE_COLOURS: usize = 10;

/// Smallest share of a bar, in percent, that has room for a name.
const NAMED_FROM_PERCENT: f64 = 18.0;

/// Stalls of one method, or of several methods with the same stalls.
pub(crate) struct WaitBar {
    pub names: Vec<String>,
    pub in_words: String,
    pub parts: Vec<WaitPart>,
}

impl WaitBar {
    pub fn all_names(&self) -> String {
        self.names.join(", ")
    }

    pub fn some_names(&self) -> String {
        match &*self.names {
            [some @ .., _, _, _] if some.len() > 1 => {
                format!("{} and {} more", self.names[..2].join(", "), self.names.len() - 2)
            }
            all => all.join(", "),
        }
    }
}

pub(crate) struct WaitPart {
    pub colour: usize,
    pub share: f64,
    pub in_words: String,
    /// The cause's name, if it fits into the bar.
    pub label: Option<String>,
}

pub(crate) struct CausePart {
    pub colour: usize,
    pub name: String,
    pub explanation: String,
    pub remedy: Option<&'static str>,
}

/// Every cause in the record, the longest first.
pub(crate) fn causes(record: &Record) -> Vec<&str> {
    let mut causes: Vec<(&str, f64)> = Vec::new();
    for wait in record.answers.iter().flat_map(|answer| &answer.waits) {
        match causes.iter_mut().find(|(cause, _)| *cause == wait.cause) {
            Some((_, share)) => *share += wait.share_percent,
            None => causes.push((&wait.cause, wait.share_percent)),
        }
    }
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    causes.into_iter().map(|(cause, _)| cause).collect()
}

pub(crate) fn wait_bar(line: &Line, causes: &[&str]) -> Option<WaitBar> {
    let answer = line.largest().answer;
    // The shares of a difference of two plans add up to more than the whole if others are negative.
    let all_percent = answer.waits.iter().map(|wait| wait.share_percent).sum::<f64>().max(100.0);
    let parts: Vec<WaitPart> = answer
        .waits
        .iter()
        .map(|wait| WaitPart {
            colour: colour(&wait.cause, causes),
            share: (100.0 * wait.share_percent / all_percent).clamp(0.0, 100.0),
            in_words: format!(
                "{} {}: {}",
                words(&wait.cause),
                figures::whole_percent(wait.share_percent),
                wait.explanation
            ),
            label: (wait.share_percent >= NAMED_FROM_PERCENT)
                .then(|| format!("{} {}", words(&wait.cause), figures::whole_percent(wait.share_percent))),
        })
        .collect();
    let in_words = parts.iter().map(|part| part.in_words.clone()).collect::<Vec<_>>().join("; ");
    (!parts.is_empty()).then(|| WaitBar { names: vec![line.name.clone()], in_words, parts })
}

pub(crate) fn colour(cause: &str, causes: &[&str]) -> usize {
    causes.iter().position(|other| *other == cause).unwrap_or(0) % CAUSE_COLOURS
}

/// The causes in a panel's bars, each once, in the order of [`causes`].
pub(crate) fn cause_parts(panel: &Panel, causes: &[&str]) -> Vec<CausePart> {
    let waits = || panel.lines.iter().flat_map(|line| &line.largest().answer.waits);
    let found = causes.iter().filter_map(|cause| waits().find(|wait| wait.cause == **cause));
    found
        .map(|wait| CausePart {
            colour: colour(&wait.cause, causes),
            name: words(&wait.cause),
            explanation: wait.explanation.clone(),
            remedy: Cause::named(&wait.cause).map(Cause::remedy),
        })
        .collect()
}

/// The share of each cause in the time of each answer.
pub(crate) fn shares(panel: &Panel, causes: &[&str]) -> Grid {
    let points = || panel.lines.iter().flat_map(|line| line.points.iter().map(move |point| (line, point)));
    let share = |point: &Point, cause: &str| {
        let wait = point.answer.waits.iter().find(|wait| wait.cause == cause);
        wait.map(|wait| figures::percent(wait.share_percent)).unwrap_or_default()
    };
    let mut grid = Grid { columns: vec![Column::words("method"), Column::figures("size")], rows: Vec::new() };
    grid.columns.extend(causes.iter().map(|cause| Column::figures(words(cause))));
    for (line, point) in points().filter(|(_, point)| !point.answer.waits.is_empty()) {
        let mut row = vec![line.name.clone(), figures::size(point.answer.size_bytes)];
        row.extend(causes.iter().map(|cause| share(point, cause)));
        grid.rows.push(row);
    }
    grid.drop_empty_columns();
    grid
}

/// Stalls of each method at its largest size; methods with the same stalls share a bar.
pub(crate) fn wait_bars(panel: &Panel, causes: &[&str]) -> Vec<WaitBar> {
    let mut waits: Vec<WaitBar> = Vec::new();
    for bar in panel.lines.iter().filter_map(|line| wait_bar(line, causes)) {
        match waits.iter_mut().find(|other| other.in_words == bar.in_words) {
            Some(other) => other.names.extend(bar.names),
            None => waits.push(bar),
        }
    }
    waits
}
