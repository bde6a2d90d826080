//! Common parts of the questions about DMA without a driver.

use crate::caller::Caller;
use crate::case::{Axes, Case};
use crate::question::{LeftOut, Question};
use lanemark_machine::{EngineJob, EngineWork, Facts, Flow, OnChannels, Peer, Plan, Transfer, Verb, WriteRead};
use lanemark_method::{Method, Reach, Socket};
use lanemark_record::Quantity;
use lanemark_units::BarOffset;

/// Largest default window: larger than a second-level cache, smaller than a third-level cache.
pub(crate) const WINDOW: u64 = 4 << 20;

/// One case per size and alignment of these flows. Empty without DMA, or if instructions, memory
/// types or regions are requested, which apply to cores only.
pub(crate) fn cases(facts: &Facts, axes: &Axes, flows: &[Flow], outstanding: Option<u32>, usual: &[u64]) -> Vec<Case> {
    let Some(dma) = facts.dma else { return Vec::new() };
    let is_about_cores = axes.accesses.is_some() || axes.region.is_some() || axes.memory_types.is_some();
    let Some(first) = flows.first().filter(|_| !is_about_cores) else { return Vec::new() };
    let lent = dma.mapped_bytes / flows.len() as u64;
    let at_peers = flows.iter().any(|flow| flow.peer != Peer::Host);
    let (region, room) = match dma.peer.or_else(|| facts.storage().map(|region| (region.at, region.len))) {
        _ if !at_peers => (BarOffset { bar: 0, offset: 0 }, lent),
        Some((at, len)) if flows.iter().any(|flow| flow.peer == Peer::Host) => (at, lent.min(len)),
        Some(peer) => peer,
        None => return Vec::new(),
    };
    let Reach { cache_state, socket, .. } = axes.reach;
    if at_peers && (cache_state.is_some() || socket.is_some()) || socket == Some(Socket::Remote) && !dma.has_remote {
        // Cache state and socket apply to host memory, and the other socket may have none.
        return Vec::new();
    }
    let reads = flows.iter().any(|flow| flow.verb == Verb::Load);
    if axes.reach.outstanding.is_some() && (outstanding.is_some() || !reads && !facts.has_command_queue()) {
        // A posted write completes when it is sent, unless it belongs to a command; a latency is that of a single transfer.
        return Vec::new();
    }
    let is_of_pairs = flows.iter().any(|flow| flow.card == first.card && flow.verb != first.verb);
    let is_one_each = axes.reach.channels == Some(2) && flows.len() == 2;
    if axes.reach.channels.is_some() && (outstanding.is_some() || is_of_pairs && !is_one_each) {
        // A single transfer uses one channel, and concurrent writes and reads of a card use one each.
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

/// Cases of one flow each: the requested ones of this kind, or the first card with host memory.
pub(crate) fn with_host(facts: &Facts, axes: &Axes, verb: Verb, outstanding: Option<u32>, usual: &[u64]) -> Vec<Case> {
    let first = vec![Flow { card: 0, verb, peer: Peer::Host }];
    let mut flows = axes.flows.clone().unwrap_or(first);
    flows.retain(|flow| flow.verb == verb && flow.peer == Peer::Host);
    flows.iter().flat_map(|flow| cases(facts, axes, &[*flow], outstanding, usual)).collect()
}

/// As [`with_host`], also with memory of the other socket, if there is one and no socket is
/// requested.
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

/// Cases of one flow each: the requested ones between two cards, or the first card with the next
/// and with the last one, in the order of slots.
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

/// The catalogue row of a DMA bandwidth in one direction.
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
        simulated_passes: long_run,
        most_passes: |_| 4096,
        accesses_per_pass: transfers,
        ask: None,
        is_usual: true,
        left_out,
    }
}

/// Iterations of a simulated run of about 16 MiB, at most 256.
///
/// The latency of the first transfer is then less than 1 % of the run: a device reads 16 MiB in 0.3 ms on the fastest
/// link. Runs on real devices are longer.
pub(crate) fn long_run(case: &Case) -> u64 {
    ((16 << 20) / (transfers(case) * case.size).max(1)).clamp(1, 256)
}

/// Iterations of a simulated run in which transfers one at a time, `count` in each iteration, go to the whole window, if a
/// window or an order of its places is requested; otherwise one.
///
/// A cache or an IOTLB makes the latency of a place depend on those before. In a real run, iterations repeat until a sample is
/// long enough for the timer.
pub(crate) fn all_of_window(case: &Case, count: u64) -> u64 {
    /// Transfers to random places for each page of 4 KiB: of many pages, 2 % are left out.
    const OF_A_PAGE: u64 = 4;
    /// Fewest transfers to random places: the share of a cache in them then has a standard deviation below 2 %.
    const FEWEST: u64 = 1 << 10;
    /// Most transfers: four times as many pages as an IOTLB has entries.
    const MOST: u64 = 1 << 14;
    let Reach { window_bytes, stride_bytes, is_random, .. } = case.reach();
    let transfers = match (is_random, window_bytes.or(stride_bytes)) {
        (true, _) => (OF_A_PAGE * (case.window >> 12)).clamp(FEWEST, MOST),
        (false, Some(_)) => (case.window / stride_bytes.unwrap_or(case.size).max(1)).clamp(1, MOST),
        (false, None) => 1,
    };
    transfers.div_ceil(count)
}

/// A plan with `count` DMA transfers of every flow per iteration.
pub(crate) fn plan(case: &Case, count: u64, passes: u64) -> Plan {
    let jobs = case.transfers(count).into_iter().map(|transfer| job(case, transfer)).collect();
    Plan::new(EngineWork { jobs, memory: case.memory() }, passes)
}

/// A transfer on the requested number of channels, or on one of them beside another one of its card.
fn job(case: &Case, transfer: Transfer) -> EngineJob {
    let is_one_of_two = case.flows().iter().filter(|flow| flow.card == transfer.card).count() > 1;
    match case.reach().channels {
        Some(_) if is_one_of_two => EngineJob::OnChannels(OnChannels { transfer, channels: 1 }),
        Some(channels) => EngineJob::OnChannels(OnChannels { transfer, channels }),
        None => EngineJob::Transfer(transfer),
    }
}

/// Cases with both directions between a card and host memory: of the cards with a requested write,
/// or of the first card.
pub(crate) fn both_ways(facts: &Facts, axes: &Axes, outstanding: Option<u32>, usual: &[u64]) -> Vec<Case> {
    let first = vec![Flow { card: 0, verb: Verb::Store, peer: Peer::Host }];
    let mut flows = axes.flows.clone().unwrap_or(first);
    flows.retain(|flow| flow.verb == Verb::Store && flow.peer == Peer::Host);
    let of = |flow: &Flow| cases(facts, axes, &[*flow, Flow { verb: Verb::Load, ..*flow }], outstanding, usual);
    flows.iter().flat_map(of).collect()
}

/// A plan with `count` pairs of a write and a read per iteration: of the same bytes, or alternating
/// on different ones; with two channels, a job for each direction.
pub(crate) fn write_read_plan(case: &Case, count: u64, is_same: bool, passes: u64) -> Plan {
    let jobs = match case.transfers(count)[..] {
        [write, other] if !is_same && case.reach().channels.is_some() => {
            let job = |transfer| EngineJob::OnChannels(OnChannels { transfer, channels: 1 });
            vec![job(write), job(other)]
        }
        [write, other] => {
            let read = if is_same { write.window } else { other.window };
            vec![EngineJob::WriteRead(WriteRead { write, read, is_mixed: !is_same })]
        }
        _ => Vec::new(),
    };
    Plan::new(EngineWork { jobs, memory: case.memory() }, passes)
}

/// Transfers per sample, about 1 MiB: enough for a steady state, and at least one per channel.
pub(crate) fn transfers(case: &Case) -> u64 {
    let least = case.reach().channels.map_or(1, u64::from);
    ((1 << 20) / case.size.max(1)).clamp(1, 1024).max(least)
}

/// Sizes of bandwidth questions.
pub(crate) const SIZES: [u64; 9] = [64, 256, 512, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 20, 1 << 22];
