//! Errors of questions.

use lanemark_machine::MachineError;
use lanemark_record::LEAST_SAMPLES;

impl BenchError {
    /// Whether the machine has failed permanently, so that further questions are useless.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        match self {
            BenchError::Machine(MachineError::Device { .. }) => true,
            BenchError::Machine(MachineError::Bus(error)) => !error.ends_plan_only,
            _ => false,
        }
    }
}

/// A question has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The machine did not complete the plan.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The machine failed permanently in an earlier case.
    #[error("not measured: the machine failed in an earlier case")]
    NotAsked,
    /// The budget does not suffice for all default sizes, and this one was left out.
    #[error("left out after the first round: the time budget does not suffice for every default size")]
    LeftOut,
    /// There are too few samples for an interval, without which this question has no answer.
    #[error(
        "no answer: it has {samples} of the {LEAST_SAMPLES} samples that an interval needs, because samples were dropped or the run was interrupted; stop other programs and measure again"
    )]
    TooFewSamples {
        /// Number of samples.
        samples: usize,
    },
    /// A question that fits a line has fewer than two points.
    #[error("{question}: the line fit needs two sizes of calls: use --sizes of 8 KiB or more")]
    TooFewPoints {
        /// The question.
        question: &'static str,
    },
}
