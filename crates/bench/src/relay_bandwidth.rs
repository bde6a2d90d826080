//! How many bytes a second pass a chain of cards, from host memory and back?
//!
//! Traffic: reads of host memory by the first card, writes of each card to the next, writes of the last card to host memory.
//! Unit: bytes per second from end to end, until the last byte is in host memory. Every byte is compared.
//! Spoiled by: queues too small for the way, a clock of the user's circuit that is slower than the links.
//! Method: transfers of one size, one behind the other; every card sends what came to it.

use crate::caller::Caller;
use crate::case::{Axes, Case, Through};
use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Access, Facts, Flow, Op, Peer, Plan, Verb, Width};
use lanemark_record::{Quantity, Reach};
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "relay_bandwidth",
    summary: "bytes per second through one card, or a chain of them, and back to host memory",
    quantity: Quantity::Bandwidth,
    cases,
    plan: |case, passes| {
        Plan::on_one_core(case.relay(dma::transfers(case)).map(Op::Relay).into_iter().collect(), passes)
    },
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: dma::transfers,
    ask: None,
    is_usual: true,
    left_out: needs::a_relay,
};

/// Sizes of transfers: a page, and one that no queue holds.
const SIZES: [u64; 2] = [4 << 10, 1 << 20];

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some((dma, at)) = facts.dma.and_then(|dma| Some((dma, dma.relays_at?))) else { return Vec::new() };
    let is_about_cores = axes.accesses.is_some() || axes.region.is_some() || axes.memory_types.is_some();
    let Reach { cache_state, socket, .. } = axes.reach;
    if cache_state.is_some() || socket.is_some() {
        return Vec::new();
    }
    if is_about_cores || axes.reach.is_random || axes.reach.outstanding.is_some() || axes.reach.channels.is_some() {
        return Vec::new();
    }
    let usual = || {
        let mut chains = vec![through(0..1), through(0..dma.cards)];
        chains.dedup();
        chains
    };
    let chains = axes.flows.as_ref().map_or_else(usual, |flows| vec![flows.clone()]);
    let mut cases = Vec::new();
    for flows in chains {
        for alignment in axes.alignments.clone().unwrap_or_else(|| vec![0]) {
            for size in axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec()) {
                let case = Case {
                    verb: Verb::Store,
                    access: Access::Plain(Width::B64),
                    memory_type: MemoryType::Wb,
                    fence: None,
                    size,
                    alignment,
                    region: at,
                    flows: flows.clone(),
                    through: Through::Relay { window: 0 },
                    reach: axes.reach,
                    computation: None,
                    caller: Caller::AsPlanned,
                };
                let (room, reach) = (case.room(facts), size.saturating_add(alignment));
                let window = reach.max(axes.reach.window_bytes.unwrap_or(dma::WINDOW).min(room));
                let case = Case { through: Through::Relay { window }, ..case };
                if case.relay(1).is_some() && (axes.sizes.is_some() || size <= room) {
                    cases.push(case);
                }
            }
        }
    }
    cases
}

/// From host memory through these cards and back.
fn through(cards: std::ops::Range<u32>) -> Vec<Flow> {
    let (first, last) = (cards.start, cards.end.saturating_sub(1));
    let store = |card, peer| Flow { card, verb: Verb::Store, peer };
    let hops = (first..last).map(|card| store(card, Peer::Card(card + 1)));
    let read = Flow { card: first, verb: Verb::Load, peer: Peer::Host };
    std::iter::once(read).chain(hops).chain([store(last, Peer::Host)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_begins_and_ends_in_host_memory_and_misses_no_card() {
        let words = |cards| through(cards).iter().map(Flow::to_string).collect::<Vec<_>>();
        assert_eq!(words(0..1), ["host:0", "0:host"]);
        assert_eq!(words(0..3), ["host:0", "0:1", "1:2", "2:host"]);
    }
}
