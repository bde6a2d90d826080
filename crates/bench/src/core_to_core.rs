//! How long does a store take to become visible on another core?
//!
//! Traffic: cache lines between two cores; no device. Core `from` stores a number into a line. Core
//! `to` polls the line and answers with the next number, in the same line (one line) or in another
//! (two lines).
//!
//! Unit: nanoseconds, *one way*: half the round trip. Both directions share one clock, so their
//! difference cannot be measured.
//!
//! Stores: `8` is a plain store. `nt8` is non-temporal with an `SFENCE`, without which it would
//! stay in a buffer. `movdir64b` is a direct store of a whole line. The last two write the line to
//! memory, past the caches, as a doorbell write does.
//!
//! Also measured: a load of 8 B with an `LFENCE` from a line that is flushed from every cache
//! before each sample. On a simulated core, such loads are timed by the source of the line: memory
//! or another core, of the same or the other socket. Messages between simulated cores are not
//! simulated.
//!
//! Spoiled by: other threads on one of the two cores; frequency changes; shared resources of some
//! pairs (two threads of one core, one cache, one socket), which the matrix of all pairs shows.
//!
//! Of many cores, twelve are selected, spread evenly.
//!
//! Method: as core-to-core-latency, with a median over many samples and its spread.

use crate::caller::Caller;
use crate::case::{Axes, Case};
use crate::needs;
use crate::question::{LeftOut, Question};
use lanemark_machine::{
    Access, CoreWork, Exchange, Facts, Fence, LineSource, Medium, Operation, Plan, Span, Step, Stream, TimeBase, Verb,
    Width,
};
use lanemark_method::{Lines, Method};
use lanemark_record::{CorePair, Quantity};
use lanemark_units::{BarOffset, MemoryType};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "core_to_core",
    summary: "one-way latency until another core sees a store, for every pair of cores",
    quantity: Quantity::OneWayLatency,
    cases,
    plan,
    simulated_passes: |_| 8,
    // A line of memory is flushed before a sample; a second iteration would hit the cache.
    most_passes: |case| if is_flushed(case) { 1 } else { MESSAGES },
    // Two messages: one in each direction.
    accesses_per_pass: |case| if matches!(case.method, Method::CacheLines { .. }) { 2 } else { 1 },
    ask: None,
    is_usual: false,
    left_out,
};

/// Number of cores whose pairs are all measured: 66 pairs.
const MOST_CORES: u32 = 12;
/// Messages in each direction per sample. The number is fixed: on a shared core, a first sample
/// that waits milliseconds for a time slice would mislead an adaptive one. Hundreds of samples of
/// this length fit undisturbed into a time slice.
const MESSAGES: u64 = 32;
/// Bytes of a line.
const LINE: u64 = 64;
/// Distance of two lines that no prefetcher connects.
const APART: u64 = 4096;

/// The cores whose pairs are measured.
fn cores(facts: &Facts) -> Vec<u32> {
    // Virtual cores are all alike, and messages between them are not simulated.
    let asked = if facts.time_base == TimeBase::Simulated { 2 } else { MOST_CORES };
    let count = facts.cores.min(asked);
    (0..count).map(|nth| (u64::from(nth) * u64::from(facts.cores) / u64::from(count)) as u32).collect()
}

fn left_out(facts: &Facts) -> Option<LeftOut> {
    if let Some(alone) = needs::second_core(facts) {
        return Some(alone);
    }
    let asked = cores(facts);
    (facts.time_base != TimeBase::Simulated && (asked.len() as u32) < facts.cores).then(|| LeftOut {
        what: format!("pairs with cores other than {asked:?}"),
        because: format!(
            "{MOST_CORES} of {} cores are measured, spread evenly: all pairs would take long",
            facts.cores
        ),
    })
}

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.storage()).filter(|region| region.len >= 2 * APART) else {
        return Vec::new();
    };
    let Some(memory_type) = facts.memory_types.first() else { return Vec::new() };
    let cores = cores(facts);
    let pairs = cores.iter().enumerate().flat_map(|(place, from_core)| {
        cores[place + 1..].iter().map(|to_core| CorePair { from_core: *from_core, to_core: *to_core })
    });
    let eight = Access::Plain(Width::B8);
    let nt8 = Access::NonTemporal(Width::B8);
    let ways = [(eight, Lines::One), (eight, Lines::Two), (nt8, Lines::One), (Access::Movdir64b, Lines::One)];
    let wanted = |access: &Access| match &axes.accesses {
        Some(named) => named.contains(access),
        None => facts.stores.contains(access),
    };
    let load = |source, window| Case {
        region: region.at,
        window,
        ..Case::of_runtime(LineSource::LOAD_BYTES, Method::LineLoad { source })
    };
    let memory = wanted(&eight) && cores.len() > 1 && *memory_type == MemoryType::Wb;
    let memory = memory.then(|| load(LineSource::Memory, LINE));
    let line_sources = facts.line_sources.iter().filter(|_| wanted(&eight) && cores.len() > 1);
    let loads = line_sources.map(|source| load(*source, 0));
    pairs
        .flat_map(|pair| ways.into_iter().filter(|way| wanted(&way.0)).map(move |way| (pair, way)))
        .map(|(pair, (access, lines))| {
            let size = access.width().map_or(8, Width::bytes);
            let method = Method::CacheLines { memory_type: *memory_type, access, lines };
            Case { region: region.at, caller: Caller::Between(pair), ..Case::of_runtime(size, method) }
        })
        .chain(memory)
        .chain(loads)
        .collect()
}

/// Whether the line is flushed from all caches before the load; a simulation places it instead.
fn is_flushed(case: &Case) -> bool {
    matches!(case.method, Method::LineLoad { .. }) && case.window > 0
}

fn plan(case: &Case, passes: u64) -> Plan {
    let (lines, pair) = match (&case.method, case.caller) {
        (Method::CacheLines { lines, .. }, Caller::Between(pair)) => (*lines, pair),
        (Method::LineLoad { source }, _) if !is_flushed(case) => {
            return Plan::new(Operation::LineLoad(*source), passes);
        }
        _ => {
            let stream = Stream::over(Verb::Load, case.access(), case.span());
            let load = Stream { fence_each: Some(Fence::Lfence), ..stream };
            let before = vec![Step::FlushLines(case.span())];
            return Plan::new(CoreWork::after(before, Step::Stream(load)), passes);
        }
    };
    let line = |offset| {
        let at = BarOffset { offset: case.region.offset + offset, ..case.region };
        Span { at, len: LINE, memory_type: case.memory_type() }
    };
    let back = match lines {
        Lines::One => 0,
        Lines::Two => APART,
    };
    let medium = Medium::Lines { access: case.access(), message: line(0), answer: line(back) };
    exchange(pair, medium, passes.max(MESSAGES))
}

/// Two cores that exchange one message in each direction per iteration.
pub(crate) fn exchange(pair: CorePair, medium: Medium, passes: u64) -> Plan {
    Plan::new(Exchange { cores: [pair.from_core, pair.to_core], medium }, passes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Region, RegionKind, Work};

    fn facts(cores: u32) -> Facts {
        Facts {
            name: "a machine".to_owned(),
            summary: String::new(),
            time_base: TimeBase::Real,
            cores,
            regions: vec![Region {
                name: "memory".to_owned(),
                at: BarOffset { bar: 0, offset: 0 },
                len: 1 << 20,
                kind: RegionKind::Storage,
            }],
            memory_types: vec![MemoryType::Wb],
            stores: vec![Access::Plain(Width::B8)],
            loads: vec![],
            memcpy: String::new(),
            dma: None,
            driver_width: None,
            tables: vec![],
            disciplines: vec![],
            line_sources: vec![],
            runtime: None,
        }
    }

    #[test]
    fn every_pair_is_measured_once_for_at_most_twelve_cores() {
        let pairs = |cores| cases(&facts(cores), &Axes::default()).len();
        // Two methods per pair with the only store, and the line from memory.
        assert_eq!([1, 2, 3, 12, 13, 256].map(pairs), [0, 3, 7, 133, 133, 133]);
        assert_eq!(cores(&facts(48)), (0..12).map(|nth| nth * 4).collect::<Vec<_>>());
        assert_eq!(left_out(&facts(12)), None);
        assert!(left_out(&facts(13)).unwrap().because.contains("12 of 13 cores"));
    }

    #[test]
    fn two_lines_are_a_page_apart_and_one_line_serves_both_directions() {
        let spans = |lines| {
            let mut cases = cases(&facts(2), &Axes::default());
            cases.retain(|case| matches!(case.method, Method::CacheLines { lines: of, .. } if of == lines));
            let plan = plan(&cases[0], 7);
            assert_eq!(plan.passes, MESSAGES);
            let Work::Exchange(Exchange { medium: Medium::Lines { message, answer, .. }, .. }) = plan.work else {
                panic!("{plan:?}")
            };
            [message, answer].map(|span| span.at.offset)
        };
        assert_eq!(spans(Lines::One), [0, 0]);
        assert_eq!(spans(Lines::Two), [0, 4096]);
    }

    #[test]
    fn a_simulated_core_loads_from_every_known_source_of_a_line() {
        let known = |line_sources: &[LineSource], cores| {
            let facts = Facts { time_base: TimeBase::Simulated, line_sources: line_sources.to_vec(), ..facts(cores) };
            let all = cases(&Facts { memory_types: vec![MemoryType::Uc], ..facts }, &Axes::default());
            all.iter().filter(|case| case.verb() == Verb::Load).map(|case| case.method.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            known(&LineSource::ALL, 2),
            [
                "WB 8 from memory",
                "WB 8 from memory of the other socket",
                "WB 8 from another core",
                "WB 8 from a core of the other socket",
            ]
        );
        assert_eq!(known(&[LineSource::Core], 2), ["WB 8 from another core"]);
        assert!(known(&[], 2).is_empty() && known(&LineSource::ALL, 1).is_empty());
    }
}
