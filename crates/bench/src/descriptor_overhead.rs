//! How much does a driver call add to the device's own time for a transfer?
//!
//! Traffic: that of the call, and of the same transfer by the device alone.
//!
//! Unit: nanoseconds per call: pinning, building the descriptor list and transferring it, the
//! doorbell, the interrupt, unpinning. With one descriptor per page, descriptors dominate large
//! transfers.
//!
//! Methods: the core writes the descriptors to the device, through UC or WC memory, or the device
//! fetches them from host memory.
//!
//! Spoiled by: absent pages; a list that was built in advance.
//!
//! Method: a complete call, minus the same transfer timed by the device itself. With several
//! threads, each on its own channel: until the last of them is notified, minus as many transfers on
//! as many channels.

use crate::case::Case;
use crate::dma;
use crate::dma_call::{self, Asked, WRITTEN};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::needs;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, measure_together};
use lanemark_machine::{Completion, Descriptors, Machine, Share, Verb};
use lanemark_method::Method;
use lanemark_record::{Answer, Quantity};
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "descriptor_overhead",
    summary: "added time of a driver call over the same DMA alone, with written or fetched descriptors",
    quantity: Quantity::Overhead,
    cases: |facts, axes| {
        let of = |verb| dma_call::cases(facts, axes, verb, &WAYS, &[4096, 65536, 1 << 20, 4 << 20]);
        if axes.flows.is_some() { [of(Verb::Store), of(Verb::Load)].concat() } else { of(Verb::Store) }
    },
    plan: dma_call::plan,
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: true,
    left_out: needs::dma_driver,
};

const WAYS: [Asked; 3] = [
    (Share::Call, WRITTEN, Completion::Interrupt),
    (Share::Call, Descriptors::Written(MemoryType::Wc), Completion::Interrupt),
    (Share::Call, Descriptors::Fetched, Completion::Interrupt),
];

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    let Method::DmaCall { flows, reach, .. } = case.method.clone() else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let alone = Case { method: Method::Dma { flows, outstanding: None, reach }, ..case.clone() };
    let wanted = [("call", dma_call::plan(case, 1)), ("device alone", dma::plan(&alone, u64::from(case.threads()), 1))]
        .map(|(name, plan)| Wanted { name: name.to_owned(), plan, most_passes: (question.most_passes)(case) });
    let mut measured = measure_together(machine, wanted.into(), effort)?;
    let (Some(alone), Some(call)) = (measured.pop(), measured.pop()) else {
        return Err(BenchError::TooFewPoints { question: question.name });
    };
    let call = call.minus(Some(&alone), |sample| sample.delivered, 1.0);
    Ok(answer(question, case, machine.facts(), &call, effort))
}
