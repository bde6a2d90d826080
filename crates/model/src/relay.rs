//! Time of a relay, in which cards forward data that the first of them reads.
//!
//! Each term is a lower bound of the time of all bytes at one stage, plus the path of one packet before and after it.
//! The result is the largest term.
//!
//! | bound | all bytes |
//! | --- | --- |
//! | that of a leg | as in `transfer.rs`, for the reads of the first card and the writes of each card |
//! | queue | beats of the user clock, which moves them from FIFO to FIFO in every card |
//! | engine | beats of the first card's reads and writes on its data path; two paths if full-duplex |
//! | link | packets of all legs that cross a link in the same direction |
//!
//! FIFOs that are shorter than the outstanding data of a leg stall the leg before it; no term models that.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::prediction::Prediction;
use crate::transfer::{Leg, leg};
use lanemark_machine::{Relay, Transfer};
use lanemark_platform::{Fifos, Platform};
use lanemark_units::Ticks;

/// Predicts `passes` iterations of `relay`.
pub(crate) fn predict(platform: &Platform, relay: &Relay, passes: u64) -> Option<Prediction> {
    let (fifos, transfers) = (platform.fifos.as_ref()?, relay.transfers());
    let legs = transfers.iter().map(|transfer| leg(platform, transfer, passes)).collect::<Option<Vec<Leg>>>()?;
    // The reads of the first card come before everything else.
    let queue = platform.dma_read.as_ref().map_or(Ticks::ZERO, |read| read.queue_ns.value);
    let start = (platform.dma.as_ref()?.start_ns.value + queue).as_ns();
    let before = before_each(platform, relay, &legs, fifos, &transfers)?;
    let behind: Vec<f64> = (1..=legs.len()).map(|next| legs[next..].iter().map(|leg| leg.packet_ns).sum()).collect();
    let by_leg = legs.iter().zip(before.iter().zip(&behind));
    let by_leg = by_leg.map(|(leg, (before, behind))| leg.moved.times(1.0, before + behind));
    let bytes = relay.bytes_per_pass().checked_mul(passes)?;
    let (first, rest) = legs.split_first()?;
    let carried = first.packet_ns + beats(fifos, bytes as f64) + behind[0];
    let beats = [first.beats_ns, rest.first()?.beats_ns];
    // Each direction of a full-duplex engine has a data path of its own.
    let is_shared = !platform.dma.as_ref()?.full_duplex.value;
    let on_data_path = if is_shared { beats[0] + beats[1] } else { beats[0].max(beats[1]) };
    let shared =
        Largest::of([(Bound::Queue, carried), (Bound::Engine, on_data_path), (Bound::Link, busiest_link(&legs))]);
    let largest = by_leg.fold(shared, Largest::or).times(1.0, start);
    // The first card's reads alternate with its writes; no term models the tags that wait for those.
    let takes_turns = largest.bound == Bound::Tags;
    // A FIFO too short for a second transfer fills while the first leaves it, or waits for it.
    let is_full = relay.is_stored && fifos.tx_bytes.value < 2 * relay.bytes;
    let largest = if takes_turns || is_full { largest.blurred() } else { largest };
    let holds_for = "cards whose FIFOs hold all outstanding data, no other traffic on their links";
    let issue_ns = start + first.moved.ns - first.packet_ns;
    Some(Prediction { issue_ns, delivered_ns: largest.ns, bound: largest.bound, lead: largest.lead(), holds_for })
}

/// Time until each leg can start: the legs before it have delivered data, and the user logic has moved it.
fn before_each(
    platform: &Platform,
    relay: &Relay,
    legs: &[Leg],
    fifos: &Fifos,
    transfers: &[Transfer],
) -> Option<Vec<f64>> {
    let mut before = vec![0.0];
    for (place, pair) in legs.windows(2).enumerate() {
        let is_whole = relay.is_stored && place + 2 == legs.len();
        let ns = if is_whole {
            // The whole transfer has been received, its last part one beat later.
            let one = leg(platform, &Transfer { count: 1, ..transfers[place] }, 1)?;
            (one.moved.ns + beats(fifos, 1.0)).max(pair[0].packet_ns + beats(fifos, relay.bytes as f64))
        } else {
            pair[0].packet_ns + beats(fifos, f64::from(pair[1].least_bytes))
        };
        before.push(before[place] + ns);
    }
    Some(before)
}

/// Time of the user clock for this many bytes.
fn beats(fifos: &Fifos, bytes: f64) -> f64 {
    fifos.beat_ns.value.as_ns() * (bytes / f64::from(fifos.beat_bytes.value)).ceil()
}

/// Largest time that all legs take of one link.
fn busiest_link(legs: &[Leg]) -> f64 {
    let all = || legs.iter().flat_map(|leg| &leg.on_links);
    let of = |name| all().filter(|(other, _)| other == name).map(|(_, ns)| ns).sum::<f64>();
    all().map(|(name, _)| of(name)).fold(0.0, f64::max)
}
