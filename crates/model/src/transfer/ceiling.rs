//! Ceiling of DMA transfers: their links.

use super::way::Way;
use crate::ceiling::Ceiling;
use crate::path::{Hop, LinkName};
use lanemark_machine::{Partner, Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Rate;

/// Ceiling of the bytes per second of such transfers: the payload of one transfer over the minimum time of its
/// packets (for reads, of the completions) on the slowest link of the path.
pub(crate) fn ceiling(platform: &Platform, transfer: &Transfer) -> Option<Ceiling> {
    ceiling_of(&Way::of(platform, transfer)?.with_longest_payload()?)
}

/// Ceiling of the transfers of one way.
fn ceiling_of(way: &Way<'_>) -> Option<Ceiling> {
    let transfer = way.transfer;
    let hop = way.path.hops.iter().max_by_key(|hop| way.least_time(hop))?;
    let rate = Rate::over(transfer.bytes, way.least_time(hop))?;
    let payload = way.payload_bytes.min(u32::try_from(transfer.bytes).unwrap_or(u32::MAX));
    let Hop { generation, lanes, .. } = hop;
    let packet = match (transfer.verb, transfer.partner) {
        (Verb::Store, Partner::Host) => "MWr",
        (Verb::Store, Partner::Peer { .. }) => "MWr to a peer",
        (Verb::Load, _) => "CplD",
    };
    let direction = match (transfer.verb, transfer.partner) {
        (Verb::Store, Partner::Host) => " upstream",
        (Verb::Load, Partner::Host) => " downstream",
        (Verb::Load, Partner::Peer { .. }) => " from a peer",
        _ => "",
    };
    Some(Ceiling { rate, because: format!("{generation} {lanes}, {packet} of {payload} B{direction}") })
}

/// Ceiling of several concurrent transfers at equal rates. None is faster than alone, and those that share a link are
/// together no faster than the link. Links are evaluated in the order of their limits; each flow counts once.
pub(crate) fn shared_ceiling(platform: &Platform, transfers: &[Transfer]) -> Option<Ceiling> {
    let ways = transfers.iter().map(|transfer| Way::of(platform, transfer)?.with_longest_payload());
    let ways = ways.collect::<Option<Vec<Way>>>()?;
    let limits = ways.iter().map(ceiling_of).collect::<Option<Vec<Ceiling>>>()?;
    let alone: Vec<f64> = limits.iter().map(|limit| limit.rate.bytes_per_s()).collect();
    let names: Vec<&LinkName> = ways.iter().flat_map(|way| &way.path.hops).map(|hop| &hop.name).collect();
    let mut left: Vec<usize> = (0..ways.len()).collect();
    let (mut most, mut shared) = (0.0, Vec::new());
    loop {
        // The limit that each link imposes on the remaining flows.
        let best = names.iter().filter_map(|name| {
            let on = |flow: &usize| ways[*flow].path.hops.iter().find(|hop| hop.name == **name).map(|hop| (*flow, hop));
            let flows: Vec<(usize, &Hop)> = left.iter().filter_map(on).collect();
            let rate_of =
                |(flow, hop): &(usize, &Hop)| transfers[*flow].bytes as f64 * 1e9 / ways[*flow].least_time(hop).as_ns();
            let carries = flows.iter().map(rate_of).fold(0.0, f64::max);
            let saved = flows.iter().map(|(flow, _)| alone[*flow]).sum::<f64>() - carries;
            let flows: Vec<usize> = flows.into_iter().map(|(flow, _)| flow).collect();
            (flows.len() > 1 && saved > 0.0).then_some((saved, carries, flows, name))
        });
        let Some((_, carries, flows, name)) = best.max_by(|one, other| one.0.total_cmp(&other.0)) else { break };
        most += carries;
        left.retain(|flow| !flows.contains(flow));
        shared.push(format!("{} of {} flows share the link {name}", flows.len(), transfers.len()));
    }
    most += left.iter().map(|flow| alone[*flow]).sum::<f64>();
    let mut on_own_links: Vec<(&str, usize)> = Vec::new();
    for flow in &left {
        let because = limits[*flow].because.as_str();
        match on_own_links.iter_mut().find(|(other, _)| *other == because) {
            Some((_, flows)) => *flows += 1,
            None => on_own_links.push((because, 1)),
        }
    }
    shared.extend(on_own_links.into_iter().map(|(because, flows)| match flows {
        1 => because.to_owned(),
        _ => format!("{flows} flows, each {because}"),
    }));
    Some(Ceiling { rate: Rate::from_bytes_per_s(most)?, because: shared.join("; ") })
}
