//! DMA mapping and unmapping of memory, without a transfer.

use crate::{Invalidation, Means, Strategy, Table};

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

    /// Bytes of a page, the unit of mappings by the kernel.
    pub const PAGE: u64 = 4096;

    /// Checks whether this mapping is possible.
    ///
    /// ```
    /// use lanemark_machine::{MapUnmap, Means};
    /// let object = MapUnmap { means: Means::Pool, bytes: 4096, pairs: 1 };
    /// assert_eq!(object.check(), Ok(()));
    /// assert!(MapUnmap { bytes: 5000, ..object }.check().is_err());
    /// ```
    ///
    /// # Errors
    /// The rule that is broken.
    pub const fn check(&self) -> Result<(), &'static str> {
        if self.bytes == 0 || self.pairs == 0 {
            return Err("nothing would be mapped");
        }
        if self.bytes > MapUnmap::MOST_BYTES {
            return Err("one iteration could exceed the timeout; the maximum is 32 MiB");
        }
        match self.means {
            Means::Pool if !self.bytes.is_power_of_two() => Err("the size of a pool object must be a power of two"),
            Means::Map { table: Table::Kernel, .. } => Err("the kernel chooses the addresses of its mappings itself"),
            Means::Map { strategy: Strategy::Fixed, table: Table::Nothing | Table::InMemory, .. }
            | Means::Map { strategy: Strategy::Fixed, invalidation: Invalidation::Deferred, .. } => {
                Err("a fixed address is only that of the system calls, which invalidate at once")
            }
            Means::Kernel { .. } if !self.bytes.is_multiple_of(MapUnmap::PAGE) => {
                Err("the kernel maps whole pages of 4 KiB")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_no_strategy() {
        let (strategy, invalidation) = (Strategy::Ranges, Invalidation::Strict);
        let by = |table| MapUnmap { means: Means::Map { strategy, table, invalidation }, bytes: 4096, pairs: 1 };
        assert_eq!(by(Table::Iommu).check(), Ok(()));
        assert!(by(Table::Kernel).check().is_err());
    }

    #[test]
    fn a_fixed_address_is_entered_by_system_calls_only() {
        let by = |table, invalidation| {
            let means = Means::Map { strategy: Strategy::Fixed, table, invalidation };
            MapUnmap { means, bytes: 4096, pairs: 1 }.check().is_ok()
        };
        assert!(by(Table::Iommu, Invalidation::Strict));
        assert!(!by(Table::Iommu, Invalidation::Deferred));
        assert!(!by(Table::InMemory, Invalidation::Strict) && !by(Table::Nothing, Invalidation::Strict));
    }

    #[test]
    fn empty_and_oversized_buffers_are_rejected_and_sizes_are_whole_objects_or_pages() {
        for means in Means::all() {
            let lend = MapUnmap { means, bytes: MapUnmap::MOST_BYTES, pairs: 1 };
            assert_eq!(lend.check(), Ok(()));
            let is_of_kernel = matches!(means, Means::Kernel { .. });
            assert_eq!(MapUnmap { bytes: 1, ..lend }.check().is_err(), is_of_kernel, "{means}");
            assert_eq!(MapUnmap { bytes: 4096, ..lend }.check(), Ok(()));
            assert_eq!(MapUnmap { bytes: 4097, ..lend }.check().is_err(), is_of_kernel || means == Means::Pool);
            for bad in [
                MapUnmap { bytes: 0, ..lend },
                MapUnmap { pairs: 0, ..lend },
                MapUnmap { bytes: lend.bytes + 1, ..lend },
            ] {
                assert!(bad.check().is_err(), "{bad:?}");
            }
            assert_eq!(MapUnmap { bytes: 12_288, ..lend }.check().is_err(), means == Means::Pool, "{means}");
        }
    }
}
