//! Common parts of the questions in which a core starts DMA and is notified of its completion.

use crate::case::{Axes, Case};
use crate::dma;
use lanemark_machine::{Completion, Descriptors, Facts, Lane, Plan, Share, Verb};
use lanemark_method::{Method, Reach};
use lanemark_units::MemoryType;

/// Software path, descriptor transfer, and notification of a call.
pub(crate) type Asked = (Share, Descriptors, Completion);

/// Descriptors that the core writes to the device.
pub(crate) const WRITTEN: Descriptors = Descriptors::Written(MemoryType::Uc);

/// A case for each size of each flow with host memory and each of these methods; empty without a
/// driver.
pub(crate) fn cases(facts: &Facts, axes: &Axes, verb: Verb, ways: &[Asked], usual: &[u64]) -> Vec<Case> {
    // A call is one transfer and ends before the next one; its driver maps memory that a core has
    // just touched.
    let Reach { outstanding, cache_state, socket, .. } = axes.reach;
    let is_asked_for_otherwise = outstanding.is_some() || cache_state.is_some() || socket.is_some();
    let Some(dma) = facts.dma.filter(|dma| dma.has_driver && !is_asked_for_otherwise) else {
        return Vec::new();
    };
    // The threads share the mapped memory.
    let most = dma.mapped_bytes / u64::from(axes.reach.channels.unwrap_or(1).max(1));
    let mut moved = dma::with_host(facts, axes, verb, None, usual);
    moved.retain(|case| axes.sizes.is_some() || case.size.saturating_add(case.alignment) <= most);
    let asked = |(share, descriptors, completion): &Asked| {
        let (share, descriptors, completion) = (*share, *descriptors, *completion);
        let with = move |case: &Case| {
            let Method::Dma { flows, reach, .. } = case.method.clone() else { return case.clone() };
            // Each part begins at a page, if it is large enough.
            let mine = if most >= PAGE { most / PAGE * PAGE } else { most };
            let window = case.window.min(mine.max(case.size.saturating_add(case.alignment)));
            let method = Method::DmaCall { flows, share, descriptors, completion, reach };
            Case { method, window, ..case.clone() }
        };
        moved.iter().map(with).collect::<Vec<Case>>()
    };
    ways.iter().flat_map(asked).collect()
}

/// Bytes of a page.
const PAGE: u64 = 4096;

/// A core for each flow and channel, each with one call per iteration.
pub(crate) fn plan(case: &Case, passes: u64) -> Plan {
    let lanes = (0..).zip(case.calls(1)).map(|(core, call)| Lane { core, task: call.into() });
    Plan::new(lanes.collect::<Vec<Lane>>(), passes)
}
