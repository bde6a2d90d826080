//! Dependencies of rows on the values of a platform, computed.
//!
//! Every value of the platform is changed alone by one step ([`Platform::steps`]), and every row is computed again: by its
//! formula, or by simulation where it has none. The effect of a step is (t'/t - 1)/(v'/v - 1), with the time t of the row and
//! the value v of the platform; for a word or a flag it is t'/t - 1. The time of a rate is its reciprocal. Effects are
//! comparable between rows, because all rows have the same steps.

use crate::classes::classify;
use crate::computed::{Means, computed_by};
use crate::effect::{Dependency, Effect, known_dependencies, name};
use crate::error::ExperimentError;
use crate::experiment::{Experiment, FigureQuery, platform_of};
use crate::expression::evaluate;
use crate::items::{Item, Source, items};
use crate::paper::Paper;
use crate::standard;
use lanemark_platform::{Platform, Step};
use lanemark_record::Class;

/// Smallest effect that is kept: below it, a row does not depend on a value.
const SMALLEST: f64 = 0.005;
/// Largest size that is simulated, in bytes: start-up is then below 1 % of the time on the platforms of the papers.
const SIMULATED_BYTES: u64 = 256 << 10;

/// Computes the dependencies of every row of `paper`, and their classes. It takes minutes.
///
/// `watch` is called with the numbers of finished and of all steps; the run stops if it returns `false`.
///
/// # Errors
/// As [`reproduce`](crate::reproduce).
pub fn dependencies(
    paper: &Paper,
    watch: &mut dyn FnMut(usize, usize) -> bool,
) -> Result<Vec<Dependency>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let platform = platform_of(paper.name, &experiment)?;
    let rows = items(&experiment);
    let base = base_values(paper, platform.as_ref(), &rows)?;
    let mut effects: Vec<Vec<Effect>> = vec![Vec::new(); rows.len()];
    let steps = platform.as_ref().map(Platform::steps).unwrap_or_default();
    for (done, step) in steps.iter().enumerate() {
        if !watch(done, steps.len()) {
            return Err(ExperimentError::Stopped { paper: paper.name.to_owned(), done, of: steps.len() });
        }
        let after = values(&step.platform, &rows, &base.iter().map(|base| base.means).collect::<Vec<_>>());
        for (place, row) in rows.iter().enumerate() {
            effects[place].extend(effect(row, &base[place], after[place], step));
        }
    }
    let mut found: Vec<Dependency> = rows
        .iter()
        .zip(base)
        .zip(effects)
        .map(|((row, base), effects)| Dependency {
            id: row.id().to_owned(),
            class: Class::Predicted,
            same_as: Vec::new(),
            value: base.value,
            effects,
        })
        .collect();
    classify(&experiment, platform.as_ref(), &mut found);
    Ok(found)
}

/// Reads the dependencies of `paper`, and determines the classes again from its values and effects.
///
/// # Errors
/// [`ExperimentError::File`] if a file of the experiment is invalid, or `dependencies.csv` has other rows than the
/// experiment.
pub fn classified(paper: &Paper) -> Result<Vec<Dependency>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let platform = platform_of(paper.name, &experiment)?;
    let mut found = known_dependencies(paper)?;
    let (rows, known) = (items(&experiment), found.iter().map(|row| row.id.as_str()));
    if !rows.iter().map(Item::id).eq(known) {
        let message = "has other rows than the experiment; make dependencies computes them".to_owned();
        return Err(ExperimentError::File { paper: paper.name.to_owned(), file: "dependencies.csv", message });
    }
    for row in &mut found {
        (row.class, row.same_as) = (Class::Predicted, Vec::new());
    }
    classify(&experiment, platform.as_ref(), &mut found);
    Ok(found)
}

/// Computes the effect of the step `step` on the row `id` again, for comparison with `dependencies.csv`; `None` if the
/// effect is too small to be kept.
///
/// # Errors
/// As [`reproduce`](crate::reproduce); [`ExperimentError::Figure`] if there is no such row or step.
pub fn effect_of(paper: &Paper, id: &str, step: &str) -> Result<Option<Effect>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let failed = |message: &str| ExperimentError::Figure {
        paper: paper.name.to_owned(),
        id: id.to_owned(),
        message: message.to_owned(),
    };
    let platform = platform_of(paper.name, &experiment)?.ok_or_else(|| failed("there is no platform"))?;
    let all = items(&experiment);
    let place = all.iter().position(|row| row.id() == id).ok_or_else(|| failed("there is no such row"))?;
    // Expressions use earlier rows, which may be expressions themselves.
    let mut needed = vec![false; all.len()];
    needed[place] = true;
    for user in (0..=place).rev().filter(|user| matches!(all[*user].source, Source::Derive(_))) {
        if let (true, Source::Derive(expression)) = (needed[user], all[user].source) {
            let uses = |row: &Item<'_>| crate::reproduce::names(expression, row.id());
            all.iter().zip(&mut needed).for_each(|(row, needed)| *needed |= uses(row));
        }
    }
    let rows: Vec<Item<'_>> = all.iter().zip(&needed).filter(|(_, needed)| **needed).map(|(row, _)| *row).collect();
    let place = rows.iter().position(|row| row.id() == id).ok_or_else(|| failed("there is no such row"))?;
    let steps = platform.steps();
    let step = steps.iter().find(|other| name(other) == step).ok_or_else(|| failed("there is no such step"))?;
    let base = base_values(paper, Some(&platform), &rows)?;
    let after = values(&step.platform, &rows, &base.iter().map(|base| base.means).collect::<Vec<_>>());
    Ok(effect(&rows[place], &base[place], after[place], step))
}

/// Names of all steps of the platform of `paper`, as in [`Effect::step`].
///
/// # Errors
/// [`ExperimentError::File`] if a file of the experiment is invalid.
pub fn steps_of(paper: &Paper) -> Result<Vec<String>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let platform = platform_of(paper.name, &experiment)?;
    Ok(platform.map(|platform| platform.steps().iter().map(name).collect()).unwrap_or_default())
}

/// Value of a row on the platform itself, and how it is computed on every changed platform.
struct Base {
    value: Option<f64>,
    means: Means,
}

fn base_values(paper: &Paper, platform: Option<&Platform>, rows: &[Item<'_>]) -> Result<Vec<Base>, ExperimentError> {
    let Some(platform) = platform else {
        return Ok(rows.iter().map(|_| Base { value: None, means: Means::Formula }).collect());
    };
    let failed =
        |id: &str, message| ExperimentError::Figure { paper: paper.name.to_owned(), id: id.to_owned(), message };
    let means = rows.iter().map(|row| match row.source {
        Source::Ask(ask, size) => {
            let by = |means| asked(platform, ask, size, means);
            by(Means::Formula).map(|_| Means::Formula).or_else(|_| by(Means::Simulation).map(|_| Means::Simulation))
        }
        _ => Ok(Means::Formula),
    });
    let means = means
        .zip(rows)
        .map(|(means, row)| means.map_err(|message| failed(row.id(), message)))
        .collect::<Result<Vec<_>, _>>()?;
    let values = values(platform, rows, &means);
    Ok(values.into_iter().zip(means).map(|(value, means)| Base { value, means }).collect())
}

/// The figure of a question; a simulation has at most [`SIMULATED_BYTES`].
fn asked(platform: &Platform, ask: &FigureQuery, size: Option<u64>, means: Means) -> Result<f64, String> {
    let limit = |size: u64| if means == Means::Simulation { size.min(SIMULATED_BYTES) } else { size };
    computed_by(means, platform, ask, size.or(ask.size).map(limit))
}

/// Values of `rows` on `platform`; `None` where there is none.
fn values(platform: &Platform, rows: &[Item<'_>], means: &[Means]) -> Vec<Option<f64>> {
    let mut values: Vec<Option<f64>> = Vec::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        let known = rows[..place].iter().position(|other| {
            matches!((other.source, row.source), (Source::Ask(..), Source::Ask(..))) && other.source == row.source
        });
        let value = match row.source {
            _ if known.is_some() => known.and_then(|known| values[known]),
            Source::Ask(ask, size) => asked(platform, ask, size, means[place]).ok(),
            Source::Derive(expression) => {
                let of = |id: &str| {
                    let place = rows.iter().position(|row| row.id() == id);
                    standard::number(Some(platform), id).or_else(|| {
                        let place = place.filter(|place| *place < values.len())?;
                        values[place].or_else(|| rows[place].published.target())
                    })
                };
                evaluate(expression, &of).ok()
            }
            Source::Measure | Source::Rules | Source::Later | Source::Input => None,
        };
        values.push(value.filter(|value| *value != 0.0));
    }
    values
}

fn effect(row: &Item<'_>, base: &Base, after: Option<f64>, step: &Step) -> Option<Effect> {
    let before = base.value?;
    let Some(after) = after else { return Some(Effect { step: name(step), size: None }) };
    let longer = if row.is_rate() { before / after } else { after / before };
    let size = (longer - 1.0) / step.ratio.map_or(1.0, |ratio| ratio - 1.0);
    // Three decimals, as in the file: classes follow from what the file says.
    let size = (size * 1e3).round() / 1e3;
    (size.abs() >= SMALLEST).then(|| Effect { step: name(step), size: Some(size) })
}
