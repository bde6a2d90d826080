//! Keys of what an engine does within one direction: the same for reads and writes.

use super::Kind;
use lanemark_units::Ticks;

/// Bytes of what an engine works on at a time.
const CHUNKS: &[u64] = &[8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// Bytes of a segment: up to more than one transfer.
const SEGMENTS: Kind = Kind::Size(64, 1 << 40);

/// What a DMA engine does within one direction, whichever it is: the numbers of its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaWay {
    /// Bytes, from a multiple of them on, that it works on at a time.
    pub chunk_bytes: u64,
    /// What each of these takes that a request touches.
    pub chunk: Ticks,
    /// Bytes of a transfer behind which it pauses.
    pub segment_bytes: u64,
    /// How long it pauses there.
    pub segment: Ticks,
    /// The least that a request takes which touches more than one line of 64 B, or begins inside one.
    pub many_lines: Ticks,
}

/// Declares the section of one direction.
macro_rules! way {
    ($(#[$doc:meta])* $name:ident [$path:literal]) => {
        section! {
            $(#[$doc])*
            $name [$path] {
                /// Bytes, from a multiple of them on, that it works on at a time.
                chunk_bytes: u32 = Kind::OneOf(CHUNKS), default "4096" because "as much as a request can be";
                /// What each of these takes that a request touches.
                chunk_ns: Ticks = Kind::Ns(1e6), default "0" because "beats are all that is known", unknown 0.25 to 1000.0;
                /// Bytes of a transfer behind which it pauses.
                segment_bytes: u64 = SEGMENTS, default "2097152" because "a large page";
                /// How long it pauses there.
                segment_ns: Ticks = Kind::Ns(1e9), default "0" because "no pause is known", unknown 1.0 to 100_000.0;
                /// The least that a request takes which touches more than one line of 64 B, or begins inside one.
                many_lines_ns: Ticks = Kind::Ns(1e6), default "0" because "beats are all that is known", unknown 0.5 to 1000.0;
            }
        }

        impl From<&$name> for DmaWay {
            fn from(way: &$name) -> DmaWay {
                DmaWay {
                    chunk_bytes: way.chunk_bytes.value.into(),
                    chunk: way.chunk_ns.value,
                    segment_bytes: way.segment_bytes.value,
                    segment: way.segment_ns.value,
                    many_lines: way.many_lines_ns.value,
                }
            }
        }
    };
}

way! {
    /// How the DMA engine makes reads.
    DmaRead ["dma_read"]
}

way! {
    /// How the DMA engine makes writes.
    DmaWrite ["dma_write"]
}
