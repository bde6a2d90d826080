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
//! half of them: of whole rounds of a window that is accessed in order, or of as many places of a random one. If every
//! page of a window in order misses whenever it is reached, the requests repeat as soon as all stages are busy for as long
//! as at an earlier place in a page: the time of a repetition is then added once for each of the rest.

use super::alike::{Alike, AlikePiece};
use super::iotlb::{Translator, WalkMark};
use super::kept::Kept;
use super::kinds::Kinds;
use super::way::{Way, in_dws};
use crate::path::{CREDIT, Hop, Path, Pool};
use lanemark_machine::{PlaceOrder, Verb};
use lanemark_platform::Iommu;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;
use std::rc::Rc;

/// Maximum number of requests that are followed.
const MOST: u64 = 1 << 16;

/// Requests before the first place at which a repetition is looked for.
const FIRST_COMPARED: usize = 16;

/// Bits of the number of a page.
const PAGE_BITS: u32 = 52;

/// Most transfers of a repetition: a page of 4 KiB in 64 B, of several alignments.
const MOST_OF_PERIOD: u64 = 1 << 10;

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
    /// Bytes from the start of its transfer.
    offset: u64,
    engine: Ticks,
    go: Ticks,
    slowest: Ticks,
    wire: Ticks,
    credit_loop: Ticks,
    credits: u32,
    /// Of a read: the path from memory on, and the times of its data.
    memory_read: Ticks,
    link: Ticks,
    before_beats: Ticks,
    beats: Ticks,
    way: Ticks,
}

/// Times and limits that are the same for all requests.
struct Fixed {
    egress: Ticks,
    unloaded: Ticks,
    /// Requests that credits and send buffers hold, and tags; `None` if these are more than there are requests.
    buffers: Option<usize>,
    tags: Option<usize>,
    /// Credits of the root port.
    pool: Pool,
    root_pace: Ticks,
    pace: Ticks,
    /// Time of a write at memory; `None` for reads.
    write: Option<Ticks>,
}

/// The requests of a way on their path to memory.
struct Following<'a> {
    up: Path,
    fixed: Fixed,
    translator: Translator<'a>,
    kept: Kept<AlikePiece, Request>,
    /// The requests of each kind of transfers, by its number or by what these have in common.
    kinds: Option<Rc<Kinds>>,
    of_kind: Vec<Option<usize>>,
    places: Kept<Alike, usize>,
    templates: Vec<Vec<Request>>,
    /// Index of the requests of a transfer that is like no other.
    spare: Option<usize>,
    order: PlaceOrder,
    /// Added to the number of each page.
    moved: u64,
}

/// The stages after the requests so far.
#[derive(Clone, Copy, Default)]
struct Busy {
    issued: Ticks,
    started: Ticks,
    paced: Ticks,
    arrived: Ticks,
    accepted_by_root: Option<Ticks>,
    left: Ticks,
    link: Ticks,
    beats: Ticks,
    end: Ticks,
}

impl Busy {
    /// Whether each stage that is used is busy for exactly this time longer than `earlier`.
    fn is_later(&self, earlier: &Busy, passed: Ticks) -> bool {
        let times = |busy: &Busy| {
            let Busy { issued, started, arrived, left, link, beats, end, .. } = *busy;
            [issued, started, arrived, busy.accepted_by_root.unwrap_or_default(), left, link, beats, end]
        };
        let is_later = |(now, then): (Ticks, Ticks)| now == then + passed || now == Ticks::ZERO && then == Ticks::ZERO;
        self.paced == earlier.paced && times(self).into_iter().zip(times(earlier)).all(is_later)
    }
}

/// Values of the last requests.
struct History<T> {
    /// A power of two of places, in turn.
    last: Vec<T>,
    count: usize,
}

impl<T: Copy + Default> History<T> {
    /// A history of at least `most` requests.
    fn of(most: usize) -> History<T> {
        History { last: vec![T::default(); most.next_power_of_two()], count: 0 }
    }

    /// The value of request number `nth`, one of the last ones.
    fn at(&self, nth: usize) -> T {
        self.last[nth & (self.last.len() - 1)]
    }

    fn push(&mut self, value: T) {
        let place = self.count & (self.last.len() - 1);
        self.last[place] = value;
        self.count += 1;
    }

    /// The value of the request `back` before the next one; `None` before the first one.
    fn before(&self, back: usize) -> Option<T> {
        Some(self.at(self.count.checked_sub(back)?))
    }

    /// The values of the last requests, at most `most`, the last one first.
    fn last(&self, most: usize) -> Vec<T> {
        (1..=most).map_while(|back| self.before(back)).collect()
    }
}

/// The stages, and the requests so far.
struct Stages {
    busy: Busy,
    /// Acceptance of requests by memory, and of reads, the times at which their tags are free.
    taken: History<Ticks>,
    free: History<Ticks>,
    /// The oldest request that may hold credits, and the data credits since.
    oldest: usize,
    held: u64,
    credits: History<u32>,
}

/// The stages at an earlier repetition.
struct Earlier {
    busy: Busy,
    walks: WalkMark,
    /// Of the last requests, the last one first: as [`Stages`] has them.
    taken: Vec<Ticks>,
    free: Vec<Ticks>,
    /// Requests and transfers so far, requests since the oldest one that may hold credits, and the data credits of these.
    requests: usize,
    transfers: u64,
    holding: usize,
    held: u64,
}

impl Way<'_> {
    /// Time of this many transfers; `None` if requests may pass each other. `one_by_one` if each transfer starts after the
    /// end of the previous one, which is signalled `beyond` after its last request.
    pub(super) fn at_iommu(&self, iommu: &Iommu, transfers: u64, one_by_one: bool, beyond: Ticks) -> Option<AtIommu> {
        let waiting = if one_by_one { 0 } else { self.most_waiting() };
        let period = self.period_of_misses(iommu, waiting).filter(|period| *period <= MOST_OF_PERIOD);
        self.following(iommu, transfers, one_by_one.then_some(beyond), period)
    }

    /// As [`at_iommu`](Way::at_iommu), with the number of transfers after which the places in a page repeat, if all pages miss.
    fn following(
        &self,
        iommu: &Iommu,
        transfers: u64,
        one_by_one: Option<Ticks>,
        period: Option<u64>,
    ) -> Option<AtIommu> {
        // Completions of reads that hit in the cache may come before those of earlier reads.
        if self.channels > 1 || !self.cached.is_empty() && !self.is_all_cached() {
            return None;
        }
        let apart = one_by_one.map(|beyond| beyond + self.queue());
        let (skipped, warmed) = self.warmed_apart()?;
        let mut following = self.start(iommu, transfers.max(self.warmed))?;
        let requests = transfers.max(self.warmed).saturating_mul(self.transfer.bytes);
        let mut stages = Stages::new(&following.fixed, requests);
        // No page that the warm-up leaves is found.
        let warmed = if period.is_some() { 0 } else { warmed };
        for nth in skipped..skipped + warmed {
            self.follow(&mut following, &mut stages, nth, apart)?;
        }
        following.translator.rest();
        stages = Stages::new(&following.fixed, requests);
        if let Some(period) = period {
            return self.repeating(&mut following, &mut stages, transfers, period, apart);
        }
        let (examined, mut half) = (self.examined(transfers)?, (Ticks::ZERO, Ticks::ZERO));
        for nth in 0..examined {
            self.follow(&mut following, &mut stages, nth, apart)?;
            if nth + 1 == examined / 2 {
                half = (stages.busy.end, following.translator.busy);
            }
        }
        let busy = following.translator.busy;
        let rest = (transfers - examined) as f64 / (examined - examined / 2) as f64;
        let all = |end: Ticks, half: Ticks| end.as_ns() + rest * end.since(half).as_ns();
        Some(AtIommu { ns: all(stages.busy.end, half.0), walking_ns: all(busy, half.1) })
    }

    /// Time of this many transfers in order, all of whose pages miss, so that they repeat after `period` of them, up to the
    /// end of the window, as soon as the stages do.
    fn repeating(
        &self,
        following: &mut Following<'_>,
        stages: &mut Stages,
        transfers: u64,
        period: u64,
        apart: Option<Ticks>,
    ) -> Option<AtIommu> {
        let (page_bytes, bytes) = (following.translator.page_bytes(), self.transfer.bytes);
        let places = self.transfer.window.places(bytes);
        // Pages of each round have numbers of their own: none is found in a later round. If the round is one of whole
        // repetitions, and does not end in a part of a page, its numbers follow those of the round before.
        let whole = places * self.transfer.window.step(bytes) / page_bytes;
        let page = |address: u64| address / page_bytes;
        let ends_before = page(self.range(places - 1)?.0 + bytes - 1) < page(self.range(0)?.0) + whole;
        let is_whole = places.is_multiple_of(period) && ends_before;
        let of_round = if is_whole { whole } else { 1 << PAGE_BITS };
        let number = |nth: u64| Some(page(self.range(nth)?.0).wrapping_add((nth / places).wrapping_mul(of_round)));
        let most = MOST / self.count_and_last(0)?.0;
        let (mut nth, mut followed, mut more) = (0, 0, [0.0, 0.0]);
        while nth < transfers {
            let end = if is_whole { transfers } else { transfers.min(nth.saturating_add(self.until_start(nth))) };
            // The number of a page that is followed for one of a later repetition is less by this.
            let (first, mut skipped, mut earlier): (u64, u64, Option<Earlier>) = (nth, 0, None);
            let mut follow_next = |following: &mut Following<'_>, stages: &mut Stages, nth: &mut u64, skipped: u64| {
                following.moved = (*nth / places).wrapping_mul(of_round).wrapping_sub(skipped);
                *nth += 1;
                followed += 1;
                self.follow(following, stages, *nth - 1, apart)?;
                Some(followed)
            };
            while nth < end {
                let is_start = (nth - first).is_multiple_of(period) && stages.taken.count >= FIRST_COMPARED;
                if is_start && skipped == 0 {
                    let walks = following.translator.mark(number(nth)?);
                    if let Some(then) = earlier.take_if(|then| stages.repeat(then, &walks, &following.fixed)) {
                        let length = nth - then.transfers;
                        let times = (end - nth) / length;
                        let repeated = |of_one: Ticks| of_one.as_ns() * times as f64;
                        more[0] += repeated(stages.busy.issued - then.busy.issued);
                        more[1] += repeated(walks.busy.since(then.walks.busy));
                        skipped = number(nth + times * length)?.wrapping_sub(number(nth)?);
                        nth += times * length;
                        continue;
                    }
                    // Kept after twice as many requests each time, it finds a repetition of any length: Brent, BIT 20, 1980.
                    if earlier.as_ref().is_none_or(|then| stages.taken.count >= 2 * then.requests) {
                        earlier = Some(stages.mark(nth, walks, &following.fixed));
                    }
                }
                if follow_next(following, stages, &mut nth, skipped)? >= most && nth < transfers {
                    // The requests hardly ever repeat: the others take as long.
                    let all = transfers as f64 / nth as f64;
                    let [ns, walking_ns] = [stages.busy.end, following.translator.busy].map(Ticks::as_ns);
                    return Some(AtIommu { ns: all * (ns + more[0]), walking_ns: all * (walking_ns + more[1]) });
                }
            }
        }
        let [ns, walking_ns] = [stages.busy.end, following.translator.busy].map(Ticks::as_ns);
        Some(AtIommu { ns: ns + more[0], walking_ns: walking_ns + more[1] })
    }

    /// The start of following requests of this many transfers.
    fn start<'i>(&self, iommu: &'i Iommu, transfers: u64) -> Option<Following<'i>> {
        let up = Path::up(self.platform, self.transfer.card)?;
        let headers: u64 = up.hops.iter().map(|hop| u64::from(self.pool(hop).headers)).sum();
        let buffers = headers.saturating_add(self.dma.send_buffers.value.into());
        let requests = transfers.saturating_mul(self.transfer.bytes);
        let tags = self.most_under_way();
        let is_store = self.transfer.verb == Verb::Store;
        let fixed = Fixed {
            egress: self.platform.endpoint.egress_ns.value,
            unloaded: up.unloaded(self.header_dw, 0),
            buffers: (buffers < requests).then_some(buffers as usize),
            tags: (tags < requests as f64).then_some(tags as usize),
            pool: self.pool(up.hops.last()?),
            root_pace: self.root_pace(),
            pace: self.pace(),
            write: if is_store { Some(self.memory()?.write_ns.value) } else { None },
        };
        let kinds = self.kinds(0, transfers);
        let of_kind = vec![None; kinds.as_ref().map_or(0, |kinds| kinds.all.len())];
        let (window, bytes) = (self.transfer.window, self.transfer.bytes);
        // No address overflows.
        self.base.checked_add(window.offset)?.checked_add(window.places(bytes).checked_mul(window.step(bytes))?)?;
        let (translator, order, templates) = (Translator::new(iommu), window.order_of(bytes), Vec::new());
        let (kept, places) = (Kept::default(), Kept::default());
        Some(Following { up, fixed, translator, kept, kinds, of_kind, places, templates, spare: None, order, moved: 0 })
    }

    /// Number of transfers of the warm-up that are left out, and of those after them that are followed.
    fn warmed_apart(&self) -> Option<(u64, u64)> {
        let most = MOST / self.count_and_last(0)?.0;
        let warmed = self.warmed.min(most.max(1));
        Some((self.warmed - warmed, warmed))
    }

    /// Number of transfers that are followed: all, or whole rounds over a window in order, half of them in each half.
    fn examined(&self, transfers: u64) -> Option<u64> {
        let window = &self.transfer.window;
        let most = (MOST / self.count_and_last(0)?.0).max(2);
        if transfers <= most {
            return Some(transfers);
        }
        let places = window.places(self.transfer.bytes);
        let is_in_rounds = !window.pattern.is_random() && 2 * places <= most;
        Some(if is_in_rounds { most / (2 * places) * (2 * places) } else { most })
    }

    /// Passes the requests of transfer number `nth` through all stages.
    fn follow(&self, following: &mut Following<'_>, stages: &mut Stages, nth: u64, apart: Option<Ticks>) -> Option<()> {
        let start = self.base + following.order.place(nth);
        if let Some(apart) = apart {
            stages.busy.issued = if stages.taken.count == 0 { self.queue() } else { stages.busy.end + apart };
        }
        let place = self.template(following, nth)?;
        let Following { fixed, translator, templates, moved, .. } = following;
        let pages = translator.page_bytes().trailing_zeros();
        for request in templates.get(place)? {
            let arrived = stages.arrive(request, fixed);
            let ready = translator.look(arrived, ((start + request.offset) >> pages).wrapping_add(*moved));
            stages.leave(request, fixed, ready);
        }
        Some(())
    }

    /// Index of the requests of transfer number `nth`.
    fn template(&self, following: &mut Following<'_>, nth: u64) -> Option<usize> {
        let kind = following.kinds.as_ref().and_then(|kinds| match kinds.all.len() {
            1 => Some(0),
            _ => kinds.order.get(nth as usize).map(|kind| usize::from(*kind)),
        });
        if let Some(known) = kind.and_then(|kind| following.of_kind[kind]) {
            return Some(known);
        }
        let alike = self.alike(nth);
        if let Some(known) = following.places.find(alike) {
            let known = *known;
            kind.map(|kind| following.of_kind[kind].insert(known));
            return Some(known);
        }
        let pieces = self.pieces(nth)?;
        let start = pieces.first()?.address;
        let mut template = Vec::with_capacity(pieces.len());
        for chunk in pieces {
            let offset = chunk.address - start;
            let alike = self.alike_piece(chunk, offset);
            let request = if let Some(request) = following.kept.find(alike) {
                *request
            } else {
                let request = self.request(&following.up, chunk, offset)?;
                following.kept.keep(alike, request);
                request
            };
            template.push(Request { offset, engine: self.engine(chunk, offset), ..request });
        }
        let mut place = following.templates.len();
        if following.places.keep(alike, place).is_some() {
            following.templates.push(template);
            kind.map(|kind| following.of_kind[kind].insert(place));
        } else if let Some(spare) = following.spare {
            following.templates[spare] = template;
            place = spare;
        } else {
            following.spare = Some(place);
            following.templates.push(template);
        }
        Some(place)
    }

    fn request(&self, up: &Path, chunk: Chunk, offset: u64) -> Option<Request> {
        let is_store = self.transfer.verb == Verb::Store;
        let payload = if is_store { in_dws(chunk) } else { 0 };
        let piece = if is_store { self.write(chunk, offset)? } else { self.read(chunk)? };
        let last = up.hops.last()?;
        let go = self.platform.endpoint.egress_ns.value + up.unloaded(self.header_dw, payload);
        // The path from memory on.
        let besides = |way: Ticks| if is_store { Ticks::ZERO } else { way.since(go + self.lookup()) };
        Some(Request {
            offset,
            engine: Ticks::ZERO,
            go,
            slowest: up.slowest(self.header_dw, payload)?.pace(self.header_dw, payload),
            wire: last.wire(self.header_dw, payload),
            credit_loop: up.credit_loop(up.hops.len() - 1, self.header_dw, payload, Ticks::ZERO),
            credits: payload.div_ceil(CREDIT),
            memory_read: if is_store { Ticks::ZERO } else { self.memory_read(chunk)? },
            link: piece.link,
            before_beats: besides(piece.before_beats),
            beats: piece.beats,
            way: besides(piece.way),
        })
    }

    /// Credits of a receiver for these requests.
    fn pool(&self, hop: &Hop) -> Pool {
        if self.transfer.verb == Verb::Store { hop.credits.posted } else { hop.credits.nonposted }
    }
}

impl Stages {
    /// Before the first of at most this many requests.
    fn new(fixed: &Fixed, requests: u64) -> Stages {
        let requests = usize::try_from(requests).unwrap_or(usize::MAX).saturating_add(1);
        let [buffers, tags] = [fixed.buffers, fixed.tags].map(|count| count.map_or(1, |count| count.min(requests)));
        let held = (fixed.pool.headers as usize).min(requests) + 2;
        let (busy, oldest) = (Busy::default(), 0);
        let (taken, free) = (History::of(buffers.max(held)), History::of(tags));
        Stages { busy, taken, free, oldest, held: 0, credits: History::of(held) }
    }

    /// Issues the next request; returns when the IOMMU looks it up.
    fn arrive(&mut self, request: &Request, fixed: &Fixed) -> Ticks {
        let nth = self.taken.count;
        let busy = &mut self.busy;
        let room = fixed.buffers.and_then(|buffers| self.taken.before(buffers)).unwrap_or_default();
        let tag = fixed.tags.and_then(|tags| self.free.before(tags)).unwrap_or_default();
        busy.issued = busy.issued.max(room).max(tag) + request.engine;
        // The packet before it on the slowest link.
        let sent = busy.issued + fixed.egress;
        busy.started = sent.max(busy.started + busy.paced);
        busy.paced = request.slowest;
        self.credits.push(request.credits);
        self.held += u64::from(request.credits);
        let Pool { headers, data } = fixed.pool;
        while self.oldest < nth && (self.held > data.into() || (nth + 1 - self.oldest) as u64 > headers.into()) {
            self.held -= u64::from(self.credits.at(self.oldest));
            self.oldest += 1;
        }
        let released = self.oldest.checked_sub(1).map(|place| self.taken.at(place));
        let credit = released.map_or(Ticks::ZERO, |taken| taken + request.credit_loop);
        let behind = if nth == 0 { Ticks::ZERO } else { busy.arrived + request.wire };
        let way = (busy.issued + request.go).max(busy.started + fixed.unloaded);
        busy.arrived = way.max(behind).max(credit);
        let paced = busy.accepted_by_root.map_or(Ticks::ZERO, |last| last + fixed.root_pace);
        let accepted = busy.arrived.max(paced);
        busy.accepted_by_root = Some(accepted);
        accepted
    }

    /// Passes the next request, whose translation is ready at `ready`, to memory, and receives its data.
    fn leave(&mut self, request: &Request, fixed: &Fixed, ready: Ticks) {
        let busy = &mut self.busy;
        busy.left = busy.left.max(ready);
        let paced = self.taken.before(1).map_or(Ticks::ZERO, |last| last + fixed.pace);
        let taken = busy.left.max(paced);
        self.taken.push(taken);
        if let Some(write) = fixed.write {
            busy.end = taken + write;
            return;
        }
        busy.link = busy.link.max(taken + request.memory_read) + request.link;
        busy.beats = busy.beats.max(taken + request.before_beats) + request.beats;
        let free = (taken + request.way).max(busy.link).max(busy.beats);
        self.free.push(free);
        busy.end = busy.end.max(free);
    }

    /// Number of the last requests whose acceptance later ones may depend on.
    fn last_taken(&self, fixed: &Fixed) -> usize {
        fixed.buffers.unwrap_or(0).max(self.taken.count - self.oldest + 1)
    }

    /// The stages after this many transfers.
    fn mark(&self, transfers: u64, walks: WalkMark, fixed: &Fixed) -> Earlier {
        Earlier {
            busy: self.busy,
            walks,
            taken: self.taken.last(self.last_taken(fixed)),
            free: self.free.last(fixed.tags.unwrap_or(0)),
            requests: self.taken.count,
            transfers,
            holding: self.taken.count - self.oldest,
            held: self.held,
        }
    }

    /// Whether every stage is busy for as long as it was at the place `then`, so that the same requests take the same times.
    fn repeat(&self, then: &Earlier, walks: &WalkMark, fixed: &Fixed) -> bool {
        let passed = self.busy.issued - then.busy.issued;
        // None of more requests than there were.
        let are_later = |now: &History<Ticks>, then: &[Ticks], last: usize| {
            then.len() == last && (1..).zip(then).all(|(back, then)| now.before(back) == Some(*then + passed))
        };
        self.taken.count - self.oldest == then.holding
            && self.held == then.held
            && self.busy.is_later(&then.busy, passed)
            && walks.is_like(&then.walks, passed)
            && are_later(&self.taken, &then.taken, self.last_taken(fixed))
            && are_later(&self.free, &then.free, fixed.tags.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Transfer, Window};
    use lanemark_platform::Origin;

    #[test]
    fn added_repetitions_take_the_same_time_as_requests_followed_one_by_one() {
        let card = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        let (mut found, mut tried) = (0, 0);
        for (tags, walkers, walk_ns) in [(8.0, 1.0, 90.0), (64.0, 3.0, 40.0), (256.0, 4.0, 300.0)] {
            let numbers = [
                ("dma.tags", tags),
                ("iommu.walkers", walkers),
                ("iommu.walk_read_ns", walk_ns),
                ("iommu.walk_cache_entries", 0.0),
                ("iommu.iotlb_entries", 64.0),
            ];
            let origin = || Origin::Given("a test".to_owned());
            let changed = card.with_numbers(numbers, &origin()).unwrap();
            for (bytes, offset) in
                [(64, 0), (64, 128), (100, 4), (192, 0), (512, 256), (4096, 0), (12_289, 64), (1 << 15, 0)]
            {
                for (pattern, verb) in [
                    (Pattern::Sequential, Verb::Load),
                    (Pattern::Sequential, Verb::Store),
                    (Pattern::Strided(8192), Verb::Load),
                    (Pattern::Random, Verb::Load),
                ] {
                    let window = Window { offset, len: 1 << 21, pattern };
                    let transfer =
                        Transfer { card: 0, verb, partner: Partner::Host, bytes, count: 1, window, outstanding: None };
                    let places = window.places(bytes);
                    for warmed in [0, places, places / 2] {
                        let way = Way { warmed, ..Way::of(&changed, &transfer).unwrap() };
                        let iommu = changed.iommu.as_ref().unwrap();
                        let transfers = (2 * places + places / 3).min(MOST / way.pieces(0).unwrap().len() as u64);
                        let period = way.period_of_misses(iommu, way.most_waiting());
                        let [repeated, one_by_one] =
                            [period, None].map(|period| way.following(iommu, transfers, None, period).unwrap());
                        let name = format!("{tags} tags, {transfer:?} after {warmed}");
                        assert_eq!(repeated.ns.to_bits(), one_by_one.ns.to_bits(), "{name}");
                        assert_eq!(repeated.walking_ns.to_bits(), one_by_one.walking_ns.to_bits(), "{name}");
                        (found, tried) = (found + u32::from(period.is_some()), tried + 1);
                    }
                }
            }
        }
        assert!(found > tried / 2 && found < tried, "{found} of {tried} repeat");
    }
}
