//! Reading a card by DMA or by loads of a core.

use crate::rule::{Outcome, as_text, hold};
use lanemark_bench::{Axes, Case, Cores, Effort, ask, question};
use lanemark_machine::{Completion, Descriptors, Flow, Machine, Peer, Share, Verb};
use lanemark_method::{AccessPath, CoreAccess, Method, Reach};
use lanemark_platform::Platform;
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
    let call = Method::DmaCall {
        flows: vec![Flow { card: 0, verb: Verb::Store, peer: Peer::Host }],
        share: Share::List,
        descriptors: Descriptors::Written(MemoryType::Uc),
        completion: Completion::Flag,
        reach: Reach::default(),
    };
    let is_call = |method: &Method| *method == call;
    let is_load = |method: &Method| {
        matches!(method, Method::Core(CoreAccess { path: AccessPath::Loads, memory_type: MemoryType::Wc, .. }))
    };
    let (mut seen, mut all_hold) = (Vec::new(), true);
    for size in sizes {
        let (loads, dma) = (latency_ns(platform, &is_load, *size)?, latency_ns(platform, &is_call, *size)?);
        all_hold &= holds(loads, dma);
        seen.push(format!("{}: loads {loads:.0} ns, DMA {dma:.0} ns", format_size(*size)));
    }
    hold(all_hold, seen.join("; "))
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
