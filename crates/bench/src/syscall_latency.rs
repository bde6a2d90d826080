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

use crate::caller::Caller;
use crate::case::{Axes, Case};
use crate::core_to_core::exchange;
use crate::question::Question;
use lanemark_machine::{Channel, Facts, KernelCall, Op, Plan};
use lanemark_method::{Method, WakeBy};
use lanemark_record::{CorePair, Quantity};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "syscall_latency",
    summary: "time of a call that does nothing, of an ioctl that fails, of waking a thread",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 8,
    most_passes: |case| if matches!(case.method, Method::Wake { .. }) { WAKES } else { 1 << 14 },
    // Of a wake, one there and one back.
    accesses_per_pass: |case| if matches!(case.method, Method::Wake { .. }) { 2 } else { 1 },
    ask: None,
    is_usual: false,
    left_out: |_| None,
};

/// Wakes each way in one sample, for the reason that messages between cores have theirs.
const WAKES: u64 = 4;

fn cases(facts: &Facts, _: &Axes) -> Vec<Case> {
    let calls = KernelCall::ALL.map(|call| (Method::KernelCall { call }, Caller::AsPlanned)).into_iter();
    let pair = Caller::Between(CorePair { from_core: 0, to_core: 1 });
    let wake = (facts.cores > 1).then_some((Method::Wake { by: WakeBy::Eventfd }, pair));
    let of = |(method, caller)| Some(Case { caller, ..Case::of_nothing(facts, method)? });
    calls.chain(wake).filter_map(of).collect()
}

fn plan(case: &Case, passes: u64) -> Plan {
    match (&case.method, case.caller) {
        (Method::KernelCall { call }, _) => Plan::on_one_core(vec![Op::Kernel(*call)], passes),
        (Method::Wake { .. }, Caller::Between(pair)) => {
            let event = |number| Channel::Event { number };
            exchange(pair, event(0), event(1), passes.max(WAKES))
        }
        _ => Plan::on_one_core(Vec::new(), passes),
    }
}
