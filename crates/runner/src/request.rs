//! What is asked of which targets.

use crate::error::RunError;
use crate::open_target::Answerer;
use crate::setup::Setup;
use crate::target::Target;
use lanemark_bench::{Axes, CATALOGUE, Effort, Question};

/// The questions for each target, and how they are answered.
#[derive(Clone, Default)]
pub struct Request {
    /// The targets, in the order in which they are asked.
    pub targets: Vec<Target>,
    /// The questions. If there are none: the usual ones, and of a device behind a runtime every one it can answer.
    pub questions: Vec<&'static Question>,
    /// The variants of each question; what is not chosen is left to the question.
    pub axes: Axes,
    /// Samples, intervals, time budget, iterations. If `axes` names no sizes, they are defaults, of which
    /// some may be left out.
    pub effort: Effort,
    /// Whether machines or formulas answer.
    pub answerer: Answerer,
    /// How the targets are opened.
    pub setup: Setup,
    /// The command line, or whatever else tells a reader of the record where it came from.
    pub command: Vec<String>,
}

/// The question of this name.
///
/// # Errors
/// [`RunError::UnknownQuestion`], which lists those there are.
pub fn question(name: &str) -> Result<&'static Question, RunError> {
    lanemark_bench::question(name).ok_or_else(|| RunError::UnknownQuestion { name: name.to_owned() })
}

/// The questions of these names, each once.
///
/// # Errors
/// As for [`question`].
pub fn questions<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static Question>, RunError> {
    let mut questions: Vec<&'static Question> = Vec::new();
    for name in names {
        let question = question(name.as_ref())?;
        if questions.iter().all(|other| other.name != question.name) {
            questions.push(question);
        }
    }
    Ok(questions)
}

impl Request {
    /// The questions to plan: those that were named, or the usual ones.
    pub(crate) fn named_or_usual(&self) -> Vec<&'static Question> {
        if self.questions.is_empty() {
            CATALOGUE.iter().filter(|question| question.is_usual).collect()
        } else {
            self.questions.clone()
        }
    }
}
