//! Time of DMA transfers by a device.
//!
//! Each of the terms below is a lower bound of the time of all `n` requests; the result is the largest term. *Rest*
//! is the unloaded path of the steps that are not summed. For a single request all terms are therefore equal, and the
//! formula is exact.
//!
//! | bound | writes | reads |
//! | --- | --- | --- |
//! | engine | beats, request costs and descriptors of all + rest | the same, for headers |
//! | link | time of all packets on the slowest link + rest | time of all completions |
//! | memory | `(n - 1)` times the interval between requests + rest | the same |
//! | root complex | the same, with its own interval between requests | the same |
//! | device | beats of all at a peer's region + rest | beats of all completions, or at a peer's region, + rest |
//! | credits | credit round trips: as many as all credits of a link are reused + rest | the same, also for completions |
//! | replay | the same for replay-buffer entries, until each is acknowledged | the same |
//! | tags | | the latencies of all divided by the tags; rounds of as many reads as there are tags |
//! | buffers | rounds of as many as fit between engine and link + rest | the same |
//! | stalls | | requests followed one by one, if descriptors stall the engine or tags are held for different times (`stalled.rs`) |
//! | queue | beats of the user clock for all data packets, minus what a FIFO holds | the same |
//!
//! A read whose lines are all in the last-level cache has a shorter path. A partial-line write occupies memory for
//! longer (`partial.rs`).
//!
//! If a driver requests the transfer (`asked.rs`), descriptor fetches come first: one latency until the first
//! descriptor is available, and rounds of as many as are prefetched until the last. The notification follows the last
//! write on the same links, or the last completion.

mod alike;
mod at_iommu;
mod both_ways;
mod cached;
mod ceiling;
mod channels;
mod followed;
mod iotlb;
mod kept;
mod kinds;
mod leg;
mod looked_up;
mod packets;
mod pages;
mod partial;
mod peers;
mod pipeline;
mod pools;
mod requested;
mod root_complex;
mod runs;
mod spread;
mod stages;
mod stalled;
mod sum;
mod terms;
mod threads;
mod translation;
mod way;
mod write_read;

pub(crate) use both_ways::{Engine, both_ways};
pub(crate) use ceiling::{ceiling, shared_ceiling};
pub(crate) use leg::{Leg, leg};
pub(crate) use packets::Packets;
pub(crate) use pools::longest;
pub(crate) use requested::{Asked, Notice, Shared, asked};
pub(crate) use threads::{Occupied, shared};
pub(crate) use write_read::write_read;

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::prediction::Prediction;
use kept::Kept;
use lanemark_machine::{Plan, Transfer, Verb, Writer};
use lanemark_platform::Platform;
use lanemark_units::Ticks;
use sum::Sum;
use way::Way;

/// Whether a card of these transfers keeps requesting translations, because its cache is too small for all their
/// pages.
pub(crate) fn asks_again(platform: &Platform, transfer: &Transfer) -> bool {
    Way::of(platform, transfer).is_some_and(|way| way.asks_again())
}

/// Predicts the iterations of a plan over `transfer`, distributed over this many channels.
pub(crate) fn predict(
    platform: &Platform,
    transfer: &Transfer,
    channels: u32,
    plan: &Plan,
    written_by: Writer,
) -> Option<Prediction> {
    let (passes, is_warm) = (plan.passes, plan.warmup_passes > 0);
    let warmed = plan.warmup_passes.saturating_mul(transfer.count);
    let way = Way { channels, is_warm, warmed, ..Way::found(platform, transfer, written_by)? };
    // Each channel has its own limit of outstanding transfers.
    if channels == 0 || channels > 1 && transfer.outstanding.is_some() || channels > way.dma.channels.value {
        return None;
    }
    if transfer.bytes == 0 || transfer.count == 0 || passes == 0 {
        return None;
    }
    let all = transfer.count.checked_mul(passes)?;
    let queue_ns = way.queue().as_ns();
    let holds_for = match channels {
        1 => "one card, no other traffic on its links",
        _ => "one card whose channels share its data path and tags, no other traffic on its links",
    };
    let (a_transfer, _) = way.count_and_last(0)?;
    let one_by_one = match (transfer.verb, transfer.outstanding) {
        (Verb::Load, Some(1)) => true,
        // Several outstanding transfers act as fewer tags, if each is one request.
        (Verb::Load, Some(_)) if a_transfer > 1 => return None,
        _ => false,
    };
    let part = if one_by_one { way.part_one_by_one(all)? } else { way.part(all)? };
    let (taken_apart, scale) = (part.transfers, part.times);
    // One by one, each transfer waits in the queue; otherwise it waits there while others are outstanding.
    let start = way.dma.start_ns.value.as_ns() + if one_by_one { 0.0 } else { queue_ns };
    let (largest, last) = if one_by_one {
        // Most transfers of a window have the same terms.
        let mut earlier = Kept::default();
        let mut last: Option<(Sum, Largest)> = None;
        let mut terms = |nth: u64| -> Option<Largest> {
            let alike = way.alike(nth);
            if let Some(known) = earlier.find(alike) {
                return Some(*known);
            }
            let sum = way.sum(nth, 1)?;
            // Transfers at other offsets in a line mostly have the same sum.
            let known = last.filter(|(known, _)| *known == sum).map(|(_, found)| found);
            let found = known.unwrap_or_else(|| way.terms(&sum, 1.0).times(1.0, queue_ns));
            earlier.keep(alike, found);
            last = Some((sum, found));
            Some(found)
        };
        let mut sum = terms(0)?;
        match way.period() {
            Some(period) => {
                // Number of those among the first transfers of a window that are like transfer `nth`.
                let of_first = |transfers: u64, nth: u64| transfers / period + u64::from(transfers % period > nth);
                let places = transfer.window.places(transfer.bytes);
                let times = |nth| taken_apart / places * of_first(places, nth) + of_first(taken_apart % places, nth);
                sum = sum.times(times(0) as f64, 0.0);
                for nth in (1..period).filter(|nth| times(*nth) > 0) {
                    sum = sum.then(&terms(nth)?.times(times(nth) as f64, 0.0));
                }
            }
            None => match way.kinds(0, taken_apart) {
                Some(kinds) => {
                    for kind in kinds.all.iter().filter(|kind| kind.between > 0) {
                        sum = sum.then(&terms(kind.nth)?.times(kind.between as f64, 0.0));
                    }
                    sum = sum.then(&terms(taken_apart - 1)?);
                }
                None => {
                    for nth in 1..taken_apart {
                        sum = sum.then(&terms(nth)?);
                    }
                }
            },
        }
        // Data that remain in a FIFO at the end of a transfer are there at the start of the next.
        let over_all = if platform.fifos.is_some() || way.root_pace() > Ticks::ZERO {
            let all = way.sum(0, taken_apart)?;
            let queued = (Bound::Queue, scale * all.queued.as_ns() - all.ahead.as_ns());
            let taken = (scale * all.requests as f64 - 1.0) * way.root_pace().as_ns() + all.besides_memory.as_ns();
            Largest::of([queued, (Bound::RootComplex, taken)])
        } else {
            Largest::of([])
        };
        (sum.times(scale, 0.0).or(over_all), way.sum(taken_apart - 1, 1)?)
    } else {
        let sum = way.sum(0, taken_apart)?;
        let is_whole = transfer.verb == Verb::Store || transfer.outstanding.is_none() || sum.requests == taken_apart;
        let largest = way.terms(&sum, scale);
        let largest = match way.stalled(&sum, scale, all, &largest) {
            Some(ns) => largest.at_least(ns + way.beyond(&sum).as_ns()),
            None => largest,
        };
        (largest, is_whole.then_some(sum)?)
    };
    let largest = way.translated(largest, all, one_by_one, way.beyond(&last));
    let largest = if way.knows_lines(all, written_by) { largest } else { largest.blurred() };
    let delivered_ns = start + largest.ns;
    let ((first, _), (_, last_piece)) = (way.range(taken_apart - 1)?, way.count_and_last(taken_apart - 1)?);
    let last_engine = way.engine(last_piece, last_piece.address - first);
    let issue_ns = delivered_ns - (way.beyond(&last) + last.last_way + last_engine).as_ns();
    let issue_ns = issue_ns.max(way.dma.start_ns.value.as_ns() + queue_ns);
    Some(Prediction { issue_ns, delivered_ns, bound: largest.bound, lead: largest.lead(), holds_for })
}
