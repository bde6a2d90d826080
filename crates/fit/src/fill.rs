//! A platform file with unknown numbers, filled in from a record.

use crate::{Fit, FitError, OfRecord, OfRecordError, fit_many};
use lanemark_platform::{Draft, Origin, PlatformError};
use lanemark_record::{Record, Residual};

/// A platform file after a fit.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The file, with what the record tells; what it does not is unknown still.
    pub draft: Draft,
    /// The last fit; `None` if there was nothing left to fit.
    pub fit: Option<Fit>,
    /// The questions whose answers were used, with how many of each.
    pub questions: Vec<(&'static str, usize)>,
    /// Each of those answers beside what simulation and formula give.
    pub residuals: Vec<Residual>,
    /// Numbers that were assumed, because the record leaves them open and somebody asked for that.
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
/// unknown. With `assume_rest` as many of them as it takes are assumed where their search begins, and the others
/// follow: the sums that the record does tell are right then, and how they are split is a guess that says so.
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
    let mut filled = Filled {
        draft: draft.clone(),
        fit: None,
        questions: Vec::new(),
        residuals: Vec::new(),
        assumed: Vec::new(),
        beyond: Vec::new(),
    };
    // Each round assumes at least one number or is the last.
    loop {
        let problem = OfRecord::of_draft(record, target, &filled.draft)?;
        let fit = fit_many(&problem.parameters(), |values| problem.residuals(values))?;
        let open: Vec<&str> = fit.loose.iter().flat_map(|set| set.names.iter().map(String::as_str)).collect();
        if assume_rest && !open.is_empty() {
            let guessed: Vec<String> =
                fit.loose.iter().flat_map(|set| set.names.iter().rev().take(set.free).cloned()).collect();
            for key in guessed {
                filled.draft = assume(&filled.draft, &key)?;
                filled.assumed.push(key);
            }
            if filled.draft.unknowns().is_empty() {
                return Ok(filled);
            }
            continue;
        }
        let ids: Vec<String> = problem
            .questions()
            .iter()
            .map(|(question, count)| format!("{name}: {question} ({count} answers)"))
            .collect();
        let values: Vec<f64> = fit.found.iter().map(|found| found.value).collect();
        filled.questions = problem.questions();
        filled.residuals = problem.compare(&values).map_err(FillError::Simulation)?;
        for found in &fit.found {
            if open.contains(&found.name.as_str()) {
                continue;
            }
            if found.at_bound {
                filled.beyond.push(found.name.clone());
                if assume_rest {
                    let why = "the end of where it is sought; the record wants it beyond".to_owned();
                    filled.draft = filled.draft.fill(&found.name, found.value, &Origin::Assumed(why))?;
                }
                continue;
            }
            filled.draft = filled.draft.fill(&found.name, found.value, &Origin::FittedTo(ids.clone()))?;
        }
        filled.fit = Some(fit);
        return Ok(filled);
    }
}

/// The draft with one unknown number assumed where its search begins.
fn assume(draft: &Draft, key: &str) -> Result<Draft, PlatformError> {
    let row = draft.unknowns().iter().find(|row| row.key == key);
    let (start, (low, high)) = row.map_or((0.0, (0.0, 0.0)), |row| (row.start, row.bounds));
    let why = format!("the middle of {low} to {high}: the record does not tell it");
    draft.fill(key, start, &Origin::Assumed(why))
}
