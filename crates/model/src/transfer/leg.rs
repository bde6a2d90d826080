//! One leg of a relay from card to card.

use super::packets::Packets;
use super::sum::Sum;
use super::way::Way;
use crate::bounds::Largest;
use crate::path::{Hop, LinkName};
use lanemark_machine::{Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// The reads of the first card, or the writes of one card to the next.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    /// All of it, from the first request to the arrival of the last byte.
    pub(crate) moved: Largest,
    /// Minimum time of one data packet, from its request to its arrival.
    pub(crate) packet_ns: f64,
    /// Minimum bytes of a request.
    pub(crate) least_bytes: u32,
    /// Beats of all requests on the engine's data path.
    pub(crate) beats_ns: f64,
    /// Time of all its packets on each link that they cross.
    pub(crate) on_links: Vec<(LinkName, f64)>,
}

/// `passes` iterations of `transfer`, without stalls by the neighbouring legs.
pub(crate) fn leg(platform: &Platform, transfer: &Transfer, passes: u64) -> Option<Leg> {
    let way = Way::of(platform, transfer)?;
    let all = transfer.count.checked_mul(passes).filter(|all| *all > 0 && transfer.bytes > 0)?;
    let part = way.part(all)?;
    let times = part.times;
    // FIFOs are modelled for the whole relay, not for a single leg.
    let sum = Sum { queued: Ticks::ZERO, ..way.sum(0, part.transfers)? };
    let packet = match transfer.verb {
        Verb::Store => sum.least_engine + sum.shortest,
        Verb::Load => sum.least_engine + sum.root_way,
    };
    let crossing = |hops: &[Hop], header_dw: u8, packets: Packets| -> Vec<(LinkName, f64)> {
        let mean_bytes = (packets.payload_bytes / packets.count.max(1)) as u32 / 4 * 4;
        let count = packets.count as f64 * times;
        hops.iter().map(|hop| (hop.name.clone(), count * hop.wire(header_dw, mean_bytes).as_ns())).collect()
    };
    let mut on_links = match transfer.verb {
        Verb::Store => crossing(&way.path.hops, way.header_dw, sum.packets),
        Verb::Load => crossing(&way.path.hops, 3, sum.packets),
    };
    if let (Verb::Load, Some(there)) = (transfer.verb, way.path_there()) {
        on_links.extend(crossing(&there.hops, way.header_dw, Packets::empty(sum.requests)));
    }
    Some(Leg {
        // The data are in a FIFO before they count for the engine.
        moved: way.terms_until_free(&sum, times),
        packet_ns: packet.as_ns(),
        least_bytes: if transfer.verb == Verb::Store { sum.least_bytes } else { 0 },
        beats_ns: times * sum.request_beats.as_ns(),
        on_links,
    })
}
