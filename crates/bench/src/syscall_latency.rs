//! How long does it take to enter the kernel and return?
//!
//! Traffic: none.
//!
//! Unit: nanoseconds per call; for `eventfd` nanoseconds *one way*, from the waking thread to the
//! thread that slept on another core. One way is half the round trip: both directions share one
//! clock, so their difference cannot be measured.
//!
//! Spoiled by: filtered or traced system calls (`seccomp`, containers); mitigations that flush
//! buffers at every entry; for the wake, a deep idle state or other threads on the core.
//!
//! These are the lower bounds of a driver's cost: `getppid` does nothing, a failing `ioctl` adds a
//! device file, and the wake is the price of waiting for an interrupt instead of polling.

use crate::caller::Caller;
use crate::case::{Axes, Case};
use crate::core_to_core::exchange;
use crate::question::Question;
use lanemark_machine::{Facts, KernelCall, Medium, Operation, Plan};
use lanemark_method::{Method, WakeBy};
use lanemark_record::{CorePair, Quantity};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "syscall_latency",
    summary: "time of an empty system call, of a failing ioctl, of waking a thread",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 8,
    most_passes: |case| if matches!(case.method, Method::Wake { .. }) { WAKES } else { 1 << 14 },
    // A wake has one message in each direction.
    accesses_per_pass: |case| if matches!(case.method, Method::Wake { .. }) { 2 } else { 1 },
    ask: None,
    is_usual: false,
    left_out: |_| None,
};

/// Wakes in each direction per sample; fixed for the same reason as the messages of `core_to_core`.
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
        (Method::KernelCall { call }, _) => Plan::new(Operation::KernelCall(*call), passes),
        (Method::Wake { .. }, Caller::Between(pair)) => exchange(pair, Medium::Events, passes.max(WAKES)),
        _ => Plan::empty(),
    }
}
