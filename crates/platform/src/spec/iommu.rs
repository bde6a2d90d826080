//! Keys of an IOMMU.

use super::Kind;
use lanemark_units::Ticks;

section! {
    /// Between root ports and host memory: it translates what devices ask for, page by page. Without the section they name memory as
    /// it is.
    Iommu ["iommu"] {
        /// The pages by which memory is lent.
        page_bytes: u64 = Kind::OneOf(&[4096, 2 << 20, 1 << 30]), default "4096" because "a page";
        /// Translations that the IOTLB holds.
        iotlb_entries: u32 = Kind::Count(1, 1 << 20), unknown 16.0 to 4096.0;
        /// In how many places of it one translation may be; the one used longest ago leaves.
        iotlb_ways: u32 = Kind::Count(1, 1 << 20);
        /// The lowest bit of an address that tells in which of its sets a translation is; that of a page, if it is lower.
        iotlb_index_bit: u32 = Kind::Count(12, 63), default "12" because "pages that follow each other lie in sets that do";
        /// What every request takes that finds its translation there.
        lookup_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 100.0;
        /// Reads of memory behind each other that find a translation: levels of the table for pages of this size.
        walk_reads: u32 = Kind::Count(1, 8), default "4" because "a table of four levels, for pages of 4 KiB";
        /// One of them.
        walk_read_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// One of them whose entry the last-level cache of `memory` holds; 0 if walks do not read through it.
        walk_cached_read_ns: Ticks = Kind::Ns(1e6), default "0" because "every read of a walk takes the same", unknown 5.0 to 200.0;
        /// Blocks of 512 pages of which it keeps where their last level is, which leaves one read; 0 if it keeps none.
        walk_cache_entries: u32 = Kind::Count(0, 1 << 20), default "0" because "every level is read";
        /// How many tables it can walk at once.
        walkers: u32 = Kind::Count(1, 1024), default "1" because "one miss after the other", unknown 1.0 to 16.0;
        /// From the beginning of one walk to that of the next, at the least.
        walk_interval_ns: Ticks = Kind::Ns(1e6), default "0" because "walkers alone are the limit", unknown 1.0 to 500.0;
        /// From the beginning of a command to forget translations until its end is written, if no request is to be waited for.
        invalidation_ns: Ticks = Kind::Ns(1e9), default "1000" because "a command is read from memory, and its end is written there", unknown 100.0 to 10000.0;
        /// Commands that wait or are under way at once.
        invalidation_entries: u32 = Kind::Count(1, 1 << 20), default "256" because "a page of commands of 16 B";
        /// Whether it lets addresses through as they are, and looks nothing up.
        pass_through: bool = Kind::Flag, default "false" because "what is lent is translated";
    }
}

impl Iommu {
    /// Pages of a block whose last level of the table is one page.
    pub const BLOCK_PAGES: u64 = 512;
    /// An entry of the table.
    pub const ENTRY_BYTES: u64 = 8;

    /// Whether it translates anything.
    #[must_use]
    pub const fn translates(&self) -> bool {
        !self.pass_through.value
    }

    /// Whether walks read through the last-level cache of host memory.
    #[must_use]
    pub fn walks_through_cache(&self) -> bool {
        self.walk_cached_read_ns.value > Ticks::ZERO
    }

    /// How many sets the IOTLB has.
    #[must_use]
    pub fn sets(&self) -> u64 {
        u64::from(self.iotlb_entries.value / self.iotlb_ways.value.max(1)).max(1)
    }
}
