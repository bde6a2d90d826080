//! How much longer does an interrupt take than polling?
//!
//! Traffic: that of `doorbell_to_completion`, with notification by a message (MSI) and by a word in
//! memory.
//!
//! Unit: added nanoseconds of the message, until the waiting thread runs again.
//!
//! Spoiled by: a deep idle state of the core; interrupt coalescing in the device; a scheduler that
//! moves the thread.
//!
//! Method: the difference of the same transfer with the two notifications. On a device that writes no
//! flag, the core polls the register that shows the end.

use crate::case::Case;
use crate::dma_call::{self, Asked, WRITTEN};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::needs;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, measure_together};
use lanemark_machine::{Completion, Descriptors, Facts, Machine, Share, Verb};
use lanemark_method::Method;
use lanemark_record::{Answer, Quantity};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "interrupt_latency",
    summary: "added time of waking a thread by interrupt, compared with polling a word",
    quantity: Quantity::Overhead,
    cases: |facts, axes| dma_call::cases(facts, axes, Verb::Store, &[way(facts)], &[64]),
    plan: dma_call::plan,
    simulated_passes: |_| 4,
    most_passes: |_| 4096,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: true,
    left_out: needs::dma_driver,
};

/// A doorbell where a flag shows the end; otherwise registers that describe one transfer, and one that shows its end.
fn way(facts: &Facts) -> Asked {
    let has_flag = facts.dma.is_none_or(|dma| dma.has_flag);
    let fetches_only = facts.dma.is_some_and(|dma| dma.fetches_only);
    let descriptors = if fetches_only { Descriptors::Fetched } else { WRITTEN };
    (if has_flag { Share::Doorbell } else { Share::List }, descriptors, Completion::Interrupt)
}

/// Place that the core polls instead of waiting for the interrupt: memory or a register.
fn polled(case: &Case) -> Completion {
    match case.method {
        Method::DmaCall { share: Share::List, .. } => Completion::Register,
        _ => Completion::Flag,
    }
}

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    let timed = |notified| {
        let mut timed = case.clone();
        if let Method::DmaCall { completion, .. } = &mut timed.method {
            *completion = notified;
        }
        timed
    };
    let wanted = [Completion::Interrupt, polled(case)].map(|completion| Wanted {
        name: completion.name().to_owned(),
        plan: dma_call::plan(&timed(completion), (question.simulated_passes)(case)),
        most_passes: (question.most_passes)(case),
    });
    let mut measured = measure_together(machine, wanted.into(), effort)?;
    let (Some(polled), Some(interrupt)) = (measured.pop(), measured.pop()) else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let interrupt = interrupt.minus(Some(&polled), |sample| sample.issue, 1.0);
    Ok(answer(question, case, machine.facts(), &interrupt, effort))
}
