//! A platform file with unknown numbers, filled in from a record.

use crate::{Fit, FitError, OfRecord, OfRecordError, fit_many};
use lanemark_platform::{Draft, Origin, PlatformError};
use lanemark_record::{Record, Residual};

/// A platform file after a fit.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The file, with what the record tells; what it does not is unknown still.
    pub draft: Draft,
    /// What was found for each unknown number, told or not.
    pub fit: Fit,
    /// The questions whose answers were used, with how many of each.
    pub questions: Vec<(&'static str, usize)>,
    /// Each of those answers beside what simulation and formula give.
    pub residuals: Vec<Residual>,
    /// Numbers that were assumed where the search ended, because the record leaves them open and somebody asked
    /// for that.
    pub assumed: Vec<String>,
    /// Numbers that the record wants beyond where they are sought.
    pub beyond: Vec<String>,
}

/// Why a platform file cannot be filled in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The record cannot be fitted to.
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

/// Fills in the unknown numbers of `draft` from the answers of `target` (or of the only one) in `record`, which
/// is called `name` where a number says what it was fitted to.
///
/// Numbers that the record leaves open (see [`Loose`](crate::Loose)), or wants beyond where they are sought, stay
/// unknown. With `assume_rest` they are assumed where the search ended: the sums that the record does tell are
/// right then, and how they are split is a guess that says so.
///
/// # Errors
/// [`FillError`].
pub fn fill_in(
    name: &str,
    record: &Record,
    target: Option<&str>,
    draft: &Draft,
    assume_rest: bool,
) -> Result<Filled, FillError> {
    let problem = OfRecord::of_draft(record, target, draft)?;
    let fit = fit_many(&problem.parameters(), |values| problem.residuals(values))?;
    let count = |(question, count): &(&str, usize)| format!("{name}: {question} ({count} answers)");
    let ids: Vec<String> = problem.questions().iter().map(count).collect();
    let values: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
    let mut filled = Filled {
        draft: draft.clone(),
        questions: problem.questions(),
        residuals: problem.compare(&values).map_err(FillError::Simulation)?,
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
