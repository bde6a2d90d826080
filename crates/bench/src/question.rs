//! The parts of a question.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use lanemark_machine::{Facts, Machine, Plan};
use lanemark_record::{Answer, Quantity};

/// One question.
#[derive(Clone, Copy)]
pub struct Question {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Quantity of the headline figure.
    pub quantity: Quantity,
    /// The variants for a machine.
    pub cases: fn(&Facts, &Axes) -> Vec<Case>,
    /// The plan of a variant with the given number of iterations.
    pub plan: fn(&Case, u64) -> Plan,
    /// Iterations per sample in virtual time.
    pub simulated_passes: fn(&Case) -> u64,
    /// Largest number of iterations per sample in real time; 1 if a second iteration would hide the
    /// effect.
    pub most_passes: fn(&Case) -> u64,
    /// Number of accesses or messages per iteration, by which a latency is divided, or of blocks of
    /// the case's size, which a bandwidth counts.
    pub accesses_per_pass: fn(&Case) -> u64,
    /// Measurement of a question that needs several plans.
    pub ask: Option<MeasureFn>,
    /// Whether it is asked by default, if no question is named.
    pub is_usual: bool,
    /// Variants that are not asked of a machine, with the reason; `None` if all are.
    pub left_out: fn(&Facts) -> Option<LeftOut>,
}

/// Questions about the processor alone, whose samples cost little and scatter much.
const WITH_INTERVAL: [&str; 4] = ["core_to_core", "copy_routines", "dma_map_cost", "fence_cost"];

impl Question {
    /// Whether an answer without an interval is none: every variant gets the samples of an interval,
    /// even if that exceeds the budget, and ends with [`BenchError::TooFewSamples`] if too many are
    /// dropped.
    #[must_use]
    pub fn needs_interval(&self) -> bool {
        WITH_INTERVAL.contains(&self.name)
    }
}

/// Variants of a question that are not asked, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The variants.
    pub what: String,
    /// The reason.
    pub because: String,
}

impl LeftOut {
    /// All variants of a question.
    pub const ALL: &'static str = "the question";

    /// Leaves out the whole question.
    #[must_use]
    pub fn all(because: &str) -> LeftOut {
        LeftOut { what: LeftOut::ALL.to_owned(), because: because.to_owned() }
    }

    /// Whether the whole question is left out.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.what == LeftOut::ALL
    }
}

/// Measures a question that needs several plans, and reports progress within long answers.
pub type MeasureFn = fn(&Question, &mut dyn Machine, &Case, &Effort, Watch<'_>) -> Result<Answer, BenchError>;

/// Receives progress (the share of one answer, or the number of completed ones) and returns whether
/// to continue.
pub type Watch<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Whether the formulas of a case's plans answer the question. Differences of lower bounds, which
/// are all that formulas have for several threads, do not.
#[must_use]
pub fn has_formula(question: &Question, case: &Case) -> bool {
    question.quantity != Quantity::Overhead || case.threads() == 1
}
