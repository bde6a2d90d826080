//! How long does a store take until the device accepts it?
//!
//! Traffic: the `MWr` of one store; nothing else in flight.
//!
//! Unit: nanoseconds, one way, from the issue of the instruction to the last byte accepted at the
//! device; on ordinary memory to the end of a fence after it.
//!
//! Spoiled by: a store to WC memory that does not fill a line leaves only when it is flushed. Here
//! it is flushed immediately, so that the time is the shortest possible.

use crate::case::{Axes, Case, Wanted, own_width};
use crate::question::Question;
use lanemark_machine::{Facts, Plan, Step, Stream, Verb};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "mmio_write_latency",
    summary: "one-way latency of a store, from its issue to its acceptance at the device",
    quantity: Quantity::OneWayLatency,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: |_| None,
};

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.storage()) else { return Vec::new() };
    let wanted =
        Wanted { access: |access| access.width().is_some(), memory_type: |_| true, fence: None, sizes: own_width };
    axes.cases(facts, Verb::Store, region, &wanted)
}

fn plan(case: &Case, passes: u64) -> Plan {
    let mut body = vec![Step::Stream(Stream::over(Verb::Store, case.access(), case.span()))];
    body.extend(case.fence().map(Step::Fence));
    Plan::new(body, passes)
}
