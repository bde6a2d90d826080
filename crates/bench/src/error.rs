//! Why a question got no answer.

use lanemark_machine::MachineError;

impl BenchError {
    /// Whether the machine has failed, so that asking more of it is of no use.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        match self {
            BenchError::Machine(MachineError::Device { .. }) => true,
            BenchError::Machine(MachineError::Bus(error)) => !error.ends_plan_only,
            _ => false,
        }
    }
}

/// Why a question got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The machine did not run the plan.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The machine had failed in a case before, for good.
    #[error("not asked, because the machine had failed before")]
    NotAsked,
    /// A question that fits a line had fewer than two points.
    #[error("{question}: a line needs two sizes of call; ask for 8 KiB or more")]
    TooFewPoints {
        /// Which question.
        question: &'static str,
    },
}
