//! Reasons why a plan cannot run.

use lanemark_machine::{Facts, MachineError, Span, Unsupported};

/// Reason why a plan cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The machine does not support it.
    Unsupported {
        what: String,
        because: String,
    },
    OutOfRange(Span),
}

impl Refusal {
    pub(crate) fn new(what: impl Into<String>, because: impl Into<String>) -> Refusal {
        Refusal::Unsupported { what: what.into(), because: because.into() }
    }

    /// Converts the reason to the error of [`supports`](lanemark_machine::Machine::supports).
    pub(crate) fn into_unsupported(self, facts: &Facts) -> Unsupported {
        let (what, because) = match self {
            Refusal::Unsupported { what, because } => (what, because),
            Refusal::OutOfRange(span) => {
                let what = format!("a span of {} B at {}", span.len, span.at);
                (what, format!("it is outside every region; regions: {}", regions(facts)))
            }
        };
        Unsupported { what, machine: facts.name.clone(), because }
    }

    /// Converts the reason to the error of [`run`](lanemark_machine::Machine::run).
    pub(crate) fn into_error(self, facts: &Facts) -> MachineError {
        match self {
            Refusal::OutOfRange(Span { at, len, .. }) => {
                MachineError::OutOfRange { machine: facts.name.clone(), at, len, regions: regions(facts) }
            }
            Refusal::Unsupported { .. } => self.into_unsupported(facts).into(),
        }
    }
}

fn regions(facts: &Facts) -> String {
    facts.regions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
