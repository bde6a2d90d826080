//! A published result asked again: platform, questions and published figures, compared.
//!
//! An experiment is a folder under `experiments/`: `experiment.toml` says which question each figure is
//! the answer to and what of it was given or fitted, `published.csv` holds what was published. This room
//! runs them on the common road, simulated and by formula; it knows no paper, only their folders.
//!
//! Start with [`reproduce`]; the form of the files is in [`Experiment`].

#![forbid(unsafe_code)]

mod ask_here;
mod asked;
mod coherent;
mod expression;
mod figure;
mod fitting;
mod here;
mod paper;
mod payload_rule;
mod relay_rule;
mod reproduce;
mod rules;
mod runtime_pictures;
mod runtime_rules;
mod small_payload_rule;

pub use figure::{Experiment, ExperimentError};
pub use fitting::{Fitting, fittings};
pub use here::{Before, asks_runtimes, here};
pub use paper::{PAPERS, Paper, paper};
pub use reproduce::reproduce;
pub use rules::{Check, RULES, Rule};
