//! Up to which size are loads by a core faster than DMA writes to host memory?
//!
//! Traffic: for loads, `MRd` downstream and `CplD` upstream; for DMA, the descriptors and the
//! doorbell downstream, the device's `MWr`s and the notification upstream.
//!
//! Unit: nanoseconds, round trip, until the core has the bytes, or is notified that they are in
//! host memory.
//!
//! Methods: `loads`, of 8 B from UC memory and by `MOVNTDQA` from WC memory; `list`, DMA by a
//! program with pinned pages and mapped registers, which polls a word in memory or a register;
//! `call`, DMA by a driver that pins the pages, writes the descriptors or lets the device fetch
//! them, and sleeps until the interrupt.
//!
//! Spoiled by: reuse of the bytes, which favours memory because of its caches.
//!
//! Method: the model in section 5.1 of TACC TR-14-10, measured on any target: a single transfer.

use crate::case::{Axes, Case};
use crate::dma_call::{self, Asked, WRITTEN};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Access, Completion, Descriptors, Facts, Fence, Plan, Share, Step, Stream, Verb, Width};
use lanemark_method::{AccessPath, CoreAccess};
use lanemark_record::Quantity;
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_or_mmio",
    summary: "time until a core has data of a device: by loads, or by DMA writes to host memory",
    quantity: Quantity::RoundTripLatency,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: needs::dma_driver,
};

const SIZES: [u64; 8] = [8, 64, 128, 256, 512, 1024, 4096, 65536];

const ASKED: [Asked; 4] = [
    (Share::List, WRITTEN, Completion::Flag),
    (Share::List, WRITTEN, Completion::Register),
    (Share::Call, WRITTEN, Completion::Interrupt),
    (Share::Call, Descriptors::Fetched, Completion::Interrupt),
];

/// The loads, and the calls that write as many bytes to memory; without DMA no cases. Named flows select calls only,
/// also calls that read memory.
fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    // Without named flows the device writes.
    let verbs = if axes.flows.is_some() { vec![Verb::Store, Verb::Load] } else { vec![Verb::Store] };
    let asked: Vec<Case> =
        verbs.into_iter().flat_map(|verb| dma_call::cases(facts, axes, verb, &ASKED, &SIZES)).collect();
    let has_driver = facts.dma.is_some_and(|dma| dma.has_driver);
    let Some(region) = axes.region(facts, facts.storage()).filter(|_| has_driver) else { return asked };
    let widest = facts
        .loads
        .iter()
        .filter(|access| matches!(access, Access::NonTemporal(_)))
        .max_by_key(|access| access.width().map(Width::bytes));
    let loads = [(MemoryType::Uc, Access::Plain(Width::B8))];
    let loads = loads.into_iter().chain(widest.map(|widest| (MemoryType::Wc, *widest)));
    let is_named = |(memory_type, access): &(MemoryType, Access)| {
        axes.memory_types.as_ref().is_none_or(|named| named.contains(memory_type))
            && axes.accesses.as_ref().is_none_or(|named| named.contains(access))
            && axes.flows.is_none()
    };
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let case = |(memory_type, access): (MemoryType, Access)| {
        let fits = |size: &u64| axes.sizes.is_some() || *size <= region.len;
        let sizes = sizes.clone().into_iter().filter(fits);
        let core = CoreAccess { path: AccessPath::Loads, verb: Verb::Load, memory_type, access, fence: None };
        sizes.map(move |size| Case::of_core(core, region.at, size))
    };
    loads.filter(is_named).flat_map(case).chain(asked).collect()
}

fn plan(case: &Case, passes: u64) -> Plan {
    if case.path() == Some(AccessPath::Loads) {
        let mut body = vec![Step::Stream(Stream::over(Verb::Load, case.access(), case.span()))];
        if passes > 1 {
            // A second iteration would hit the streaming buffers.
            body.push(Step::Fence(Fence::Mfence));
        }
        return Plan::new(body, passes);
    }
    dma_call::plan(case, passes)
}
