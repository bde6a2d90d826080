//! What an engine's request takes besides beats, where a platform says more about a direction.
//!
//! `max(beats + request + chunks x time of a chunk, least for many lines) + segments begun x pause`.

use lanemark_machine::Verb;
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Of a request that takes `alone` by its beats and the time of any request, `offset` bytes behind the start of its transfer.
pub(crate) fn time(platform: &Platform, verb: Verb, piece: Chunk, offset: u64, alone: Ticks) -> Ticks {
    let (chunk_bytes, chunk, segment_bytes, segment, least) = match (verb, &platform.dma_read, &platform.dma_write) {
        (Verb::Load, Some(way), _) => {
            (&way.chunk_bytes, &way.chunk_ns, &way.segment_bytes, &way.segment_ns, &way.many_lines_ns)
        }
        (Verb::Store, _, Some(way)) => {
            (&way.chunk_bytes, &way.chunk_ns, &way.segment_bytes, &way.segment_ns, &way.many_lines_ns)
        }
        _ => return alone,
    };
    let end = piece.address + u64::from(piece.bytes);
    let chunk_bytes = u64::from(chunk_bytes.value);
    let chunks = end.div_ceil(chunk_bytes) - piece.address / chunk_bytes;
    let with_chunks = alone + chunk.value * chunks;
    let is_in_one_line = piece.address.is_multiple_of(LINE) && u64::from(piece.bytes) <= LINE;
    let busy = if is_in_one_line { with_chunks } else { with_chunks.max(least.value) };
    // Boundaries in the bytes from here to the end of the piece; that at the start of the transfer is none.
    let until = |to: u64| to.saturating_sub(1) / segment_bytes.value;
    busy + segment.value * (until(offset + u64::from(piece.bytes)) - until(offset))
}

/// Bytes of a line.
const LINE: u64 = 64;
