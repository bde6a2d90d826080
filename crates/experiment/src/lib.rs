//! Reproductions of published results: a platform, questions, and a comparison with published figures.
//!
//! An experiment is a folder under `experiments/`. `experiment.toml` maps each figure to a question.
//! `published.csv` contains the published values. `dependencies.csv` is computed: it has the effects of the values of the
//! platform on each figure, and the class that follows: given, fitted, predicted. This crate runs the questions on the
//! simulator and by formula, as for any other target. It names no paper; papers are data. Statements without a number are
//! tested by `lanemark-rules`, whose rules and pictures an experiment names.
//!
//! Entry points: [`reproduce`], and [`measure_locally`] for figures that this machine can measure too. The format of the files is documented at [`Experiment`].

#![forbid(unsafe_code)]

mod classes;
mod computed;
mod dependency;
mod effect;
mod error;
mod experiment;
mod expression;
mod fitting;
mod in_parallel;
mod items;
mod local_question;
mod local_run;
mod metric;
mod note;
mod paper;
mod reproduce;
mod standard;

pub use dependency::{classified, dependencies, effect_of, steps_of};
pub use effect::{Dependency, Effect, dependency_table, known_dependencies};
pub use error::ExperimentError;
pub use experiment::Experiment;
pub use fitting::{Fitting, fittings};
pub use local_run::{LocalValues, measure_locally, measures_runtimes};
pub use paper::{PAPERS, Paper, paper};
pub use reproduce::reproduce;
