//! What a question is made of.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
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
    pub most_passes: fn(&Case) -> u64,
    /// What one pass has several of: accesses or messages that a latency is divided by, blocks of the case's size that a
    /// bandwidth moves.
    pub accesses_per_pass: fn(&Case) -> u64,
    /// For questions that need several plans: how they are asked.
    pub ask: Option<AskItself>,
    /// Whether it is asked where no question is named.
    pub is_usual: bool,
    /// What of a machine is not asked about, and why; `None` if all is.
    pub left_out: fn(&Facts) -> Option<LeftOut>,
}

/// Something a question does not ask, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which variants.
    pub what: String,
    /// Why not.
    pub because: String,
}

impl LeftOut {
    /// All variants.
    pub const ALL: &'static str = "the question";

    /// The whole question, for this reason.
    #[must_use]
    pub fn all(because: &str) -> LeftOut {
        LeftOut { what: LeftOut::ALL.to_owned(), because: because.to_owned() }
    }

    /// Whether it is all of the question.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.what == LeftOut::ALL
    }
}

/// Asks a question that needs several plans. Where an answer takes long by nature, it tells how far it is.
pub type AskItself = fn(&Question, &mut dyn Machine, &Case, &Effort, Watch<'_>) -> Result<Answer, BenchError>;

/// Receives the progress (of one answer its share, of several how many are done) and returns whether to go on.
pub type Watch<'a> = &'a mut dyn FnMut(f64) -> bool;

/// Whether what formulas say to a case's plans is an answer to the question: a difference of lower bounds, which is all they know of
/// several threads, is none.
#[must_use]
pub fn has_formula(question: &Question, case: &Case) -> bool {
    question.quantity != Quantity::Overhead || case.threads() == 1
}
