//! The rate at which a DMA engine issues requests of one direction.

use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Cost of a request on its channel besides its beats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Fixed cost of a request.
    pub request: Ticks,
    /// Size of the naturally aligned chunks that the engine processes one at a time, in bytes.
    pub chunk_bytes: u64,
    /// Cost of each chunk that a request touches.
    pub chunk: Ticks,
    /// Bytes of a transfer after which the engine pauses.
    pub segment_bytes: u64,
    /// Length of the pause.
    pub segment: Ticks,
    /// Whether the link pauses before the first packet of each segment.
    pub link_pauses: bool,
    /// Minimum time, with its beats, of a request that spans several lines or begins inside one.
    pub many_lines: Ticks,
}

/// Bytes of a line.
const LINE: u64 = 64;

impl Pace {
    /// Returns a pace with a fixed cost only.
    #[must_use]
    pub const fn of(request: Ticks) -> Pace {
        let (chunk_bytes, segment_bytes) = (1 << 12, 1 << 40);
        let (chunk, segment, many_lines) = (Ticks::ZERO, Ticks::ZERO, Ticks::ZERO);
        Pace { request, chunk_bytes, chunk, segment_bytes, segment, link_pauses: false, many_lines }
    }

    /// Returns the modulus of addresses on which the cost depends.
    pub(crate) fn address_modulus(&self) -> u64 {
        if self.chunk > Ticks::ZERO { self.chunk_bytes } else { 1 }
    }

    /// Returns the least naturally aligned block size for which the block number does not affect the cost.
    pub(crate) fn least_block_bytes(&self) -> u64 {
        if self.many_lines > Ticks::ZERO { LINE } else { 1 }
    }

    /// Returns the number of pauses of the link before a request for `bytes` bytes at `offset` in its transfer: one for
    /// each segment that begins in it.
    #[inline]
    #[must_use]
    pub fn link_pauses_before(&self, offset: u64, bytes: u32) -> u8 {
        if !self.link_pauses {
            return 0;
        }
        let begun = |to: u64| to.div_ceil(self.segment_bytes);
        (begun(offset + u64::from(bytes)) - begun(offset)) as u8
    }

    /// Returns the cost, besides its `beats`, of a request for `bytes` at `offset` in its transfer.
    #[inline]
    #[must_use]
    pub fn besides(&self, bytes: Chunk, offset: u64, beats: Ticks) -> Ticks {
        let (first, last) = (bytes.address, bytes.address + u64::from(bytes.bytes) - 1);
        let touched = |size: u64| last / size - first / size + 1;
        // Fast path: most engines have neither, and a division is slow.
        let chunks = if self.chunk > Ticks::ZERO { self.chunk * touched(self.chunk_bytes) } else { Ticks::ZERO };
        let alone = beats + self.request + chunks;
        let is_many = touched(LINE) > 1 || !first.is_multiple_of(LINE);
        let all = if is_many { alone.max(self.many_lines) } else { alone };
        if self.segment == Ticks::ZERO {
            return all - beats;
        }
        // Segments that begin in this request; the first one of a transfer has no pause.
        let end = offset + u64::from(bytes.bytes);
        let begun = |to: u64| to.div_ceil(self.segment_bytes).max(1);
        all - beats + self.segment * (begun(end) - begun(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        request: Ticks(5),
        chunk_bytes: 128,
        chunk: Ticks(100),
        segment_bytes: 256,
        segment: Ticks(10_000),
        link_pauses: true,
        many_lines: Ticks(0),
    };

    fn besides(pace: Pace, address: u64, bytes: u32, offset: u64) -> u64 {
        pace.besides(Chunk { address, bytes }, offset, Ticks(1)).0
    }

    #[test]
    fn each_chunk_that_a_request_touches_has_its_cost() {
        let cost = |address, bytes| besides(Pace { segment: Ticks(0), ..PACE }, address, bytes, 0);
        assert_eq!([cost(0, 128), cost(0, 129), cost(127, 1), cost(127, 2)], [105, 205, 105, 205]);
    }

    #[test]
    fn a_pause_precedes_the_request_in_which_a_segment_begins() {
        let cost = |offset, bytes| besides(Pace { chunk: Ticks(0), ..PACE }, offset, bytes, offset);
        assert_eq!([cost(0, 256), cost(128, 128), cost(256, 1), cost(255, 2)], [5, 5, 10_005, 10_005]);
        assert_eq!([cost(257, 255), cost(0, 257), cost(0, 768)], [5, 10_005, 20_005]);
    }

    #[test]
    fn the_link_pauses_once_for_each_segment_that_begins_in_a_request() {
        let pauses = |offset, bytes| PACE.link_pauses_before(offset, bytes);
        assert_eq!([pauses(0, 1), pauses(0, 256), pauses(0, 257), pauses(255, 1), pauses(256, 1)], [1, 1, 2, 0, 1]);
        assert_eq!(Pace { link_pauses: false, ..PACE }.link_pauses_before(0, 257), 0);
    }

    #[test]
    fn a_request_that_is_not_one_aligned_line_has_a_minimum_time() {
        let cost = |address, bytes| besides(Pace { chunk: Ticks(0), many_lines: Ticks(50), ..PACE }, address, bytes, 0);
        // The beats count towards the minimum.
        assert_eq!([cost(64, 64), cost(64, 65), cost(65, 1), cost(64, 1)], [5, 49, 49, 5]);
    }
}
