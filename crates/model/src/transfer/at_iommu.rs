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
//! At most [`MOST`] requests are followed, or those of two transfers, and as many of the warm-up before them. The others take the time of the last
//! half of them: of whole rounds of a window that is accessed in order, or of as many places of a random one. If every
//! page of a window in order misses whenever it is reached, the requests repeat as soon as all stages are busy for as long
//! as at an earlier place in a page: the time of a repetition is then added once for each of the rest. If they have not
//! repeated when so many have been followed, the others take the mean time of all of them.

use super::alike::{Alike, AlikePiece};
use super::iotlb::Translator;
use super::kept::Kept;
use super::kinds::Kinds;
use super::stages::{Earlier, Fixed, Request, Stages};
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

/// The requests of a way on their path to memory.
struct Following<'a> {
    up: Path,
    fixed: Fixed,
    translator: Translator<'a>,
    kept: Kept<AlikePiece, Request>,
    /// The requests of each kind of transfers, by its number or by what these have in common.
    kinds: Option<Rc<Kinds>>,
    /// Number of transfers from the first one on whose kinds are known.
    of_known_kind: u64,
    of_kind: Vec<Option<usize>>,
    places: Kept<Alike, usize>,
    templates: Vec<Vec<Request>>,
    /// Index of the requests of a transfer that is like no other.
    spare: Option<usize>,
    order: PlaceOrder,
    /// Number of transfers after which their places repeat.
    round: u64,
    /// Added to the number of each page.
    moved: u64,
}

impl Way<'_> {
    /// Time of this many transfers; `None` if requests may pass each other. `one_by_one` if each transfer starts after the
    /// end of the previous one, which is signalled `beyond` after its last request.
    pub(super) fn at_iommu(&self, iommu: &Iommu, transfers: u64, one_by_one: bool, beyond: Ticks) -> Option<AtIommu> {
        let period = self.period_of_misses(iommu, self.most_waiting()).filter(|period| *period <= MOST_OF_PERIOD);
        self.following(iommu, transfers, one_by_one.then_some(beyond), period).map(|(found, _)| found)
    }

    /// As [`at_iommu`](Way::at_iommu), with the number of transfers after which the places in a page repeat, if all pages miss;
    /// and the number of transfers that were not followed, because they repeat others.
    fn following(
        &self,
        iommu: &Iommu,
        transfers: u64,
        one_by_one: Option<Ticks>,
        period: Option<u64>,
    ) -> Option<(AtIommu, u64)> {
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
        Some((AtIommu { ns: all(stages.busy.end, half.0), walking_ns: all(busy, half.1) }, 0))
    }

    /// Time of this many transfers in order, all of whose pages miss, so that they repeat after `period` of them, up to the
    /// end of the window, as soon as the stages do; and the number of those that were not followed.
    fn repeating(
        &self,
        following: &mut Following<'_>,
        stages: &mut Stages,
        transfers: u64,
        period: u64,
        apart: Option<Ticks>,
    ) -> Option<(AtIommu, u64)> {
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
        let most = self.most_followed()?;
        let (mut nth, mut followed, mut more, mut repeats) = (0, 0, [0.0, 0.0], 0);
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
                        repeats += times * length;
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
                    let found = AtIommu { ns: all * (ns + more[0]), walking_ns: all * (walking_ns + more[1]) };
                    return Some((found, repeats));
                }
            }
        }
        let [ns, walking_ns] = [stages.busy.end, following.translator.busy].map(Ticks::as_ns);
        Some((AtIommu { ns: ns + more[0], walking_ns: walking_ns + more[1] }, repeats))
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
        // Of more transfers, no more than these are followed, or another round over the window.
        let of_known_kind = transfers.min(self.most_followed()?).min(self.round());
        let kinds = self.kinds(0, of_known_kind);
        let of_kind = vec![None; kinds.as_ref().map_or(0, |kinds| kinds.all.len())];
        let (window, bytes) = (self.transfer.window, self.transfer.bytes);
        // No address overflows.
        let start = self.base.checked_add(window.offset)?;
        let end = start.checked_add(window.places(bytes).checked_mul(window.step(bytes))?)?;
        let pages = start / iommu.page_bytes.value..end / iommu.page_bytes.value + 1;
        // An array of many more pages than requests takes longer than these.
        let near = if pages.end - pages.start <= transfers.min(MOST) { pages } else { 0..0 };
        let (translator, order, templates) = (Translator::for_pages(iommu, near), window.order_of(bytes), Vec::new());
        let (kept, places) = (Kept::default(), Kept::default());
        Some(Following {
            up,
            fixed,
            translator,
            kept,
            kinds,
            of_known_kind,
            of_kind,
            places,
            templates,
            spare: None,
            order,
            round: self.round(),
            moved: 0,
        })
    }

    /// Maximum number of transfers that are followed: two at least.
    fn most_followed(&self) -> Option<u64> {
        Some((MOST / self.count_and_last(0)?.0).max(2))
    }

    /// Number of transfers after which their places repeat; `u64::MAX` if these are random.
    fn round(&self) -> u64 {
        let window = &self.transfer.window;
        if window.pattern.is_random() { u64::MAX } else { window.places(self.transfer.bytes) }
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
        let most = self.most_followed()?;
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
        let in_round = nth % following.round;
        let known = following.kinds.as_ref().filter(|_| in_round < following.of_known_kind);
        let kind = known.and_then(|kinds| match kinds.all.len() {
            1 => Some(0),
            _ => kinds.order.get(in_round as usize).map(|kind| usize::from(*kind)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Transfer, Window};
    use lanemark_platform::{Origin, Platform};

    /// A card behind an IOMMU without a paging-structure cache.
    fn card(numbers: &[(&str, f64)]) -> Platform {
        let card = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        let origin = Origin::Given("a test".to_owned());
        let usual = [("iommu.walk_cache_entries", 0.0), ("iommu.iotlb_entries", 64.0)];
        card.with_numbers(usual.into_iter().chain(numbers.iter().copied()), &origin).unwrap()
    }

    fn transfer(verb: Verb, bytes: u64, window: Window) -> Transfer {
        Transfer { card: 0, verb, partner: Partner::Host, bytes, count: 1, window, outstanding: None }
    }

    /// End of this many transfers and time of their walks, each followed, however many there are.
    fn followed(way: &Way<'_>, transfers: u64, apart: Option<Ticks>) -> [f64; 2] {
        let iommu = way.platform.iommu.as_ref().unwrap();
        let mut following = way.start(iommu, transfers.max(way.warmed)).unwrap();
        let requests = transfers.max(way.warmed) * way.transfer.bytes;
        let mut end = Ticks::ZERO;
        for some in [way.warmed, transfers] {
            let mut stages = Stages::new(&following.fixed, requests);
            following.translator.rest();
            for nth in 0..some {
                way.follow(&mut following, &mut stages, nth, apart).unwrap();
            }
            end = stages.busy.end;
        }
        [end, following.translator.busy].map(Ticks::as_ns)
    }

    #[test]
    fn added_repetitions_take_the_same_time_as_requests_followed_one_by_one() {
        let (mut with_period, mut without, mut repeated) = (0, 0, 0);
        for (tags, walkers, walk_ns) in [(8.0, 1.0, 90.0), (64.0, 3.0, 40.0), (256.0, 4.0, 300.0)] {
            let changed = card(&[("dma.tags", tags), ("iommu.walkers", walkers), ("iommu.walk_read_ns", walk_ns)]);
            let iommu = changed.iommu.as_ref().unwrap();
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
                    let transfer = transfer(verb, bytes, window);
                    let places = window.places(bytes);
                    for warmed in [0, places, places / 2] {
                        let way = Way { warmed, ..Way::of(&changed, &transfer).unwrap() };
                        let transfers = (2 * places + places / 3).min(MOST / way.pieces(0).unwrap().len() as u64);
                        let period = way.period_of_misses(iommu, way.most_waiting());
                        let (found, repeats) = way.following(iommu, transfers, None, period).unwrap();
                        let name = format!("{tags} tags, {transfer:?} after {warmed}");
                        let expected = followed(&way, transfers, None);
                        assert_eq!(
                            [found.ns, found.walking_ns].map(f64::to_bits),
                            expected.map(f64::to_bits),
                            "{name}"
                        );
                        assert!(period.is_some() || repeats == 0, "{name}");
                        repeated += u32::from(repeats > transfers / 2);
                        with_period += u32::from(period.is_some());
                        without += u32::from(period.is_none());
                    }
                }
            }
        }
        assert!(with_period > without && without > 0, "{with_period} with a period, {without} without");
        assert!(repeated > with_period / 2, "{repeated} of {with_period} repeat");
    }

    #[test]
    fn more_requests_than_are_followed_take_the_same_time_as_if_they_were() {
        let walks = [("dma.tags", 64.0), ("iommu.walkers", 2.0), ("iommu.walk_read_ns", 40.0)];
        let large = [("iommu.page_bytes", f64::from(2 << 20)), ("iommu.iotlb_entries", 8.0), ("iommu.iotlb_ways", 2.0)];
        // A round that ends inside a repetition starts another search for one, until so many are followed that the others are
        // said to take as long: here, these are 0.05 % faster.
        let small: [(&str, f64); 0] = [];
        for (numbers, bytes, len, within) in
            [(&small[..], 64, 1 << 20, 0.0), (&small, 192, 1 << 20, 1e-3), (&large, 1 << 15, 1 << 28, 0.0)]
        {
            let changed = card(&[&walks[..], numbers].concat());
            let transfer = transfer(Verb::Load, bytes, Window { offset: 0, len, pattern: Pattern::Sequential });
            let way = Way::of(&changed, &transfer).unwrap();
            let iommu = changed.iommu.as_ref().unwrap();
            let period = way.period_of_misses(iommu, way.most_waiting()).filter(|period| *period <= MOST_OF_PERIOD);
            let transfers = 2 * MOST / way.count_and_last(0).unwrap().0;
            let (found, repeats) = way.following(iommu, transfers, None, period).unwrap();
            assert!(repeats > 0, "{transfer:?}: none of {transfers} repeat");
            let expected = followed(&way, transfers, None);
            for (found, expected) in [found.ns, found.walking_ns].into_iter().zip(expected) {
                assert!((found / expected - 1.0).abs() <= within, "{found}, {expected}: {transfer:?}");
            }
        }
    }

    #[test]
    fn requests_of_one_transfer_overlap_their_walks() {
        // A translation of a walk that has ended may be found although its set has room for no other page.
        let apart = Ticks::whole_ns(100);
        for (entries, ways, walkers) in [(4.0, 1.0, 4.0), (16.0, 2.0, 2.0), (64.0, 4.0, 1.0)] {
            let sizes = [("iommu.iotlb_entries", entries), ("iommu.iotlb_ways", ways), ("iommu.walkers", walkers)];
            let changed = card(&sizes);
            for (bytes, len) in [(1 << 13, 1 << 16), (1 << 14, 1 << 16), (1 << 16, 1 << 16), (1 << 16, 1 << 20)] {
                let window = Window { offset: 0, len, pattern: Pattern::Sequential };
                let way_of = Transfer { outstanding: Some(1), ..transfer(Verb::Load, bytes, window) };
                let way = Way::of(&changed, &way_of).unwrap();
                let transfers = 5 * window.places(bytes);
                let found = way.at_iommu(changed.iommu.as_ref().unwrap(), transfers, true, apart).unwrap();
                let expected = followed(&way, transfers, Some(apart + way.queue()));
                let name = format!("{bytes} B of {len} B, {entries} entries, {ways} ways, {walkers} walkers");
                assert_eq!([found.ns, found.walking_ns].map(f64::to_bits), expected.map(f64::to_bits), "{name}");
            }
        }
    }

    #[test]
    fn no_more_transfers_are_looked_at_than_are_followed() {
        // All of them, looked at one by one, would take days.
        let changed = card(&[("iommu.walkers", 2.0)]);
        for pattern in [Pattern::Random, Pattern::Sequential, Pattern::RandomStrided(256)] {
            let transfer = transfer(Verb::Load, 64, Window { offset: 0, len: 1 << 24, pattern });
            let way = Way::of(&changed, &transfer).unwrap();
            let each = |transfers: u64| {
                let found = way.at_iommu(changed.iommu.as_ref().unwrap(), transfers, false, Ticks::ZERO).unwrap();
                found.ns / transfers as f64
            };
            let (some, many) = (each(MOST), each(1 << 44));
            assert!((many / some - 1.0).abs() < 0.02, "{pattern:?}: {some}, {many}");
        }
    }
}
