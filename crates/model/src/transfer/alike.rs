//! Transfers and requests with the same sums and parameters, which are computed once.

use super::way::{PAGE, Way};
use crate::engine_timing;
use lanemark_machine::{Partner, Transfer, Verb};
use lanemark_platform::ChunkTiming;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Common properties of transfers with the same sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Alike {
    /// Size of the smallest aligned block that contains the transfer, up to a page, and its offset there. Requests,
    /// completions, chunks and lines are split at boundaries of powers of two up to a page, those inside of the block.
    block: u64,
    offset_in_block: u64,
    /// Bytes up to the first boundary of descriptors behind the start, if it is inside.
    until_descriptor: Option<u64>,
    is_cached: bool,
}

/// Common properties of requests with the same parameters, all from or to host memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AlikePiece {
    bytes: u32,
    /// Completions are split at multiples of the RCB, and lines merged by their offset.
    offset_in_rcb: u64,
    is_cached: bool,
    /// Pause of the first link before it.
    paused: Ticks,
}

/// Common properties of requests with the same sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AlikeRequest {
    piece: AlikePiece,
    engine: Ticks,
    of_lines: Ticks,
}

/// Bytes of the longest RCB, a multiple of a line.
const LONGEST_RCB: u64 = 128;

/// Bytes after which transfers repeat, up to which all of them are computed.
const LONGEST_SPAN: u64 = 1 << 16;

impl Way<'_> {
    /// Everything that distinguishes the sum of transfer number `nth` from those of others; `None` if its address
    /// itself may matter.
    pub(super) fn alike(&self, nth: u64) -> Option<Alike> {
        let is_of_host = self.transfer.partner == Partner::Host;
        // Chunks of the engine are parts of a page, and its segments begin with the transfer.
        if !is_of_host || self.partial_line() > Ticks::ZERO {
            return None;
        }
        let Transfer { bytes, window, .. } = self.transfer;
        let start = self.base.checked_add(window.place(nth, *bytes))?;
        let end = start.checked_add(*bytes).filter(|end| *end > 0)?;
        // The engine reads a descriptor at each boundary behind the start.
        let of_descriptor = u64::from(self.dma.descriptor_bytes.value);
        let until_descriptor = Some(of_descriptor - start % of_descriptor).filter(|until| *until < *bytes);
        let is_cached = self.cached.contains(&start) && end <= self.cached.end;
        if !is_cached && start < self.cached.end && self.cached.start < end {
            return None;
        }
        let is_inside = |block: u64| start / block == (end - 1) / block;
        let blocks = (LONGEST_RCB.trailing_zeros()..PAGE.trailing_zeros()).map(|twos| 1 << twos);
        let block = blocks.into_iter().find(|block| is_inside(*block)).unwrap_or(PAGE);
        Some(Alike { block, offset_in_block: start % block, until_descriptor, is_cached })
    }

    /// Number of transfers after which [`alike`](Way::alike) repeats, up to the end of the window; `None` if it may not. At
    /// random places it is 1 or `None`.
    pub(super) fn period(&self) -> Option<u64> {
        let Transfer { bytes, window, .. } = self.transfer;
        let is_of_host = self.transfer.partner == Partner::Host && self.partial_line() == Ticks::ZERO;
        let step = window.step(*bytes);
        let span = if self.has_blocks() {
            // Blocks are parts of what a descriptor covers, or begin with one. Several may be in the same block of the
            // longest RCB.
            LONGEST_RCB.max(step).min(PAGE)
        } else {
            PAGE.max(self.dma.descriptor_bytes.value.into())
        };
        if !is_of_host || span > LONGEST_SPAN || !self.cached.is_empty() {
            return None;
        }
        let twos = step.trailing_zeros().min(span.trailing_zeros());
        let period = (span >> twos).min(window.places(*bytes));
        // If all transfers are alike, their order does not matter.
        (period == 1 || !window.pattern.is_random()).then_some(period)
    }

    /// Whether every page begins with a descriptor.
    fn is_described_by_page(&self) -> bool {
        PAGE.is_multiple_of(u64::from(self.dma.descriptor_bytes.value))
    }

    /// Whether each transfer is in an aligned block of its own, whose length is a power of two.
    pub(super) fn has_blocks(&self) -> bool {
        let Transfer { bytes, window, .. } = self.transfer;
        let (step, start) = (window.step(*bytes), self.base.wrapping_add(window.offset));
        step.is_power_of_two() && start.is_multiple_of(step) && *bytes <= step
    }

    /// Number of transfers from number `nth` to the end of the window.
    pub(super) fn until_start(&self, nth: u64) -> u64 {
        let Transfer { bytes, window, .. } = self.transfer;
        match window.places(*bytes) {
            1 => u64::MAX,
            places => places - nth % places,
        }
    }

    /// Everything that distinguishes the parameters of this request, which starts `offset` bytes into its transfer, from
    /// those of others; `None` if its address itself may matter.
    pub(super) fn alike_piece(&self, chunk: Chunk, offset: u64) -> Option<AlikePiece> {
        (self.transfer.partner == Partner::Host).then(|| AlikePiece {
            bytes: chunk.bytes,
            offset_in_rcb: chunk.address % LONGEST_RCB,
            is_cached: self.is_cached(chunk),
            paused: match self.transfer.verb {
                Verb::Store => engine_timing::link_pause(self.platform, chunk, offset),
                Verb::Load => Ticks::ZERO,
            },
        })
    }

    /// As [`alike_piece`](Way::alike_piece), of a request of transfer number `nth`, with all that its sum has besides.
    pub(super) fn alike_request(&self, nth: u64, chunk: Chunk, offset: u64) -> Option<AlikeRequest> {
        let piece = self.alike_piece(chunk, offset)?;
        Some(AlikeRequest { piece, engine: self.engine(chunk, offset), of_lines: self.held_by_lines(nth, chunk) })
    }

    /// Whether the sums of all whole pages of a transfer after its first byte are the same.
    pub(super) fn pages_are_alike(&self) -> bool {
        let is_of_host = self.transfer.partner == Partner::Host && self.partial_line() == Ticks::ZERO;
        let way = match self.transfer.verb {
            Verb::Load => self.platform.dma_read.as_ref().map(ChunkTiming::from),
            Verb::Store => self.platform.dma_write.as_ref().map(ChunkTiming::from),
        };
        let is_segmented_by_page = way.is_none_or(|way| {
            let has_no_pause = way.segment.max(way.link_segment) == Ticks::ZERO;
            (has_no_pause || PAGE.is_multiple_of(way.segment_bytes)) && PAGE.is_multiple_of(way.chunk_bytes)
        });
        is_of_host && self.is_described_by_page() && is_segmented_by_page && self.cached.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::kept::Kept;
    use crate::transfer::sum::Sum;
    use lanemark_machine::{Pattern, Window};
    use lanemark_platform::{Origin, Platform};

    fn card() -> Platform {
        let origin = || Origin::Given("a test".to_owned());
        let numbers = [
            ("dma.descriptor_ns", 20.0),
            ("dma_write.chunk_bytes", 256.0),
            ("dma_write.chunk_ns", 3.0),
            ("dma_write.segment_bytes", 512.0),
            ("dma_write.segment_link_ns", 7.0),
            ("dma_read.chunk_bytes", 1024.0),
            ("dma_read.chunk_ns", 3.0),
            ("memory.completion_bytes", 128.0),
            ("memory.full_completion_lines", 4.0),
        ];
        let preset = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        numbers.into_iter().fold(preset, |card, (key, value)| card.with(key, value, origin()).unwrap())
    }

    fn then(way: &Way<'_>, mut sum: Sum, next: &Sum) -> Sum {
        sum.append(next, way.can_be_overtaken());
        sum
    }

    #[test]
    fn whole_pages_of_a_transfer_are_summed_as_its_requests_one_after_the_other() {
        let mut alike = 0;
        for segment_bytes in [512.0, 8192.0] {
            let given = || Origin::Given("a test".to_owned());
            let card = card().with("dma_write.segment_bytes", segment_bytes, given()).unwrap();
            for (verb, offset, bytes) in [
                (Verb::Load, 0, 1 << 20),
                (Verb::Store, 0, 1 << 16),
                (Verb::Store, 4, 40_000),
                (Verb::Load, 100, 12_289),
                (Verb::Store, 4092, 8200),
            ] {
                let transfer = transfer(verb, bytes, Window { offset, len: bytes, pattern: Pattern::Sequential });
                let way = Way::of(&card, &transfer).unwrap();
                alike += u32::from(way.pages_are_alike());
                let (start, _) = way.range(0).unwrap();
                let mut kept = Kept::default();
                let one_by_one = way.pieces(0).unwrap().into_iter().map(|piece| {
                    let part = piece.address..piece.address + u64::from(piece.bytes);
                    let mut sum = None;
                    way.add_part(&mut sum, 0, start, part, &mut kept).unwrap();
                    sum.unwrap()
                });
                let expected = one_by_one.reduce(|sum, next| then(&way, sum, &next)).unwrap();
                let found = way.sum_of_one(0, &mut Kept::default()).unwrap();
                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{transfer:?}");
                let (count, last) = way.count_and_last(0).unwrap();
                let pieces = way.pieces(0).unwrap();
                assert_eq!((count, Some(&last)), (pieces.len() as u64, pieces.last()), "{transfer:?}");
            }
        }
        // Segments of two pages pause at every second one.
        assert_eq!(alike, 7);
    }

    fn transfer(verb: Verb, bytes: u64, window: Window) -> Transfer {
        Transfer { card: 0, verb, partner: Partner::Host, bytes, count: 1, window, outstanding: None }
    }

    #[test]
    fn sums_over_periods_are_those_of_all_transfers_one_after_the_other() {
        let mut has_period = 0;
        for descriptor_bytes in [4096.0, 8192.0, 65_536.0, 1_048_576.0] {
            let given = Origin::Given("a test".to_owned());
            let card = card().with("dma.descriptor_bytes", descriptor_bytes, given).unwrap();
            has_period += periods_that_sum_like_one_by_one(&card);
        }
        // With the longest descriptors, windows of aligned blocks only.
        assert_eq!(has_period, 3 * 60 + 18);
    }

    /// Compares sums over many transfers with those of each; the number of windows with a period.
    fn periods_that_sum_like_one_by_one(card: &Platform) -> u32 {
        let mut has_period = 0;
        for verb in [Verb::Load, Verb::Store] {
            for pattern in [Pattern::Sequential, Pattern::Strided(192), Pattern::Random] {
                for (offset, bytes, len) in [
                    (4, 64, 1 << 22),
                    (4, 100, 1 << 22),
                    (4, 100, 5000),
                    (4, 4096, 1 << 14),
                    (4, 4100, 1 << 16),
                    (4, 8, 8),
                    (0, 8, 1 << 12),
                    (0, 64, 1 << 22),
                    (0, 256, 1 << 22),
                    (0, 4096, 1 << 20),
                    (192, 192, 1 << 14),
                    (1 << 14, 1 << 16, 1 << 22),
                    (4096, 100, 1 << 22),
                ] {
                    let window = Window { offset, len, pattern };
                    let transfer = transfer(verb, bytes, window);
                    let way = Way::of(card, &transfer).unwrap();
                    has_period += u32::from(way.period().is_some());
                    for (first, transfers) in [(0, 1), (0, 1500), (3, 1025), (48, 97), (1, 64)] {
                        let one_by_one = (first..first + transfers).map(|nth| way.sum(nth, 1).unwrap());
                        let mut expected = one_by_one.reduce(|sum, next| then(&way, sum, &next)).unwrap();
                        expected.busiest = expected.engine;
                        expected.beyond =
                            expected.engine - expected.first_engine - expected.least_engine * (expected.requests - 1);
                        let found = way.sum(first, transfers).unwrap();
                        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{transfer:?} {first} {transfers}");
                    }
                }
            }
        }
        has_period
    }

    #[test]
    fn requests_at_the_same_offset_from_an_rcb_have_the_same_parameters() {
        let card = card();
        for bytes in [100, 256, 512] {
            let verb = Verb::Load;
            let window = Window { offset: 0, len: 1 << 22, pattern: Pattern::Sequential };
            let transfer = transfer(verb, bytes, window);
            let way = Way::of(&card, &transfer).unwrap();
            for offset in (0..128).step_by(4) {
                let read = |place: u64| way.read(Chunk { address: place * 128 + offset, bytes: bytes as u32 }).unwrap();
                for place in [1, 5, 16, 27] {
                    assert_eq!(format!("{:?}", read(place)), format!("{:?}", read(0)), "{bytes} {place} {offset}");
                }
            }
        }
    }
}
