//! What does it cost to enter the kernel, when it has nothing to do?
//!
//! Traffic: none.
//! Unit: nanoseconds for each call, there and back; for `eventfd` nanoseconds *one way*, from the thread that wakes
//! to the thread that was asleep on another core. One way is half the round trip: there is one clock for both
//! directions, and nothing tells which of them is slower.
//! Spoiled by: system calls that are filtered or traced (`seccomp`, containers), mitigations that empty buffers at
//! every entry; for the wake, a core that sleeps deeply, or that somebody else uses.
//! The least price of a driver: `getppid` is a call that does nothing, a failing `ioctl` is what a device file adds,
//! and the wake is what it costs to wait for an interrupt instead of polling.

use crate::case::{Axes, Case, Through};
use crate::core_to_core::{exchange, exchanged};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::question::Question;
use crate::sampling::{answer, measure};
use lanemark_machine::{Channel, Facts, KernelCall, Machine, Op, Plan};
use lanemark_record::{Answer, Detail, Pair, Quantity};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "kernel_entry",
    summary: "time of a call that does nothing, of an ioctl that fails, of waking a thread",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 8,
    most_passes: 1 << 14,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: false,
    left_out: |_| None,
};

/// Wakes each way in one sample.
const WAKES: u64 = 4;

fn cases(facts: &Facts, _: &Axes) -> Vec<Case> {
    let calls = KernelCall::ALL.map(Through::Kernel).into_iter();
    let wake = (facts.cores > 1).then_some(Through::Wake(Pair { from_core: 0, to_core: 1 }));
    calls.chain(wake).filter_map(|through| Case::of_nothing(facts, through)).collect()
}

fn plan(case: &Case, passes: u64) -> Plan {
    match case.through {
        Through::Kernel(call) => Plan::on_one_core(vec![Op::Kernel(call)], passes),
        Through::Wake(pair) => {
            let event = |number| Channel::Event { number };
            exchange(pair, event(0), event(1), passes)
        }
        _ => Plan::on_one_core(Vec::new(), passes),
    }
}

fn ask(question: &Question, machine: &mut dyn Machine, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
    let Through::Wake(pair) = case.through else {
        let measured = measure(machine, &plan(case, 1), question.most_passes, effort)?;
        return Ok(answer(question, case, machine.facts(), &measured));
    };
    let (measured, one_way) = exchanged(machine, &plan(case, WAKES), effort)?;
    let mut answer = answer(question, case, machine.facts(), &measured.with_latencies(one_way));
    answer.detail = Some(Detail::Pair(pair));
    Ok(answer)
}
