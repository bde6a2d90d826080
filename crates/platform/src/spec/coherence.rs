//! Keys of memory shared by cores and devices.

use crate::key::Kind;
use lanemark_units::Ticks;

words! {
    /// Best instruction of a core to flush a line.
    FlushLine {
        /// `CLFLUSH`: writes back and invalidates, one line at a time.
        Clflush = "clflush",
        /// `CLFLUSHOPT`: as `CLFLUSH`, several lines concurrently.
        Clflushopt = "clflushopt",
        /// `CLWB`: writes back and keeps the line valid. `CLFLUSHOPT` is available too.
        Clwb = "clwb",
    }
}

section! {
    /// Cost for a core of sharing memory with a device. Without the section, it is unknown.
    Coherence ["coherence"] {
        /// Latency of a load that misses in all caches or is uncached.
        read_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// From an uncached store, or the eviction of a write-combining buffer, to its acknowledgment from memory.
        write_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// Best flush instruction of the cores; `clflushopt` also stands for Arm's `DC CIVAC`, `clwb` for `DC CVAC`.
        flush: FlushLine = Kind::Choice(FlushLine::WORDS), default "\"clflushopt\"" because "available since Skylake";
        /// From flushing a modified line until its bytes are in memory.
        flush_line_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// From flushing a line that is unmodified, or in no cache, until it completes.
        purge_line_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 500.0;
        /// Maximum number of flushes in flight; 1 for `clflush`.
        flushes_in_flight: u32 = Kind::Count(1, 128), default "1" because "no overlap is known", unknown 1.0 to 64.0;
    }
}
