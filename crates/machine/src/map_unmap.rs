//! DMA mapping and unmapping of memory, without a transfer.

use std::fmt;

/// A buffer is mapped for DMA and unmapped, several times in a row.
///
/// No device is involved and no byte is touched. The time is that of the software: allocating IOVAs, writing
/// page-table entries, invalidating them, and bookkeeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapUnmap {
    /// Mapping method.
    pub means: Means,
    /// Bytes of the buffer, page-aligned, at most [`MapUnmap::MOST_BYTES`]. A pool object is a power of two.
    pub bytes: u64,
    /// Map and unmap pairs in one iteration; at least 1.
    pub pairs: u64,
}

impl MapUnmap {
    /// Maximum buffer length: 32 MiB. A full queue of deferred invalidations of that size completes within the
    /// timeout.
    pub const MOST_BYTES: u64 = 32 << 20;

    /// The reason why this is impossible; `None` if it is valid.
    ///
    /// ```
    /// use lanemark_machine::{MapUnmap, Means};
    /// let object = MapUnmap { means: Means::Pool, bytes: 4096, pairs: 1 };
    /// assert_eq!(object.nonsense(), None);
    /// assert!(MapUnmap { bytes: 5000, ..object }.nonsense().is_some());
    /// ```
    #[must_use]
    pub const fn nonsense(&self) -> Option<&'static str> {
        if self.bytes == 0 || self.pairs == 0 {
            return Some("nothing would be mapped");
        }
        if self.bytes > MapUnmap::MOST_BYTES {
            return Some("one iteration could exceed the timeout; the maximum is 32 MiB");
        }
        match self.means {
            Means::Pool if !self.bytes.is_power_of_two() => Some("the size of a pool object must be a power of two"),
            _ => None,
        }
    }
}

/// Method of making memory available for DMA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// The buffer is mapped, in as many segments as the strategy needs, and each segment is unmapped.
    Map {
        /// IOVA allocation strategy.
        strategy: Strategy,
        /// Page table that is updated.
        table: Table,
        /// Invalidation policy.
        invalidation: Invalidation,
    },
    /// The buffer is an object of a permanently mapped pool, taken and returned.
    Pool,
}

impl Means {
    /// All methods, in the order shown to users.
    pub fn all() -> impl Iterator<Item = Means> {
        let maps = Strategy::ALL.into_iter().flat_map(|strategy| {
            Table::ALL.into_iter().flat_map(move |table| {
                Invalidation::ALL.into_iter().map(move |invalidation| Means::Map { strategy, table, invalidation })
            })
        });
        maps.chain([Means::Pool])
    }

    /// Name of the allocation strategy in records.
    #[must_use]
    pub const fn strategy_name(self) -> &'static str {
        match self {
            Means::Map { strategy, .. } => strategy.name(),
            Means::Pool => "pool",
        }
    }

    /// Name of the page table and invalidation policy in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Means::Map { table: Table::Nothing, invalidation: Invalidation::Strict, .. } => "strict",
            Means::Map { table: Table::Nothing, invalidation: Invalidation::Deferred, .. } => "deferred",
            Means::Map { table: Table::InMemory, invalidation: Invalidation::Strict, .. } => "page_table_strict",
            Means::Map { table: Table::InMemory, invalidation: Invalidation::Deferred, .. } => "page_table_deferred",
            Means::Pool => "take",
        }
    }
}

/// IOVA allocation strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// The lowest free range of 8 pages.
    Ranges,
    /// Sequential pages of ranges that the device keeps.
    Sequential,
    /// Per-core magazine: the IOVA that the core freed last.
    Magazine,
    /// The lowest sufficient gap in a B-tree; the baseline.
    FreeList,
}

impl Strategy {
    /// All strategies, the baseline last.
    pub const ALL: [Strategy; 4] = [Strategy::Ranges, Strategy::Sequential, Strategy::Magazine, Strategy::FreeList];

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Ranges => "ranges",
            Strategy::Sequential => "sequential",
            Strategy::Magazine => "magazine",
            Strategy::FreeList => "baseline_free_list",
        }
    }
}

/// Page table that a mapping updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// None.
    Nothing,
    /// A page table in memory, with invalidation of the IOTLB.
    InMemory,
}

impl Table {
    const ALL: [Table; 2] = [Table::Nothing, Table::InMemory];
}

/// When unmapped addresses are invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalidation {
    /// At each unmap.
    Strict,
    /// When [`Invalidation::QUEUE`] entries are queued, all together.
    Deferred,
}

impl Invalidation {
    /// Maximum number of queued entries.
    pub const QUEUE: u64 = 256;

    const ALL: [Invalidation; 2] = [Invalidation::Strict, Invalidation::Deferred];
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.strategy_name(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_oversized_buffers_are_rejected_and_pool_objects_are_powers_of_two() {
        for means in Means::all() {
            let lend = MapUnmap { means, bytes: MapUnmap::MOST_BYTES, pairs: 1 };
            assert_eq!(lend.nonsense(), None);
            assert_eq!(MapUnmap { bytes: 1, ..lend }.nonsense(), None);
            for bad in [
                MapUnmap { bytes: 0, ..lend },
                MapUnmap { pairs: 0, ..lend },
                MapUnmap { bytes: lend.bytes + 1, ..lend },
            ] {
                assert!(bad.nonsense().is_some(), "{bad:?}");
            }
            assert_eq!(MapUnmap { bytes: 12_288, ..lend }.nonsense().is_some(), means == Means::Pool, "{means}");
        }
    }

    #[test]
    fn every_mapping_method_has_a_unique_name() {
        let names: Vec<String> = Means::all().map(|means| means.to_string()).collect();
        assert_eq!(names.len(), 17);
        assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)), "{names:?}");
    }
}
