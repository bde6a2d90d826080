//! At which rate do streaming loads (MOVNTDQA) read write-combining memory?
//!
//! Traffic: `MRd` of 64 B downstream, `CplD` upstream; the streaming buffers limit the number in
//! flight.
//!
//! Unit: bytes per second until the last load completes.
//!
//! Spoiled by: memory types other than WC, where MOVNTDQA is a plain load. On ordinary memory (WB),
//! the answer is the cost there and not that of a device.
//!
//! Method: section 5.1 of TACC TR-14-10, which only models it.

use crate::case::{Axes, Case, Wanted};
use crate::mmio_read_bandwidth;
use crate::question::Question;
use lanemark_machine::{Access, Facts, Verb};
use lanemark_record::Quantity;
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "streaming_load_bandwidth",
    summary: "rate of MOVNTDQA loads from write-combining memory",
    quantity: Quantity::Bandwidth,
    cases,
    plan: mmio_read_bandwidth::plan,
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
        access: |access| matches!(access, Access::NonTemporal(_)),
        memory_type: |kind| matches!(kind, MemoryType::Wc | MemoryType::Wb),
        fence: None,
        sizes: |axes, region, _, _| axes.sizes_in(region),
    };
    axes.cases(facts, Verb::Load, region, &wanted)
}
