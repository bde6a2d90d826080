//! Filling in the unknown numbers of a platform file from measurements.

use crate::apart::measurement_for;
use crate::calibrate::calibrate;
use crate::held_out::SMALL_PERCENT;
use crate::mechanism::{IOMMU, WALK_READ_NS, WALK_READS, WALKERS, is_of_iommu};
use crate::pattern::{Pattern, patterns};
use crate::reopened::{Reopened, reopen};
use crate::settled::{Settled, USUAL, settled};
use crate::{Contender, Errors, FillError, Fit, FitData, FitError, Table, Verdict, structure, walkers};
use lanemark_platform::{Draft, Origin, PlatformError, default_of};
use lanemark_record::{Record, Residual};
use lanemark_runner::Cancel;

/// Source of measurements.
#[derive(Clone, Copy, Debug)]
pub enum Measured<'a> {
    /// A record, and the name of a target in it; without a name, the record must have a single target.
    Record(&'a Record, Option<&'a str>),
    /// A table with figures of any tool.
    Table(&'a Table),
}

/// What a fit may do beyond filling in the numbers that the data determine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FillOptions<'a> {
    /// Keys of flags that the file assumes and that are kept: the figures do not choose them again.
    pub kept: &'a [String],
    /// Whether numbers that the data leave open, and that have no default, are assumed.
    pub assume_rest: bool,
    /// Whether the structure of the file is kept, and only its unknown numbers are fitted.
    pub keep_structure: bool,
    /// Ends the fit early, with [`FillError::Cancelled`].
    pub cancel: Option<&'a Cancel>,
}

/// A platform file after a fit.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The file with the numbers that the data determine; the others are still unknown.
    pub draft: Draft,
    /// The result for each fitted number, determined or not.
    pub fit: Fit,
    /// The structures that were compared, best first; empty if the structure was kept.
    pub contenders: Vec<Contender>,
    /// Whether the search over structures ended because of its number of predictions; the best one so far is chosen.
    pub is_cut_short: bool,
    /// The flags that the file assumes and that the search chose again, because some figures depend on them.
    pub reopened: Vec<Reopened>,
    /// The questions that were fitted to, each with its number of answers.
    pub questions: Vec<(&'static str, usize)>,
    /// Each of those answers, with the results of simulation and formula.
    pub residuals: Vec<Residual>,
    /// The same for the answers of curves with six or more sizes, predicted by a fit to the other half of their curve.
    pub held_out: Vec<Residual>,
    /// The answers of `held_out` whose error is larger than 10 %.
    pub missed: Vec<Missed>,
    /// The figures of both directions at once, if no structure describes them together with the others, so that they were left
    /// out.
    pub left_out: Option<LeftOut>,
    /// Patterns in the errors that are left in `residuals`, for curves whose errors are larger than noise.
    pub patterns: Vec<Pattern>,
    /// Numbers of which the data determine only a combination with other keys: each with those keys, which have their
    /// default or a usual value. They have no confidence interval.
    pub conditional: Vec<(String, Vec<String>)>,
    /// Keys that have their default, because the data do not determine them.
    pub at_default: Vec<String>,
    /// Keys of numbers that the data leave open, set to a usual value, or for loads and stores to the end point of the
    /// search, because of [`FillOptions::assume_rest`].
    pub assumed: Vec<String>,
    /// Keys of numbers whose best value lies outside their search range.
    pub beyond: Vec<String>,
}

/// An answer that a fit to the other half of its curve does not predict.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// Question, method and size.
    pub what: String,
    /// Error of the prediction, in percent.
    pub error_percent: f64,
    /// Whether it has the smallest or largest size of its curve, which the other sizes may not determine.
    pub is_end: bool,
}

/// Figures of both directions at once that were left out of a fit.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Each of them, with the results of simulation and formula after the fit to the others.
    pub residuals: Vec<Residual>,
    /// Errors of the held-out figures of single directions in a fit to all figures.
    pub held_out_with_them: Errors,
}

impl Filled {
    /// Errors of the fitted answers, errors of the held-out answers, and the verdict; `None` if none are held out.
    #[must_use]
    pub fn halves(&self) -> Option<(Errors, Errors, Verdict)> {
        let (fitted, held_out) = (Errors::of(&self.residuals)?, Errors::of(&self.held_out)?);
        let misses_ends_only = !self.missed.is_empty() && self.missed.iter().all(|missed| missed.is_end);
        Some((fitted, held_out, Verdict::of(&fitted, &held_out, misses_ends_only)))
    }

    /// The measurement that would determine the number at `key`, if the data are about DMA.
    #[must_use]
    pub fn measurement_for(&self, key: &str) -> Option<&'static str> {
        measurement_for(key).filter(|_| self.questions.iter().any(|(name, _)| name.starts_with("dma_")))
    }
}

/// Fills in the unknown numbers of `draft` from `measured`; `name` is the name of that source in `fitted_to`.
///
/// Unless [`FillOptions::keep_structure`] is set, mechanisms of which no file says anything are tried first, such as work
/// in chunks or completions that are merged. The structure is chosen by the error of figures that were not fitted
/// ([`Filled::contenders`]). A flag that a file only assumes, such as `dma.full_duplex`, and an assumed `dma.beat_bytes`
/// are chosen again if some figures depend on them ([`Filled::reopened`]); values with a source are not.
///
/// Numbers that the data leave open (see [`Undetermined`](crate::Undetermined)) get their default, if the others then
/// follow the data as well as before; without one, they stay unknown, as do those whose best value lies outside their search range. With [`FillOptions::assume_rest`] these get the
/// value of the built-in platform `card-gen5-x16`, or the middle of their search range, marked as assumed, and the rest is
/// fitted to it.
///
/// Latencies of loads and stores by cores are not fixed like that: with `assume_rest` they get the end point of the search,
/// so that their sums are right.
///
/// If no structure describes figures of both directions at once together with those of single directions, and without them
/// the others are predicted clearly better, they are left out ([`Filled::left_out`]).
///
/// # Errors
/// [`FillError`].
pub fn fill_in(
    name: &str,
    measured: &Measured<'_>,
    draft: &Draft,
    options: FillOptions<'_>,
) -> Result<Filled, FillError> {
    let filled = best_filled(name, measured, draft, options);
    // A cancelled evaluation fails, and a search takes it for values that are not possible.
    if options.cancel.is_some_and(Cancel::is_cancelled) { Err(FillError::Cancelled) } else { filled }
}

/// Least mean error of the held-out figures of single directions, in percent, at which a fit without the figures of both
/// directions is tried.
const SPOILED_PERCENT: f64 = 2.5;

/// Largest ratio of that error without and with the figures of both directions at which these are left out.
const CLEARLY_LESS: f64 = 0.5;

/// The fit to all figures, or the one without figures of both directions at once, if these spoil the prediction of the others.
fn best_filled(
    name: &str,
    measured: &Measured<'_>,
    draft: &Draft,
    options: FillOptions<'_>,
) -> Result<Filled, FillError> {
    let all = match measured {
        Measured::Record(record, target) => FitData::of_draft(record, *target, draft)?,
        Measured::Table(table) => FitData::of_table(table, draft)?,
    };
    let all = all.cancelled_by(options.cancel.unwrap_or(&Cancel::new()));
    let (filled, _) = filled_from(name, all.clone(), draft, options)?;
    if filled.halves().is_none_or(|(_, _, verdict)| verdict == Verdict::Predicts) {
        return Ok(filled);
    }
    // What the first fit simulated would change where the second one ends.
    let alone = all.part(|place| !all.is_of_both(place)).afresh();
    let names: Vec<&str> = alone.data().collect();
    let of_alone = filled.held_out.iter().filter(|residual| names.contains(&residual.what.as_str())).cloned();
    let Some(held_out_with_them) = Errors::of(&of_alone.collect::<Vec<Residual>>()) else { return Ok(filled) };
    if names.len() == filled.residuals.len() || held_out_with_them.mean_percent < SPOILED_PERCENT {
        return Ok(filled);
    }
    // The other fit has a result; fewer figures may determine fewer numbers than are unknown.
    let Ok((mut without, problem)) = filled_from(name, alone, draft, options) else { return Ok(filled) };
    let is_clear = |(fitted, held_out, _): (Errors, Errors, Verdict)| {
        held_out.mean_percent < CLEARLY_LESS * held_out_with_them.mean_percent
            && fitted.mean_percent < CLEARLY_LESS * held_out_with_them.mean_percent
    };
    if !without.halves().is_some_and(is_clear) {
        return Ok(filled);
    }
    let values: Vec<f64> = without.fit.found.iter().map(|found| found.value).collect();
    let both = problem.with_data_of(&all.part(|place| all.is_of_both(place)));
    let Ok(residuals) = both.compare(&values) else { return Ok(filled) };
    without.left_out = Some(LeftOut { residuals, held_out_with_them });
    Ok(without)
}

/// The result of a fit to all these figures, and the fit with its structure.
fn filled_from(
    name: &str,
    given: FitData,
    draft: &Draft,
    options: FillOptions<'_>,
) -> Result<(Filled, FitData), FillError> {
    let (given, reopened) =
        if options.keep_structure { (given, Vec::new()) } else { reopen(&given, draft, options.kept) };
    let searched = if options.keep_structure { None } else { structure::search(&given) };
    let is_cut_short = searched.as_ref().is_some_and(|found| found.is_cut_short);
    let (mut contenders, problem, start, reopened) = match searched {
        Some(found) => (found.contenders, found.problem, Some(found.values), reopened),
        None => (Vec::new(), given, None, Vec::new()),
    };
    let mut set =
        contenders.iter().find(|contender| contender.is_chosen).map_or(Vec::new(), |chosen| chosen.set.clone());
    let of_key = |(key, assumed, is_flag): (&'static str, f64, bool)| {
        let chosen = set.iter().find(|(other, _)| other == key).map_or(assumed, |(_, value)| *value);
        let is_other = |(other, value): &(String, f64)| other == key && (*value - assumed).abs() > 0.0;
        let is_compared = contenders.iter().any(|contender| contender.set.iter().any(is_other));
        Reopened { key: key.to_owned(), assumed, chosen, is_flag, is_compared }
    };
    let reopened: Vec<Reopened> = reopened.into_iter().map(of_key).collect();
    let Settled { mut problem, mut fit, mut at_default, assumed, mut conditional } =
        settled(problem, start.as_deref(), options.assume_rest)?;
    let count = |(question, count): &(&str, usize)| format!("{name}: {question} ({count} answers)");
    let fitted_to = Origin::FittedTo(problem.questions().iter().map(count).collect());
    let values: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
    if set.iter().any(|(key, _)| is_of_iommu(key)) {
        conditional.push((WALK_READ_NS.to_owned(), vec![WALK_READS.to_owned()]));
        let mut alike = walkers::alike(&problem, &values).into_iter();
        if let Some((number, with_fewest)) = alike.next() {
            problem = with_fewest;
            for contender in contenders.iter_mut().filter(|contender| contender.is_chosen) {
                contender.set.iter_mut().filter(|(key, _)| key == WALKERS).for_each(|(_, value)| *value = number);
            }
            set.retain(|(key, _)| key != WALKERS);
            if alike.next().is_some()
                && default_of(WALKERS).is_some_and(|default| default.to_bits() == number.to_bits())
            {
                at_default.push(WALKERS.to_owned());
            } else {
                set.push((WALKERS.to_owned(), number));
            }
        }
    }
    conditional.retain(|(key, _)| fit.found.iter().any(|found| found.name == *key && !found.at_bound));
    for found in fit.found.iter_mut().filter(|found| conditional.iter().any(|(key, _)| *key == found.name)) {
        found.within_95 = None;
    }
    let mut filled = Filled {
        draft: draft.clone(),
        is_cut_short,
        reopened,
        questions: problem.questions(),
        residuals: problem.compare(&values).map_err(FillError::Simulation)?,
        held_out: held_out(&problem, &values)?,
        conditional,
        at_default: Vec::new(),
        assumed: Vec::new(),
        beyond: Vec::new(),
        missed: Vec::new(),
        left_out: None,
        contenders: Vec::new(),
        patterns: Vec::new(),
        fit,
    };
    filled.missed = missed(&problem, &filled.held_out);
    filled.patterns = patterns(&problem.points(), &filled.residuals);
    if set.iter().any(|(key, _)| is_of_iommu(key)) {
        filled.draft = filled.draft.with_section(IOMMU)?;
    }
    // Before the times: a time may be valid only with its mechanism.
    for (key, value) in &set {
        filled.draft = stated(&filled.draft, key, *value, &fitted_to)?;
    }
    let count = filled.fit.residuals.len().max(1) as f64;
    let nothing_fits = filled.fit.residuals.iter().map(|left| left.abs()).sum::<f64>() / count > NOTHING_FITS;
    for found in &filled.fit.found {
        let loose = filled.fit.loose.iter().find(|loose| loose.names.contains(&found.name));
        // Errors as large as the figures hide what depends on a number.
        let loose = loose.filter(|_| !(found.at_bound && nothing_fits));
        if found.at_bound && loose.is_none() {
            filled.beyond.push(found.name.clone());
        }
        if found.at_bound || loose.is_some() {
            let guess = match loose {
                Some(set) if set.free < set.names.len() => {
                    "one of many values that fit: the answers determine only a sum"
                }
                Some(_) => "the end point of the search: near it, no answer depends on it",
                None => "the end of its search range: the best value lies outside",
            };
            if options.assume_rest {
                filled.draft = stated(&filled.draft, &found.name, found.value, &Origin::Assumed(guess.to_owned()))?;
                filled.assumed.push(found.name.clone());
            }
        } else {
            let with = filled.conditional.iter().find(|(key, _)| *key == found.name).map(|(_, with)| with.join(", "));
            let origin = match with {
                None => fitted_to.clone(),
                Some(with) => {
                    let why = format!("fitted with an assumed {with}: the figures determine only their combination");
                    Origin::Assumed(why)
                }
            };
            filled.draft = stated(&filled.draft, &found.name, found.value, &origin)?;
        }
    }
    let usual =
        format!("a usual value, that of {USUAL} or the middle of the search range: the figures do not determine it");
    let usual = Origin::Assumed(usual);
    for (key, value) in assumed {
        filled.draft = stated(&filled.draft, &key, value, &usual)?;
        filled.assumed.push(key);
    }
    // What is still unknown and was not fitted: numbers at their default, and parts of other structures.
    let default = Origin::Assumed("the default: the figures do not determine it".to_owned());
    let nearest = Origin::Assumed("the value nearest to the default: the figures do not determine it".to_owned());
    for unknown in draft.unknowns() {
        let is_open = filled.draft.unknowns().iter().any(|open| open.key == unknown.key);
        let is_fitted = filled.fit.found.iter().any(|found| found.name == unknown.key);
        if let Some(value) = unknown.default.filter(|_| is_open && !is_fitted) {
            filled.draft = filled.draft.fill(&unknown.key, value, &default)?;
            filled.at_default.push(unknown.key.clone());
        }
        // Its limits exclude the default.
        let before = problem.before(&unknown.key).filter(|_| options.assume_rest && unknown.default.is_none());
        if let Some(value) = before.filter(|_| is_open && !is_fitted) {
            filled.draft = filled.draft.fill(&unknown.key, value, &nearest)?;
            filled.assumed.push(unknown.key.clone());
        }
    }
    // A time that the search added and the whole of the figures does not determine.
    filled.at_default.extend(at_default.into_iter().filter(|key| draft.unknowns().iter().all(|row| row.key != *key)));
    filled.contenders = contenders;
    Ok((filled, problem))
}

/// Mean absolute residual from which on the platform is not that of the figures.
const NOTHING_FITS: f64 = 0.5;

/// The draft with this value, which it marks unknown, assumes, or does not state.
fn stated(draft: &Draft, key: &str, value: f64, origin: &Origin) -> Result<Draft, PlatformError> {
    if draft.unknowns().iter().any(|unknown| unknown.key == key) {
        draft.fill(key, value, origin)
    } else {
        draft.state(key, value, origin)
    }
}

/// Predictions of the figures of each half of the curves by a fit to all other figures, in the order of the data.
fn held_out(problem: &FitData, values: &[f64]) -> Result<Vec<Residual>, FillError> {
    let mut predicted: Vec<(usize, Residual)> = Vec::new();
    for half in [false, true] {
        let places = problem.half(half);
        if places.is_empty() {
            continue;
        }
        let train = problem.part(|place| !places.contains(&place));
        let fit = match calibrate(&train, Some(values)) {
            Err(FitError::TooFewData { .. }) => return Ok(Vec::new()),
            fit => fit?,
        };
        let values: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
        let test = problem.part(|place| places.contains(&place));
        predicted.extend(places.iter().copied().zip(test.compare(&values).map_err(FillError::Simulation)?));
    }
    predicted.sort_by_key(|(place, _)| *place);
    Ok(predicted.into_iter().map(|(_, residual)| residual).collect())
}

/// The predictions of held-out figures that are off by more than a small error.
fn missed(problem: &FitData, held_out: &[Residual]) -> Vec<Missed> {
    let names: Vec<&str> = problem.data().collect();
    let inner = [false, true].map(|half| problem.inner_half(half)).concat();
    let is_inner = |what: &str| inner.iter().any(|place| names[*place] == what);
    let large = held_out.iter().filter(|residual| residual.error_percent.abs() > SMALL_PERCENT);
    large
        .map(|Residual { what, error_percent, .. }| Missed {
            what: what.clone(),
            error_percent: *error_percent,
            is_end: !is_inner(what),
        })
        .collect()
}
