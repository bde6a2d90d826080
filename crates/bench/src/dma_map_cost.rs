//! How much does it cost to map memory for a device and to unmap it?
//!
//! Traffic: none. No byte is accessed. A card that is opened through VFIO is reset first, if it can
//! be reset.
//!
//! Unit: nanoseconds per pair: the whole buffer mapped, in as many pieces as the strategy gives,
//! and all of them unmapped. For a pool: an object taken and returned, because its memory stays
//! mapped.
//!
//! Methods: each strategy of the library `lanemark-dma`, with the lowest gap of a B-tree as
//! baseline. On `host`: with a backend that programs nothing, which shows the cost of the library
//! alone, and with its page table in memory; invalidated before `unmap` returns (`strict`), or 256
//! pieces at a time (`deferred`). On a card that is bound to `vfio-pci`: with the real IOMMU. Each
//! map is a system call that pins the pages; each unmap is one that unpins them and invalidates the
//! IOTLB before it returns. `fixed address` is these two calls without an allocator. On a card that
//! is bound to our module: the kernel's own DMA API, for pages of the program (`kernel streaming`,
//! and `kernel to device` or `kernel from device` for one direction) and for memory that the kernel
//! allocates (`kernel coherent`). `calls` is the pair of system calls, timed by the program; its
//! parts are timed by the module. The module also times a further call, which hands the mapped
//! memory over to the cores and then to the device.
//!
//! Spoiled by: other mappings, of which there are none here. The baseline's tree is then smallest,
//! and every list stays in a cache. The B-trees of the baseline and of the page
//! table allocate nodes within the timed interval, as in a program.

use crate::case::{Axes, Case};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Facts, Invalidation, MapUnmap, Means, Plan, TimeBase};
use lanemark_method::Method;
use lanemark_record::Quantity;
use lanemark_units::Ticks;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "dma_map_cost",
    summary: "time to map and unmap a buffer for a device, by strategy, table, invalidation and size",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |case| if pairs(case) == 1 { 1 << 14 } else { 1 << 6 },
    accesses_per_pass: pairs,
    ask: None,
    is_usual: false,
    left_out: |facts| needs::real_machine(facts).or_else(|| needs::table(facts)),
};

/// A page, 8 pages, 64 pages, and a large page.
const SIZES: [u64; 4] = [4 << 10, 32 << 10, 256 << 10, 2 << 20];

/// Timeout of a sample, whose iterations may take tens of milliseconds.
const TIMEOUT: Ticks = Ticks::whole_ns(30_000_000_000);

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    if facts.time_base == TimeBase::Simulated {
        return Vec::new();
    }
    let sizes = axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec());
    let with_sizes = |means| {
        let of_nothing = Case::of_nothing(facts, Method::MapUnmap { means });
        sizes.iter().filter_map(move |size| Some(Case { size: *size, ..of_nothing.clone()? }))
    };
    Means::with(&facts.tables).flat_map(with_sizes).collect()
}

/// Pairs per iteration. With deferred invalidation, enough to empty the queue, so that every sample
/// has its share of invalidations.
fn pairs(case: &Case) -> u64 {
    let is_deferred =
        matches!(case.method, Method::MapUnmap { means: Means::Map { invalidation: Invalidation::Deferred, .. } });
    if is_deferred { Invalidation::QUEUE } else { 1 }
}

fn plan(case: &Case, passes: u64) -> Plan {
    let Method::MapUnmap { means } = case.method else { return Plan::empty() };
    let lend = MapUnmap { means, bytes: case.size, pairs: pairs(case) };
    Plan { timeout: TIMEOUT, ..Plan::new(lend, passes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Operation, Region, RegionKind, Table, Task};
    use lanemark_units::{BarOffset, MemoryType};

    fn facts(time_base: TimeBase) -> Facts {
        Facts {
            name: "a machine".to_owned(),
            summary: String::new(),
            time_base,
            cores: 1,
            regions: vec![Region {
                name: "memory".to_owned(),
                at: BarOffset { bar: 0, offset: 0 },
                len: 4096,
                kind: RegionKind::Storage,
            }],
            memory_types: vec![MemoryType::Wb],
            stores: vec![],
            loads: vec![],
            memcpy: String::new(),
            dma: None,
            driver_width: None,
            tables: vec![Table::Nothing, Table::InMemory],
            disciplines: vec![],
            line_sources: vec![],
            runtime: None,
        }
    }

    fn cases_of(time_base: TimeBase) -> Vec<Case> {
        cases(&facts(time_base), &Axes::default())
    }

    #[test]
    fn every_strategy_and_size_is_measured_on_real_machines_only() {
        let asked = cases_of(TimeBase::Real);
        assert_eq!(asked, cases_of(TimeBase::Emulated));
        assert_eq!(asked.len(), 17 * 4);
        assert!(asked.iter().enumerate().all(|(place, case)| !asked[..place].contains(case)));
        assert!(cases_of(TimeBase::Simulated).is_empty());
        let left_out = |time_base| (QUESTION.left_out)(&facts(time_base));
        assert!(left_out(TimeBase::Simulated).unwrap().is_all());
        assert_eq!((left_out(TimeBase::Real), left_out(TimeBase::Emulated)), (None, None));
    }

    #[test]
    fn a_deferred_iteration_fills_the_queue_and_is_timed_per_pair() {
        for case in cases_of(TimeBase::Real) {
            let plan = plan(&case, 3);
            let Task::Operation(Operation::MapUnmap(lend)) = plan.work.lanes()[0].task else { panic!("{plan:?}") };
            let pairs = if case.method.to_string().ends_with("deferred") { 256 } else { 1 };
            assert_eq!((lend.pairs, (QUESTION.accesses_per_pass)(&case)), (pairs, pairs), "{}", case.method);
            assert_eq!((lend.bytes, plan.passes), (case.size, 3));
            assert_eq!(lend.check(), Ok(()));
        }
    }

    #[test]
    fn a_method_names_strategy_table_and_invalidation_and_sizes_are_bounded() {
        let asked = cases_of(TimeBase::Real);
        let ways: Vec<String> = asked.iter().step_by(4).map(|case| case.method.to_string()).collect();
        assert_eq!(ways[..2], ["ranges, strict", "ranges, deferred"]);
        assert_eq!(
            ways[14..],
            ["baseline free list, page table strict", "baseline free list, page table deferred", "pool, take"]
        );
        assert_eq!(asked[0].room(&facts(TimeBase::Real)), MapUnmap::MOST_BYTES);
    }
}
