//! Requests at the IOMMU, one by one: hits and misses leave it in order and share its walkers.
//!
//! A walk delays the requests behind it. How much of it overlaps with them depends on how many of them can wait, so the
//! time of all is more than the larger one of transfers and walks. Each stage of request `r` waits for:
//!
//! | stage | waits for |
//! | --- | --- |
//! | issue | request `r - 1`; acceptance of the request that leaves room in credits and send buffers; tag of read `r - tags` |
//! | root port | path of the request; the packet before it on the last and on the slowest link; credits |
//! | IOMMU | lookup; of a miss, a walker, the interval between walks, and its reads; the request before it |
//! | memory | its interval between requests |
//! | data of reads | completions on the slowest link; beats at the engine |
//!
//! Each of these is a lower bound, and so is the result. A window that is accessed in order repeats; after some rounds,
//! the time of a round is the mean of the last half of them.

use super::iotlb::Iotlb;
use super::kept::Kept;
use super::way::{Piece, Way, in_dws};
use crate::path::{CREDIT, Hop, Path, Pool};
use lanemark_machine::Verb;
use lanemark_platform::Iommu;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Maximum number of requests that are computed one by one.
const MOST: u64 = 1 << 16;

/// Time of requests that pass the IOMMU.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtIommu {
    /// From the first request to the end of the last one, when its tag is free.
    pub(super) ns: f64,
    /// Time for which a walker is busy, or the next walk may not start: the mean of all walkers.
    pub(super) walking_ns: f64,
}

/// Walks of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walking {
    /// Maximum number of requests that wait at the same time.
    pub(super) waiting: u32,
    /// Whether the paging-structure cache misses at each block of pages, from the second round on.
    pub(super) misses_blocks: bool,
    /// Minimum time of a read.
    pub(super) read: Ticks,
    /// Whether the same round was made before.
    pub(super) is_warm: bool,
    /// Whether every page misses.
    pub(super) is_all_missed: bool,
}

/// Parameters of requests of equal length and place in a page.
#[derive(Clone, Copy)]
struct Request {
    piece: Piece,
    go: Ticks,
    slowest: Ticks,
    wire: Ticks,
    credit_loop: Ticks,
    credits: u32,
    memory_read: Ticks,
}

/// The stages after the requests so far.
#[derive(Default)]
struct Stages {
    issued: Ticks,
    started: Ticks,
    paced: Ticks,
    arrived: Ticks,
    accepted_by_root: Option<Ticks>,
    left: Ticks,
    link: Ticks,
    beats: Ticks,
    end: Ticks,
    /// Acceptance of each request by memory, and of reads, the time at which its tag is free.
    taken: Vec<Ticks>,
    free: Vec<Ticks>,
    /// The oldest request that may hold credits, and the data credits since.
    oldest: usize,
    held: u64,
    credits: Vec<u32>,
}

impl Way<'_> {
    /// Time of this many transfers, if they have walks; `None` if there are too many requests or none that is certain to
    /// miss.
    pub(super) fn at_iommu(&self, iommu: &Iommu, transfers: u64, walking: Walking) -> Option<AtIommu> {
        let window = &self.transfer.window;
        let places = window.places(self.transfer.bytes);
        let a_transfer = self.pieces(0)?.len() as u64;
        let a_round = a_transfer.checked_mul(places)?;
        let most = MOST.min(Iotlb::most_requests(iommu, walking.waiting));
        let is_in_order = !window.pattern.is_random();
        let examined = if a_transfer.checked_mul(transfers)? <= most {
            transfers
        } else if is_in_order && a_round <= most / 4 {
            most / a_round / 2 * 2 * places
        } else if is_in_order && walking.is_all_missed {
            most / a_transfer / 2 * 2
        } else {
            return None;
        };
        // Completions of reads that hit in the cache may come before those of earlier reads.
        if self.channels > 1 || !self.cached.is_empty() && !self.is_all_cached() {
            return None;
        }
        let up = Path::up(self.platform, self.transfer.card)?;
        let mut iotlb = Iotlb::new(iommu, walking.waiting);
        let mut requests = 0;
        if walking.is_warm {
            for nth in 0..places.min(examined) {
                for chunk in self.pieces(nth)? {
                    iotlb.find(chunk.address / iommu.page_bytes.value, requests);
                    requests += 1;
                }
            }
        }
        let mut stages = Stages::default();
        let mut walkers = Walkers::of(iommu);
        let mut block = None;
        let mut earlier = Kept::default();
        let mut half = (Ticks::ZERO, Ticks::ZERO);
        for nth in 0..examined {
            let pieces = self.pieces(nth)?;
            let start = pieces.first()?.address;
            for chunk in pieces {
                let alike = self.alike_piece(chunk);
                let request = match earlier.find(alike) {
                    Some(request) => request,
                    None => earlier.keep(alike, self.request(&up, chunk, chunk.address - start)?),
                };
                let arrived = self.arrives(&mut stages, &up, &request, self.engine(chunk, chunk.address - start))?;
                let looked = arrived + iommu.lookup_ns.value;
                let page = chunk.address / iommu.page_bytes.value;
                let ready = if let Some(until) = iotlb.find(page, requests) {
                    looked.max(until)
                } else {
                    // In the first round, the paging-structure cache may hold any block.
                    let is_known = walking.is_warm || nth >= places;
                    let before = block.replace(page / Iommu::BLOCK_PAGES);
                    let misses = is_known && walking.misses_blocks && before != block;
                    let is_whole = iommu.walk_cache_entries.value == 0 || misses;
                    let reads = if is_whole { iommu.walk_reads.value } else { 1 };
                    let until = walkers.walk(looked, walking.read * u64::from(reads));
                    iotlb.walked(page, until);
                    until
                };
                requests += 1;
                self.leaves(&mut stages, &request, ready)?;
            }
            if nth + 1 == examined / 2 {
                half = (stages.end, walkers.busy);
            }
        }
        if walkers.busy == Ticks::ZERO {
            return None;
        }
        let rest = (transfers - examined) as f64 / (examined - examined / 2) as f64;
        let all = |end: Ticks, half: Ticks| end.as_ns() + rest * end.since(half).as_ns();
        Some(AtIommu { ns: all(stages.end, half.0), walking_ns: all(walkers.busy, half.1) })
    }

    fn request(&self, up: &Path, chunk: Chunk, offset: u64) -> Option<Request> {
        let is_store = self.transfer.verb == Verb::Store;
        let payload = if is_store { in_dws(chunk) } else { 0 };
        let piece = if is_store { self.write(chunk, offset)? } else { self.read(chunk)? };
        let last = up.hops.last()?;
        Some(Request {
            piece,
            go: self.platform.endpoint.egress_ns.value + up.unloaded(self.header_dw, payload),
            slowest: up.slowest(self.header_dw, payload)?.pace(self.header_dw, payload),
            wire: last.wire(self.header_dw, payload),
            credit_loop: up.credit_loop(up.hops.len() - 1, self.header_dw, payload, Ticks::ZERO),
            credits: payload.div_ceil(CREDIT),
            memory_read: if is_store { Ticks::ZERO } else { self.memory_read(chunk)? },
        })
    }

    /// Credits of a receiver for these requests.
    fn pool(&self, hop: &Hop) -> Pool {
        if self.transfer.verb == Verb::Store { hop.credits.posted } else { hop.credits.nonposted }
    }

    /// Issues the next request; returns when the IOMMU looks it up.
    fn arrives(&self, stages: &mut Stages, up: &Path, request: &Request, engine: Ticks) -> Option<Ticks> {
        let nth = stages.taken.len();
        let before = |all: &[Ticks], back: usize| nth.checked_sub(back).and_then(|place| all.get(place).copied());
        let headers: u64 = up.hops.iter().map(|hop| u64::from(self.pool(hop).headers)).sum();
        let buffers = headers.saturating_add(self.dma.send_buffers.value.into());
        let room = before(&stages.taken, usize::try_from(buffers).unwrap_or(usize::MAX)).unwrap_or_default();
        let tags = self.most_under_way();
        let tag = if tags.is_finite() { before(&stages.free, tags as usize) } else { None };
        stages.issued = stages.issued.max(room).max(tag.unwrap_or_default()) + engine;
        // The packet before it on the slowest link.
        let sent = stages.issued + self.platform.endpoint.egress_ns.value;
        stages.started = sent.max(stages.started + stages.paced);
        stages.paced = request.slowest;
        let pool = self.pool(up.hops.last()?);
        stages.credits.push(request.credits);
        stages.held += u64::from(request.credits);
        while stages.oldest < nth
            && (stages.held > pool.data.into() || (nth + 1 - stages.oldest) as u64 > pool.headers.into())
        {
            stages.held -= u64::from(*stages.credits.get(stages.oldest)?);
            stages.oldest += 1;
        }
        let released = stages.oldest.checked_sub(1).and_then(|place| stages.taken.get(place));
        let credit = released.map_or(Ticks::ZERO, |taken| *taken + request.credit_loop);
        let behind = if nth == 0 { Ticks::ZERO } else { stages.arrived + request.wire };
        let way = (stages.issued + request.go).max(stages.started + up.unloaded(self.header_dw, 0));
        stages.arrived = way.max(behind).max(credit);
        let paced = stages.accepted_by_root.map_or(Ticks::ZERO, |last| last + self.root_pace());
        let accepted = stages.arrived.max(paced);
        stages.accepted_by_root = Some(accepted);
        Some(accepted)
    }

    /// Passes the next request, whose translation is ready at `ready`, to memory, and receives its data.
    fn leaves(&self, stages: &mut Stages, request: &Request, ready: Ticks) -> Option<()> {
        let Request { piece, go, memory_read, .. } = *request;
        stages.left = stages.left.max(ready);
        let paced = stages.taken.last().map_or(Ticks::ZERO, |last| *last + self.pace());
        let taken = stages.left.max(paced);
        stages.taken.push(taken);
        if self.transfer.verb == Verb::Store {
            stages.end = taken + self.memory()?.write_ns.value;
            return Some(());
        }
        // The path from memory on.
        let besides = |way: Ticks| way.since(go + self.lookup());
        stages.link = stages.link.max(taken + memory_read) + piece.link;
        stages.beats = stages.beats.max(taken + besides(piece.before_beats)) + piece.beats;
        let free = (taken + besides(piece.way)).max(stages.link).max(stages.beats);
        stages.free.push(free);
        stages.end = stages.end.max(free);
        Some(())
    }
}

/// The walkers of the IOMMU.
struct Walkers {
    free: Vec<Ticks>,
    next: Ticks,
    interval: Ticks,
    busy: Ticks,
}

impl Walkers {
    fn of(iommu: &Iommu) -> Walkers {
        let free = vec![Ticks::ZERO; iommu.walkers.value.max(1) as usize];
        Walkers { free, next: Ticks::ZERO, interval: iommu.walk_interval_ns.value, busy: Ticks::ZERO }
    }

    /// Returns the end of a walk that is needed at `from` and takes `time`.
    fn walk(&mut self, from: Ticks, time: Ticks) -> Ticks {
        let count = self.free.len() as u64;
        let Some(free) = self.free.iter_mut().min() else { return from };
        let start = from.max(*free).max(self.next);
        *free = start + time;
        self.next = start + self.interval;
        self.busy += Ticks(time.0 / count).max(self.interval);
        *free
    }
}
