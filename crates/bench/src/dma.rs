//! What the questions about a device's own transfers have in common.

use crate::caller::Caller;
use crate::case::{Axes, Case};
use crate::question::{LeftOut, Question};
use lanemark_machine::{Facts, Flow, Lane, OnChannels, Op, Peer, Plan, Transfer, Verb, WriteRead};
use lanemark_method::{Method, Reach, Socket};
use lanemark_record::Quantity;
use lanemark_units::BarOffset;

/// Bytes gone over at the most, where the size allows it: more than a second-level cache, less than a third-level one.
pub(crate) const WINDOW: u64 = 4 << 20;

/// A case for each size and alignment of these flows; none where devices move nothing, or where somebody asks about
/// instructions, memory types or regions, which are a core's affair.
pub(crate) fn cases(facts: &Facts, axes: &Axes, flows: &[Flow], outstanding: Option<u32>, usual: &[u64]) -> Vec<Case> {
    let Some(dma) = facts.dma else { return Vec::new() };
    let is_about_cores = axes.accesses.is_some() || axes.region.is_some() || axes.memory_types.is_some();
    let Some(first) = flows.first().filter(|_| !is_about_cores) else { return Vec::new() };
    let lent = dma.mapped_bytes / flows.len() as u64;
    let at_peers = flows.iter().any(|flow| flow.peer != Peer::Host);
    let (region, room) = match facts.storage() {
        _ if !at_peers => (BarOffset { bar: 0, offset: 0 }, lent),
        Some(region) if flows.iter().any(|flow| flow.peer == Peer::Host) => (region.at, lent.min(region.len)),
        Some(region) => (region.at, region.len),
        None => return Vec::new(),
    };
    let Reach { cache_state, socket, .. } = axes.reach;
    if at_peers && (cache_state.is_some() || socket.is_some()) || socket == Some(Socket::Remote) && !dma.has_remote {
        // Both are about host memory, and the other socket's is not everywhere.
        return Vec::new();
    }
    let reads = flows.iter().any(|flow| flow.verb == Verb::Load);
    if axes.reach.outstanding.is_some() && (outstanding.is_some() || !reads) {
        // A write is over when it has left, and a latency is that of one at a time.
        return Vec::new();
    }
    let is_of_pairs = flows.iter().any(|flow| flow.card == first.card && flow.verb != first.verb);
    if axes.reach.channels.is_some() && (outstanding.is_some() || is_of_pairs) {
        // One transfer at a time is on one channel, and a pair of a write and a read too.
        return Vec::new();
    }
    let sizes = axes.sizes.clone().unwrap_or_else(|| usual.to_vec());
    let room = axes.reach.window_bytes.map_or(room, |window| window.min(room));
    let usual_window = axes.reach.window_bytes.map_or(WINDOW.min(room), |_| room);
    let outstanding = axes.reach.outstanding.or(outstanding);
    let mut cases = Vec::new();
    for alignment in axes.alignments.clone().unwrap_or_else(|| vec![0]) {
        for size in sizes.iter().copied() {
            let reach = size.saturating_add(alignment);
            if axes.sizes.is_none() && reach > room {
                continue;
            }
            let method = Method::Dma { flows: flows.to_vec(), outstanding, reach: axes.reach };
            cases.push(Case {
                method,
                size,
                alignment,
                region,
                window: reach.max(usual_window),
                computation: None,
                caller: Caller::AsPlanned,
            });
        }
    }
    cases
}

/// Cases of one flow each: those asked for that are of this kind, or else the first card with host memory.
pub(crate) fn with_host(facts: &Facts, axes: &Axes, verb: Verb, outstanding: Option<u32>, usual: &[u64]) -> Vec<Case> {
    let first = vec![Flow { card: 0, verb, peer: Peer::Host }];
    let mut flows = axes.flows.clone().unwrap_or(first);
    flows.retain(|flow| flow.verb == verb && flow.peer == Peer::Host);
    flows.iter().flat_map(|flow| cases(facts, axes, &[*flow], outstanding, usual)).collect()
}

/// The same, of memory of the other socket too, where there is one and nobody asked for one of them.
pub(crate) fn with_host_of_both_sockets(
    facts: &Facts,
    axes: &Axes,
    verb: Verb,
    outstanding: Option<u32>,
    usual: &[u64],
) -> Vec<Case> {
    let mut cases = with_host(facts, axes, verb, outstanding, usual);
    if facts.dma.is_some_and(|dma| dma.has_remote) && axes.reach.socket.is_none() {
        let reach = Reach { socket: Some(Socket::Remote), ..axes.reach };
        cases.extend(with_host(facts, &Axes { reach, ..axes.clone() }, verb, outstanding, usual));
    }
    cases
}

/// Cases of one flow each: those asked for with another card, or else of the first card with the next one and with the last
/// one, as slots are listed.
pub(crate) fn with_peers(facts: &Facts, axes: &Axes, verb: Verb, usual: &[u64]) -> Vec<Case> {
    let cards = facts.dma.map_or(0, |dma| dma.cards);
    let nearest_and_last = || -> Vec<Flow> {
        let mut others: Vec<u32> =
            [1, cards.saturating_sub(1)].into_iter().filter(|other| (1..cards).contains(other)).collect();
        others.dedup();
        others.into_iter().map(|other| Flow { card: 0, verb, peer: Peer::Card(other) }).collect()
    };
    let mut flows = axes.flows.clone().unwrap_or_else(nearest_and_last);
    flows.retain(|flow| flow.verb == verb && flow.peer != Peer::Host);
    flows.iter().flat_map(|flow| cases(facts, axes, &[*flow], None, usual)).collect()
}

/// The catalogue row of a bandwidth of devices alone, one way.
pub(crate) const fn bandwidth(
    name: &'static str,
    summary: &'static str,
    cases: fn(&Facts, &Axes) -> Vec<Case>,
    left_out: fn(&Facts) -> Option<LeftOut>,
) -> Question {
    Question {
        name,
        summary,
        quantity: Quantity::Bandwidth,
        cases,
        plan: |case, passes| plan(case, transfers(case), passes),
        simulated_passes: |_| 1,
        most_passes: |_| 4096,
        accesses_per_pass: transfers,
        ask: None,
        is_usual: true,
        left_out,
    }
}

/// Every flow makes `count` transfers a pass, by devices alone.
pub(crate) fn plan(case: &Case, count: u64, passes: u64) -> Plan {
    let lanes =
        (0..).zip(case.transfers(count)).map(|(core, transfer)| Lane { core, body: vec![step(case, transfer)] });
    Plan { lanes: lanes.collect(), memory: case.memory(), ..Plan::on_one_core(Vec::new(), passes) }
}

/// A transfer, on as many channels as somebody asked for.
fn step(case: &Case, transfer: Transfer) -> Op {
    match case.reach().channels {
        Some(channels) => Op::OnChannels(OnChannels { transfer, channels }),
        None => Op::Transfer(transfer),
    }
}

/// Cases of both ways between a card and host memory: of the cards that are asked to write there, or else of the first one.
pub(crate) fn both_ways(facts: &Facts, axes: &Axes, outstanding: Option<u32>, usual: &[u64]) -> Vec<Case> {
    let first = vec![Flow { card: 0, verb: Verb::Store, peer: Peer::Host }];
    let mut flows = axes.flows.clone().unwrap_or(first);
    flows.retain(|flow| flow.verb == Verb::Store && flow.peer == Peer::Host);
    let of = |flow: &Flow| cases(facts, axes, &[*flow, Flow { verb: Verb::Load, ..*flow }], outstanding, usual);
    flows.iter().flat_map(of).collect()
}

/// Pairs of a write and a read, `count` a pass: of the same bytes, or of others in turns.
pub(crate) fn write_read_plan(case: &Case, count: u64, is_same: bool, passes: u64) -> Plan {
    let body = match case.transfers(count)[..] {
        [write, other] => {
            let read = if is_same { write.window } else { other.window };
            vec![Op::WriteRead(WriteRead { write, read, is_mixed: !is_same })]
        }
        _ => Vec::new(),
    };
    Plan { memory: case.memory(), ..Plan::on_one_core(body, passes) }
}

/// Transfers of a sample: enough for a steady state, few enough to be quick; about 1 MiB, and one of each channel at the least.
pub(crate) fn transfers(case: &Case) -> u64 {
    let least = case.reach().channels.map_or(1, u64::from);
    ((1 << 20) / case.size.max(1)).clamp(1, 1024).max(least)
}

/// Sizes of bandwidths.
pub(crate) const SIZES: [u64; 9] = [64, 256, 512, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 20, 1 << 22];
