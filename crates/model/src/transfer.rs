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
//! | queue | beats of the user clock for all data packets, minus what a FIFO holds | the same |
//!
//! A read whose lines are all in the last-level cache has a shorter path. A partial-line write occupies memory for
//! longer (`partial.rs`).
//!
//! If a driver requests the transfer (`asked.rs`), descriptor fetches come first: one latency until the first
//! descriptor is available, and rounds of as many as are prefetched until the last. The notification follows the last
//! write on the same links, or the last completion.

mod ceiling;
mod leg;
mod partial;
mod peers;
mod pools;
mod requested;
mod root_complex;
mod terms;
mod threads;
mod translation;
mod write_read;

pub(crate) use ceiling::{ceiling, shared_ceiling};
pub(crate) use leg::{Leg, leg};
pub(crate) use pools::{Packets, longest};
pub(crate) use requested::{Asked, Notice, Shared, asked};
pub(crate) use threads::{Occupied, shared};
pub(crate) use write_read::write_read;

use crate::bounds::Largest;
use crate::engine_timing;
use crate::path::{Hop, Path};
use crate::predict::{Bound, Prediction};
use crate::queue::Queued;
use lanemark_machine::{Partner, Plan, Transfer, Verb, Writer};
use lanemark_platform::{Dma, Memory, Platform, Region};
use lanemark_units::Ticks;
use lanemark_wire::{Chunk, Mps, Rcb, split};
use std::ops::Range;

/// Number of requests for which transfers are computed one by one; further requests are assumed to be like the first
/// ones.
const MOST_PIECES: u64 = 1 << 14;

/// All parameters that affect a transfer.
struct Way<'a> {
    platform: &'a Platform,
    dma: &'a Dma,
    transfer: &'a Transfer,
    /// Bus address of offset 0 of the window.
    base: u64,
    path: Path,
    header_dw: u8,
    /// Maximum payload of a data packet.
    payload_bytes: u32,
    /// Channels of the engine over which transfers are distributed.
    channels: u32,
    /// Bus addresses that the last-level cache holds.
    cached: Range<u64>,
    /// Whether the same transfers were made before, so that the first pass over the window finds the same state as
    /// later ones.
    is_warm: bool,
}

/// Parameters of requests, as sum or minimum.
#[derive(Clone, Copy, Debug)]
struct Sum {
    requests: u64,
    /// Minimum bytes of a request.
    least_bytes: u32,
    /// Engine time of all requests of the busiest channel.
    busiest: Ticks,
    /// Engine time of all requests, and of the first.
    engine: Ticks,
    first_engine: Ticks,
    /// Beats of all requests at the engine, and minimum of a request.
    request_beats: Ticks,
    least_request_beats: Ticks,
    /// Time of all data packets on the slowest link of their path.
    link: Ticks,
    /// Beats of all data packets at their destination.
    beats: Ticks,
    /// Beats of all reads at a peer's region.
    at_region: Ticks,
    /// Number of data packets.
    packets: Packets,
    /// From the engine to the last byte, summed over all requests.
    latencies: Ticks,
    /// Path of the last request from the engine on, and minimum of all.
    last_way: Ticks,
    shortest: Ticks,
    /// From the engine to the last byte, for the first request.
    first_latency: Ticks,
    /// Time before the data, on the link and at the destination (for reads, before the data of the first, which
    /// arrive in order); minimum time after any of them on the link; and minimum path.
    before_link: Ticks,
    before_beats: Ticks,
    behind_link: Ticks,
    besides_memory: Ticks,
    /// Latest end of any request, after its beats and those before it at a region of the destination.
    last_at_region: Ticks,
    /// Minimum time for which a request holds its credits at the destination, and the sum over all.
    held: Ticks,
    all_held: Ticks,
    /// Time for which partial-line writes occupy memory: of all, of the longest request, and of the last one.
    of_lines: Ticks,
    most_of_lines: Ticks,
    last_of_lines: Ticks,
    /// Minimum from the engine to the last byte of a request; minimum and maximum on the link; minimum beats; and
    /// minimum time between engine and link.
    latency: Ticks,
    most_latency: Ticks,
    least_link: Ticks,
    most_link: Ticks,
    least_beats: Ticks,
    to_link: Ticks,
    /// Reads that a root complex issues for these, the sum of the times for which they hold its tags, the minimum of
    /// one, and the minimum path of one.
    root_reads: u64,
    root_loops: Ticks,
    root_loop: Ticks,
    root_way: Ticks,
    /// Beats of the user clock for all data packets, and the maximum part of them that the FIFO lets run ahead.
    queued: Ticks,
    ahead: Ticks,
    /// Minimum and maximum engine time of a request, and the excess of all requests but the first.
    least_engine: Ticks,
    most_engine: Ticks,
    beyond: Ticks,
}

/// Parameters of one request.
struct Piece {
    link: Ticks,
    beats: Ticks,
    /// For a read: beats at a peer's region.
    at_region: Ticks,
    /// From the engine to its destination.
    way: Ticks,
    /// Time before its data on the link, after them, and before them at the destination.
    before_link: Ticks,
    behind_link: Ticks,
    before_beats: Ticks,
    /// Its path without beats at a region.
    besides_region: Ticks,
    /// Its data packets.
    packets: Packets,
    /// Time for which it holds its credits at the destination.
    held: Ticks,
    /// Reads that a root complex issues for it, and the time for which each holds a tag; none if it is forwarded
    /// whole.
    root_reads: u64,
    root_loops: Ticks,
    root_loop: Ticks,
    root_way: Ticks,
    /// Its packets at the FIFO.
    queued: Queued,
}

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
    let way = Way { channels, is_warm, ..Way::found(platform, transfer, written_by)? };
    // Each channel has its own limit of outstanding transfers.
    if channels == 0 || channels > 1 && transfer.outstanding.is_some() || channels > way.dma.channels.value {
        return None;
    }
    if transfer.bytes == 0 || transfer.count == 0 || passes == 0 {
        return None;
    }
    let all = transfer.count.checked_mul(passes)?;
    let start = way.dma.start_ns.value.as_ns();
    let holds_for = match channels {
        1 => "one card, no other traffic on its links",
        _ => "one card whose channels share its data path and tags, no other traffic on its links",
    };
    let a_transfer = way.pieces(0)?.len() as u64;
    let (taken_apart, scale) = if a_transfer.saturating_mul(all) <= MOST_PIECES { (all, 1.0) } else { (1, all as f64) };
    if taken_apart < all && !way.is_of_one_kind(all) {
        return None;
    }
    let one_by_one = match (transfer.verb, transfer.outstanding) {
        (Verb::Load, Some(1)) => true,
        // Several outstanding transfers act as fewer tags, if each is one request.
        (Verb::Load, Some(_)) if a_transfer > 1 => return None,
        _ => false,
    };
    let (largest, last) = if one_by_one {
        let mut sum = way.terms(&way.sum(0, 1)?, 1.0);
        for nth in 1..taken_apart {
            sum = sum.then(&way.terms(&way.sum(nth, 1)?, 1.0));
        }
        // Data that remain in a FIFO at the end of a transfer are there at the start of the next.
        let all = way.sum(0, taken_apart)?;
        let queued = (Bound::Queue, scale * all.queued.as_ns() - all.ahead.as_ns());
        let taken = (scale * all.requests as f64 - 1.0) * way.root_pace().as_ns() + all.besides_memory.as_ns();
        let over_all = Largest::of([queued, (Bound::RootComplex, taken)]);
        (sum.times(scale, 0.0).or(over_all), way.sum(taken_apart - 1, 1)?)
    } else {
        let sum = way.sum(0, taken_apart)?;
        let is_whole = transfer.verb == Verb::Store || transfer.outstanding.is_none() || sum.requests == taken_apart;
        (way.terms(&sum, scale), is_whole.then_some(sum)?)
    };
    let largest = way.translated(largest, all, one_by_one);
    let largest = if way.knows_lines(all, written_by) { largest } else { largest.blurred() };
    let delivered_ns = start + largest.ns;
    let pieces = way.pieces(taken_apart - 1)?;
    let (first, last_piece) = (pieces.first()?, *pieces.last()?);
    let last_engine = way.engine(last_piece, last_piece.address - first.address);
    let issue_ns = (delivered_ns - last.last_way.as_ns() - last_engine.as_ns()).max(start);
    Some(Prediction { issue_ns, delivered_ns, bound: largest.bound, lead: largest.lead(), holds_for })
}

impl<'a> Way<'a> {
    /// The same with data that a core has just written at the source.
    fn of(platform: &'a Platform, transfer: &'a Transfer) -> Option<Way<'a>> {
        Way::found(platform, transfer, Writer::Core)
    }

    fn found(platform: &'a Platform, transfer: &'a Transfer, written_by: Writer) -> Option<Way<'a>> {
        let dma = platform.dma.as_ref()?;
        let (base, path) = match (transfer.partner, transfer.verb) {
            (Partner::Host, Verb::Store) => {
                (platform.memory.as_ref()?.address_bytes.value, Path::up(platform, transfer.card)?)
            }
            (Partner::Host, Verb::Load) => {
                (platform.memory.as_ref()?.address_bytes.value, Path::down(platform, transfer.card)?)
            }
            (Partner::Peer { card, bar }, verb) => {
                let shift = platform.slots.get(card as usize).map_or(0, |slot| slot.bar_shift_bytes.value);
                let base = platform.bar(bar)?.address_bytes.value.checked_add(shift)?;
                let path = match verb {
                    Verb::Store => Path::between(platform, transfer.card, card)?,
                    Verb::Load => Path::back(platform, card, transfer.card)?,
                };
                (base, path)
            }
        };
        let header_dw = if base.checked_add(transfer.window.offset)? >= 1 << 32 { 4 } else { 3 };
        let payload_bytes = payload(platform, dma, transfer)?;
        // A packet longer than a port on the path allows would never arrive.
        let longest = u64::from(payload_bytes).min(transfer.bytes);
        let passes = path.hops.iter().all(|hop| longest <= u64::from(hop.mps_bytes));
        let cached = root_complex::cached(platform, transfer, base, written_by);
        passes.then_some(Way {
            platform,
            dma,
            transfer,
            base,
            path,
            header_dw,
            payload_bytes,
            channels: 1,
            cached,
            is_warm: true,
        })
    }

    /// Minimum time of the data packets of one transfer on a link: packets are split no earlier than necessary.
    fn least_time(&self, hop: &Hop) -> Ticks {
        let header_dw = if self.transfer.verb == Verb::Load { 3 } else { self.header_dw };
        let payload = self.payload_bytes;
        let (full, rest) =
            (self.transfer.bytes / u64::from(payload), (self.transfer.bytes % u64::from(payload)) as u32);
        let last = if rest > 0 { hop.pace(header_dw, rest) } else { Ticks::ZERO };
        hop.pace(header_dw, payload) * full + last
    }

    /// The requests of transfer number `nth`.
    fn pieces(&self, nth: u64) -> Option<Vec<Chunk>> {
        let most = match self.transfer.verb {
            Verb::Store => self.payload_bytes,
            Verb::Load => self.dma.read_bytes.value.min(self.platform.link.mrrs_bytes.value),
        };
        let Transfer { bytes, window, .. } = self.transfer;
        // A transfer of more requests than these has gigabytes.
        if *bytes / u64::from(most) > 64 * MOST_PIECES {
            return None;
        }
        Some(split::requests(self.base.checked_add(window.place(nth, *bytes))?, *bytes, most).collect())
    }

    fn beats(&self, header_dw: u8, payload: u32) -> Ticks {
        let bytes = u32::from(header_dw) * 4 + payload;
        self.dma.beat_ns.value * u64::from(bytes.div_ceil(self.dma.beat_bytes.value))
    }

    /// Engine time of a request that starts `offset` bytes into its transfer. A request to host memory includes
    /// reading a descriptor if it is the first of its transfer or starts at a descriptor boundary.
    fn engine(&self, piece: Chunk, offset: u64) -> Ticks {
        let begins = offset == 0;
        let at_boundary = piece.address.is_multiple_of(u64::from(self.dma.descriptor_bytes.value));
        let is_described = self.transfer.partner == Partner::Host && (begins || at_boundary);
        let descriptor = if is_described { self.dma.descriptor_ns.value } else { Ticks::ZERO };
        let request = match self.transfer.verb {
            Verb::Store => self.dma.write_request_ns.value,
            Verb::Load => self.dma.read_request_ns.value,
        };
        let alone = self.request_beats(piece) + request;
        descriptor + engine_timing::time(self.platform, self.transfer.verb, piece, offset, alone)
    }

    /// Beats of a request at the engine.
    fn request_beats(&self, piece: Chunk) -> Ticks {
        self.beats(self.header_dw, if self.transfer.verb == Verb::Store { in_dws(piece) } else { 0 })
    }

    /// Sums over `count` transfers, from number `first` on.
    fn sum(&self, first: u64, transfers: u64) -> Option<Sum> {
        let mut sum: Option<Sum> = None;
        let egress = self.platform.endpoint.egress_ns.value;
        let mut of_channel = vec![Ticks::ZERO; self.channels as usize];
        for nth in first..first + transfers {
            let pieces = self.pieces(nth)?;
            let start = pieces.first()?.address;
            for chunk in pieces {
                let engine = self.engine(chunk, chunk.address - start);
                let piece = if self.transfer.verb == Verb::Store { self.write(chunk)? } else { self.read(chunk)? };
                let request_beats = self.request_beats(chunk);
                let so_far = sum.get_or_insert(Sum {
                    requests: 0,
                    least_bytes: chunk.bytes,
                    busiest: Ticks::ZERO,
                    request_beats: Ticks::ZERO,
                    least_request_beats: request_beats,
                    engine: Ticks::ZERO,
                    first_engine: engine,
                    link: Ticks::ZERO,
                    beats: Ticks::ZERO,
                    at_region: Ticks::ZERO,
                    packets: Packets::default(),
                    latencies: Ticks::ZERO,
                    last_way: piece.way,
                    shortest: piece.way,
                    first_latency: engine + piece.way,
                    before_link: piece.before_link,
                    before_beats: piece.before_beats,
                    behind_link: piece.behind_link,
                    last_at_region: Ticks::ZERO,
                    besides_memory: piece.way,
                    held: piece.held,
                    all_held: Ticks::ZERO,
                    of_lines: Ticks::ZERO,
                    most_of_lines: Ticks::ZERO,
                    last_of_lines: Ticks::ZERO,
                    root_reads: 0,
                    root_loops: Ticks::ZERO,
                    root_loop: piece.root_loop,
                    root_way: piece.root_way,
                    latency: engine + piece.way,
                    most_latency: Ticks::ZERO,
                    least_link: piece.link,
                    most_link: piece.link,
                    least_beats: piece.beats.max(piece.at_region),
                    to_link: engine + egress,
                    least_engine: engine,
                    most_engine: engine,
                    beyond: Ticks::ZERO,
                    queued: Ticks::ZERO,
                    ahead: Ticks::ZERO,
                });
                so_far.requests += 1;
                so_far.least_bytes = so_far.least_bytes.min(chunk.bytes);
                of_channel[(nth % u64::from(self.channels)) as usize] += engine;
                so_far.request_beats += request_beats;
                so_far.least_request_beats = so_far.least_request_beats.min(request_beats);
                so_far.queued += piece.queued.beats;
                so_far.ahead = so_far.ahead.max(piece.queued.ahead);
                so_far.engine += engine;
                so_far.link += piece.link;
                so_far.beats += piece.beats;
                so_far.at_region += piece.at_region;
                so_far.packets = so_far.packets.and(piece.packets);
                so_far.root_reads += piece.root_reads;
                so_far.root_loops += piece.root_loops;
                so_far.root_loop = so_far.root_loop.min(piece.root_loop);
                so_far.root_way = so_far.root_way.min(piece.root_way);
                so_far.latencies += engine + piece.way;
                so_far.last_way = piece.way;
                so_far.shortest = so_far.shortest.min(piece.way);
                // The data of the first read arrive first, unless another channel issued earlier or a later read hits
                // in the cache.
                if self.transfer.verb == Verb::Store || self.channels > 1 || !self.cached.is_empty() {
                    so_far.before_link = so_far.before_link.min(piece.before_link);
                    so_far.before_beats = so_far.before_beats.min(piece.before_beats);
                }
                so_far.behind_link = so_far.behind_link.min(piece.behind_link);
                so_far.last_at_region = so_far.last_at_region.max(so_far.at_region + piece.besides_region);
                so_far.besides_memory = so_far.besides_memory.min(piece.way);
                so_far.held = so_far.held.min(piece.held);
                so_far.all_held += piece.held;
                so_far.last_of_lines = self.held_by_lines(nth, chunk);
                so_far.of_lines += so_far.last_of_lines;
                so_far.most_of_lines = so_far.most_of_lines.max(so_far.last_of_lines);
                so_far.most_latency = so_far.most_latency.max(engine + piece.way);
                so_far.latency = so_far.latency.min(engine + piece.way);
                so_far.least_link = so_far.least_link.min(piece.link);
                so_far.most_link = so_far.most_link.max(piece.link);
                so_far.least_beats = so_far.least_beats.min(piece.beats.max(piece.at_region));
                so_far.to_link = so_far.to_link.min(engine + egress);
                so_far.most_engine = so_far.most_engine.max(engine);
                so_far.least_engine = so_far.least_engine.min(engine);
            }
        }
        sum.map(|sum| {
            let others = sum.engine - sum.first_engine;
            let busiest = of_channel.into_iter().max().unwrap_or(sum.engine);
            Sum { beyond: others - sum.least_engine * (sum.requests - 1), busiest, ..sum }
        })
    }

    /// The link with the longest interval between the longest packets. For shorter ones it may be another link; the
    /// maximum of each size would mix links.
    /// would add up what no one link takes.
    fn slowest(&self, header_dw: u8) -> Option<&Hop> {
        let longest = u64::from(self.payload_bytes).min(self.transfer.bytes);
        self.path.slowest(header_dw, longest as u32)
    }

    fn write(&self, chunk: Chunk) -> Option<Piece> {
        let payload = in_dws(chunk);
        let link = self.slowest(self.header_dw)?.pace(self.header_dw, payload);
        let on_links = self.path.unloaded(self.header_dw, payload);
        let egress = self.platform.endpoint.egress_ns.value;
        let (beats, at_end) = match self.transfer.partner {
            Partner::Host => (Ticks::ZERO, self.lookup() + self.memory()?.write_ns.value),
            Partner::Peer { bar, .. } => {
                (Way::region_beats(self.region(bar, chunk)?, chunk), self.platform.endpoint.ingress_ns.value)
            }
        };
        let before_beats = egress + on_links + at_end;
        let way = before_beats + beats;
        // Idle time before the start of the next packet is not part of the path of the last one.
        let before_link = Ticks(way.0.saturating_sub(link.0));
        let at_region = Ticks::ZERO;
        let held = if self.transfer.partner == Partner::Host { self.lookup() } else { at_end + beats };
        let queued = Queued::writes(self.platform, self.transfer.partner, chunk.bytes);
        let (root_reads, root_loops, root_loop, root_way) = (0, Ticks::ZERO, Ticks::ZERO, way);
        let besides_region = way;
        Some(Piece {
            link,
            beats,
            at_region,
            way,
            before_link,
            behind_link: Ticks::ZERO,
            before_beats,
            besides_region,
            packets: Packets::of([payload]),
            held,
            root_reads,
            root_loops,
            root_loop,
            root_way,
            queued,
        })
    }

    /// For a read, the link time is that of its completions, and the path is the round trip.
    fn read(&self, chunk: Chunk) -> Option<Piece> {
        let endpoint = &self.platform.endpoint;
        let pieces = self.root_pieces(chunk);
        let (to, at_end, region, behind, rcb) = match self.transfer.partner {
            Partner::Host => {
                let rcb = Rcb::new(self.platform.link.rcb_bytes.value)?;
                (
                    Path::up(self.platform, self.transfer.card)?,
                    self.lookup() + self.memory_read(chunk)?,
                    None,
                    Ticks::ZERO,
                    rcb,
                )
            }
            Partner::Peer { card, bar } => {
                let region = self.region(bar, chunk)?;
                let to = Path::between(self.platform, self.transfer.card, card)?;
                // The RCB of a card does not affect how the root complex splits reads.
                let at_end = endpoint.ingress_ns.value + region.read_ns.value;
                (to, at_end, Some(region), endpoint.egress_ns.value, Rcb::B128)
            }
        };
        let until_end = endpoint.egress_ns.value + to.unloaded(self.header_dw, 0) + at_end;
        let behind = behind + endpoint.ingress_ns.value;
        // Parts of a read arrive at intervals that credits below the root complex permit.
        let down = match self.transfer.partner {
            Partner::Peer { card, .. } if self.is_split_at_root() => Some(Path::down(self.platform, card)?),
            _ => None,
        };
        let asked_every = match &down {
            Some(down) => down.slowest(self.header_dw, 0)?.pace(self.header_dw, 0),
            None => Ticks::ZERO,
        };
        let by_credits =
            |nth: usize| down.as_ref().map_or([Ticks::ZERO; 2], |down| self.last_by_root(down, nth as u64 + 1));
        let mut left = Vec::with_capacity(pieces.len());
        let region_beats = |piece: &Chunk| region.map_or(Ticks::ZERO, |region| Self::region_beats(region, *piece));
        let first_beats = pieces.first().map_or(Ticks::ZERO, region_beats);
        let loops = pieces.iter().map(|piece| self.root_loop(*piece, at_end + region_beats(piece)));
        let (loops, mut asked) = (loops.collect::<Option<Vec<Ticks>>>()?, Vec::with_capacity(pieces.len()));
        let root_tags = self.platform.root_complex.peer_tags.value as usize;
        // The longest sequence of beats at the region, packets on the link, and beats of the engine.
        let (mut ready, mut sent, mut taken) = (Ticks::ZERO, Ticks::ZERO, Ticks::ZERO);
        let (mut link, mut beats, mut at_region) = (Ticks::ZERO, Ticks::ZERO, Ticks::ZERO);
        let (mut first_way, mut last_way, mut of_last) = (None, Ticks::ZERO, Ticks::ZERO);
        let mut shortest: Option<Ticks> = None;
        let mut payloads = Vec::new();
        for (nth, piece) in pieces.iter().enumerate() {
            // The number outstanding is the number of tags of the root complex.
            let tag = |asked: &[Ticks]| {
                nth.checked_sub(root_tags).map_or(Ticks::ZERO, |before| asked[before] + loops[before])
            };
            let [on_first, on_any] = by_credits(nth);
            left.push(tag(&left).max(on_first));
            asked.push(tag(&asked).max(asked_every * nth as u64).max(on_any));
            ready = ready.max(until_end + asked[nth]) + region_beats(piece);
            at_region += region_beats(piece);
            sent = sent.max(ready + behind);
            let mut sent_of_it = Ticks::ZERO;
            of_last = Ticks::ZERO;
            for payload in self.completions(*piece, rcb) {
                payloads.push(payload);
                let on_links = self.path.unloaded(3, payload);
                let pace = self.slowest(3)?.pace(3, payload);
                let at_engine = self.beats(3, payload);
                taken = taken.max(sent + on_links) + at_engine;
                of_last = of_last.max(sent_of_it + on_links) + at_engine;
                (sent, sent_of_it, link, beats) = (sent + pace, sent_of_it + pace, link + pace, beats + at_engine);
                first_way.get_or_insert(on_links);
                shortest = Some(shortest.map_or(on_links + at_engine, |least| least.min(on_links + at_engine)));
                last_way = Ticks((on_links + at_engine).0.saturating_sub(pace.0));
            }
        }
        let until_data = until_end + first_beats + behind;
        let packets = Packets::of(payloads.iter().copied());
        let taken = taken.max(until_data + self.last_completion(packets) + shortest?);
        let held = match self.transfer.partner {
            Partner::Host => self.lookup(),
            // It leaves the root complex with the last read that was issued for it.
            Partner::Peer { .. } if self.is_split_at_root() => {
                self.platform.root_complex.peer_forward_ns.value + left.last().copied()?
            }
            Partner::Peer { .. } => endpoint.ingress_ns.value,
        };
        Some(Piece {
            link,
            beats,
            at_region,
            way: taken,
            before_link: until_data,
            behind_link: last_way,
            before_beats: until_data + first_way?,
            besides_region: until_end + behind + of_last,
            packets,
            held,
            root_reads: if self.is_split_at_root() { pieces.len() as u64 } else { 0 },
            root_loops: if self.is_split_at_root() { loops.iter().copied().sum() } else { Ticks::ZERO },
            root_loop: loops.iter().copied().min()?,
            root_way: until_end + pieces.iter().map(region_beats).min()? + behind + shortest?,
            queued: Queued::reads(self.platform, &payloads),
        })
    }

    /// Payload of each completion of this request, in whole DWs.
    fn completions(&self, chunk: Chunk, rcb: Rcb) -> Vec<u32> {
        match Mps::new(self.payload_bytes) {
            Some(mps) => {
                let merged = split::completions(chunk.address, chunk.bytes, rcb, mps);
                let merged = if self.has_odd_ends_apart() { merged.with_odd_end_apart() } else { merged };
                merged.map(|completion| u32::from(completion.length) * 4).collect()
            }
            None => split::completions(chunk.address, chunk.bytes, Rcb::B64, Mps::ALL[0])
                .at_every_rcb()
                .map(|completion| u32::from(completion.length) * 4)
                .collect(),
        }
    }

    /// Region of a peer that a request accesses.
    fn region(&self, bar: u8, chunk: Chunk) -> Option<&'a Region> {
        self.platform.region_at(bar, chunk.address - self.base, u64::from(chunk.bytes))
    }

    /// Beats of a request at that region, in whole DWs.
    fn region_beats(region: &Region, chunk: Chunk) -> Ticks {
        let beat = u64::from(region.beat_bytes.value);
        let touched = (chunk.address + u64::from(chunk.bytes) - 1) / beat - chunk.address / beat + 1;
        region.beat_ns.value * touched
    }

    /// Whether its data come from host memory that sends a separate completion for odd ends.
    fn has_odd_ends_apart(&self) -> bool {
        self.transfer.partner == Partner::Host && self.memory().is_some_and(|memory| memory.odd_end_completion.value)
    }

    fn memory(&self) -> Option<&'a Memory> {
        self.platform.memory.as_ref()
    }
}

/// Maximum payload of a data packet: of a write by the card, of a completion by the root port.
fn payload(platform: &Platform, dma: &Dma, transfer: &Transfer) -> Option<u32> {
    let way_up = platform.way_up(transfer.card as usize);
    Some(match (transfer.verb, transfer.partner) {
        (Verb::Store, _) => dma.write_bytes.value.min(platform.mps_bytes_of(way_up.first()?.below)),
        (Verb::Load, Partner::Peer { card, .. }) => platform.mps_bytes_of(platform.card_name(card as usize)?),
        (Verb::Load, Partner::Host) => {
            let mps_bytes = platform.mps_bytes_of(&way_up.last()?.upper_port());
            platform.memory.as_ref().map_or(mps_bytes, |memory| memory.completion_bytes.value.min(mps_bytes))
        }
    })
}

/// Payload bytes rounded up to whole DWs.
fn in_dws(piece: Chunk) -> u32 {
    ((piece.address % 4) as u32 + piece.bytes).next_multiple_of(4)
}
