//! How does the last writer of host memory change the latency of DMA reads?
//!
//! Traffic: reads of single lines by one card, one at a time, once over a window.
//!
//! Unit: nanoseconds, round trip, mean over the window, by window length and last writer.
//!
//! Spoiled by: other writers of memory; prefetchers; a window with pages of several sockets.
//!
//! Method: before every sample, each line of the window is flushed from all caches (*cold*), or a
//! core writes the window from start to end (*host-warm*), or the lines are flushed and a device
//! writes the window (*device-warm*). Window lengths are half of, equal to and twice the devices'
//! share of the cache, and the same for the whole cache. Lines written by a device stay in the
//! cache up to the devices' share.

use crate::case::{Axes, Case};
use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::{CacheFacts, Facts, Verb};
use lanemark_record::{CacheState, Quantity, Reach};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "cache_residency",
    summary: "latency of DMA reads from host memory, by last writer and working set",
    quantity: Quantity::RoundTripLatency,
    cases,
    plan: |case, passes| dma::plan(case, places(case), passes),
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: places,
    ask: None,
    is_usual: true,
    left_out: needs::last_level_cache,
};

/// Bytes of a line, and of one read.
const LINE: u64 = 64;
/// Largest number of reads per window; in longer windows only every nth line is read.
const MOST_READS: u64 = 2048;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some((dma, cache)) = facts.dma.and_then(|dma| Some((dma, dma.cache?))) else { return Vec::new() };
    let windows = match axes.reach.window_bytes {
        Some(window) => vec![window],
        None => windows(&cache).into_iter().filter(|window| *window <= dma.mapped_bytes).collect(),
    };
    let found = axes.reach.cache_state.map_or(CacheState::ALL.to_vec(), |found| vec![found]);
    let of = |(found, window): (CacheState, u64)| {
        let thinned = (window / MOST_READS).next_multiple_of(LINE);
        let stride = axes.reach.stride_bytes.or((thinned > LINE).then_some(thinned));
        let reach = Reach { window_bytes: Some(window), stride_bytes: stride, cache_state: Some(found), ..axes.reach };
        dma::with_host_of_both_sockets(facts, &Axes { reach, ..axes.clone() }, Verb::Load, Some(1), &[LINE])
    };
    if axes.reach.is_random {
        return Vec::new();
    }
    let windows_of = |found| windows.iter().map(move |window| (found, *window));
    found.into_iter().flat_map(windows_of).flat_map(of).collect()
}

/// Window lengths around the devices' share of the cache and around the whole cache.
fn windows(cache: &CacheFacts) -> Vec<u64> {
    let (share, all) = (cache.device_bytes, cache.bytes);
    let mut windows = vec![share / 2, share, 2 * share, all, 2 * all];
    windows.sort_unstable();
    windows.dedup();
    windows.retain(|window| *window >= LINE);
    windows
}

fn places(case: &Case) -> u64 {
    let stride = case.reach().stride_bytes.map_or(case.size, |stride| stride.max(case.size));
    (case.window.saturating_sub(case.alignment) / stride.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_surround_the_device_share_and_the_cache_size() {
        let windows = |device_bytes| windows(&CacheFacts { bytes: 1 << 20, device_bytes });
        assert_eq!(windows(1 << 17), [1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 21]);
        assert_eq!(windows(1 << 19), [1 << 18, 1 << 19, 1 << 20, 1 << 21]);
        assert_eq!(windows(1 << 20), [1 << 19, 1 << 20, 1 << 21]);
    }
}
