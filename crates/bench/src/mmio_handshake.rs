//! How long does it take to hand a request to a device and to fetch its result, by loads and stores
//! alone?
//!
//! Traffic: the `MWr` of the data downstream; `MRd` and `CplD` of the status register until it
//! shows the end of the work; `MRd` and `CplD` of the result.
//!
//! Unit: nanoseconds, round trip, from the first store until the core has the result, minus the time
//! for which the device works: the time that software adds, whatever the device computes.
//!
//! The end of the work is not synchronised with the polling loop, so the figure varies by one read
//! latency. The work takes 128 durations, evenly spread over one latency of the status register;
//! the answer has the median and the spread.
//!
//! Methods: plain stores and loads of 8 B through UC and WC memory, and non-temporal ones through WC
//! memory (`MOVNTDQ`, `SFENCE`, `MOVNTDQA`). The status is polled through a UC mapping.
//!
//! Spoiled by: other traffic on the links; a loop that pauses between two loads.
//!
//! Method: the minimum synchronisation cost in section 5.2 of TACC TR-14-10. It requires a device
//! that shows the end of its work in a register: simulated platforms only.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::measured::{Measured, median};
use crate::needs;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, interrupted, measure, measure_together};
use lanemark_machine::{Access, Facts, Handshake, Machine, Plan, Span, Step, Stream, TimeBase, Verb, Width};
use lanemark_method::{AccessPath, CoreAccess};
use lanemark_record::{Answer, Quantity};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "mmio_handshake",
    summary: "time to hand a request to a device and fetch its result by loads and stores, without the device's work",
    quantity: Quantity::RoundTripLatency,
    cases,
    plan: |case, passes| Plan::new(request(case, Ticks::ZERO), passes),
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: false,
    left_out: needs::responding_device,
};

/// Durations of the device's work, spread over one latency of the status register.
const PHASES: u64 = 128;
/// Offset of the status register in the region.
const STATUS_AT: u64 = 8;
/// Offset of the data in the region: a line of its own.
const DATA_AT: u64 = 64;
/// Default sizes: a register and a line.
const SIZES: [u64; 2] = [8, 64];

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let region = axes.region(facts, facts.registers().or(facts.storage()));
    let Some(region) = region.filter(|_| facts.time_base == TimeBase::Simulated) else { return Vec::new() };
    let both = |access: &Access| facts.stores.contains(access) && facts.loads.contains(access);
    let usual = || {
        let non_temporal = facts.loads.iter().copied().filter(|access| matches!(access, Access::NonTemporal(_)));
        let widest = non_temporal.filter(both).max_by_key(|access| access.width().map(Width::bytes));
        [Access::Plain(Width::B8)].into_iter().chain(widest).collect::<Vec<Access>>()
    };
    let accesses = axes.accesses.clone().unwrap_or_else(usual);
    let memory_types = axes.memory_types.clone().unwrap_or_else(|| vec![MemoryType::Uc, MemoryType::Wc]);
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let is_whole = |size: u64, access: Access| {
        access.width().is_some_and(|width| size.is_multiple_of(width.bytes())) && DATA_AT + size <= region.len
    };
    let mut all = Vec::new();
    for memory_type in memory_types {
        for &access in &accesses {
            // UC memory ignores the hint of a non-temporal access.
            if axes.accesses.is_none() && memory_type == MemoryType::Uc && matches!(access, Access::NonTemporal(_)) {
                continue;
            }
            let core = CoreAccess { path: AccessPath::Handshake, verb: Verb::Load, memory_type, access, fence: None };
            let sizes = sizes.iter().filter(|size| axes.sizes.is_some() || is_whole(**size, access));
            all.extend(sizes.map(|size| Case::of_core(core, region.at, *size)));
        }
    }
    all
}

/// The request of a case to a device that works for `busy`.
fn request(case: &Case, busy: Ticks) -> Handshake {
    let at = |offset| BarOffset { offset: case.region.offset.saturating_add(offset), ..case.region };
    let data = Span { at: at(DATA_AT), len: case.size, memory_type: case.memory_type() };
    Handshake { data, access: case.access(), status: at(STATUS_AT), busy }
}

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    let status = Span { at: request(case, Ticks::ZERO).status, len: 8, memory_type: MemoryType::Uc };
    let load = Plan::new(Step::Stream(Stream::over(Verb::Load, Access::Plain(Width::B8), status)), 1);
    let latency_ns = median(&measure(machine, &load, 1, effort)?.per_pass_issue_ns());
    let busy = |phase: u64| {
        // The middle of each part, so that the mean is that of all durations.
        let ns = latency_ns * (phase as f64 + 0.5) / PHASES as f64;
        Ticks::from_ns(ns).unwrap_or(Ticks::ZERO)
    };
    let wanted = |phase: u64| Wanted {
        name: format!("working for {:.1} ns", busy(phase).as_ns()),
        plan: Plan::new(request(case, busy(phase)), 1),
        most_passes: 1,
    };
    let mut measured = measure_together(machine, (0..PHASES).map(wanted).collect(), effort)?;
    let added = |(phase, one): (u64, &Measured)| {
        let work = busy(phase).as_ns();
        one.per_pass_issue_ns().into_iter().map(move |ns| ns - work).collect::<Vec<f64>>()
    };
    let latencies = (0..).zip(&measured).flat_map(added).collect();
    let others = measured.split_off(1);
    let first = measured.pop().ok_or_else(|| interrupted(machine))?;
    Ok(answer(question, case, machine.facts(), &first.beside(&others).with_latencies(latencies), effort))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_data_are_apart_and_the_status_is_that_of_the_first_channel() {
        let core = CoreAccess {
            path: AccessPath::Handshake,
            verb: Verb::Load,
            memory_type: MemoryType::Uc,
            access: Access::Plain(Width::B8),
            fence: None,
        };
        let made = request(&Case::of_core(core, BarOffset { bar: 2, offset: 0x1000 }, 8), Ticks(5));
        assert_eq!((made.status.offset, made.data.at.offset, made.busy), (0x1008, 0x1040, Ticks(5)));
        assert_eq!(made.check(), Ok(()));
    }
}
