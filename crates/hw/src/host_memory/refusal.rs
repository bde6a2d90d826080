//! Why a plan cannot be run here.

use lanemark_machine::{Facts, MachineError, Span, Unsupported};

/// Why a plan is not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// The machine has not got it.
    Unsupported {
        what: String,
        because: String,
    },
    OutOfRange(Span),
}

impl Refusal {
    pub(super) fn new(what: impl Into<String>, because: impl Into<String>) -> Refusal {
        Refusal::Unsupported { what: what.into(), because: because.into() }
    }

    /// As [`supports`](lanemark_machine::Machine::supports) tells it.
    pub(super) fn into_unsupported(self, facts: &Facts) -> Unsupported {
        let (what, because) = match self {
            Refusal::Unsupported { what, because } => (what, because),
            Refusal::OutOfRange(span) => {
                let what = format!("a span of {} B at {}", span.len, span.at);
                (what, format!("it lies outside every region; the regions are {}", regions(facts)))
            }
        };
        Unsupported { what, machine: facts.name.clone(), because }
    }

    /// As [`run`](lanemark_machine::Machine::run) tells it.
    pub(super) fn into_error(self, facts: &Facts) -> MachineError {
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

/// Refuses a span outside the regions or of another memory type.
pub(super) fn within(span: Span, facts: &Facts) -> Result<(), Refusal> {
    if !facts.memory_types.contains(&span.memory_type) {
        let because = "ordinary memory is WB, and a program cannot change that";
        return Err(Refusal::new(format!("a span that is {}", span.memory_type), because));
    }
    let fits = facts.regions.iter().any(|region| {
        let inside = span.at.offset.checked_sub(region.at.offset);
        region.at.bar == span.at.bar
            && inside.is_some_and(|start| start <= region.len && span.len <= region.len - start)
    });
    if fits { Ok(()) } else { Err(Refusal::OutOfRange(span)) }
}
