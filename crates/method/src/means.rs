//! By which means memory is mapped for a device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// By which means memory is lent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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

crate::name::from_name!(Strategy, "a strategy");

/// Who is told what a device's addresses lead to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Nobody.
    Nothing,
    /// A table of pages in memory, and what an IOTLB may still hold of it.
    InMemory,
}

impl Table {
    const ALL: [Table; 2] = [Table::Nothing, Table::InMemory];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Table::Nothing => "nothing",
            Table::InMemory => "in_memory",
        }
    }
}

/// When what was unmapped is invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Invalidation::Strict => "strict",
            Invalidation::Deferred => "deferred",
        }
    }
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
    fn every_means_has_a_name_of_its_own() {
        let names: Vec<String> = Means::all().map(|means| means.to_string()).collect();
        assert_eq!(names.len(), 17);
        assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)), "{names:?}");
    }
}
