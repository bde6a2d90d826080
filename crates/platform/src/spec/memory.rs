//! Keys of host memory.

use crate::key::{HUGE, Kind};
use lanemark_units::Ticks;

section! {
    /// Host memory as accessed by devices.
    Memory ["memory"] {
        /// Start address of the memory that is mapped for devices. From 4 GiB on, requests need 4 DW headers.
        address_bytes: u64 = Kind::Size(0, HUGE), default "4294967296" because "most memory of a machine is above 4 GiB";
        /// Bytes mapped for devices.
        size_bytes: u64 = Kind::Size(4096, HUGE), default "1073741824" because "more than any cache holds";
        /// From a read request at the root port to its first completion, from DRAM; the shortest time if
        /// `read_spread_ns` is not 0.
        read_ns: Ticks = Kind::Ns(1e6), unknown 50.0 to 2000.0;
        /// Spread of `read_ns`: mean of the additional time of a 64 B line from DRAM, distributed exponentially. A read
        /// takes as long as the slowest of its lines, and reads overtake each other; 0 for none.
        read_spread_ns: Ticks = Kind::Ns(1e6), default "0" because "all reads of DRAM have the same latency", unknown 20.0 to 500.0;
        /// Part of the last-level cache that serves reads and writes of devices, 16 ways; 0 without one.
        cache_bytes: u64 = Kind::Size(0, 1 << 30), default "0" because "all reads have the same latency";
        /// As `read_ns`, for a read whose lines are all in the cache; 0 for no difference.
        cached_read_ns: Ticks = Kind::Ns(1e6), default "0" because "a cache hit is no faster than DRAM", unknown 20.0 to 1000.0;
        /// Ways of the 16 of a set into which writes of devices may allocate (DDIO); cores allocate into all.
        ddio_ways: u32 = Kind::Count(1, 16), default "16" because "devices allocate into all ways, as cores do", unknown 1.0 to 16.0;
        /// Time between two read requests that a root port accepts.
        read_request_ns: Ticks = Kind::Ns(1e6), default "0" because "no limit is known", unknown 0.5 to 100.0;
        /// From a write at the root port until a core can observe its data.
        write_ns: Ticks = Kind::Ns(1e6), unknown 10.0 to 1000.0;
        /// Time between two writes that a root port accepts.
        write_tlp_ns: Ticks = Kind::Ns(1e6), default "0" because "no limit is known", unknown 0.5 to 100.0;
        /// Time for which a partially written line occupies the root port, for a read-modify-write in memory; none if
        /// the line is in the cache.
        partial_line_ns: Ticks = Kind::Ns(1e6), default "0" because "no difference is known", unknown 1.0 to 500.0;
        /// Extra latency of the memory of the other socket, each way; 0 for one socket.
        remote_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 10.0 to 500.0;
        /// Maximum payload of a completion; 64 for one completion per 64 B.
        completion_bytes: u32 = Kind::OneOf(&[64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "limited by Max_Payload_Size only", unknown 64.0 to 4096.0;
        /// Reads of a whole number of this many 64 B lines, from the start of a line, have completions of up to
        /// `Max_Payload_Size`, whatever `completion_bytes` is; 0 for none.
        full_completion_lines: u32 = Kind::Count(0, 64), default "0" because "all reads are alike", unknown 1.0 to 64.0;
        /// As `full_completion_lines`, for reads of at least this length; 0 for none.
        full_completion_from_bytes: u64 = Kind::Size(0, 4096), default "0" because "all reads are alike", unknown 64.0 to 4096.0;
        /// As `completion_bytes`, for reads during which a write arrives at the same root port; 0 for no difference.
        loaded_completion_bytes: u32 = Kind::OneOf(&[0, 64, 128, 256, 512, 1024, 2048, 4096]), default "0" because "writes make no difference", unknown 64.0 to 4096.0;
        /// Whether the bytes after the last Read Completion Boundary come in a completion of their own, even if they
        /// would fit into the one before.
        odd_end_completion: bool = Kind::Flag, default "false" because "completions are merged if they fit", unknown 0.0 to 1.0;
    }
}

impl Memory {
    /// Ways of the last-level cache; each set replaces the line that was written least recently.
    pub const CACHE_WAYS: u64 = 16;
    /// Bytes of a line.
    pub const LINE_BYTES: u64 = 64;

    /// Lines of the cache; 0 if no read is faster through it.
    #[must_use]
    pub fn cached_lines(&self) -> u64 {
        if self.cached_read_ns.value > Ticks::ZERO { self.cache_bytes.value / Memory::LINE_BYTES } else { 0 }
    }

    /// Maximum number of lines in the cache that writes of devices allocated.
    #[must_use]
    pub fn device_lines(&self) -> u64 {
        self.cached_lines() / Memory::CACHE_WAYS * u64::from(self.ddio_ways.value)
    }

    /// Maximum payload of the completions of a read, without that of the port; 4096 if they are merged fully.
    /// `is_loaded`: whether a write arrives during the read.
    ///
    /// ```
    /// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    /// let mut memory = card.memory.unwrap();
    /// (memory.completion_bytes.value, memory.loaded_completion_bytes.value) = (64, 128);
    /// (memory.full_completion_lines.value, memory.full_completion_from_bytes.value) = (4, 1000);
    /// let most = |address, bytes| memory.most_completion_bytes(address, bytes, false);
    /// assert_eq!([most(0, 256), most(64, 512), most(64, 192), most(4, 256)], [4096, 4096, 64, 64]);
    /// assert_eq!([most(4, 999), most(4, 1000)], [64, 4096]);
    /// assert_eq!(memory.most_completion_bytes(0, 256, true), 128);
    /// ```
    #[must_use]
    pub fn most_completion_bytes(&self, address: u64, bytes: u64, is_loaded: bool) -> u32 {
        self.merging().most_bytes(address, bytes, is_loaded)
    }

    /// The rules by which lines are merged into completions.
    #[must_use]
    pub fn merging(&self) -> Merging {
        Merging {
            most: self.completion_bytes.value,
            while_written: Some(self.loaded_completion_bytes.value).filter(|bytes| *bytes > 0),
            full_lines: self.full_completion_lines.value.into(),
            full_from: self.full_completion_from_bytes.value,
        }
    }

    /// Number of lines that an access touches.
    ///
    /// ```
    /// use lanemark_platform::Memory;
    /// assert_eq!([(0, 64), (0, 65), (60, 8), (4, 0)].map(|(address, bytes)| Memory::lines(address, bytes)), [1, 2, 2, 0]);
    /// ```
    #[must_use]
    pub const fn lines(address: u64, bytes: u64) -> u64 {
        if bytes == 0 {
            0
        } else {
            address.saturating_add(bytes - 1) / Memory::LINE_BYTES - address / Memory::LINE_BYTES + 1
        }
    }

    /// Lines that a write touches but does not fill; at most two.
    ///
    /// ```
    /// use lanemark_platform::Memory;
    /// let partial = |address, bytes| Memory::partial_lines(address, bytes).collect::<Vec<u64>>();
    /// assert!(partial(64, 64).is_empty());
    /// assert_eq!(partial(64, 63), [1]);
    /// assert_eq!(partial(100, 100), [1, 3]);
    /// assert!(partial(64, 0).is_empty());
    /// ```
    pub fn partial_lines(address: u64, bytes: u64) -> impl Iterator<Item = u64> {
        let (line, end) = (Memory::LINE_BYTES, address.saturating_add(bytes));
        let first = (!address.is_multiple_of(line) && bytes > 0).then_some(address / line);
        let last = (!end.is_multiple_of(line) && bytes > 0).then_some(end / line);
        first.into_iter().chain(last.filter(|last| first != Some(*last)))
    }
}

/// How a root port merges lines into completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// Maximum payload of a completion.
    pub most: u32,
    /// The same for reads during which a write arrives, if these differ.
    pub while_written: Option<u32>,
    /// Number of lines of which fully merged reads are a multiple; 0 for none.
    pub full_lines: u64,
    /// Minimum length of reads that are fully merged; 0 for none.
    pub full_from: u64,
}

impl Merging {
    /// Maximum payload of a completion of any length.
    pub const FULL: u32 = 4096;

    /// Maximum payload of the completions of a read; `is_loaded`: whether a write arrives during the read.
    #[must_use]
    pub const fn most_bytes(&self, address: u64, bytes: u64, is_loaded: bool) -> u32 {
        if let (Some(most), true) = (self.while_written, is_loaded) {
            return most;
        }
        let lines = self.full_lines * Memory::LINE_BYTES;
        let is_whole = lines > 0 && address.is_multiple_of(Memory::LINE_BYTES) && bytes.is_multiple_of(lines);
        let is_long = self.full_from > 0 && bytes >= self.full_from;
        if is_whole || is_long { Merging::FULL } else { self.most }
    }

    /// Maximum payload of the completions of any read of up to `bytes` bytes.
    #[must_use]
    pub const fn most_bytes_up_to(&self, bytes: u64, is_loaded: bool) -> u32 {
        if let (Some(most), true) = (self.while_written, is_loaded) {
            return most;
        }
        let is_whole = self.full_lines > 0 && bytes >= self.full_lines * Memory::LINE_BYTES;
        let is_long = self.full_from > 0 && bytes >= self.full_from;
        if is_whole || is_long { Merging::FULL } else { self.most }
    }
}
