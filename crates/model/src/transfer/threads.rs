//! Resources shared by transfers on several channels of one card.

use super::way::Way;
use crate::bound::Bound;
use lanemark_machine::{Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// A resource that is shared by all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupied {
    pub(crate) bound: Bound,
    /// Use by all requests of one thread, in nanoseconds.
    pub(crate) ns: f64,
    /// Use by the last request of all, for which nothing waits.
    pub(crate) last_ns: f64,
}

/// Use of each resource that channels share by `all` such transfers, each with a minimum number of descriptor reads
/// and notifications. The resources are the slowest link, the data path, the part of the engine that all requests pass, memory, the root complex, the tags, and the
/// credits and replay buffers of links.
pub(crate) fn shared(
    platform: &Platform,
    transfer: &Transfer,
    all: u64,
    fetches: u64,
    notices: u64,
) -> Option<[Occupied; 8]> {
    let way = Way::of(platform, transfer)?;
    let memory = way.memory()?;
    if transfer.verb == Verb::Load && memory.loaded_completion_bytes.value > 0 {
        // The notification write of one thread makes reads of the others cheaper.
        return None;
    }
    let part = way.part(all)?;
    let (sum, scale) = (way.sum(0, part.transfers)?, part.times);
    let (fetches, notices) = (part.transfers * fetches, part.transfers * notices);
    let (path, reads, writes) = if transfer.verb == Verb::Store {
        (sum.request_beats, fetches, sum.requests + notices)
    } else {
        (sum.beats, fetches + sum.requests, notices)
    };
    let tags = if transfer.verb == Verb::Load { sum.latencies.as_ns() / f64::from(way.dma.tags.value) } else { 0.0 };
    let waits = way.waits_of_requests(&sum, scale, Ticks::ZERO).into_iter();
    let longest = waits.max_by(|one, other| one.ns.total_cmp(&other.ns));
    let longest = longest.map_or((Bound::Credits, 0.0), |wait| (wait.bound, wait.ns / scale));
    let whole = |bound, ns| Occupied { bound, ns: scale * ns, last_ns: 0.0 };
    let one_by_one = |bound, pace: Ticks, requests: u64| {
        let ns = scale * (pace * requests).as_ns();
        Occupied { bound, ns, last_ns: if requests > 0 { pace.as_ns() } else { 0.0 } }
    };
    Some([
        whole(Bound::Link, sum.link.as_ns()),
        whole(Bound::Engine, path.as_ns()),
        one_by_one(Bound::Engine, way.dma.shared_request_ns.value, reads + writes),
        one_by_one(Bound::Memory, memory.read_request_ns.value, reads),
        one_by_one(Bound::Memory, memory.write_tlp_ns.value, writes),
        one_by_one(Bound::RootComplex, way.root_pace(), reads + writes),
        whole(Bound::Tags, tags),
        whole(longest.0, longest.1),
    ])
}
