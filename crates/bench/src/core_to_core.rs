//! How long until another core sees what this one stored?
//!
//! Traffic: cache lines between two cores; no device. Core `from` stores a number into a line, core `to` loads the
//! line until the number is there and answers with the next; the answer goes into the same line (one line) or
//! into another (two lines).
//! Unit: nanoseconds, *one way*, which is half the round trip: both directions have one clock, and nothing tells
//! which of them is slower.
//! Stores: `8` is an ordinary one. `nt8` is non-temporal with an `SFENCE` behind it, without which it would stay in
//! a buffer; `movdir64b` is a direct store of the whole line. Both put the line into memory, past the caches, and
//! are what a core does to ring a device's bell.
//! Beside them, what a core waits for a line that no cache has: a load of 8 B with an `LFENCE` behind it, whose line
//! is dropped from every cache before each sample. A simulated core is asked what such a load waits for, by who has the line:
//! memory or another core, of its own socket or of the other one; messages between simulated cores are not simulated.
//! Spoiled by: anybody else on one of the two cores, who makes the other wait for a time slice; frequency changes;
//! cores that share more than others (two threads of one core, one cache, one socket), which is what the matrix of
//! all pairs shows.
//! Of many cores, twelve are asked, spread evenly.
//! Method: core-to-core-latency, whose matrix anybody understands, with a median over many samples and its spread.

use crate::caller::Caller;
use crate::case::{Axes, Case};
use crate::needs;
use crate::question::{LeftOut, Question};
use lanemark_machine::{
    Access, Channel, Facts, Fence, Lane, LineSource, Op, Plan, Span, Stream, TimeBase, Verb, Width,
};
use lanemark_method::{Lines, Method};
use lanemark_record::{CorePair, Quantity};
use lanemark_units::{BarOffset, MemoryType};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "core_to_core",
    summary: "time until another core sees a store, one way, for every pair of cores",
    quantity: Quantity::OneWayLatency,
    cases,
    plan,
    simulated_passes: |_| 8,
    // A line of memory is dropped before a sample: a second pass would find it in a cache.
    most_passes: |case| if is_flushed(case) { 1 } else { MESSAGES },
    // Of messages one there, one back.
    accesses_per_pass: |case| if matches!(case.method, Method::CacheLines { .. }) { 2 } else { 1 },
    ask: None,
    is_usual: false,
    left_out,
};

/// Cores of which all pairs are asked: 66.
const MOST_CORES: u32 = 12;
/// Messages each way in one sample. A number that settled by itself would settle on the wrong one where a core is shared: a
/// first sample that waits for the other thread's turn takes milliseconds. As long as both threads have their turn,
/// hundreds of samples this short are taken undisturbed.
const MESSAGES: u64 = 32;
/// Bytes of a line.
const LINE: u64 = 64;
/// Bytes between two lines, so that no prefetcher takes one for the other's neighbour.
const APART: u64 = 4096;

/// The cores whose pairs are asked.
fn cores(facts: &Facts) -> Vec<u32> {
    // Virtual cores are all alike, and none can tell the other anything yet.
    let asked = if facts.time_base == TimeBase::Simulated { 2 } else { MOST_CORES };
    let count = facts.cores.min(asked);
    (0..count).map(|nth| (u64::from(nth) * u64::from(facts.cores) / u64::from(count)) as u32).collect()
}

fn left_out(facts: &Facts) -> Option<LeftOut> {
    if let Some(alone) = needs::another_core(facts) {
        return Some(alone);
    }
    let asked = cores(facts);
    (facts.time_base != TimeBase::Simulated && (asked.len() as u32) < facts.cores).then(|| LeftOut {
        what: format!("pairs with others than cores {asked:?}"),
        because: format!("of {} cores, {MOST_CORES} are asked, spread evenly: all pairs would take long", facts.cores),
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

/// Whether the line is flushed from all caches before it is loaded, instead of being where a simulation puts it.
fn is_flushed(case: &Case) -> bool {
    matches!(case.method, Method::LineLoad { .. }) && case.window > 0
}

fn plan(case: &Case, passes: u64) -> Plan {
    let (lines, pair) = match (&case.method, case.caller) {
        (Method::CacheLines { lines, .. }, Caller::Between(pair)) => (*lines, pair),
        (Method::LineLoad { source }, _) if !is_flushed(case) => {
            return Plan::on_one_core(vec![Op::LoadFrom(*source)], passes);
        }
        _ => {
            let stream = Stream::over(Verb::Load, case.access(), case.span());
            let load = Stream { fence_each: Some(Fence::Lfence), ..stream };
            let before = vec![Op::FlushLines(case.span())];
            return Plan { before, ..Plan::on_one_core(vec![Op::Stream(load)], passes) };
        }
    };
    let line = |offset| {
        let at = BarOffset { offset: case.region.offset + offset, ..case.region };
        Channel::Line { access: case.access(), span: Span { at, len: LINE, memory_type: case.memory_type() } }
    };
    let back = match lines {
        Lines::One => 0,
        Lines::Two => APART,
    };
    exchange(pair, line(0), line(back), passes.max(MESSAGES))
}

/// Two lanes that tell each other, one message each way a pass.
pub(crate) fn exchange(pair: CorePair, there: Channel, back: Channel, passes: u64) -> Plan {
    let lanes = vec![
        Lane { core: pair.from_core, body: vec![Op::Send(there), Op::Receive(back)] },
        Lane { core: pair.to_core, body: vec![Op::Receive(there), Op::Send(back)] },
    ];
    Plan { lanes, ..Plan::on_one_core(Vec::new(), passes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Region, RegionKind};

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
            disciplines: vec![],
            line_sources: vec![],
            runtime: None,
        }
    }

    #[test]
    fn every_pair_is_asked_once_and_of_many_cores_twelve_that_are_spread() {
        let pairs = |cores| cases(&facts(cores), &Axes::default()).len();
        // Two ways a pair, by the one store there is, and the line from memory.
        assert_eq!([1, 2, 3, 12, 13, 256].map(pairs), [0, 3, 7, 133, 133, 133]);
        assert_eq!(cores(&facts(48)), (0..12).map(|nth| nth * 4).collect::<Vec<_>>());
        assert_eq!(left_out(&facts(12)), None);
        assert!(left_out(&facts(13)).unwrap().because.contains("of 13 cores, 12"));
    }

    #[test]
    fn two_lines_are_a_page_apart_and_one_is_the_same_for_both_ways() {
        let spans = |lines| {
            let mut cases = cases(&facts(2), &Axes::default());
            cases.retain(|case| matches!(case.method, Method::CacheLines { lines: of, .. } if of == lines));
            let plan = plan(&cases[0], 7);
            assert_eq!(plan.passes, MESSAGES);
            let offset = |op: &Op| match op {
                Op::Send(channel) | Op::Receive(channel) => channel.span().unwrap().at.offset,
                _ => panic!("{op:?}"),
            };
            plan.lanes.iter().map(|lane| lane.body.iter().map(offset).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(spans(Lines::One), [[0, 0], [0, 0]]);
        assert_eq!(spans(Lines::Two), [[0, 4096], [0, 4096]]);
    }

    #[test]
    fn a_simulated_core_loads_from_everybody_who_is_known_to_have_a_line() {
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
