//! Filling in the unknown numbers of a platform file from measurements.

use crate::apart::measurement_for;
use crate::calibrate::calibrate;
use crate::{Errors, Fit, FitData, FitDataError, FitError, Table, Verdict};
use lanemark_platform::{Draft, Origin, PlatformError};
use lanemark_record::{Record, Residual};

/// Source of measurements.
#[derive(Clone, Copy, Debug)]
pub enum Measured<'a> {
    /// A record, and the name of a target in it; without a name, the record must have a single target.
    Record(&'a Record, Option<&'a str>),
    /// A table with figures of any tool.
    Table(&'a Table),
}

/// A platform file after a fit.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The file with the numbers that the data determine; the others are still unknown.
    pub draft: Draft,
    /// The result for each unknown number, determined or not.
    pub fit: Fit,
    /// The questions that were fitted to, each with its number of answers.
    pub questions: Vec<(&'static str, usize)>,
    /// Each of those answers, with the results of simulation and formula.
    pub residuals: Vec<Residual>,
    /// The same for the answers that were held out from the fit.
    pub held_out: Vec<Residual>,
    /// Keys of numbers that the data leave open, set to the end point of the search because `assume_rest` was given.
    pub assumed: Vec<String>,
    /// Keys of numbers whose best value lies outside their search range.
    pub beyond: Vec<String>,
}

impl Filled {
    /// Errors of the fitted answers, errors of the held-out answers, and the verdict; `None` if none are held out.
    #[must_use]
    pub fn halves(&self) -> Option<(Errors, Errors, Verdict)> {
        let (fitted, held_out) = (Errors::of(&self.residuals)?, Errors::of(&self.held_out)?);
        Some((fitted, held_out, Verdict::of(&fitted, &held_out)))
    }

    /// The measurement that would determine the number at `key`, if the data are about DMA.
    #[must_use]
    pub fn measurement_for(&self, key: &str) -> Option<&'static str> {
        measurement_for(key).filter(|_| self.questions.iter().any(|(name, _)| name.starts_with("dma_")))
    }
}

/// Reasons why a platform file cannot be filled in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The data are not usable for a fit.
    #[error(transparent)]
    Record(#[from] FitDataError),
    /// The fit failed.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A fitted number is not valid in the platform.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// The filled-in platform cannot be simulated.
    #[error("{0}")]
    Simulation(String),
}

/// Fills in the unknown numbers of `draft` from `measured`; `name` is the name of that source in `fitted_to`.
///
/// Numbers that the data leave open (see [`Undetermined`](crate::Undetermined)), or whose best value lies outside their search range,
/// stay unknown. With `assume_rest` they are set to the end point of the search and marked as assumed: the sums that
/// the data determine are then right, and their split is a guess.
///
/// # Errors
/// [`FillError`].
pub fn fill_in(name: &str, measured: &Measured<'_>, draft: &Draft, assume_rest: bool) -> Result<Filled, FillError> {
    let problem = match measured {
        Measured::Record(record, target) => FitData::of_draft(record, *target, draft)?,
        Measured::Table(table) => FitData::of_table(table, draft)?,
    };
    let fit = calibrate(&problem)?;
    let count = |(question, count): &(&str, usize)| format!("{name}: {question} ({count} answers)");
    let ids: Vec<String> = problem.questions().iter().map(count).collect();
    let values: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
    let mut filled = Filled {
        draft: draft.clone(),
        questions: problem.questions(),
        residuals: problem.compare(&values).map_err(FillError::Simulation)?,
        held_out: problem.compare_held_out(&values).map_err(FillError::Simulation)?,
        assumed: Vec::new(),
        beyond: Vec::new(),
        fit,
    };
    for found in &filled.fit.found {
        let loose = filled.fit.loose.iter().find(|set| set.names.contains(&found.name));
        let guess = match loose {
            Some(set) if set.free == set.names.len() => {
                "the end point of the search: no answer depends on it".to_owned()
            }
            Some(set) => {
                let others: Vec<&str> =
                    set.names.iter().map(String::as_str).filter(|other| *other != found.name).collect();
                format!(
                    "one of many values that fit: the answers determine only its combination with {}",
                    others.join(", ")
                )
            }
            None if found.at_bound => "the end of its search range: the best value lies outside".to_owned(),
            None => {
                filled.draft = filled.draft.fill(&found.name, found.value, &Origin::FittedTo(ids.clone()))?;
                continue;
            }
        };
        if loose.is_none() {
            filled.beyond.push(found.name.clone());
        }
        if assume_rest {
            filled.draft = filled.draft.fill(&found.name, found.value, &Origin::Assumed(guess))?;
            filled.assumed.push(found.name.clone());
        }
    }
    Ok(filled)
}
