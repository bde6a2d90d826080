//! A platform file with unknown numbers, filled in from measurements.

use crate::apart::what_tells;
use crate::calibrate::calibrate;
use crate::{Errors, Fit, FitError, OfRecord, OfRecordError, Table, Verdict};
use lanemark_platform::{Draft, Origin, PlatformError};
use lanemark_record::{Record, Residual};

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub enum Measured<'a> {
    /// A record, and whose answers of it; of the only target where no name is given.
    Record(&'a Record, Option<&'a str>),
    /// A table of any tool's figures.
    Table(&'a Table),
}

/// A platform file after a fit.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The file, with what the data tell; what they do not is unknown still.
    pub draft: Draft,
    /// What was found for each unknown number, told or not.
    pub fit: Fit,
    /// The questions whose answers were fitted to, with how many of each.
    pub questions: Vec<(&'static str, usize)>,
    /// Each of those answers beside what simulation and formula give.
    pub residuals: Vec<Residual>,
    /// The same of answers that the fit did not see.
    pub held_out: Vec<Residual>,
    /// Numbers that were assumed where the search ended, because the data leave them open and somebody asked
    /// for that.
    pub assumed: Vec<String>,
    /// Numbers that the data want beyond where they are sought.
    pub beyond: Vec<String>,
}

impl Filled {
    /// How large the errors are of the answers that were fitted to and of those held out, and what that says; `None` if
    /// none are held out.
    #[must_use]
    pub fn halves(&self) -> Option<(Errors, Errors, Verdict)> {
        let (fitted, held_out) = (Errors::of(&self.residuals)?, Errors::of(&self.held_out)?);
        Some((fitted, held_out, Verdict::of(&fitted, &held_out)))
    }

    /// Which measurement would tell the number of this key, where the data are about a card's own transfers.
    #[must_use]
    pub fn told_by(&self, key: &str) -> Option<&'static str> {
        what_tells(key).filter(|_| self.questions.iter().any(|(name, _)| name.starts_with("dma_")))
    }
}

/// Why a platform file cannot be filled in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The data cannot be fitted to.
    #[error(transparent)]
    Record(#[from] OfRecordError),
    /// There is no fit.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A number does not fit the platform.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// The platform that was found cannot be simulated.
    #[error("{0}")]
    Simulation(String),
}

/// Fills in the unknown numbers of `draft` from what was `measured`, which is called `name` where a number says what it
/// was fitted to.
///
/// Numbers that the data leave open (see [`Loose`](crate::Loose)), or want beyond where they are sought, stay
/// unknown. With `assume_rest` they are assumed where the search ended: the sums that the data do tell are
/// right then, and how they are split is a guess that says so.
///
/// # Errors
/// [`FillError`].
pub fn fill_in(name: &str, measured: &Measured<'_>, draft: &Draft, assume_rest: bool) -> Result<Filled, FillError> {
    let problem = match measured {
        Measured::Record(record, target) => OfRecord::of_draft(record, *target, draft)?,
        Measured::Table(table) => OfRecord::of_table(table, draft)?,
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
            Some(set) if set.free == set.names.len() => "where the search ended: no answer tells it".to_owned(),
            Some(set) => {
                let others: Vec<&str> =
                    set.names.iter().map(String::as_str).filter(|other| *other != found.name).collect();
                format!("one of many values that fit: the answers tell it only together with {}", others.join(", "))
            }
            None if found.at_bound => "the end of where it is sought: the answers want it beyond".to_owned(),
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
