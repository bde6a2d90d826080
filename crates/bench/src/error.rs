//! Why a question got no answer.

use lanemark_machine::MachineError;

/// Why a question got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The machine did not run the plan.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A question that fits a line had fewer than two points.
    #[error("{question}: a line needs two sizes of call; ask for 8 KiB or more")]
    TooFewPoints {
        /// Which question.
        question: &'static str,
    },
}
