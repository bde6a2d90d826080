//! At which rate does a core store to a device?
//!
//! Traffic: `MWr` downstream; upstream only credits and acknowledgments.
//!
//! Unit: bytes per second; *delivered* until the last byte is accepted, *issue* until the last
//! instruction.
//!
//! Spoiled by: an iteration that fits into the buffers on the path (then *issue* exceeds
//! *delivered*). Combined stores, to WC memory or non-temporal, of a size that is not a multiple of
//! 64 B are fenced after each iteration, because the next one would be combined into the open line.
//!
//! Method: repeated iterations over the same range, as in `wc_perf` of the F1 application note.

use crate::case::{Axes, Case, Wanted};
use crate::question::Question;
use lanemark_machine::{Access, Facts, Fence, Plan, Step, Stream, Verb};
use lanemark_method::Method;
use lanemark_record::Quantity;
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "mmio_write_bandwidth",
    summary: "rate of stores to a device, by instruction, memory type and size",
    quantity: Quantity::Bandwidth,
    cases,
    plan,
    simulated_passes,
    most_passes: |_| 4096,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: |_| None,
};

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.storage()) else { return Vec::new() };
    let wanted = Wanted {
        // `copy_routines` compares `copy_to_device` with the others.
        access: |access| access != Access::CopyToDevice,
        memory_type: |_| true,
        fence: None,
        sizes: |axes, region, access, kind| match (kind, access) {
            (MemoryType::Wc | MemoryType::Wb, Access::Movdiri(_)) => axes.sizes_one_at_a_time(region),
            (MemoryType::Wc | MemoryType::Wb, _) => axes.sizes_in(region),
            _ => axes.sizes_one_at_a_time(region),
        },
    };
    let mut cases = axes.cases(facts, Verb::Store, region, &wanted);
    for case in &mut cases {
        if is_gathered(case)
            && (case.size % 64 + case.alignment) % 64 != 0
            && let Method::Core(core) = &mut case.method
        {
            core.fence = core.fence.or(Some(Fence::Sfence));
        }
    }
    cases
}

/// Whether its stores go to a write-combining buffer.
///
/// Source: Intel SDM volume 1, 10.4.6.2: a non-temporal hint makes WT and WB memory combine writes; UC and WP override it.
fn is_gathered(case: &Case) -> bool {
    let is_non_temporal = matches!(case.access(), Access::NonTemporal(_));
    match case.memory_type() {
        MemoryType::Wc => true,
        MemoryType::Wt | MemoryType::Wb => is_non_temporal,
        _ => false,
    }
}

fn plan(case: &Case, passes: u64) -> Plan {
    let mut body = vec![Step::Stream(Stream::over(Verb::Store, case.access(), case.span()))];
    body.extend(case.fence().map(Step::Fence));
    Plan::new(body, passes)
}

/// Enough for a steady state, few enough to be quick: at most 16 KiB or one iteration.
fn simulated_passes(case: &Case) -> u64 {
    ((16 << 10) / case.size).clamp(1, 64)
}
