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
    /// The kernel's DMA API maps the buffer for a device, and unmaps it.
    Kernel {
        /// Whose memory the buffer is.
        memory: KernelMemory,
        /// What of it is timed.
        part: KernelPart,
    },
}

impl Means {
    /// All methods, in the order shown to users.
    pub fn all() -> impl Iterator<Item = Means> {
        Means::with(&Table::ALL)
    }

    /// All methods with these tables, and those without a table, in the order shown to users. With the table of the kernel, the
    /// kernel makes every mapping.
    pub fn with(tables: &[Table]) -> impl Iterator<Item = Means> {
        let pool = tables.is_empty() || tables.iter().any(|table| *table != Table::Kernel);
        let kernel: &[KernelMemory] = if tables.contains(&Table::Kernel) { &KernelMemory::ALL } else { &[] };
        let of_kernel = kernel
            .iter()
            .flat_map(|memory| memory.parts().iter().map(|part| Means::Kernel { memory: *memory, part: *part }));
        let maps = Strategy::ALL.into_iter().flat_map(move |strategy| {
            tables.iter().flat_map(move |table| {
                let (table, policies) = (*table, strategy.policies(*table));
                policies.iter().map(move |invalidation| Means::Map { strategy, table, invalidation: *invalidation })
            })
        });
        maps.chain(pool.then_some(Means::Pool)).chain(of_kernel)
    }

    /// Name of the allocation strategy in records.
    #[must_use]
    pub const fn strategy_name(self) -> &'static str {
        match self {
            Means::Map { strategy, .. } => strategy.name(),
            Means::Pool => "pool",
            Means::Kernel { memory, .. } => memory.name(),
        }
    }

    /// Name of the page table and invalidation policy in records; of the kernel, that of the part.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Means::Map { table: Table::Nothing, invalidation: Invalidation::Strict, .. } => "strict",
            Means::Map { table: Table::Nothing, invalidation: Invalidation::Deferred, .. } => "deferred",
            Means::Map { table: Table::InMemory, invalidation: Invalidation::Strict, .. } => "page_table_strict",
            Means::Map { table: Table::InMemory, invalidation: Invalidation::Deferred, .. } => "page_table_deferred",
            Means::Map { table: Table::Iommu, invalidation: Invalidation::Strict, .. } => "iommu_strict",
            Means::Map { table: Table::Iommu, invalidation: Invalidation::Deferred, .. } => "iommu_deferred",
            Means::Map { table: Table::Kernel, .. } => "kernel",
            Means::Pool => "take",
            Means::Kernel { part, .. } => part.name(),
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
    /// The same address each time, without an allocator or records of mappings: the system calls alone. Only with
    /// [`Table::Iommu`], which makes them.
    Fixed,
}

impl Strategy {
    /// All strategies, those for comparison last.
    pub const ALL: [Strategy; 5] =
        [Strategy::Ranges, Strategy::Sequential, Strategy::Magazine, Strategy::FreeList, Strategy::Fixed];

    /// Invalidation policies with a table. The operating system invalidates the IOMMU at each unmap.
    const fn policies(self, table: Table) -> &'static [Invalidation] {
        match (self, table) {
            (_, Table::Iommu) => &[Invalidation::Strict],
            (Strategy::Fixed, _) | (_, Table::Kernel) => &[],
            (_, Table::Nothing | Table::InMemory) => &Invalidation::ALL,
        }
    }

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Ranges => "ranges",
            Strategy::Sequential => "sequential",
            Strategy::Magazine => "magazine",
            Strategy::FreeList => "baseline_free_list",
            Strategy::Fixed => "fixed_address",
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
    /// The one that the kernel's DMA API uses for the device, if any. No strategy of the library writes it: only
    /// [`Means::Kernel`].
    #[serde(skip)]
    Kernel,
}

impl Table {
    const ALL: [Table; 4] = [Table::Nothing, Table::InMemory, Table::Iommu, Table::Kernel];

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Table::Nothing => "nothing",
            Table::InMemory => "in_memory",
            Table::Iommu => "iommu",
            Table::Kernel => "kernel",
        }
    }
}

/// Memory that the kernel's DMA API maps, and the direction of the device's accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelMemory {
    /// Pages of a program, pinned and mapped in both directions for a while (`dma_map_sgtable`).
    Streaming,
    /// Pages of a program, mapped for reads by the device only (`DMA_TO_DEVICE`).
    ToDevice,
    /// Pages of a program, mapped for writes by the device only (`DMA_FROM_DEVICE`).
    FromDevice,
    /// Memory that the kernel allocates for the device and the cores (`dma_alloc_coherent`).
    Coherent,
}

impl KernelMemory {
    const ALL: [KernelMemory; 4] =
        [KernelMemory::Streaming, KernelMemory::ToDevice, KernelMemory::FromDevice, KernelMemory::Coherent];

    /// The measured parts of a mapping of this memory: for one direction, those in which the DMA API may copy a bounce buffer.
    #[must_use]
    pub const fn parts(self) -> &'static [KernelPart] {
        use KernelPart::{Calls, Map, Pin, SyncForCpu, SyncForDevice, Unmap, Unpin};
        match self {
            KernelMemory::Streaming => &[Calls, Pin, Map, SyncForCpu, SyncForDevice, Unmap, Unpin],
            KernelMemory::ToDevice | KernelMemory::FromDevice => &[Map, SyncForCpu, SyncForDevice, Unmap],
            KernelMemory::Coherent => &[Calls, Map, Unmap],
        }
    }

    /// Name in records.
    const fn name(self) -> &'static str {
        match self {
            KernelMemory::Streaming => "kernel_streaming",
            KernelMemory::ToDevice => "kernel_to_device",
            KernelMemory::FromDevice => "kernel_from_device",
            KernelMemory::Coherent => "kernel_coherent",
        }
    }
}

/// Part of a mapping by the kernel that is timed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelPart {
    /// All of it, by the program: the system call that maps, and the one that unmaps.
    Calls,
    /// Pinning the pages, by the kernel's clock, as all other parts.
    Pin,
    /// Mapping, or allocating coherent memory.
    Map,
    /// Handing the mapped memory over to the cores (`dma_sync_sgtable_for_cpu`).
    SyncForCpu,
    /// Handing the mapped memory over to the device (`dma_sync_sgtable_for_device`).
    SyncForDevice,
    /// Unmapping, or freeing coherent memory.
    Unmap,
    /// Unpinning the pages.
    Unpin,
}

impl KernelPart {
    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            KernelPart::Calls => "calls",
            KernelPart::Pin => "pin",
            KernelPart::Map => "map",
            KernelPart::SyncForCpu => "sync_for_cpu",
            KernelPart::SyncForDevice => "sync_for_device",
            KernelPart::Unmap => "unmap",
            KernelPart::Unpin => "unpin",
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
        assert_eq!(names.len(), 40);
        assert!(names.iter().enumerate().all(|(place, name)| !names[..place].contains(name)), "{names:?}");
    }

    #[test]
    fn with_the_table_of_the_kernel_alone_the_kernel_makes_every_mapping() {
        let names = |tables: &[Table]| Means::with(tables).map(|means| means.to_string()).collect::<Vec<_>>();
        let parts = |memory: &str, parts: &[&str]| parts.iter().map(|part| format!("{memory} {part}")).collect();
        let both: Vec<String> =
            parts("kernel_streaming", &["calls", "pin", "map", "sync_for_cpu", "sync_for_device", "unmap", "unpin"]);
        let [to_device, from_device]: [Vec<String>; 2] = ["kernel_to_device", "kernel_from_device"]
            .map(|memory| parts(memory, &["map", "sync_for_cpu", "sync_for_device", "unmap"]));
        let coherent: Vec<String> = parts("kernel_coherent", &["calls", "map", "unmap"]);
        assert_eq!(names(&[Table::Kernel]), [both, to_device, from_device, coherent].concat());
        assert_eq!(names(&[]), ["pool take"]);
        assert_eq!(names(&[Table::Iommu]).len(), 6);
        let fixed = |table| names(&[table]).iter().filter(|name| name.starts_with("fixed_address")).count();
        assert_eq!([Table::Nothing, Table::InMemory, Table::Iommu].map(fixed), [0, 0, 1]);
    }

    #[test]
    fn the_table_of_the_kernel_is_in_no_record_of_a_strategy() {
        let map = |table: &str| {
            let fields = format!(r#"{{"map":{{"strategy":"ranges","table":"{table}","invalidation":"strict"}}}}"#);
            serde_json::from_str::<Means>(&fields)
        };
        assert!(map("iommu").is_ok() && map("kernel").is_err());
    }
}
