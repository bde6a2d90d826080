//! What does it cost to look at a clock?
//!
//! Traffic: none.
//! Unit: nanoseconds for each reading, many in a row. For `fenced_pair` both stamps around a sample are made;
//! what they show around nothing is less, stands in the record as `timer_cost_ns`, and is subtracted from every
//! sample of every question.
//! Spoiled by: a virtual machine that intercepts the instruction (then it is a microsecond instead of some ten
//! nanoseconds); a system clock that is not read from the counter. `CPUID` is never used: in a virtual machine it
//! always leaves the guest.
//! Method: TACC TR-14-10 asks what its inline time stamps cost.

use crate::case::{Axes, Case};
use crate::question::Question;
use lanemark_machine::{Clock, Facts, Op, Plan};
use lanemark_method::Method;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "timer_cost",
    summary: "time it takes to read a clock: rdtsc, rdtscp, fenced, clock_gettime",
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
    let Method::Clock { clock } = case.method else { return Plan::on_one_core(Vec::new(), passes) };
    Plan::on_one_core(vec![Op::Clock(clock)], passes)
}
