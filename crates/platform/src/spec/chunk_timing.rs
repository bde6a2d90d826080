//! Keys of the DMA engine that apply to one direction, the same for reads and writes.

use crate::key::Kind;
use lanemark_units::Ticks;

/// Allowed sizes of a chunk, in bytes.
const CHUNKS: &[u64] = &[8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// Allowed sizes of a segment; a segment may be longer than any transfer.
const SEGMENTS: Kind = Kind::Size(64, 1 << 40);

/// Parameters of the DMA engine for one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkTiming {
    /// Bytes of a chunk, the aligned unit in which the engine works.
    pub chunk_bytes: u64,
    /// Time per chunk that a request touches.
    pub chunk: Ticks,
    /// Bytes of a transfer after which the engine pauses.
    pub segment_bytes: u64,
    /// Length of that pause.
    pub segment: Ticks,
    /// Length of a pause of the link before the first packet of each segment.
    pub link_segment: Ticks,
    /// Minimum time of a request that touches more than one 64 B line or starts inside one.
    pub many_lines: Ticks,
}

/// Declares the section of one direction.
macro_rules! way {
    ($(#[$doc:meta])* $name:ident [$path:literal] { $($more:tt)* } $link_segment:expr) => {
        section! {
            $(#[$doc])*
            $name [$path] {
                /// Size of a chunk, the aligned unit in which the engine works.
                chunk_bytes: u32 = Kind::OneOf(CHUNKS), default "4096" because "the maximum length of a request", unknown 64.0 to 4096.0;
                /// Time per chunk that a request touches.
                chunk_ns: Ticks = Kind::Ns(1e6), default "0" because "no cost besides beats is known", unknown 0.25 to 1000.0;
                /// Bytes of a transfer after which the engine pauses.
                segment_bytes: u64 = SEGMENTS, default "2097152" because "a large page", unknown 64.0 to 2_097_152.0;
                /// Length of that pause.
                segment_ns: Ticks = Kind::Ns(1e9), default "0" because "no pause is known", unknown 1.0 to 100_000.0;
                $($more)*
                /// Minimum time of a request that touches more than one 64 B line or starts inside one.
                many_lines_ns: Ticks = Kind::Ns(1e6), default "0" because "no cost besides beats is known", unknown 0.5 to 1000.0;
            }
        }

        impl From<&$name> for ChunkTiming {
            fn from(way: &$name) -> ChunkTiming {
                ChunkTiming {
                    chunk_bytes: way.chunk_bytes.value.into(),
                    chunk: way.chunk_ns.value,
                    segment_bytes: way.segment_bytes.value,
                    segment: way.segment_ns.value,
                    link_segment: $link_segment(way),
                    many_lines: way.many_lines_ns.value,
                }
            }
        }
    };
}

way! {
    /// Extra costs of reads by the DMA engine.
    DmaRead ["dma_read"] {
        /// Bytes that the device takes into its memory by one push, of the data of a read.
        push_bytes: u32 = Kind::OneOf(CHUNKS), default "4096" because "the maximum length of a request", unknown 8.0 to 4096.0;
        /// Minimum time, with their beats, for which the data of a read that needs several pushes occupy the inbound data
        /// path. A read needs several if it is longer than a push, or not a whole number of DWs.
        many_pushes_ns: Ticks = Kind::Ns(1e6), default "0" because "no cost besides beats is known", unknown 0.5 to 1000.0;
        /// Bytes of a completion that `store_ns` covers; a longer completion takes no longer.
        store_bytes: u32 = Kind::OneOf(CHUNKS), default "4096" because "a whole completion", unknown 8.0 to 4096.0;
        /// Time to store that many bytes in the device's memory after their last beat; fewer bytes take their share. Bytes
        /// of a read are received when they are stored, in order. The data path and the tag are free before.
        store_ns: Ticks = Kind::Ns(1e6), default "0" because "bytes are received with their last beat", unknown 0.5 to 1000.0;
        /// Time in the queue before a read takes its tag: of the first read of a job, and of a transfer that starts when
        /// another one ends. Queue times of several reads overlap. Reads of a channel that also writes have none.
        queue_ns: Ticks = Kind::Ns(1e6), default "0" because "included in the other latencies of a read", unknown 1.0 to 10000.0;
        /// From the last byte of a transfer until its end is signalled; its tags are free before.
        signal_ns: Ticks = Kind::Ns(1e6), default "0" because "included in the other latencies of a read", unknown 1.0 to 10000.0;
    } |_: &DmaRead| Ticks::ZERO
}

way! {
    /// Extra costs of writes by the DMA engine.
    DmaWrite ["dma_write"] {
        /// Pause of the link before the first packet of each segment, the first one too, while the engine goes on.
        segment_link_ns: Ticks = Kind::Ns(1e6), default "0" because "no pause is known", unknown 1.0 to 10_000.0;
    } |way: &DmaWrite| way.segment_link_ns.value
}
