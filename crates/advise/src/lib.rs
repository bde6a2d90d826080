//! What it means: which way to use, what stands out ([`interpret`]) and what changed in a record; what is wrong
//! with a machine ([`doctor`]); how a card is brought back ([`recover`]).
//!
//! Reads what others measured or saw; it measures nothing and touches no machine.
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

pub use compare::{Incomparable, compare};
pub use interpret::interpret;
