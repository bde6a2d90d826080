//! At which rate does a runtime copy between a program and its device?
//!
//! Traffic: that of the runtime; none if the device is the same processor.
//!
//! Unit: bytes per second, one copy at a time. Issue: until the source buffer may be reused;
//! delivered: until the copy is complete. With `finish` these are two calls, a blocking copy and a
//! wait for the queue, and the first can return long before the second. With `event` there is one
//! wait.
//!
//! Spoiled by: other programs; a runtime that copies with several threads on few cores.

use crate::case::{Axes, Case};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Allocation, Facts, HostWait, Plan, RuntimeCopy, Verb};
use lanemark_method::{CopyDirection, Method};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "runtime_copy",
    summary: "rate of copies by a runtime, by size: until its source is free, and until completion",
    quantity: Quantity::Bandwidth,
    cases,
    plan,
    simulated_passes: |_| 1,
    // A second copy would complete the first before it is waited for.
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: false,
    left_out: needs::kernel_runtime,
};

/// From a word to more than any processor's cache; many programs copy 80 kB and 8 MB.
const SIZES: [u64; 6] = [64, 4096, 80_000, 1 << 20, 8_000_000, 64 << 20];

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(runtime) = &facts.runtime else { return Vec::new() };
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let ways = [Verb::Store, Verb::Load].into_iter().flat_map(|verb| HostWait::ALL.map(|wait| (verb, wait)));
    let ways = ways.flat_map(|(verb, wait)| runtime.allocations.iter().map(move |held| (verb, wait, *held)));
    ways.flat_map(|(verb, wait, held)| sizes.iter().map(move |bytes| case(verb, wait, held, *bytes))).collect()
}

fn case(verb: Verb, wait: HostWait, allocation: Allocation, size: u64) -> Case {
    Case::of_runtime(size, Method::RuntimeCopy { direction: CopyDirection::of(verb), wait, allocation })
}

fn plan(case: &Case, passes: u64) -> Plan {
    let Method::RuntimeCopy { direction, wait, allocation } = case.method else {
        return Plan::empty();
    };
    let moved = RuntimeCopy { verb: direction.verb(), bytes: case.size, wait, allocation };
    // The first copy of a buffer may allocate it on the device.
    Plan { warmup_passes: 1, ..Plan::new(moved, passes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::QueueRequest;

    #[test]
    fn each_direction_and_wait_is_a_separate_method() {
        let words = |verb, wait| case(verb, wait, Allocation::Buffer, 64).method.to_string();
        assert_eq!(words(Verb::Store, HostWait::Finish), "to device by runtime, wait by finish");
        assert_eq!(words(Verb::Load, HostWait::Event), "from device by runtime, wait by event");
        let plan = (QUESTION.plan)(&case(Verb::Load, HostWait::Event, Allocation::Buffer, 80_000), 1);
        let copy =
            RuntimeCopy { verb: Verb::Load, bytes: 80_000, wait: HostWait::Event, allocation: Allocation::Buffer };
        assert_eq!(plan.work.request(), Some(&QueueRequest::Copy(copy)));
    }
}
