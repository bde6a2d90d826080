//! The path of a transfer: its packets, and the time of each at the engine, on the links and at the destination.

use super::cached;
use super::packets::Packets;
use crate::engine_timing;
use crate::path::{Hop, Path};
use crate::queue::Queued;
use lanemark_machine::{Partner, Transfer, Verb, Writer};
use lanemark_platform::{Dma, Memory, Platform, ReadData, Region};
use lanemark_units::Ticks;
use lanemark_wire::{Chunk, Mps, Rcb, split};
use std::ops::Range;

/// Number of requests for which transfers are computed one by one; further requests are assumed to be like the first
/// ones.
pub(super) const MOST_PIECES: u64 = 1 << 14;

/// Bytes of a page, whose boundaries no request crosses.
pub(super) const PAGE: u64 = 4096;

/// All parameters that affect a transfer.
pub(super) struct Way<'a> {
    pub(super) platform: &'a Platform,
    pub(super) dma: &'a Dma,
    pub(super) transfer: &'a Transfer,
    /// Bus address of offset 0 of the window.
    pub(super) base: u64,
    pub(super) path: Path,
    pub(super) header_dw: u8,
    /// Maximum payload of a data packet.
    pub(super) payload_bytes: u32,
    /// Whether writes of the card arrive at the root port meanwhile.
    pub(super) is_loaded: bool,
    /// Payload of the completions that cross the links in the opposite direction of writes; `None` without any.
    pub(super) against: Option<u32>,
    /// Channels of the engine over which transfers are distributed.
    pub(super) channels: u32,
    /// Bus addresses that the last-level cache holds.
    pub(super) cached: Range<u64>,
    /// Whether the same transfers were made before, so that the first pass over the window finds the same state as
    /// later ones.
    pub(super) is_warm: bool,
    /// Number of transfers of the warm-up, which begins at the same place.
    pub(super) warmed: u64,
}

/// Parameters of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Time of the data packets on the slowest link, and at the engine.
    pub(super) link: Ticks,
    pub(super) beats: Ticks,
    /// For a read: beats at a peer's region.
    pub(super) at_region: Ticks,
    /// Time from the engine to the destination; of a read, until the data are back.
    pub(super) way: Ticks,
    /// Time before the data on the link, after them, and before them at the destination.
    pub(super) before_link: Ticks,
    pub(super) behind_link: Ticks,
    pub(super) before_beats: Ticks,
    /// Path of the request without beats at a region.
    pub(super) besides_region: Ticks,
    /// Time from the end of the request, when its tag is free, until its data are stored.
    pub(super) after: Ticks,
    /// Data packets of the request.
    pub(super) packets: Packets,
    /// Time for which the request holds its credits at the destination.
    pub(super) held: Ticks,
    /// Reads that a root complex issues for the request, and the time for which each holds a tag; none if the request
    /// is forwarded whole.
    pub(super) root_reads: u64,
    pub(super) root_loops: Ticks,
    pub(super) root_loop: Ticks,
    pub(super) root_way: Ticks,
    /// Lines read from DRAM, if their latencies are spread.
    pub(super) spread_lines: u64,
    /// Packets of the request at the FIFO.
    pub(super) queued: Queued,
}

impl<'a> Way<'a> {
    /// Path of a transfer whose data a core has just written; `None` without a DMA engine, or if a packet does not fit.
    pub(super) fn of(platform: &'a Platform, transfer: &'a Transfer) -> Option<Way<'a>> {
        Way::found(platform, transfer, Writer::Core)
    }

    pub(super) fn found(platform: &'a Platform, transfer: &'a Transfer, written_by: Writer) -> Option<Way<'a>> {
        let dma = platform.dma.as_ref()?;
        let (base, path) = match (transfer.partner, transfer.verb) {
            (Partner::Host, Verb::Store) => {
                (platform.memory.as_ref()?.address_bytes.value, Path::up(platform, transfer.card)?)
            }
            (Partner::Host, Verb::Load) => {
                (platform.memory.as_ref()?.address_bytes.value, Path::down_for_completions(platform, transfer.card)?)
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
        let payload_bytes = payload(platform, dma, transfer, false)?;
        // A packet longer than a port on the path allows would never arrive.
        let longest = u64::from(payload_bytes).min(transfer.bytes);
        let passes = path.hops.iter().all(|hop| longest <= u64::from(hop.mps_bytes));
        let cached = cached::cached(platform, transfer, base, written_by);
        passes.then_some(Way {
            platform,
            dma,
            transfer,
            base,
            path,
            header_dw,
            payload_bytes,
            is_loaded: false,
            against: None,
            channels: 1,
            cached,
            is_warm: true,
            warmed: 0,
        })
    }

    /// Path of the transfer while writes of the card arrive at the root port.
    pub(super) fn during_writes(self) -> Option<Way<'a>> {
        let payload_bytes = payload(self.platform, self.dma, self.transfer, true)?;
        Some(Way { payload_bytes, is_loaded: true, ..self })
    }

    /// Path of the transfer with the longest payload that packets may have, whatever other traffic there is.
    pub(super) fn with_longest_payload(self) -> Option<Way<'a>> {
        let while_written = payload(self.platform, self.dma, self.transfer, true)?;
        Some(Way { payload_bytes: self.payload_bytes.max(while_written), ..self })
    }

    /// Minimum time of the data packets of one transfer on a link: packets are split no earlier than necessary.
    pub(super) fn least_time(&self, hop: &Hop) -> Ticks {
        let header_dw = if self.transfer.verb == Verb::Load { 3 } else { self.header_dw };
        let payload = self.payload_bytes;
        let (full, rest) =
            (self.transfer.bytes / u64::from(payload), (self.transfer.bytes % u64::from(payload)) as u32);
        let last = if rest > 0 { hop.pace(header_dw, rest) } else { Ticks::ZERO };
        hop.pace(header_dw, payload) * full + last
    }

    /// The requests of transfer number `nth`.
    pub(super) fn pieces(&self, nth: u64) -> Option<Vec<Chunk>> {
        let (start, bytes) = self.range(nth)?;
        Some(self.split(start, bytes).collect())
    }

    /// Number of requests of transfer number `nth`, and the last one.
    pub(super) fn count_and_last(&self, nth: u64) -> Option<(u64, Chunk)> {
        let (start, bytes) = self.range(nth)?;
        // No request crosses a page boundary.
        let last_page = start.max((start + bytes).checked_sub(1)? / PAGE * PAGE);
        let last = self.split(last_page, start + bytes - last_page).last()?;
        let of_first = (PAGE - start % PAGE).min(bytes);
        let pages = (bytes - of_first) / PAGE;
        let count = |start: u64, bytes: u64| self.split(start, bytes).count() as u64;
        let rest = count(0, bytes - of_first - pages * PAGE);
        Some((count(start, of_first) + if pages > 0 { pages * count(0, PAGE) } else { 0 } + rest, last))
    }

    /// Start and length of transfer number `nth`.
    pub(super) fn range(&self, nth: u64) -> Option<(u64, u64)> {
        let Transfer { bytes, window, .. } = self.transfer;
        let start = self.base.checked_add(window.place(nth, *bytes))?;
        // A transfer of more requests than these has gigabytes.
        let is_countable = *bytes / u64::from(self.most_of_request()) <= 64 * MOST_PIECES;
        (is_countable && start.checked_add(*bytes).is_some()).then_some((start, *bytes))
    }

    /// The requests of this part of a transfer.
    pub(super) fn split(&self, start: u64, bytes: u64) -> split::Chunks {
        split::requests(start, bytes, self.most_of_request()).within(self.boundary_of_requests())
    }

    pub(super) fn most_of_request(&self) -> u32 {
        match self.transfer.verb {
            Verb::Store => self.payload_bytes,
            Verb::Load => read_bytes(self.platform, self.dma),
        }
    }

    fn boundary_of_requests(&self) -> u32 {
        match self.transfer.verb {
            Verb::Store => self.dma.write_boundary_bytes.value,
            Verb::Load => self.dma.read_boundary_bytes.value,
        }
    }

    pub(super) fn beats(&self, header_dw: u8, payload: u32) -> Ticks {
        let bytes = u32::from(header_dw) * 4 + payload;
        self.dma.beat_ns.value * u64::from(bytes.div_ceil(self.dma.beat_bytes.value))
    }

    /// Engine time of a request that starts `offset` bytes into its transfer. A request to host memory includes
    /// reading a descriptor if it is the first of its transfer or starts at a descriptor boundary.
    pub(super) fn engine(&self, piece: Chunk, offset: u64) -> Ticks {
        let is_described = self.is_described(piece, offset);
        let descriptor = if is_described { self.dma.descriptor_ns.value } else { Ticks::ZERO };
        let request = match self.transfer.verb {
            Verb::Store => self.dma.write_request_ns.value,
            Verb::Load => self.dma.read_request_ns.value,
        };
        let alone = self.request_beats(piece) + request;
        let taken = engine_timing::time(self.platform, self.transfer.verb, piece, offset, alone);
        descriptor + taken + self.dma.shared_request_ns.value
    }

    /// Whether the engine reads a descriptor before this request, which starts `offset` bytes into its transfer.
    pub(super) fn is_described(&self, piece: Chunk, offset: u64) -> bool {
        let at_boundary = piece.address.is_multiple_of(u64::from(self.dma.descriptor_bytes.value));
        self.transfer.partner == Partner::Host && (offset == 0 || at_boundary)
    }

    /// Beats of a request at the engine.
    pub(super) fn request_beats(&self, piece: Chunk) -> Ticks {
        self.beats(self.header_dw, if self.transfer.verb == Verb::Store { in_dws(piece) } else { 0 })
    }

    /// The link with the longest interval between the longest packets. For shorter ones it may be another link; the
    /// maximum of each size would mix links.
    pub(super) fn slowest(&self, header_dw: u8) -> Option<&Hop> {
        let longest = u64::from(self.payload_bytes).min(self.transfer.bytes);
        self.path.slowest(header_dw, longest as u32)
    }

    /// Whether the first link pauses before segments of these writes.
    pub(super) fn pauses_on_link(&self) -> bool {
        let way = self.platform.dma_write.as_ref().filter(|_| self.transfer.verb == Verb::Store);
        way.is_some_and(|way| way.segment_link_ns.value > Ticks::ZERO)
    }

    /// The link with the longest interval between writes, with its pauses.
    pub(super) fn slowest_for_writes(&self) -> Option<(&Hop, bool)> {
        let (first, slowest) = (self.path.hops.first()?, self.slowest(self.header_dw)?);
        let bytes = self.transfer.bytes;
        let payload = u64::from(self.payload_bytes).min(bytes) as u32;
        let paused = self.platform.dma_write.as_ref().map_or(0.0, |way| {
            let pauses = bytes.div_ceil(way.segment_bytes.value) as f64 * f64::from(payload) / bytes as f64;
            pauses * way.segment_link_ns.value.as_ns()
        });
        let pace = |hop: &Hop| hop.pace(self.header_dw, payload).as_ns();
        let is_first = paused > 0.0 && pace(first) + paused >= pace(slowest);
        Some((if is_first { first } else { slowest }, is_first))
    }

    pub(super) fn write(&self, chunk: Chunk, offset: u64) -> Option<Piece> {
        let payload = in_dws(chunk);
        let paused = engine_timing::link_pause(self.platform, chunk, offset);
        let (slowest, is_first) = self.slowest_for_writes()?;
        let link = slowest.pace(self.header_dw, payload) + if is_first { paused } else { Ticks::ZERO };
        let on_links = paused + self.path.unloaded(self.header_dw, payload);
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
            after: Ticks::ZERO,
            packets: Packets::of([payload]),
            held,
            root_reads,
            root_loops,
            root_loop,
            root_way,
            spread_lines: 0,
            queued,
        })
    }

    /// For a read, the link time is that of its completions, and the path is the round trip.
    pub(super) fn read(&self, chunk: Chunk) -> Option<Piece> {
        let endpoint = &self.platform.endpoint;
        if self.is_split_at_root() && self.platform.root_complex.peer_collects.value {
            return None;
        }
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
        let data = self.read_data();
        // When all data so far are stored, and the time that the last ones take for it.
        let (mut stored, mut stored_after) = (Ticks::ZERO, Ticks::ZERO);
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
                stored_after = data.map_or(Ticks::ZERO, |data| data.stored_after(payload));
                stored = stored.max(taken + stored_after);
                of_last = of_last.max(sent_of_it + on_links) + at_engine;
                (sent, sent_of_it, link, beats) = (sent + pace, sent_of_it + pace, link + pace, beats + at_engine);
                first_way.get_or_insert(on_links);
                shortest = Some(shortest.map_or(on_links + at_engine, |least| least.min(on_links + at_engine)));
                last_way = Ticks((on_links + at_engine).0.saturating_sub(pace.0));
            }
        }
        let until_data = until_end + first_beats + behind;
        let packets = Packets::of(payloads.iter().copied());
        // The last completion of a read fills the minimum time of its data.
        let least = data.map_or(Ticks::ZERO, |data| data.least_time_of(chunk.bytes));
        let filled = Ticks(least.0.saturating_sub(beats.0));
        let taken = taken.max(until_data + self.last_completion(packets) + shortest?) + filled;
        (beats, last_way, of_last) = (beats + filled, last_way + filled, of_last + filled);
        let after = stored.max(taken + stored_after).since(taken);
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
            after,
            packets,
            held,
            root_reads: if self.is_split_at_root() { pieces.len() as u64 } else { 0 },
            root_loops: if self.is_split_at_root() { loops.iter().copied().sum() } else { Ticks::ZERO },
            root_loop: loops.iter().copied().min()?,
            root_way: until_end + pieces.iter().map(region_beats).min()? + behind + shortest?,
            spread_lines: if self.transfer.partner == Partner::Host { self.spread_lines(chunk) } else { 0 },
            queued: Queued::reads(self.platform, &payloads),
        })
    }

    /// Maximum payload of a completion of this request.
    fn most_of(&self, chunk: Chunk) -> u32 {
        let memory = self.memory().filter(|_| self.transfer.partner == Partner::Host);
        let most = memory.map_or(self.payload_bytes, |memory| {
            memory.most_completion_bytes(chunk.address, chunk.bytes.into(), self.is_loaded)
        });
        most.min(self.payload_bytes)
    }

    /// Payload of each completion of this request, in whole DWs.
    pub(super) fn completions(&self, chunk: Chunk, rcb: Rcb) -> Vec<u32> {
        match Mps::new(self.most_of(chunk)) {
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
    pub(super) fn region(&self, bar: u8, chunk: Chunk) -> Option<&'a Region> {
        self.platform.region_at(bar, chunk.address - self.base, u64::from(chunk.bytes))
    }

    /// Beats of a request at that region, in whole DWs.
    pub(super) fn region_beats(region: &Region, chunk: Chunk) -> Ticks {
        let beat = u64::from(region.beat_bytes.value);
        let touched = (chunk.address + u64::from(chunk.bytes) - 1) / beat - chunk.address / beat + 1;
        region.beat_ns.value * touched
    }

    /// Whether the data come from host memory that sends a separate completion for odd ends.
    pub(super) fn has_odd_ends_apart(&self) -> bool {
        self.transfer.partner == Partner::Host && self.memory().is_some_and(|memory| memory.odd_end_completion.value)
    }

    /// Costs of the data of reads besides their beats, if there are any.
    pub(super) fn read_data(&self) -> Option<ReadData> {
        self.platform.dma_read.as_ref().filter(|_| self.transfer.verb == Verb::Load).map(ReadData::from)
    }

    pub(super) fn memory(&self) -> Option<&'a Memory> {
        self.platform.memory.as_ref()
    }
}

/// Maximum payload of a data packet: of a write by the card, of a completion by the root port, which may be another
/// one while writes of the card arrive.
fn payload(platform: &Platform, dma: &Dma, transfer: &Transfer, is_loaded: bool) -> Option<u32> {
    let way_up = platform.way_up(transfer.card as usize);
    Some(match (transfer.verb, transfer.partner) {
        (Verb::Store, _) => {
            let mps_bytes = platform.mps_bytes_of(way_up.first()?.below);
            dma.write_bytes.value.min(dma.write_boundary_bytes.value).min(mps_bytes)
        }
        (Verb::Load, Partner::Peer { card, .. }) => platform.mps_bytes_of(platform.card_name(card as usize)?),
        (Verb::Load, Partner::Host) => {
            let mps_bytes = platform.mps_bytes_of(&way_up.last()?.upper_port());
            let longest = transfer.bytes.min(read_bytes(platform, dma).into());
            let most = |memory: &Memory| memory.merging().most_bytes_up_to(longest, is_loaded);
            platform.memory.as_ref().map_or(mps_bytes, |memory| most(memory).min(mps_bytes))
        }
    })
}

/// Length of the longest read request.
fn read_bytes(platform: &Platform, dma: &Dma) -> u32 {
    dma.read_bytes.value.min(dma.read_boundary_bytes.value).min(platform.link.mrrs_bytes.value)
}

/// Payload bytes rounded up to whole DWs.
pub(super) fn in_dws(piece: Chunk) -> u32 {
    ((piece.address % 4) as u32 + piece.bytes).next_multiple_of(4)
}
