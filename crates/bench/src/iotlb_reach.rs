//! Over how many pages does a device find its addresses translated, and what does it wait for where it does not?
//!
//! Traffic: reads of host memory by one card, one at a time, each of another page, round and round.
//! Unit: nanoseconds, round trip, of single reads, by how much memory they go over.
//! Spoiled by: whatever else uses links or memory; mappings by larger pages than were asked for; ASPM.
//! Method: every page is read twice before, which does not count; then every page is read once more. An IOTLB that has
//! room for all of them has them all, and one that gives up what was used longest ago has none once there is one too many.

use crate::case::{Axes, Case};
use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Facts, Plan, Verb};
use lanemark_record::{Quantity, Reach};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "iotlb_reach",
    summary: "time a device waits for bytes of host memory by how many pages it goes over",
    quantity: Quantity::RoundTripLatency,
    cases,
    plan: |case, passes| Plan { warmup_passes: 2, ..dma::plan(case, pages(case), passes) },
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: pages,
    ask: None,
    is_usual: true,
    left_out: needs::translation,
};

/// Bytes of one read: less than any page.
const BYTES: u64 = 64;
/// Pages of the smallest window, and how many times as many the next one has.
const FEWEST: u64 = 4;
const TIMES: u64 = 2;
/// The most pages: more than IOTLBs hold, and few enough to go over all of them.
const MOST: u64 = 1 << 16;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(page) = facts.dma.and_then(|dma| dma.page_bytes) else { return Vec::new() };
    let stride = axes.reach.stride_bytes.unwrap_or(page);
    let lent = facts.dma.map_or(0, |dma| dma.mapped_bytes);
    let usual = || {
        let windows = std::iter::successors(Some(FEWEST), |pages| pages.checked_mul(TIMES));
        windows.take_while(|pages| *pages <= MOST).filter_map(|pages| pages.checked_mul(stride))
    };
    let windows: Vec<u64> = match axes.reach.window_bytes {
        Some(window) => vec![window],
        None => usual().take_while(|window| *window <= lent).collect(),
    };
    let of = |window: u64| {
        let reach = Reach { window_bytes: Some(window), stride_bytes: Some(stride), ..axes.reach };
        dma::with_host(facts, &Axes { reach, ..axes.clone() }, Verb::Load, Some(1), &[BYTES])
    };
    if axes.reach.is_random { Vec::new() } else { windows.into_iter().flat_map(of).collect() }
}

fn pages(case: &Case) -> u64 {
    let stride = case.reach().stride_bytes.map_or(case.size, |stride| stride.max(case.size));
    (case.window.saturating_sub(case.alignment) / stride.max(1)).max(1)
}
