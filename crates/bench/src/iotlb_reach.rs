//! How many pages does the IOTLB cover, and how much does a miss cost?
//!
//! Traffic: reads of host memory by one card, one at a time, cyclically over different pages.
//!
//! Unit: nanoseconds, round trip, of single reads, by size of the memory.
//!
//! Spoiled by: other users of links or memory; mappings with larger pages than requested; ASPM.
//!
//! Method: every page is read twice as warm-up and then once more. An IOTLB with room for all pages
//! then hits always; one with least-recently-used replacement and one entry too few misses always.

use crate::case::{Axes, Case};
use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Facts, Plan, Verb};
use lanemark_record::{Quantity, Reach};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "iotlb_reach",
    summary: "latency of DMA reads by number of pages",
    quantity: Quantity::RoundTripLatency,
    cases,
    plan: |case, passes| Plan { warmup_passes: 2, ..dma::plan(case, pages(case), passes) },
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: pages,
    ask: None,
    is_usual: true,
    left_out: needs::iommu,
};

/// Bytes per read, less than a page.
const BYTES: u64 = 64;
/// Pages of the smallest window, and the factor between windows.
const FEWEST: u64 = 4;
const TIMES: u64 = 2;
/// Largest number of pages: more than IOTLBs hold.
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
