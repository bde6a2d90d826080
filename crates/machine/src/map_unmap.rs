//! Memory that a program lends to a device and takes back, with nobody at the other end.

use std::fmt;

/// A buffer is lent and taken back, some times in a row.
///
/// No device is told of it and no byte is touched: what is asked about is what the program does for it, which is to
/// find addresses for the device, to have somebody translate them, and to remember that it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapUnmap {
    /// By which means.
    pub means: Means,
    /// Bytes of the buffer, which starts with a page; up to [`MapUnmap::MOST_BYTES`], and for a pool a power of two.
    pub bytes: u64,
    /// How often in one pass; at least 1.
    pub pairs: u64,
}

impl MapUnmap {
    /// The longest buffer: 32 MiB. With it, as many pairs as a queue of deferred invalidations holds end in time.
    pub const MOST_BYTES: u64 = 32 << 20;

    /// Why nobody can lend that; `None` if it makes sense.
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
            return Some("nothing would be lent");
        }
        if self.bytes > MapUnmap::MOST_BYTES {
            return Some("one pass could not be ended when the time is over; ask for at most 32 MiB");
        }
        match self.means {
            Means::Pool if !self.bytes.is_power_of_two() => Some("an object of a pool is a power of two of bytes"),
            _ => None,
        }
    }
}

/// By which means memory is lent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Means {
    /// It is mapped, in as many pieces as that takes, and each is unmapped.
    Map {
        /// Who hands out the addresses.
        strategy: Strategy,
        /// Who is told what they lead to.
        table: Table,
        /// When what was unmapped is invalidated.
        invalidation: Invalidation,
    },
    /// It is an object of memory that was mapped before and stays so: taken, and given back.
    Pool,
}

impl Means {
    /// Every one of them, in the order they are listed to users.
    pub fn all() -> impl Iterator<Item = Means> {
        let maps = Strategy::ALL.into_iter().flat_map(|strategy| {
            Table::ALL.into_iter().flat_map(move |table| {
                Invalidation::ALL.into_iter().map(move |invalidation| Means::Map { strategy, table, invalidation })
            })
        });
        maps.chain([Means::Pool])
    }

    /// Who hands out the addresses, as records name it.
    #[must_use]
    pub const fn strategy_name(self) -> &'static str {
        match self {
            Means::Map { strategy, .. } => strategy.name(),
            Means::Pool => "pool",
        }
    }

    /// What else is done, as records name it.
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

/// Who hands out addresses for a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Ranges of 8 pages, the lowest that is free.
    Ranges,
    /// Pages of ranges that the device keeps, in turn.
    Sequential,
    /// What its core gave back last.
    Magazine,
    /// The lowest hole of a B-tree that is long enough: what the others are held against.
    FreeList,
}

impl Strategy {
    /// Every one, the baseline last.
    pub const ALL: [Strategy; 4] = [Strategy::Ranges, Strategy::Sequential, Strategy::Magazine, Strategy::FreeList];

    /// The name in records.
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

/// Who is told what a device's addresses lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// Nobody.
    Nothing,
    /// A table of pages in memory, and what an IOTLB may still hold of it.
    InMemory,
}

impl Table {
    const ALL: [Table; 2] = [Table::Nothing, Table::InMemory];
}

/// When what was unmapped is invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalidation {
    /// At once.
    Strict,
    /// When [`Invalidation::QUEUE`] pieces wait for it, all of them.
    Deferred,
}

impl Invalidation {
    /// Pieces that wait at most.
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
    fn nothing_and_too_much_are_nonsense_and_objects_of_a_pool_are_powers_of_two() {
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
    fn every_means_has_a_name_of_its_own() {
        let names: Vec<String> = Means::all().map(|means| means.to_string()).collect();
        assert_eq!(names.len(), 17);
        assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)), "{names:?}");
    }
}
