//! Reproductions of published results: a platform, questions, and a comparison with published figures.
//!
//! An experiment is a folder under `experiments/`. `experiment.toml` maps each figure to a question, and states whether it
//! is given, fitted or predicted. `published.csv` contains the published values. This crate runs the questions on the
//! simulator and by formula, as for any other target. It names no paper; papers are data.
//!
//! Entry point: [`reproduce`]. The format of the files is documented at [`Experiment`].
//!
//! Claims about machines without PCIe run on boards of their own in `coherent/`: `streams.rs` moves buffers through an I/O
//! TLB, and `server.rs` is a closed network of queues.

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
