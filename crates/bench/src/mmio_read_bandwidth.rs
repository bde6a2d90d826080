//! At which rate does a core load from a device?
//!
//! Traffic: `MRd` downstream, `CplD` upstream; the memory type limits the number in flight.
//!
//! Unit: bytes per second until the last load completes.
//!
//! Spoiled by: cached memory types, where a second iteration would hit the cache. Their lines are
//! flushed after each iteration.
//!
//! See also `streaming_load_bandwidth`, where MOVNTDQA loads whole lines of WC memory.

use crate::case::{Axes, Case, Wanted};
use crate::question::Question;
use lanemark_machine::{Access, Facts, Plan, Step, Stream, Verb};
use lanemark_record::Quantity;
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "mmio_read_bandwidth",
    summary: "rate of loads from a device, by instruction, memory type and size",
    quantity: Quantity::Bandwidth,
    cases,
    plan,
    simulated_passes: |case| ((4 << 10) / case.size).clamp(1, 8),
    most_passes: |_| 4096,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: |_| None,
};

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.storage()) else { return Vec::new() };
    let wanted = Wanted {
        access: |access| !matches!(access, Access::NonTemporal(_)),
        memory_type: |_| true,
        fence: None,
        sizes: |axes, region, _, kind| match kind {
            MemoryType::Uc | MemoryType::Wc => axes.sizes_one_at_a_time(region),
            _ => axes.sizes_in(region),
        },
    };
    axes.cases(facts, Verb::Load, region, &wanted)
}

pub(crate) fn plan(case: &Case, passes: u64) -> Plan {
    let stream = Stream { fence_each: case.fence(), ..Stream::over(Verb::Load, case.access(), case.span()) };
    let mut body = vec![Step::Stream(stream)];
    if matches!(case.memory_type(), MemoryType::Wt | MemoryType::Wp) {
        body.push(Step::FlushLines(case.span()));
    }
    Plan::new(body, passes)
}
