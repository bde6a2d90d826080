//! One leg of a way that bytes go from card to card.

use super::pools::Packets;
use super::{MOST_PIECES, Sum, Way};
use crate::bounds::Largest;
use crate::path::{Hop, LinkName};
use lanemark_machine::{Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// What a card reads, or what one writes to the next.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    /// All of it, from the first request to the last byte at its end.
    pub(crate) moved: Largest,
    /// One packet of data, from its request to its end, at the least.
    pub(crate) packet_ns: f64,
    /// The least that one request moves.
    pub(crate) least_bytes: u32,
    /// Beats of all requests on the engine's data path.
    pub(crate) beats_ns: f64,
    /// What all of its packets take of each link that they cross.
    pub(crate) on_links: Vec<(LinkName, f64)>,
}

/// `transfer`, `passes` times, as if nothing held up its bytes at either end.
pub(crate) fn leg(platform: &Platform, transfer: &Transfer, passes: u64) -> Option<Leg> {
    let way = Way::of(platform, transfer)?;
    let all = transfer.count.checked_mul(passes).filter(|all| *all > 0 && transfer.bytes > 0)?;
    let pieces = way.pieces(0)?;
    let (taken_apart, times) =
        if (pieces.len() as u64).saturating_mul(all) <= MOST_PIECES { (all, 1.0) } else { (1, all as f64) };
    // What queues hold is no matter of one leg.
    let sum = Sum { queued: Ticks::ZERO, ..way.sum(0, taken_apart)? };
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
        moved: way.terms(&sum, times),
        packet_ns: packet.as_ns(),
        least_bytes: if transfer.verb == Verb::Store { sum.least_bytes } else { 0 },
        beats_ns: times * sum.request_beats.as_ns(),
        on_links,
    })
}
