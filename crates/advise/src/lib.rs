//! Interpretation of records: advice and findings ([`interpret`]), changes between records, the nearest
//! machine of a corpus ([`neighbours()`]), machines that differ ([`fleet`]),
//! problems of a machine ([`doctor`]), and recovery of a card ([`recover`]).
//!
//! This crate reads records and facts, and simulates platforms. It measures nothing and touches no machine.
//!
//! `workload/` finds the best methods for a workload on a simulated platform, and the effect of changes ([`advise`]).
//! `doctor/` has one file per family of checks and a table of all checks. A finding has a reason, the gain that the model
//! computes, and a command that is never run. `recover/` has the steps that recover a card: each is a command with its
//! reason, and an act that a simulated machine performs.

#![forbid(unsafe_code)]

mod compare;
mod conditions;
mod copies;
mod corpus;
mod crossover;
pub mod doctor;
#[cfg(test)]
mod fixture;
mod fleet;
mod imported;
mod interpret;
mod launches;
mod methods;
mod reach;
pub mod recover;
mod runtime;
mod workload;

pub use compare::{Incomparable, Named, compare, repeated};
pub use copies::{NoCopyTable, copy_table};
pub use corpus::{LEAST_CASES, NoNeighbours, built_in_corpus, neighbours};
pub use fleet::{FleetMember, MIN_EFFECT_PERCENT, fleet};
pub use imported::{ImportLimits, NoLimit, judge_imported};
pub use interpret::interpret;
pub use workload::{WorkloadRequest, advise};
