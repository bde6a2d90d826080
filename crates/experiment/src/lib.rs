//! Reproductions of published results: a platform, questions, and a comparison with published figures.
//!
//! An experiment is a folder under `experiments/`. `experiment.toml` maps each figure to a question, and states whether it
//! is given, fitted or predicted. `published.csv` contains the published values. This crate runs the questions on the
//! simulator and by formula, as for any other target. It names no paper; papers are data. Statements without a number are
//! tested by `lanemark-rules`, whose rules and pictures an experiment names.
//!
//! Entry points: [`reproduce`], and [`measure_locally`] for figures that this machine can measure too. The format of the files is documented at [`Experiment`].

#![forbid(unsafe_code)]

mod computed;
mod error;
mod experiment;
mod expression;
mod fitting;
mod local_question;
mod local_run;
mod metric;
mod note;
mod paper;
mod reproduce;
mod standard;

pub use error::ExperimentError;
pub use experiment::Experiment;
pub use fitting::{Fitting, fittings};
pub use local_run::{LocalValues, measure_locally, measures_runtimes};
pub use paper::{PAPERS, Paper, paper};
pub use reproduce::reproduce;
