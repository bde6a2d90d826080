//! What is the latency of a load from a device register?
//!
//! Traffic: one `MRd` downstream, one `CplD` upstream, nothing else in flight. Each load is fenced,
//! and lines of cached memory types are flushed after it.
//!
//! Unit: nanoseconds, round trip, seen by the core.
//!
//! Spoiled by: speculation on WC memory, which the fence prevents (TACC TR-14-10 saw loads that
//! were too fast without it); ASPM; changes of the clock frequency.
//!
//! Method: eight loads of the same register between two time stamps, as in that report.

use crate::case::{Axes, Case, Wanted, own_width};
use crate::question::Question;
use lanemark_machine::{Access, Facts, Fence, Plan, Step, Stream, Verb};
use lanemark_record::Quantity;
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "mmio_read_latency",
    summary: "round-trip latency of a load from a device register",
    quantity: Quantity::RoundTripLatency,
    cases,
    plan,
    simulated_passes: |_| 8,
    most_passes: |_| 4096,
    accesses_per_pass: |case| case.access().width().map_or(1, |width| case.size.div_ceil(width.bytes())),
    ask: None,
    is_usual: true,
    left_out: |_| None,
};

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.registers().or(facts.storage())) else { return Vec::new() };
    let wanted = Wanted {
        access: |access| matches!(access, Access::Plain(_)),
        memory_type: |_| true,
        fence: Some(Fence::Lfence),
        sizes: own_width,
    };
    axes.cases(facts, Verb::Load, region, &wanted)
}

fn plan(case: &Case, passes: u64) -> Plan {
    let stream = Stream { fence_each: case.fence(), ..Stream::over(Verb::Load, case.access(), case.span()) };
    let mut body = vec![Step::Stream(stream)];
    if matches!(case.memory_type(), MemoryType::Wt | MemoryType::Wp) {
        body.push(Step::FlushLines(case.span()));
    }
    Plan::new(body, passes)
}
