//! Interpretation of records: advice and findings ([`interpret`]), changes between records,
//! problems of a machine ([`doctor`]), and recovery of a card ([`recover`]).
//!
//! This crate reads records and facts. It measures nothing and touches no machine.
//!
//! `doctor/` has one file per family of checks and a table of all checks. A finding has a reason, the gain that the model
//! computes, and a command that is never run. `recover/` has the steps that recover a card: each is a command with its
//! reason, and an act that a simulated machine performs.

#![forbid(unsafe_code)]

mod compare;
mod crossover;
pub mod doctor;
#[cfg(test)]
mod fixture;
mod interpret;
mod launches;
mod methods;
mod reach;
pub mod recover;
mod runtime;

pub use compare::{Incomparable, Named, compare, repeated};
pub use interpret::interpret;
