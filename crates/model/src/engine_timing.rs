//! Extra time of a request at the engine, if the platform has parameters for its direction.
//!
//! `max(beats + request + chunks x chunk time, minimum for many lines) + segment boundaries x pause`.

use lanemark_machine::Verb;
use lanemark_platform::{ChunkTiming, Platform};
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Time of a request that takes `alone` without these parameters and starts `offset` bytes into its transfer.
pub(crate) fn time(platform: &Platform, verb: Verb, piece: Chunk, offset: u64, alone: Ticks) -> Ticks {
    let way = match verb {
        Verb::Load => platform.dma_read.as_ref().map(ChunkTiming::from),
        Verb::Store => platform.dma_write.as_ref().map(ChunkTiming::from),
    };
    let Some(ChunkTiming { chunk_bytes, chunk, segment_bytes, segment, many_lines, .. }) = way else { return alone };
    let end = piece.address + u64::from(piece.bytes);
    let with_chunks = alone + chunk * (end.div_ceil(chunk_bytes) - piece.address / chunk_bytes);
    let is_in_one_line = piece.address.is_multiple_of(LINE) && u64::from(piece.bytes) <= LINE;
    let busy = if is_in_one_line { with_chunks } else { with_chunks.max(many_lines) };
    // Segment boundaries within the request; the start of the transfer is not one.
    let until = |to: u64| to.saturating_sub(1) / segment_bytes;
    busy + segment * (until(offset + u64::from(piece.bytes)) - until(offset))
}

/// Time for which the first link pauses before a write that starts `offset` bytes into its transfer: once for each
/// segment that begins in it, the first one too.
pub(crate) fn link_pause(platform: &Platform, piece: Chunk, offset: u64) -> Ticks {
    let Some(way) = platform.dma_write.as_ref().map(ChunkTiming::from) else { return Ticks::ZERO };
    let begun = |to: u64| to.div_ceil(way.segment_bytes);
    way.link_segment * (begun(offset + u64::from(piece.bytes)) - begun(offset))
}

/// Bytes of a line.
const LINE: u64 = 64;
