//! What it means: which way to use, what stands out, what cannot be true and what changed in a record; what is wrong
//! with a machine ([`doctor`]); how a card is brought back ([`recover`]).
//!
//! Reads what others measured or saw; it measures nothing and touches no machine.

#![forbid(unsafe_code)]

mod compare;
mod crossover;
pub mod doctor;
#[cfg(test)]
mod fixture;
mod gate;
mod host;
mod launches;
mod methods;
mod reach;
pub mod recover;
mod runtime;

pub use compare::{Incomparable, compare};
pub use crossover::crossovers;
pub use gate::{Judgement, Verdict, judgements};
pub use host::host;
pub use launches::launches;
pub use methods::{best_methods, buffers, cliffs};
pub use reach::reaches;
pub use runtime::{accessors, runs};
