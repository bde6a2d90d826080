//! Reproductions of published results: a platform, questions, and a comparison with published figures.
//!
//! An experiment is a folder under `experiments/`. `experiment.toml` maps each figure to a question, and states whether it
//! is given, fitted or predicted. `published.csv` contains the published values. This crate runs the questions on the
//! simulator and by formula, as for any other target. It names no paper; papers are data.
//!
//! Entry point: [`reproduce`]. The format of the files is documented at [`Experiment`].

#![forbid(unsafe_code)]

mod ask_here;
mod asked;
mod expression;
mod figure;
mod fitting;
mod here;
mod paper;
mod reproduce;

pub use figure::{Experiment, ExperimentError};
pub use fitting::{Fitting, fittings};
pub use here::{Before, asks_runtimes, here};
pub use paper::{PAPERS, Paper, paper};
pub use reproduce::reproduce;
