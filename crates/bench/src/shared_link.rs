//! How do concurrent flows share links?
//!
//! Traffic: that of every flow; all begin together and move the same number of bytes.
//!
//! Unit: bytes per second, in total. The headline covers the common time, from the start until the
//! first flow completes. The detail has each flow and the total, over that time and over the whole
//! time.
//!
//! Spoiled by: flows so short that their beginnings and ends have a visible share.
//!
//! Method: the devices keep the time.

use crate::case::{Axes, Case};
use crate::dma;
use crate::effort::Effort;
use crate::error::BenchError;
use crate::needs;
use crate::question::{Question, Watch};
use crate::sampling::{answer, measure, plan_for};
use lanemark_machine::{BytesMoved, Concurrent, Facts, Flow, Machine, Peer, Verb};
use lanemark_record::{Answer, Detail, FlowRate, Flows, Quantity, Summary};
use lanemark_units::Ticks;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "shared_link",
    summary: "rates of several concurrent cards, each and in total",
    quantity: Quantity::Bandwidth,
    cases,
    plan: |case, passes| dma::plan(case, dma::transfers(case), passes),
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: dma::transfers,
    ask: Some(ask),
    is_usual: true,
    left_out: needs::several_cards,
};

/// Bytes per transfer.
const SIZE: u64 = 1 << 20;

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    if let Some(flows) = &axes.flows {
        return dma::cases(facts, axes, flows, None, &[SIZE]);
    }
    // One, two, four, ... and all cards.
    let cards = facts.dma.map_or(0, |dma| dma.cards);
    let mut counts: Vec<u32> =
        (0..u32::BITS).map(|power| 1 << power).take_while(|count| *count < cards).chain([cards]).collect();
    counts.retain(|count| *count > 1);
    let all = |verb, count| -> Vec<Flow> { (0..count).map(|card| Flow { card, verb, peer: Peer::Host }).collect() };
    let both = [Verb::Store, Verb::Load].into_iter();
    both.flat_map(|verb| counts.iter().map(move |count| all(verb, *count)))
        .flat_map(|flows| dma::cases(facts, axes, &flows, None, &[SIZE]))
        .collect()
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
    let mut answer = answer(question, case, machine.facts(), &measured, effort);
    // The issue time of the first card alone is meaningless here.
    answer.issue_rate_bytes_per_s = None;
    if let Some(together) = &measured.samples.together {
        let flows = rates(case, together);
        answer.delivered_rate_bytes_per_s = Summary::of(&[flows.common_rate_bytes_per_s]);
        answer.detail = Some(Detail::Flows(flows));
    }
    Ok(answer)
}

fn rates(case: &Case, together: &Concurrent) -> Flows {
    let per_s = |bytes: u64, time: Ticks| if time > Ticks::ZERO { bytes as f64 * 1e9 / time.as_ns() } else { 0.0 };
    let all = together.each.iter().map(|moved| moved.delivered).max().unwrap_or(Ticks::ZERO);
    let sum = |of: fn(&BytesMoved) -> u64| together.each.iter().map(of).sum();
    let rate = |(flow, moved): (&Flow, &BytesMoved)| FlowRate {
        flow: flow.to_string(),
        common_rate_bytes_per_s: per_s(moved.common_bytes, together.common),
        rate_bytes_per_s: per_s(moved.bytes, moved.delivered),
    };
    Flows {
        common_ns: together.common.as_ns(),
        common_rate_bytes_per_s: per_s(sum(|moved| moved.common_bytes), together.common),
        all_ns: all.as_ns(),
        all_rate_bytes_per_s: per_s(sum(|moved| moved.bytes), all),
        each: case.flows().iter().zip(&together.each).map(rate).collect(),
    }
}
