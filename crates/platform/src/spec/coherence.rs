//! Keys of memory that cores share with devices.

use super::Kind;
use lanemark_units::Ticks;

words! {
    /// Which instruction flushes a line.
    FlushLine {
        /// `CLFLUSH`: written to memory and dropped, one line after the other.
        Clflush = "clflush",
        /// `CLFLUSHOPT`: the same, several lines at once.
        Clflushopt = "clflushopt",
        /// `CLWB`: written to memory and kept; `CLFLUSHOPT` is there besides.
        Clwb = "clwb",
    }
}

section! {
    /// What a core pays for its own memory where a device is to see the same bytes. Without the section nobody asks.
    Coherence ["coherence"] {
        /// From a read that misses a core's caches, or is uncached, to its bytes.
        read_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// From a write that goes past a core's caches to its acknowledgment: of a write-combining buffer, or an uncached store.
        write_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// The best instruction that flushes a line: `clflushopt` stands for Arm's `DC CIVAC` too, `clwb` for `DC CVAC`.
        flush: FlushLine = Kind::Choice(FlushLine::WORDS), default "\"clflushopt\"" because "what processors have had since Skylake";
        /// From flushing a line that was written to its bytes in memory.
        flush_line_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// The same of a line that was not written, or is in no cache.
        purge_line_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 500.0;
        /// Lines that may be flushed at once; by `clflush` it is one.
        flushes_in_flight: u32 = Kind::Count(1, 128), default "1" because "nothing is known of more", unknown 1.0 to 64.0;
    }
}
