//! Reading a card by DMA or by loads of a core.

use crate::condition::with;
use crate::line::line;
use crate::rule::{Outcome, as_text, hold};
use lanemark_bench::{Axes, Case, Cores, Effort, ask, question};
use lanemark_machine::{Completion, Descriptors, Flow, Machine, Peer, Share, Verb};
use lanemark_method::{AccessPath, CoreAccess, Method, Reach};
use lanemark_platform::Platform;
use lanemark_record::Picture;
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, format_size};

/// Compares small reads: loads are faster than DMA.
pub(crate) fn loads_beat_dma_from_128_to_512_bytes(platform: &Platform) -> Outcome {
    compared(platform, &[128, 256, 512], |loads, dma| loads < dma)
}

/// Compares large reads: DMA is faster than loads.
pub(crate) fn dma_beats_loads_from_1_kib(platform: &Platform) -> Outcome {
    compared(platform, &[1 << 10, 4 << 10, 64 << 10], |loads, dma| dma < loads)
}

/// Compares streaming loads from WC memory with DMA that signals completion by a polled word, at `sizes`.
fn compared(platform: &Platform, sizes: &[u64], holds: fn(f64, f64) -> bool) -> Outcome {
    let (mut seen, mut all_hold) = (Vec::new(), true);
    for size in sizes {
        let (loads, dma) = (loads_ns(platform, *size)?, dma_ns(platform, *size, Completion::Flag)?);
        all_hold &= holds(loads, dma);
        seen.push(format!("{}: loads {loads:.0} ns, DMA {dma:.0} ns", format_size(*size)));
    }
    hold(all_hold, seen.join("; "))
}

/// Sizes of the picture in bytes: those of the report's statement, and beyond it on both sides.
const SIZES: [u64; 8] = [8, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10];

/// Draws the time of streaming loads over that of DMA, by size, for both ways of polling and for two numbers of
/// streaming-load buffers: that of the platform, and as many as the core has fill buffers.
pub(crate) fn loads_over_dma(platform: &Platform) -> Result<Picture, String> {
    let core = &platform.core;
    let (own, fills) = (core.streaming_load_buffers.value, core.fill_buffers.value);
    let several = with(platform, "core.streaming_load_buffers", f64::from(fills))?;
    let lines = [(platform, own), (&several, fills)].into_iter().flat_map(|(platform, buffers)| {
        [(Completion::Flag, "a word in memory"), (Completion::Register, "a register")].map(|(completion, polled)| {
            let value = |size| Ok(Some(loads_ns(platform, size)? / dma_ns(platform, size, completion)?));
            line(format!("{buffers} buffers, DMA polls {polled}"), SIZES.into_iter().map(value).collect())
        })
    });
    Ok(Picture {
        title: "Streaming loads over DMA, by what is polled and by the buffers of the core".to_owned(),
        along: "bytes".to_owned(),
        shows: "time of the loads over that of DMA".to_owned(),
        at: SIZES.map(|bytes| bytes as f64).to_vec(),
        lines: lines.collect::<Result<_, String>>()?,
        note: format!(
            "Simulated; a sensitivity, not a fit: the platform keeps {own} buffers. Below 1, loads are faster. The larger \
             number of buffers is core.fill_buffers, in which this processor also keeps the lines of cached loads."
        ),
    })
}

/// Latency of streaming loads from WC memory, in ns.
fn loads_ns(platform: &Platform, size: u64) -> Result<f64, String> {
    let is_load = |method: &Method| {
        let Method::Core(CoreAccess { path: AccessPath::Loads, memory_type, .. }) = method else { return false };
        // A streaming load fetches 16 B or more; smaller reads are plain loads.
        *memory_type == if size < 16 { MemoryType::Uc } else { MemoryType::Wc }
    };
    latency_ns(platform, &is_load, size)
}

/// Latency of DMA that a program starts and whose end it polls, in ns.
fn dma_ns(platform: &Platform, size: u64, completion: Completion) -> Result<f64, String> {
    let call = Method::DmaCall {
        flows: vec![Flow { card: 0, verb: Verb::Store, peer: Peer::Host }],
        share: Share::List,
        descriptors: Descriptors::Written(MemoryType::Uc),
        completion,
        reach: Reach::default(),
    };
    latency_ns(platform, &|method: &Method| *method == call, size)
}

/// Median latency of the only case of `dma_or_mmio` with a size and a wanted method, in ns.
fn latency_ns(platform: &Platform, is_wanted: &dyn Fn(&Method) -> bool, size: u64) -> Result<f64, String> {
    let question = question("dma_or_mmio").ok_or("there is no question dma_or_mmio")?;
    let mut machine = SimulatedMachine::new(platform).map_err(as_text)?;
    let axes = Axes { sizes: Some(vec![size]), cores: Some(Cores::These(vec![0])), ..Axes::default() };
    let mut cases: Vec<Case> = (question.cases)(machine.facts(), &axes);
    cases.retain(|case| case.size == size && is_wanted(&case.method));
    let [case] = &cases[..] else { return Err(format!("{} cases of {size} B, instead of one", cases.len())) };
    let answer = ask(question, &mut machine, case, &Effort::default()).map_err(as_text)?;
    answer.latency_ns.map(|summary| summary.median).ok_or_else(|| "the answer has no latency".to_owned())
}
