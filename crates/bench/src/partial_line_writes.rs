//! How much slower are DMA writes that do not fill cache lines?
//!
//! Traffic: `MWr`s of one length upstream, each to different lines, at the start of a line and
//! inside one.
//!
//! Unit: bytes per second, *delivered*, by the length of a write.
//!
//! Spoiled by: memory that no device wrote before; an engine that merges consecutive writes; other
//! traffic.
//!
//! Method: as `dma_write_bandwidth`, with one write every 256 B. No line is in the cache, if there
//! is one. A length that fills its lines and one that is a byte shorter differ by the
//! read-modify-write of a line.

use crate::case::{Axes, Case};
use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Facts, Verb};
use lanemark_record::{CacheState, Reach};

/// The catalogue row.
pub const QUESTION: Question = dma::bandwidth(
    "partial_line_writes",
    "rate of DMA writes to host memory by length of a write, for full and partial lines",
    cases,
    needs::partial_line_penalty,
);

/// Lengths that fill one or two lines, and others.
const SIZES: [u64; 10] = [1, 8, 16, 32, 48, 63, 64, 65, 96, 128];
/// Offsets: the start of a line, and inside it.
const OFFSETS: [u64; 2] = [0, 16];
/// The lines of the longest write, rounded up, and one more.
const STRIDE: u64 = 256;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(dma) = facts.dma.filter(|dma| dma.is_partial_dearer) else { return Vec::new() };
    let found = axes.reach.cache_state.or(dma.cache.map(|_| CacheState::Cold));
    let stride = axes.reach.stride_bytes.or((!axes.reach.is_random).then_some(STRIDE));
    let reach = Reach { cache_state: found, stride_bytes: stride, ..axes.reach };
    let alignments = Some(axes.alignments.clone().unwrap_or_else(|| OFFSETS.to_vec()));
    dma::with_host(facts, &Axes { alignments, reach, ..axes.clone() }, Verb::Store, None, &SIZES)
}
