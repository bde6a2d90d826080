//! Keys of host memory.

use super::{HUGE, Kind};
use lanemark_units::Ticks;

section! {
    /// Host memory as a device's requests meet it.
    Memory ["memory"] {
        /// Where what is lent to devices lies; from 4 GiB on, requests need 4 DW headers.
        address_bytes: u64 = Kind::Size(0, HUGE), default "4294967296" because "most memory of a machine lies above 4 GiB";
        /// How much is lent.
        size_bytes: u64 = Kind::Size(4096, HUGE), default "1073741824" because "more than any cache holds";
        /// From a read request at the root port to its first completion, from DRAM.
        read_ns: Ticks = Kind::Ns(1e6), unknown 50.0 to 2000.0;
        /// What of the last-level cache holds lines that devices read and write, 16 lines a set; 0 for no such cache.
        cache_bytes: u64 = Kind::Size(0, 1 << 30), default "0" because "every read is answered alike";
        /// The same as `read_ns` of a read all of whose lines are in the cache; 0 for no difference.
        cached_read_ns: Ticks = Kind::Ns(1e6), default "0" because "the cache answers no faster than DRAM", unknown 20.0 to 1000.0;
        /// Of the 16 lines of a set, how many may be lines that devices wrote and that were not there; cores' may be all.
        ddio_ways: u32 = Kind::Count(1, 16), default "16" because "devices may take any line's place, as cores do", unknown 1.0 to 16.0;
        /// Time between two read requests that a root port takes.
        read_request_ns: Ticks = Kind::Ns(1e6), default "0" because "no limit is known", unknown 0.5 to 100.0;
        /// From a write at the root port to bytes that a core sees.
        write_ns: Ticks = Kind::Ns(1e6), unknown 10.0 to 1000.0;
        /// Time between two writes that a root port takes.
        write_tlp_ns: Ticks = Kind::Ns(1e6), default "0" because "no limit is known", unknown 0.5 to 100.0;
        /// What a root port is held for each line that a write does not fill, unless the cache has it: memory reads the line and writes it back.
        partial_line_ns: Ticks = Kind::Ns(1e6), default "0" because "no difference is known", unknown 1.0 to 500.0;
        /// What memory of the other socket is farther away than that of the own, each way; 0 for one socket.
        remote_ns: Ticks = Kind::Ns(1e6), default "0" because "one socket", unknown 10.0 to 500.0;
        /// Most payload of a completion; 64 for one at every 64 B.
        completion_bytes: u32 = Kind::OneOf(&[64, 128, 256, 512, 1024, 2048, 4096]), default "4096" because "as much as the maximum payload allows";
        /// The same of reads while which a write came to the same root port; 0 for no difference.
        loaded_completion_bytes: u32 = Kind::OneOf(&[0, 64, 128, 256, 512, 1024, 2048, 4096]), default "0" because "writes make no difference";
        /// Whether what a read asks for behind the last Read Completion Boundary comes in a completion of its own, though it would fit.
        odd_end_completion: bool = Kind::Flag, default "false" because "what fits is merged";
    }
}

impl Memory {
    /// Lines of a set of the last-level cache: the one written longest ago leaves it.
    pub const CACHE_WAYS: u64 = 16;
    /// Bytes of a line.
    pub const LINE_BYTES: u64 = 64;

    /// How many lines the cache holds; 0 where no read is faster for it.
    #[must_use]
    pub fn cached_lines(&self) -> u64 {
        if self.cached_read_ns.value > Ticks::ZERO { self.cache_bytes.value / Memory::LINE_BYTES } else { 0 }
    }

    /// How many lines that devices wrote may be there at once, of those that were not there before.
    #[must_use]
    pub fn device_lines(&self) -> u64 {
        self.cached_lines() / Memory::CACHE_WAYS * u64::from(self.ddio_ways.value)
    }

    /// The lines that a write of so many bytes touches and does not fill: two at the most.
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
