//! What a record means: which way to use, what stands out, what cannot be true, what changed, and why.
//!
//! Reads answers only; it measures nothing and knows no machine.

#![forbid(unsafe_code)]

mod compare;
#[cfg(test)]
mod fixture;
mod gate;
mod ways;

pub use compare::{Incomparable, compare};
pub use gate::{Judgement, Verdict, judgements};
pub use ways::{best_ways, cliffs};
