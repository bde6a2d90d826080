//! Keys of an IOMMU.

use crate::key::Kind;
use lanemark_units::Ticks;

section! {
    /// IOMMU between root ports and host memory. Without the section, devices use physical addresses.
    Iommu ["iommu"] {
        /// Page size of DMA mappings.
        page_bytes: u64 = Kind::OneOf(&[4096, 2 << 20, 1 << 30]), default "4096" because "the base page size";
        /// Number of entries of the IOTLB.
        iotlb_entries: u32 = Kind::Count(1, 1 << 20), unknown 16.0 to 4096.0;
        /// Associativity of the IOTLB; each set replaces its least recently used entry.
        iotlb_ways: u32 = Kind::Count(1, 1 << 20);
        /// Lowest address bit of the set index of the IOTLB; never below the page offset.
        iotlb_index_bit: u32 = Kind::Count(12, 63), default "12" because "consecutive pages map to consecutive sets";
        /// Latency of a request that hits in the IOTLB.
        lookup_ns: Ticks = Kind::Ns(1e6), unknown 1.0 to 100.0;
        /// Dependent memory reads of a page walk, one per level of the page table.
        walk_reads: u32 = Kind::Count(1, 8), default "4" because "a four-level table with 4 KiB pages";
        /// Latency of one read of a page walk.
        walk_read_ns: Ticks = Kind::Ns(1e6), unknown 20.0 to 500.0;
        /// Latency of one read of a page walk that hits in the last-level cache of `memory`; 0 if page walks bypass
        /// it.
        walk_cached_read_ns: Ticks = Kind::Ns(1e6), default "0" because "all reads of a page walk take the same time", unknown 5.0 to 200.0;
        /// Entries of the paging-structure cache, each for a block of 512 pages; a hit leaves one read of the walk. 0
        /// without such a cache.
        walk_cache_entries: u32 = Kind::Count(0, 1 << 20), default "0" because "each walk reads all levels";
        /// Maximum number of concurrent page walks.
        walkers: u32 = Kind::Count(1, 1024), default "1" because "one miss at a time", unknown 1.0 to 16.0;
        /// Minimum time between the starts of two page walks.
        walk_interval_ns: Ticks = Kind::Ns(1e6), default "0" because "limited by the number of walkers only", unknown 1.0 to 500.0;
        /// From the start of an invalidation command to the write of its completion status, if no request is in
        /// flight.
        invalidation_ns: Ticks = Kind::Ns(1e9), default "1000" because "a command is read from memory and a status written back", unknown 100.0 to 10000.0;
        /// Capacity of the invalidation queue, including commands in execution.
        invalidation_entries: u32 = Kind::Count(1, 1 << 20), default "256" because "one page of 16 B commands";
        /// Whether the IOMMU passes addresses through without translation.
        pass_through: bool = Kind::Flag, default "false" because "DMA mappings are translated";
    }
}

impl Iommu {
    /// Pages of a block, which share one page of the last table level.
    pub const BLOCK_PAGES: u64 = 512;
    /// Bytes of a page-table entry.
    pub const ENTRY_BYTES: u64 = 8;

    /// Whether this IOMMU translates addresses.
    #[must_use]
    pub const fn translates(&self) -> bool {
        !self.pass_through.value
    }

    /// Whether page walks read through the last-level cache of host memory.
    #[must_use]
    pub fn walks_through_cache(&self) -> bool {
        self.walk_cached_read_ns.value > Ticks::ZERO
    }

    /// Number of sets of the IOTLB.
    #[must_use]
    pub fn sets(&self) -> u64 {
        u64::from(self.iotlb_entries.value / self.iotlb_ways.value.max(1)).max(1)
    }
}
