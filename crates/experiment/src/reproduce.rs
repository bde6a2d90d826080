//! Comparison of every figure of a paper with simulation and formula.

use crate::computed::computed;
use crate::effect::{Dependency, known_dependencies};
use crate::error::ExperimentError;
use crate::experiment::{Column, Experiment, Figure, Published, Statistic, platform_of, size_of};
use crate::expression::evaluate;
use crate::in_parallel::in_parallel;
use crate::note;
use crate::paper::Paper;
use crate::standard;
use lanemark_platform::Platform;
use lanemark_record::{Bound, Class, Reproduction, Row, Verdict};
use lanemark_rules::{Check, RULES, count, picture};
use std::cell::Cell;

/// Computes every figure of `paper` and compares it with the published one.
///
/// Figures are computed on all processors, and those that are derived from others last. `watch` is called with the numbers of
/// finished and of all figures after each, and after each picture; the run stops if it returns `false`.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is invalid or a figure cannot be computed. A figure that disagrees is not
/// an error; its row has that verdict. [`ExperimentError::Stopped`] if `watch` returned `false`.
pub fn reproduce(paper: &Paper, watch: &mut dyn FnMut(usize, usize) -> bool) -> Result<Reproduction, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let platform = platform_of(paper.name, &experiment)?;
    let platform = platform.as_ref();
    let dependencies = known_dependencies(paper)?;
    let row = |published: &Published, tolerance_percent, note: String| {
        let known = dependencies.iter().find(|known| known.id == published.id);
        let known = known.ok_or_else(|| ExperimentError::File {
            paper: paper.name.to_owned(),
            file: "dependencies.csv",
            message: format!("{} has no row; make dependencies computes it", published.id),
        })?;
        Ok(new_row(published, known, tolerance_percent, note))
    };
    let total = experiment.published.len();
    let failed = |id: &str, message: String| ExperimentError::Figure {
        paper: paper.name.to_owned(),
        id: id.to_owned(),
        message,
    };
    let done = Cell::new(0);
    let mut go_on = |more: usize| {
        done.set(done.get() + more);
        watch(done.get(), total)
    };
    let stopped = || ExperimentError::Stopped { paper: paper.name.to_owned(), done: done.get(), of: total };
    let mut cells: Vec<(&Column, u64, Row)> = Vec::new();
    for column in &experiment.columns {
        let first = cells.len();
        for published in experiment.published.values() {
            let Some(size) = size_of(&column.id, &published.id) else { continue };
            cells.push((column, size, row(published, column.tolerance_percent, String::new())?));
        }
        cells[first..].sort_by_key(|(_, size, _)| *size);
    }
    let mut figures: Vec<(&Figure, Row)> = Vec::new();
    for figure in &experiment.figures {
        let Some(published) = experiment.published.get(&figure.id) else { continue };
        figures.push((figure, row(published, figure.tolerance_percent, figure.note.clone())?));
    }
    let asked = |(column, size, _): &(&Column, u64, Row)| {
        needed(platform).and_then(|platform| computed(platform, &column.ask, Some(*size)))
    };
    let answers = in_parallel(&cells, &asked, &mut || go_on(1)).ok_or_else(stopped)?;
    let mut rows: Vec<Row> = Vec::with_capacity(total);
    for ((column, size, mut row), ours) in cells.into_iter().zip(answers) {
        let ours = ours.map_err(|message| failed(&row.id, message))?;
        (row.simulated, row.formula) = (Some(ours.simulated), ours.formula);
        judge(&mut row, false, column.known_gap_sizes.contains(&size));
        rows.push(row);
    }
    // What is derived from other rows has to wait for them.
    let found = |(figure, row): &(&Figure, Row)| {
        figure.derive.is_none().then(|| figure_row(platform, figure, row.clone(), &[]))
    };
    let answers = in_parallel(&figures, &found, &mut || go_on(1)).ok_or_else(stopped)?;
    for ((figure, row), found) in figures.into_iter().zip(answers) {
        let row = found.unwrap_or_else(|| figure_row(platform, figure, row, &rows));
        rows.push(row.map_err(|message| failed(&figure.id, message))?);
    }
    for figure in experiment.figures.iter().filter(|figure| figure.note.contains('{')) {
        let filled = note::fill(&figure.note, &rows, platform).map_err(|message| failed(&figure.id, message))?;
        if let Some(row) = rows.iter_mut().find(|row| row.id == figure.id) {
            row.note = row.note.replacen(&figure.note, &filled, 1);
        }
    }
    let bounds = experiment
        .bounds
        .iter()
        .map(|bound| {
            let errors = covered(&rows, &bound.rows);
            let found = statistic(bound.statistic, &errors)
                .ok_or_else(|| failed(&bound.name, "no predicted row with an error matches it".to_owned()))?;
            Ok(Bound {
                name: bound.name.clone(),
                statistic: match bound.statistic {
                    Statistic::Median => "median".to_owned(),
                    Statistic::Worst => "worst".to_owned(),
                },
                rows: errors.len() as u64,
                found_percent: found,
                wanted_percent: bound.wanted_percent,
                met: found <= bound.wanted_percent,
            })
        })
        .collect::<Result<Vec<Bound>, ExperimentError>>()?;
    let drawn = |name: &String| {
        let figure = |id: &str| {
            let printed = experiment.published.get(id).and_then(Published::target);
            printed.ok_or_else(|| format!("{id} has no published value"))
        };
        picture(name, platform, &figure)
    };
    let pictures = in_parallel(&experiment.pictures, &drawn, &mut || go_on(0)).ok_or_else(stopped)?;
    let pictures = experiment.pictures.iter().zip(pictures);
    let pictures = pictures.map(|(name, drawn)| drawn.map_err(|message| failed(name, message)));
    let pictures = pictures.collect::<Result<_, _>>()?;
    Ok(Reproduction {
        paper: paper.name.to_owned(),
        title: experiment.title.clone(),
        platform: platform
            .map_or_else(|| experiment.machine.clone().unwrap_or_default(), |platform| platform.name.clone()),
        rows,
        bounds,
        pictures,
        here: Vec::new(),
    })
}

fn new_row(published: &Published, known: &Dependency, tolerance_percent: Option<f64>, note: String) -> Row {
    Row {
        id: published.id.clone(),
        what: published.what.clone(),
        published: published.printed,
        corrected: published.corrected,
        simulated: None,
        formula: None,
        unit: published.unit.clone(),
        class: known.class,
        same_as: known.same_as.clone(),
        error_percent: None,
        tolerance_percent,
        verdict: Verdict::Listed,
        note,
    }
}

/// The platform, or an error if the experiment has none.
fn needed(platform: Option<&Platform>) -> Result<&Platform, String> {
    platform.ok_or_else(|| "the experiment has no platform, which this figure needs".to_owned())
}

fn figure_row(platform: Option<&Platform>, figure: &Figure, mut row: Row, rows: &[Row]) -> Result<Row, String> {
    if let Some(ask) = &figure.ask {
        let ours = computed(needed(platform)?, ask, None)?;
        (row.simulated, row.formula) = (Some(ours.simulated), ours.formula);
    } else if let Some(name) = &figure.measure {
        row.simulated = Some(count(name)?);
    } else if let Some(expression) = &figure.derive {
        let of = |value: fn(&Row) -> Option<f64>| {
            evaluate(expression, &|id| match standard::number(platform, id) {
                Some(number) => Some(number),
                None => rows.iter().find(|row| row.id == id).and_then(value),
            })
        };
        row.formula = Some(of(|row| row.formula.or(row.simulated).or(input(row)))?);
        // An expression of inputs only is not a simulated result.
        if rows.iter().any(|row| row.simulated.is_some() && names(expression, &row.id)) && !expression.contains("wire:")
        {
            row.simulated = Some(of(|row| row.simulated.or(input(row)))?);
        }
    } else if !figure.rules.is_empty() {
        return apply_rules(platform, figure, row);
    } else if let Some(later) = &figure.later {
        row.verdict = Verdict::Later;
        row.note = format!("not answered: {later}");
        return Ok(row);
    }
    judge(&mut row, figure.sic, figure.known_gap);
    Ok(row)
}

/// The published value of a row that is an input.
fn input(row: &Row) -> Option<f64> {
    row.corrected.or(row.published).filter(|_| row.class == Class::Given)
}

/// Whether `expression` contains `id`.
pub(crate) fn names(expression: &str, id: &str) -> bool {
    expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':')).any(|part| part == id)
}

fn apply_rules(platform: Option<&Platform>, figure: &Figure, mut row: Row) -> Result<Row, String> {
    let mut seen = Vec::new();
    row.verdict = Verdict::Agrees;
    for name in &figure.rules {
        let rule =
            RULES.iter().find(|rule| rule.name == name).ok_or_else(|| format!("there is no rule named '{name}'"))?;
        let found = match rule.check {
            Check::Platform(check) => check(needed(platform)?),
            Check::Board(check) => check(),
        };
        match found {
            Ok(what) => seen.push(what),
            Err(what) if figure.known_gap => {
                row.verdict = Verdict::KnownGap;
                seen.push(format!("{what}; see DEVIATIONS.md"));
            }
            Err(what) => {
                row.verdict = Verdict::Disagrees;
                seen.push(format!("VIOLATED {name}: {what}"));
            }
        }
    }
    if figure.known_gap && row.verdict == Verdict::Agrees {
        row.verdict = Verdict::Disagrees;
        seen.push(CLOSED.to_owned());
    }
    row.note =
        [row.note, seen.join("; ")].iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ");
    Ok(row)
}

/// Note of a figure that is listed as a known gap but agrees; the list in the experiment must be updated.
const CLOSED: &str = "listed as a known gap, but within its tolerance now: remove known_gap";

fn judge(row: &mut Row, sic: bool, known_gap: bool) {
    let theirs = row.corrected.or(row.published);
    let ours = row.simulated.or(row.formula);
    row.error_percent = match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs != 0.0 => Some(100.0 * (ours - theirs) / theirs),
        _ => None,
    };
    row.verdict = match (row.error_percent, row.tolerance_percent) {
        _ if sic => Verdict::Sic,
        (Some(error), Some(tolerance)) if error.abs() <= tolerance => {
            if known_gap {
                row.note.push_str(CLOSED);
                Verdict::Disagrees
            } else {
                Verdict::Agrees
            }
        }
        (Some(_), Some(_)) if known_gap => {
            if row.note.is_empty() {
                "see DEVIATIONS.md".clone_into(&mut row.note);
            }
            Verdict::KnownGap
        }
        (Some(_), Some(_)) => Verdict::Disagrees,
        _ => Verdict::Listed,
    };
}

/// Absolute errors of the predicted rows that match `patterns`.
fn covered(rows: &[Row], patterns: &[String]) -> Vec<f64> {
    let matches = |id: &str| {
        patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => id.starts_with(start),
            None => id == pattern,
        })
    };
    let predicted = rows.iter().filter(|row| row.class == Class::Predicted && matches(&row.id));
    predicted.filter_map(|row| row.error_percent).map(f64::abs).collect()
}

fn statistic(kind: Statistic, errors: &[f64]) -> Option<f64> {
    match kind {
        Statistic::Median => lanemark_record::Summary::of(errors).map(|summary| summary.median),
        Statistic::Worst => errors.iter().copied().reduce(f64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(published: f64, simulated: f64, tolerance: Option<f64>, sic: bool, gap: bool) -> Row {
        let published = Published {
            id: "A".to_owned(),
            what: "a".to_owned(),
            printed: Some(published),
            corrected: None,
            unit: "ns".to_owned(),
        };
        let known = Dependency {
            id: "A".to_owned(),
            class: Class::Predicted,
            same_as: Vec::new(),
            value: None,
            effects: Vec::new(),
        };
        let mut row = new_row(&published, &known, tolerance, String::new());
        row.simulated = Some(simulated);
        judge(&mut row, sic, gap);
        row
    }

    #[test]
    fn a_figure_agrees_up_to_its_tolerance() {
        assert_eq!(judged(100.0, 105.0, Some(5.0), false, false).verdict, Verdict::Agrees);
        assert_eq!(judged(100.0, 95.0, Some(5.0), false, false).verdict, Verdict::Agrees);
        assert_eq!(judged(100.0, 105.1, Some(5.0), false, false).verdict, Verdict::Disagrees);
    }

    #[test]
    fn a_closed_gap_is_reported_as_disagreement() {
        assert_eq!(judged(100.0, 130.0, Some(5.0), false, true).verdict, Verdict::KnownGap);
        assert_eq!(judged(100.0, 101.0, Some(5.0), false, true).verdict, Verdict::Disagrees);
    }

    #[test]
    fn contradictions_and_figures_without_tolerance_are_not_judged() {
        assert_eq!(judged(100.0, 200.0, Some(5.0), true, false).verdict, Verdict::Sic);
        assert_eq!(judged(100.0, 200.0, None, false, false).verdict, Verdict::Listed);
    }

    #[test]
    fn bounds_match_rows_by_name_or_prefix() {
        let rows = [judged(100.0, 110.0, None, false, false)];
        assert_eq!(covered(&rows, &["A".to_owned()]).len(), 1);
        assert_eq!(covered(&rows, &["A*".to_owned()]).len(), 1);
        assert!(covered(&rows, &["B*".to_owned(), "AA".to_owned()]).is_empty());
    }
}
