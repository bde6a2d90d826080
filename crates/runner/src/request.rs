//! Requests: targets, questions and their variants.

use crate::error::RunError;
use crate::open_target::Answerer;
use crate::setup::Setup;
use crate::target::Target;
use lanemark_bench::{Axes, CATALOGUE, Effort, Question};

/// A request: targets, questions, and how they are measured.
#[derive(Clone, Default)]
pub struct Request {
    /// Targets, in measurement order.
    pub targets: Vec<Target>,
    /// Questions. An empty list selects the default questions and, for runtime devices, every question that applies.
    pub questions: Vec<&'static Question>,
    /// Variants of each question. Axes left open use the defaults of the question.
    pub axes: Axes,
    /// Samples, intervals, time budget, iterations. If `axes` names no sizes, they are defaults, of which
    /// some may be left out.
    pub effort: Effort,
    /// Source of the answers: machines or formulas.
    pub answerer: Answerer,
    /// Answers for which every parameter of the platform, or of the twin, is changed.
    pub what_if: WhatIf,
    /// Options for opening the targets.
    pub setup: Setup,
    /// The command line, or another description of the record's origin.
    pub command: Vec<String>,
}

/// Answers for which the sensitivities to every parameter of the platform are determined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhatIf {
    /// None.
    #[default]
    Nothing,
    /// Of each question and target, the best and the worst answer at the largest size.
    BestAndWorst,
    /// Every answer.
    Every,
}

/// Looks up a question by name.
///
/// # Errors
/// [`RunError::UnknownQuestion`], with the list of all questions.
pub fn question(name: &str) -> Result<&'static Question, RunError> {
    lanemark_bench::question(name).ok_or_else(|| RunError::UnknownQuestion { name: name.to_owned() })
}

/// Looks up questions by name; removes duplicates.
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
    /// The questions to plan: those of the request, or the default ones.
    pub(crate) fn named_or_usual(&self) -> Vec<&'static Question> {
        if self.questions.is_empty() {
            CATALOGUE.iter().filter(|question| question.is_usual).collect()
        } else {
            self.questions.clone()
        }
    }
}
