//! Which copy routine is the fastest, and does `copy_to_device` select it?
//!
//! Traffic: loads of a block in the cache, stores to the destination. On ordinary memory (WB) the
//! destination is *hot*, the same block repeatedly, or *cold*: its lines are flushed from every
//! cache before each sample, and copies fill 1 MiB or one block, whichever is larger.
//!
//! Unit: bytes per second; *delivered* when the data are globally visible, after a fence at the end
//! of the sample.
//!
//! Methods: `memcpy` of the C library, `rep_movsb`, loops of 16, 32 and 64 B stores, plain and
//! non-temporal, `movdir64b`, and `copy_to_device`, which selects one of them for each size by
//! measurement.
//!
//! Spoiled by: a missing fence after non-temporal stores, which then complete later than measured.
//! There is one at the end of each sample and none between copies. A program that rings a doorbell
//! after every copy also pays for a fence: see `fence_cost`.
//!
//! Method: gdrcopy has seven such routines and selects by CPUID. On the processor used for
//! development, its selection was 6 to 13 % slower than its own best routine.

use crate::case::{Axes, Case};
use crate::question::Question;
use lanemark_machine::{Access, BlockCopy, CoreWork, Facts, Plan, Span, Step, Verb, Width};
use lanemark_method::{AccessPath, CoreAccess};
use lanemark_record::Quantity;
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "copy_routines",
    summary: "rate of every copy routine and of copy_to_device, hot and cold",
    quantity: Quantity::Bandwidth,
    cases,
    plan,
    simulated_passes: |_| 1,
    // A second iteration would hit lines that the first left in the cache.
    most_passes: |case| if is_cold(case) { 1 } else { 4096 },
    accesses_per_pass: copies,
    ask: None,
    is_usual: false,
    left_out: |_| None,
};

/// The routines; `copy_to_device` is the last.
const ROUTINES: [Access; 10] = [
    Access::Memcpy,
    Access::RepMovsb,
    Access::Plain(Width::B16),
    Access::Plain(Width::B32),
    Access::Plain(Width::B64),
    Access::NonTemporal(Width::B16),
    Access::NonTemporal(Width::B32),
    Access::NonTemporal(Width::B64),
    Access::Movdir64b,
    Access::CopyToDevice,
];

/// Smallest number of bytes per cold sample.
const ZONE: u64 = 1 << 20;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.storage()) else { return Vec::new() };
    let here = || ROUTINES.into_iter().filter(|access| facts.stores.contains(access)).collect();
    let accesses: Vec<Access> = axes.accesses.clone().unwrap_or_else(here);
    let memory_types = axes.memory_types.clone().unwrap_or_else(|| facts.memory_types.clone());
    let alignments = axes.alignments.clone().unwrap_or_else(|| vec![0]);
    let mut cases = Vec::new();
    for memory_type in memory_types {
        let paths: &[AccessPath] = match memory_type {
            MemoryType::Wb => &[AccessPath::HotCopy, AccessPath::ColdCopy],
            _ => &[AccessPath::Pointer],
        };
        for &path in paths {
            for &access in &accesses {
                let core = CoreAccess { path, verb: Verb::Store, memory_type, access, fence: None };
                for &alignment in &alignments {
                    let of_size = |size| Case { alignment, ..Case::of_core(core, region.at, size) };
                    cases.extend(axes.sizes_in(region).into_iter().map(of_size));
                }
            }
        }
    }
    cases
}

fn is_cold(case: &Case) -> bool {
    case.path() == Some(AccessPath::ColdCopy)
}

/// Copies per iteration.
fn copies(case: &Case) -> u64 {
    if is_cold(case) { (ZONE / case.size.max(1)).max(1) } else { 1 }
}

fn plan(case: &Case, passes: u64) -> Plan {
    let zone = Span { len: case.size * copies(case), ..case.span() };
    let copy = Step::Copy(BlockCopy { access: case.access(), zone, block_bytes: case.size });
    let before = if is_cold(case) { vec![Step::FlushLines(zone)] } else { Vec::new() };
    // Warm-up removes earlier contents from the caches.
    let warmup_passes = u64::from(!is_cold(case));
    Plan { warmup_passes, ..Plan::new(CoreWork::after(before, copy), passes) }
}
