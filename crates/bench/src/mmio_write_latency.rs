//! How long until a store is accepted by the device?
//!
//! Traffic: the `MWr` of one store, nothing else in flight.
//! Unit: nanoseconds, one way, from the issue of the instruction to the last byte accepted at the device;
//! on ordinary memory to the end of a fence after it.
//! Spoiled by: a store to WC memory that fills no line leaves only when something flushes it; here it is
//! flushed at once, so that the time is the least possible.

use crate::case::{Axes, Case, Wanted, own_width};
use crate::question::Question;
use lanemark_machine::{Facts, Op, Plan, Stream, Verb};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "mmio_write_latency",
    summary: "time from a store's issue to its acceptance at the device, one way",
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
    let mut body = vec![Op::Stream(Stream::over(Verb::Store, case.access(), case.span()))];
    body.extend(case.fence().map(Op::Fence));
    Plan::on_one_core(body, passes)
}
