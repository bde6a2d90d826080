//! Requests at the IOMMU, one by one: hits and misses leave it in order and share its walkers.
//!
//! A walk delays the requests behind it. How much of it overlaps with them depends on how many of them can wait, so the
//! time of all is more than the larger one of transfers and walks. Each stage of request `r` waits for:
//!
//! | stage | waits for |
//! | --- | --- |
//! | issue | request `r - 1`; acceptance of the request that leaves room in credits and send buffers; tag of read `r - tags` |
//! | root port | path of the request; the packet before it on the last and on the slowest link; credits |
//! | IOMMU | lookup; of a miss, a walker, the interval between walks, and its reads (`iotlb.rs`); the request before it |
//! | memory | its interval between requests |
//! | data of reads | completions on the slowest link; beats at the engine |
//!
//! The pages that miss follow from the times of arrival, so that a bound that is too early may find another page in the
//! IOTLB than the simulation does. Transfers one by one start after the end of the one before.
//!
//! At most [`MOST`] requests are followed, and as many of the warm-up before them. The others take the time of the last
//! half of them: of whole rounds of a window that is accessed in order, or of as many places of a random one.

use super::alike::AlikePiece;
use super::iotlb::Translator;
use super::kept::Kept;
use super::way::{Piece, Way, in_dws};
use crate::path::{CREDIT, Hop, Path, Pool};
use lanemark_machine::Verb;
use lanemark_platform::Iommu;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Maximum number of requests that are followed.
const MOST: u64 = 1 << 16;

/// Time of requests that pass the IOMMU.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtIommu {
    /// From the first request to the end of the last one, when its tag is free.
    pub(super) ns: f64,
    /// Time for which a walker is busy, or the next walk may not start: the mean of all walkers.
    pub(super) walking_ns: f64,
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

/// The requests of a way on their path to memory.
struct Following<'a> {
    up: Path,
    translator: Translator<'a>,
    kept: Kept<AlikePiece, Request>,
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
    /// Time of this many transfers; `None` if requests may pass each other. `one_by_one` if each transfer starts after the end of the previous one, which is signalled `beyond` after its
    /// last request.
    pub(super) fn at_iommu(&self, iommu: &Iommu, transfers: u64, one_by_one: bool, beyond: Ticks) -> Option<AtIommu> {
        // Completions of reads that hit in the cache may come before those of earlier reads.
        if self.channels > 1 || !self.cached.is_empty() && !self.is_all_cached() {
            return None;
        }
        let apart = one_by_one.then(|| beyond + self.queue());
        let up = Path::up(self.platform, self.transfer.card)?;
        let mut following = Following { up, translator: Translator::new(iommu), kept: Kept::default() };
        let (skipped, warmed) = self.warmed_apart()?;
        let mut stages = Stages::default();
        for nth in skipped..skipped + warmed {
            self.follow(&mut following, &mut stages, nth, apart)?;
        }
        following.translator.rest();
        let examined = self.examined(transfers)?;
        let (mut stages, mut half) = (Stages::default(), (Ticks::ZERO, Ticks::ZERO));
        for nth in 0..examined {
            self.follow(&mut following, &mut stages, nth, apart)?;
            if nth + 1 == examined / 2 {
                half = (stages.end, following.translator.busy);
            }
        }
        let busy = following.translator.busy;
        let rest = (transfers - examined) as f64 / (examined - examined / 2) as f64;
        let all = |end: Ticks, half: Ticks| end.as_ns() + rest * end.since(half).as_ns();
        Some(AtIommu { ns: all(stages.end, half.0), walking_ns: all(busy, half.1) })
    }

    /// Number of transfers of the warm-up that are left out, and of those after them that are followed.
    fn warmed_apart(&self) -> Option<(u64, u64)> {
        let most = MOST / self.pieces(0)?.len() as u64;
        let warmed = self.warmed.min(most.max(1));
        Some((self.warmed - warmed, warmed))
    }

    /// Number of transfers that are followed: all, or whole rounds over a window in order, half of them in each half.
    fn examined(&self, transfers: u64) -> Option<u64> {
        let window = &self.transfer.window;
        let a_transfer = self.pieces(0)?.len() as u64;
        let most = (MOST / a_transfer).max(2);
        if transfers <= most {
            return Some(transfers);
        }
        let places = window.places(self.transfer.bytes);
        let is_in_rounds = !window.pattern.is_random() && 2 * places <= most;
        Some(if is_in_rounds { most / (2 * places) * (2 * places) } else { most })
    }

    /// Passes the requests of transfer number `nth` through all stages.
    fn follow(&self, following: &mut Following<'_>, stages: &mut Stages, nth: u64, apart: Option<Ticks>) -> Option<()> {
        let Following { up, translator, kept } = following;
        let pieces = self.pieces(nth)?;
        let start = pieces.first()?.address;
        if let Some(apart) = apart {
            stages.issued = if stages.taken.is_empty() { self.queue() } else { stages.end + apart };
        }
        for chunk in pieces {
            let alike = self.alike_piece(chunk, chunk.address - start);
            let request = if let Some(request) = kept.find(alike) {
                *request
            } else {
                let request = self.request(up, chunk, chunk.address - start)?;
                kept.keep(alike, request);
                request
            };
            let arrived = self.arrives(stages, up, &request, self.engine(chunk, chunk.address - start))?;
            let ready = translator.look(arrived, chunk.address / translator.page_bytes());
            self.leaves(stages, &request, ready)?;
        }
        Some(())
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
