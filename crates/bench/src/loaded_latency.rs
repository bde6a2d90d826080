//! How does load on the links change the latency of DMA reads?
//!
//! Traffic: reads of host memory by one card, one at a time, beside other cards that read pages,
//! with increasing load. With one card, or one requested flow: its own reads, with an increasing
//! number outstanding.
//!
//! Unit: nanoseconds, round trip, of single reads, each with the rate of the other flows, or of all
//! reads if there is only one flow.
//!
//! Spoiled by: runs so short that their start, with empty links, has a visible share.
//!
//! Method: the devices time each read; reads that end after another flow has ended are left out. If
//! a device reports only the total time, the latency is the number outstanding over the rate of
//! completions (Little's law), a mean.

use crate::case::{Axes, Case};
use crate::dma;
use crate::effort::Effort;
use crate::error::BenchError;
use crate::needs;
use crate::question::{Question, Watch};
use crate::sampling::{answer, measure, plan_for};
use lanemark_machine::{EngineJob, EngineWork, Facts, Flow, Machine, Peer, Plan, Samples, Transfer, Verb};
use lanemark_method::{Method, Reach};
use lanemark_record::{Answer, Quantity, Summary};

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "loaded_latency",
    summary: "latency of DMA reads under increasing load",
    quantity: Quantity::RoundTripLatency,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |_| 1,
    accesses_per_pass: reads,
    ask: Some(ask),
    is_usual: true,
    left_out: needs::dma_engine,
};

/// Default size under load of other flows: a cache line, the size of a descriptor.
const ALONE: u64 = 64;
/// Default size without other flows: the largest read request that every port supports.
const OWN: u64 = 512;
/// Largest number of outstanding pages per loading flow: 64 KiB, more than the bandwidth-delay
/// product of any link up to Gen5 x16.
const MOST_PAGES: u64 = 16;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(dma) = facts.dma else { return Vec::new() };
    let usual = || (0..dma.cards).map(|card| Flow { card, verb: Verb::Load, peer: Peer::Host }).collect();
    let flows: Vec<Flow> = axes.flows.clone().unwrap_or_else(usual);
    if flows.first().is_none_or(|asker| asker.verb != Verb::Load) {
        return Vec::new();
    }
    let others = flows.len() - 1;
    let (usual, most) = if others > 0 { (ALONE, MOST_PAGES.min(dma.tags.into())) } else { (OWN, dma.tags.into()) };
    // First the number of other flows increases, then the load of each.
    let mut loads: Vec<(usize, u32)> = vec![(0, 1)];
    loads.extend(doubling(others as u64).map(|count| (count as usize, 1)));
    loads.extend(doubling(most).filter(|count| *count > 1).map(|count| (others, count as u32)));
    let of_load = |(count, outstanding): (usize, u32)| {
        let cases = dma::cases(facts, axes, &flows[..=count], None, &[usual]).into_iter();
        cases.map(move |mut case| {
            if let Method::Dma { flows, reach, .. } = case.method {
                // The number of outstanding transfers is this question's own parameter.
                let reach = Reach { outstanding: None, channels: None, ..reach };
                case.method = Method::DmaUnderLoad { flows, outstanding, reach };
            }
            case
        })
    };
    loads.into_iter().flat_map(of_load).collect()
}

/// 1, 2, 4, ... and `most`; empty for zero.
fn doubling(most: u64) -> impl Iterator<Item = u64> {
    let powers = (0..u64::BITS).map(|power| 1 << power).take_while(move |count| *count < most);
    powers.chain((most > 0).then_some(most))
}

const fn outstanding(case: &Case) -> u32 {
    if let Method::DmaUnderLoad { outstanding, .. } = &case.method { *outstanding } else { 1 }
}

/// Reads of the timed flow: enough that the first and the last ones have little weight.
fn reads(case: &Case) -> u64 {
    let own = if case.flows().len() == 1 { u64::from(outstanding(case)) } else { 1 };
    (32 * own).clamp(128, Samples::MOST_LATENCIES as u64)
}

/// The other flows get twice the work of a fair share, so that they do not end first.
fn plan(case: &Case, passes: u64) -> Plan {
    let transfers = case.transfers(reads(case)).into_iter();
    let more = 2 * u64::from(outstanding(case));
    let of = |(place, transfer): (u32, Transfer)| {
        let count = if place == 0 { transfer.count } else { transfer.count.saturating_mul(more) };
        EngineJob::Transfer(Transfer { count, ..transfer })
    };
    Plan::new(EngineWork { jobs: (0..).zip(transfers).map(of).collect(), memory: case.memory() }, passes)
}

fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    let plan = plan_for(question, case, machine.facts().time_base, effort);
    let measured = measure(machine, &plan, (question.most_passes)(case), effort)?;
    let samples = &measured.samples;
    let together = samples.together.as_ref();
    let while_all = together
        .and_then(|together| together.each.first())
        .map_or(usize::MAX, |first| usize::try_from(first.common_bytes / case.size.max(1)).unwrap_or(usize::MAX));
    let mut latencies: Vec<f64> = samples.latencies.iter().take(while_all).map(|time| time.as_ns()).collect();
    let all_reads = (reads(case) * measured.passes()) as f64;
    if latencies.is_empty() {
        let own = if case.flows().len() == 1 { f64::from(outstanding(case)) } else { 1.0 };
        latencies = measured.delivered_ns().iter().map(|ns| ns * own / all_reads).collect();
    }
    let rates = match together {
        Some(together) => {
            let counted = together.each.iter().skip(usize::from(case.is_beside_others()));
            let bytes: u64 = counted.map(|moved| moved.common_bytes).sum();
            vec![(bytes as f64, together.common.as_ns())]
        }
        None => measured.delivered_ns().iter().map(|ns| (all_reads * case.size as f64, *ns)).collect(),
    };
    let rates: Vec<f64> = rates.into_iter().filter(|(_, ns)| *ns > 0.0).map(|(bytes, ns)| bytes * 1e9 / ns).collect();
    let measured = measured.with_latencies(latencies);
    let mut answer = answer(question, case, machine.facts(), &measured, effort);
    answer.delivered_rate_bytes_per_s = Summary::of(&rates);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_double_up_to_the_maximum() {
        let counts = |most| doubling(most).collect::<Vec<u64>>();
        assert_eq!(counts(7), [1, 2, 4, 7]);
        assert_eq!(counts(8), [1, 2, 4, 8]);
        assert_eq!((counts(1), counts(0)), (vec![1], vec![]));
    }
}
