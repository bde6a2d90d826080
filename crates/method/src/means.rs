//! Mapping of memory for a device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Method of making memory available for DMA.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
        Means::with(&Table::ALL)
    }

    /// All methods with these tables, and those without a table, in the order shown to users.
    pub fn with(tables: &[Table]) -> impl Iterator<Item = Means> {
        let maps = Strategy::ALL.into_iter().flat_map(move |strategy| {
            tables.iter().flat_map(move |table| {
                let (table, policies) = (*table, table.policies());
                policies.iter().map(move |invalidation| Means::Map { strategy, table, invalidation: *invalidation })
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
            Means::Map { table: Table::Iommu, invalidation: Invalidation::Strict, .. } => "iommu_strict",
            Means::Map { table: Table::Iommu, invalidation: Invalidation::Deferred, .. } => "iommu_deferred",
            Means::Pool => "take",
        }
    }
}

/// IOVA allocation strategy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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

crate::name::from_name!(Strategy, "a strategy");

/// Page table that a mapping updates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// None.
    Nothing,
    /// A page table in memory, with invalidation of the IOTLB.
    InMemory,
    /// The table of the real IOMMU, written by the operating system.
    Iommu,
}

impl Table {
    const ALL: [Table; 3] = [Table::Nothing, Table::InMemory, Table::Iommu];

    /// Invalidation policies with this table. The operating system invalidates the IOMMU at each unmap.
    const fn policies(self) -> &'static [Invalidation] {
        match self {
            Table::Nothing | Table::InMemory => &Invalidation::ALL,
            Table::Iommu => &[Invalidation::Strict],
        }
    }

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Table::Nothing => "nothing",
            Table::InMemory => "in_memory",
            Table::Iommu => "iommu",
        }
    }
}

/// Time of the invalidation of unmapped addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Invalidation {
    /// At each unmap.
    Strict,
    /// All queued entries together, when there are [`Invalidation::QUEUE`] of them.
    Deferred,
}

impl Invalidation {
    /// Maximum number of queued entries.
    pub const QUEUE: u64 = 256;

    const ALL: [Invalidation; 2] = [Invalidation::Strict, Invalidation::Deferred];

    /// Name in files.
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
    fn every_means_has_a_distinct_name() {
        let names: Vec<String> = Means::all().map(|means| means.to_string()).collect();
        assert_eq!(names.len(), 21);
        assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)), "{names:?}");
    }
}
