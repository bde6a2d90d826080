//! How many pages at one distance keep their translations, and which address bits select the set?
//!
//! Traffic: reads of host memory by one card, one at a time, cyclically over a few pages at a
//! distance of a power of two.
//!
//! Unit: nanoseconds, round trip, of single reads, by number of pages and distance.
//!
//! Spoiled by: other users of links or memory; mappings with larger pages than requested; ASPM.
//!
//! Method: as `iotlb_reach`. Pages at a large distance all fall into one set, and the largest
//! number without a step is its associativity. The same number at every distance falls into fewer
//! sets as the distance grows, from the lowest index bit on.

use crate::case::{Axes, Case};
use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Facts, Plan, Verb};
use lanemark_method::{Method, Reach};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "iotlb_thrash",
    summary: "latency of DMA reads by number of pages and their distance",
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
/// Numbers of pages; the last exceeds the associativity of IOTLBs.
const PAGES: [u64; 5] = [2, 4, 8, 16, 32];
const MOST: u64 = PAGES[PAGES.len() - 1];
/// Largest distance in pages, and the factor between distances.
const FARTHEST: u64 = 1 << 10;
const TIMES: u64 = 4;

/// All numbers of pages at the largest distance, and the largest number at the other distances;
/// with `--stride`, all numbers at that distance.
fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(dma) = facts.dma else { return Vec::new() };
    let Some(page) = dma.page_bytes.filter(|_| !axes.reach.is_random) else { return Vec::new() };
    let has_room =
        |pages: u64, distance: u64| pages.checked_mul(distance).is_some_and(|bytes| bytes <= dma.mapped_bytes);
    let mut turns: Vec<(u64, u64)> = match (axes.reach.stride_bytes, axes.reach.window_bytes) {
        (Some(distance), Some(window)) => vec![((window / distance.max(1)).max(1), distance)],
        (Some(distance), None) => PAGES.map(|pages| (pages, distance)).to_vec(),
        (None, _) => {
            let distances = std::iter::successors(Some(page), |distance| distance.checked_mul(TIMES));
            let mut usual: Vec<u64> =
                distances.take_while(|distance| has_room(MOST, *distance) && *distance / page <= FARTHEST).collect();
            let Some(farthest) = usual.pop() else { return Vec::new() };
            let at_all = usual.into_iter().map(|distance| (MOST, distance));
            PAGES.map(|pages| (pages, farthest)).into_iter().chain(at_all.rev()).collect()
        }
    };
    let is_asked =
        |pages: u64, distance: u64| axes.reach.window_bytes.is_none_or(|window| window / distance.max(1) == pages);
    turns.retain(|(pages, distance)| has_room(*pages, *distance) && is_asked(*pages, *distance));
    let of = |(pages, distance): (u64, u64)| {
        let window = pages.saturating_mul(distance);
        let reach = Reach { window_bytes: Some(window), stride_bytes: Some(distance), ..axes.reach };
        let cases = dma::with_host(facts, &Axes { reach, ..axes.clone() }, Verb::Load, Some(1), &[BYTES]);
        // The window is implied by the number of pages.
        let shown = Reach { window_bytes: axes.reach.window_bytes, ..reach };
        cases.into_iter().map(move |mut case| {
            if let Method::Dma { flows, .. } = case.method {
                let pages = (window / distance.max(1)).max(1);
                case.method = Method::DmaPages { flows, pages, reach: shown };
            }
            Case { window, ..case }
        })
    };
    turns.into_iter().flat_map(of).collect()
}

fn pages(case: &Case) -> u64 {
    if let Method::DmaPages { pages, .. } = case.method { pages } else { 1 }
}
