//! At which rate do bytes pass through a chain of cards, from host memory and back?
//!
//! Traffic: reads of host memory by the first card, writes of each card to the next, writes of the
//! last card to host memory.
//!
//! Unit: bytes per second from end to end, until the last byte is in host memory. Every byte is
//! compared.
//!
//! Spoiled by: queues too small for the path; a clock of the user's circuit that is slower than the
//! links.
//!
//! Method: back-to-back transfers of one size; every card forwards what it receives.

use crate::case::{Axes, Case};
use crate::dma;
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Facts, Flow, Peer, Plan, Verb};
use lanemark_method::{Method, Reach};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "relay_bandwidth",
    summary: "rate from host memory through one card, or a chain of cards, and back",
    quantity: Quantity::Bandwidth,
    cases,
    plan: |case, passes| case.relay(dma::transfers(case)).map_or_else(Plan::empty, |relay| Plan::new(relay, passes)),
    simulated_passes: |_| 1,
    most_passes: |_| 4096,
    accesses_per_pass: dma::transfers,
    ask: None,
    is_usual: true,
    left_out: needs::relay,
};

/// Transfer sizes: a page, and one larger than any queue.
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
        let mut chains = vec![vec![0], (0..dma.cards).collect()];
        chains.dedup();
        chains
    };
    let chains = axes.flows.as_ref().map_or_else(usual, |flows| chain(flows).into_iter().collect());
    let mut cases = Vec::new();
    for cards in chains {
        for alignment in axes.alignments.clone().unwrap_or_else(|| vec![0]) {
            for size in axes.sizes.clone().unwrap_or_else(|| SIZES.to_vec()) {
                let method = Method::Relay { cards: cards.clone(), reach: axes.reach };
                let case = Case { alignment, region: at, ..Case::of_runtime(size, method) };
                let (room, reach) = (case.room(facts), size.saturating_add(alignment));
                let window = reach.max(axes.reach.window_bytes.unwrap_or(dma::WINDOW).min(room));
                if axes.sizes.is_some() || size <= room {
                    cases.push(Case { window, ..case });
                }
            }
        }
    }
    cases
}

/// The cards of flows that form a chain from host memory through each of them once and back; `None`
/// for other flows.
fn chain(flows: &[Flow]) -> Option<Vec<u32>> {
    let ([first, hops @ ..], Some(last)) = (flows, flows.last()) else { return None };
    let mut cards = vec![first.card];
    for hop in hops.split_last()?.1 {
        let (Verb::Store, Peer::Card(next)) = (hop.verb, hop.peer) else { return None };
        if cards.last() != Some(&hop.card) || cards.contains(&next) {
            return None;
        }
        cards.push(next);
    }
    let is_end = |flow: &Flow, verb: Verb| flow.peer == Peer::Host && flow.verb == verb;
    let is_chain = is_end(first, Verb::Load) && is_end(last, Verb::Store) && cards.last() == Some(&last.card);
    is_chain.then_some(cards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_begins_and_ends_in_host_memory_without_gaps() {
        let cards = |words: &[&str]| chain(&words.iter().map(|word| word.parse().unwrap()).collect::<Vec<Flow>>());
        assert_eq!(cards(&["host:0", "0:host"]), Some(vec![0]));
        assert_eq!(cards(&["host:0", "0:1", "1:2", "2:host"]), Some(vec![0, 1, 2]));
        for broken in [
            &["host:0"][..],
            &["0:1", "1:host"],
            &["host:0", "0:1"],
            &["host:0", "1:2", "2:host"],
            &["host:0", "0:1", "1:0", "0:host"],
            &["host:0", "0:1:read", "1:host"],
            &["host:0", "1:host"],
        ] {
            assert_eq!(cards(broken), None, "{broken:?}");
        }
    }
}
