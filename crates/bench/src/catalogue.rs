//! The catalogue: a row a question.

use crate::case::{Axes, Case};
use crate::sampling::Effort;
use crate::{
    driver_call_overhead, mmio_read_bandwidth, mmio_read_latency, mmio_write_bandwidth, mmio_write_latency,
    streaming_load_bandwidth,
};
use lanemark_machine::{Facts, Machine, Plan};
use lanemark_record::{Answer, Quantity};

/// One question.
#[derive(Clone, Copy)]
pub struct Question {
    /// Its name on the command line and in records.
    pub name: &'static str,
    /// What it asks, in one line.
    pub summary: &'static str,
    /// What the headline figure is.
    pub quantity: Quantity,
    /// The variants that make sense for a machine.
    pub cases: fn(&Facts, &Axes) -> Vec<Case>,
    /// How a variant becomes a plan of this many passes.
    pub plan: fn(&Case, u64) -> Plan,
    /// Passes of one sample where time is virtual.
    pub simulated_passes: fn(&Case) -> u64,
    /// The most passes of one sample where time is real; 1 where a second pass would hide what is asked for.
    pub most_passes: u64,
    /// Accesses in one pass that a latency is divided by; 1 for bandwidths.
    pub accesses_per_pass: fn(&Case) -> u64,
    /// For questions that need several plans: how they are asked.
    pub ask: Option<AskItself>,
}

/// Asks a question that needs several plans.
pub type AskItself =
    fn(&Question, &mut dyn Machine, &Case, &Effort) -> Result<Answer, crate::sampling::BenchError>;

/// Every question, in the order they are asked.
pub const CATALOGUE: &[Question] = &[
    mmio_write_bandwidth::QUESTION,
    mmio_write_latency::QUESTION,
    mmio_read_latency::QUESTION,
    mmio_read_bandwidth::QUESTION,
    streaming_load_bandwidth::QUESTION,
    driver_call_overhead::QUESTION,
];

/// The question of this name.
#[must_use]
pub fn question(name: &str) -> Option<&'static Question> {
    CATALOGUE.iter().find(|question| question.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (place, row) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..place].iter().all(|other| other.name != row.name));
            assert_eq!(question(row.name).map(|found| found.name), Some(row.name));
        }
    }
}
