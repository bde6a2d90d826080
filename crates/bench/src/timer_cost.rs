//! How long does it take to read a clock?
//!
//! Traffic: none.
//!
//! Unit: nanoseconds per reading, many back to back. `fenced_pair` takes both time stamps of a
//! sample. An empty sample measures less than this; that time is `timer_cost_ns` in the record, and
//! is subtracted from every sample of every question.
//!
//! Spoiled by: a virtual machine that intercepts the instruction (a microsecond instead of tens of
//! nanoseconds); a system clock that is not read from the counter. `CPUID` is never used, because
//! it always leaves a guest.
//!
//! Method: TACC TR-14-10 measures the cost of its inline time stamps.

use crate::case::{Axes, Case};
use crate::question::Question;
use lanemark_machine::{Clock, Facts, Operation, Plan};
use lanemark_method::Method;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "timer_cost",
    summary: "time to read a clock: rdtsc, rdtscp, fenced, clock_gettime",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 8,
    most_passes: |_| 1 << 14,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: false,
    left_out: |_| None,
};

fn cases(facts: &Facts, _: &Axes) -> Vec<Case> {
    Clock::ALL.into_iter().filter_map(|clock| Case::of_nothing(facts, Method::Clock { clock })).collect()
}

fn plan(case: &Case, passes: u64) -> Plan {
    let Method::Clock { clock } = case.method else { return Plan::empty() };
    Plan::new(Operation::Clock(clock), passes)
}
