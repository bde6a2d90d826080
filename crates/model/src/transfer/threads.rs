//! What transfers on several channels of one card take of what the channels share.

use super::{MOST_PIECES, Way, in_dws};
use crate::predict::Bound;
use lanemark_machine::{Transfer, Verb};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// How long all of `all` such transfers occupy each thing that channels share, in nanoseconds: the slowest link, the data path,
/// memory, the root complex, the tags, and the credits and replay buffers of links.
pub(crate) fn shared(platform: &Platform, transfer: &Transfer, all: u64) -> Option<[(Bound, f64); 6]> {
    let way = Way::of(platform, transfer)?;
    let memory = way.memory()?;
    if transfer.verb == Verb::Load && memory.loaded_completion_bytes.value > 0 {
        // What one thread is told by makes the others' reads cheaper.
        return None;
    }
    let a_transfer = way.pieces(0)?.len() as u64;
    let taken_apart = if a_transfer.saturating_mul(all) <= MOST_PIECES { all } else { 1 };
    let scale = all as f64 / taken_apart as f64;
    let sum = way.sum(0, taken_apart)?;
    let (path, between) = if transfer.verb == Verb::Store {
        let mut beats = Ticks::ZERO;
        for nth in 0..taken_apart {
            beats += way.pieces(nth)?.into_iter().map(|piece| way.beats(way.header_dw, in_dws(piece))).sum();
        }
        (beats, memory.write_tlp_ns.value)
    } else {
        (sum.beats, memory.read_request_ns.value)
    };
    let tags = if transfer.verb == Verb::Load { sum.latencies.as_ns() / f64::from(way.dma.tags.value) } else { 0.0 };
    let waits = way.waits_of_requests(&sum, scale, Ticks::ZERO).into_iter();
    let longest = waits.max_by(|one, other| one.ns.total_cmp(&other.ns));
    let terms = [
        (Bound::Link, sum.link.as_ns()),
        (Bound::Engine, path.as_ns()),
        (Bound::Memory, (between * (sum.requests - 1)).as_ns()),
        (Bound::RootComplex, (way.root_pace() * (sum.requests - 1)).as_ns()),
        (Bound::Tags, tags),
        longest.map_or((Bound::Credits, 0.0), |wait| (wait.bound, wait.ns / scale)),
    ];
    Some(terms.map(|(bound, ns)| (bound, scale * ns)))
}
