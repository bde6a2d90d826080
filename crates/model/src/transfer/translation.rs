//! What an IOMMU takes of requests for host memory.
//!
//! A window that is gone over again and again in one order finds all its translations again where each set of the IOTLB has room for
//! those of the window's pages that fall to it; where a set has not, it finds none of that set, because the one that is needed
//! next left last. So of `p` pages, `w` of which find no room, each time round takes `w` walks.
//!
//! A walk is one read where it is known in which page of the table its last level is, which holds for a block of 512 pages; of
//! blocks the same is true as of pages. A first round that no other went before may find what somebody else's transfers left there,
//! as many of each set as that has room for at the most, and there is a bound. Where walks read through the last-level cache, a table that it keeps is read from there once it has been read;
//! one that it may not keep takes that long at the least.
//!
//! A device with ATS has a cache of one set of its own. Where that has room for the pages of the window, nothing is looked up, and nothing
//! walked for; where it has not, each page is asked for every time, and of these questions is true what else is of requests. A
//! question takes beats of the engine and of its read, the way up, a look, the way down of a completion of 8 B, and its beats; a channel
//! makes no request meanwhile. Where a look is shorter than the acknowledgment of the question is on the line, the answer waits for that,
//! and the formula is a bound.

use super::Way;
use crate::bounds::Largest;
use crate::path::Path;
use crate::predict::Bound;
use lanemark_machine::{Partner, Pattern, Verb};
use lanemark_platform::{Iommu, Memory};
use lanemark_units::Ticks;
use lanemark_wire::ats::ENTRY_BYTES;
use std::collections::BTreeMap;

/// Most places of a window that are looked at one by one.
const MOST_PLACES: u64 = 1 << 20;

/// What a device asks for itself, once everything that stays known is known.
#[derive(Clone, Copy, Debug)]
struct Questions {
    /// How many there are.
    count: f64,
    /// Whether that is all of it, and not only the least.
    is_exact: bool,
    /// Whether the device has room for all pages.
    has_room: bool,
}

/// What transfers walk for, once everything that stays known is known.
#[derive(Clone, Copy, Debug, Default)]
struct Walks {
    /// How many there are.
    count: f64,
    /// How long all of them take, one after the other.
    time_ns: f64,
    /// Whether that is all of it, and not only the least.
    is_exact: bool,
    /// Whether every set has room for all that falls to it.
    has_room: bool,
    /// Whether the cache has everything that it would have without walks.
    is_undisturbed: bool,
}

impl Way<'_> {
    /// What translates these requests, if anything does.
    fn iommu(&self) -> Option<&Iommu> {
        let iommu = self.platform.iommu.as_ref().filter(|iommu| iommu.translates());
        iommu.filter(|_| self.transfer.partner == Partner::Host)
    }

    /// Whether the device asks where its addresses lead.
    fn has_ats(&self) -> bool {
        self.dma.ats_entries.value > 0
    }

    /// Whether it asks again and again, without room for all pages of the window.
    pub(super) fn asks_again(&self) -> bool {
        let places = self.transfer.window.places(self.transfer.bytes);
        self.has_ats() && self.iommu().is_some_and(|iommu| !self.questions(iommu, places).has_room)
    }

    /// A look in the IOTLB for a request for data: none where the device has translated it.
    pub(super) fn lookup(&self) -> Ticks {
        self.iommu().filter(|_| !self.has_ats()).map_or(Ticks::ZERO, |iommu| iommu.lookup_ns.value)
    }

    /// From when a device begins to ask for a translation until it has it, if that is not walked for.
    fn question(&self, iommu: &Iommu) -> Option<Ticks> {
        let (endpoint, card) = (&self.platform.endpoint, self.transfer.card);
        let up = Path::up(self.platform, card)?.unloaded(self.header_dw, 0);
        let down = Path::down(self.platform, card)?.unloaded(3, ENTRY_BYTES);
        let asking = self.beats(self.header_dw, 0) + self.dma.read_request_ns.value + endpoint.egress_ns.value;
        let answered = endpoint.ingress_ns.value + self.beats(3, ENTRY_BYTES);
        Some(asking + up + iommu.lookup_ns.value + down + answered)
    }

    /// What so many transfers ask for, at the least.
    fn questions(&self, iommu: &Iommu, transfers: u64) -> Questions {
        let (window, bytes) = (&self.transfer.window, self.transfer.bytes);
        let places = window.places(bytes);
        // Channels find what another one has asked for.
        let is_known = window.pattern != Pattern::Random && places <= MOST_PLACES && bytes > 0 && self.channels == 1;
        if !is_known {
            return Questions { count: 0.0, is_exact: false, has_room: false };
        }
        let (all, room) = (self.pages(iommu, places).len(), self.dma.ats_entries.value as usize);
        if all <= room {
            return Questions { count: 0.0, is_exact: true, has_room: true };
        }
        let (rounds, is_exact) = (transfers / places, self.is_warm && transfers.is_multiple_of(places));
        let first = if transfers < places { self.pages(iommu, transfers).len() } else { all };
        let count = if is_exact {
            rounds as f64 * all as f64
        } else {
            first.saturating_sub(room) as f64 + rounds.saturating_sub(1) as f64 * all as f64
        };
        Questions { count, is_exact, has_room: false }
    }

    /// The same answer with what a device with ATS asks for.
    fn asked_for(&self, iommu: &Iommu, largest: Largest, transfers: u64, one_by_one: bool) -> Option<Largest> {
        let questions = self.questions(iommu, transfers);
        if questions.has_room {
            // Nothing is walked for any more, but what was may have pushed data out of the cache.
            let is_undisturbed = self.walks(iommu, transfers, 0).is_undisturbed;
            return Some(if is_undisturbed { largest } else { largest.blurred() });
        }
        let asked_ns = questions.count * self.question(iommu)?.as_ns();
        let (places, walks) =
            (self.transfer.window.places(self.transfer.bytes).max(1), self.walks(iommu, transfers, 0));
        let walks = if questions.is_exact {
            walks
        } else if transfers.is_multiple_of(places) {
            // What the device knew in the first round is not walked for then, and may be found in the second.
            let read_ns = iommu.walk_read_ns.value.as_ns() * f64::from(iommu.walk_reads.value);
            let less_ns = 2.0 * f64::from(self.dma.ats_entries.value) * read_ns;
            Walks { time_ns: (walks.time_ns - less_ns).max(0.0), ..Walks::default() }
        } else {
            // Which of them are asked for in a part of a round is not known.
            Walks::default()
        };
        let interval_ns = iommu.walk_interval_ns.value.as_ns();
        let asked = Largest::of([(Bound::Translation, asked_ns + walks.time_ns)]);
        if one_by_one && self.is_one_request_each() {
            let is_free = walks.count == 0.0 || interval_ns * transfers as f64 <= largest.ns;
            let down = Path::down(self.platform, self.transfer.card)?;
            let is_acknowledged = down.hops.first().is_some_and(|hop| hop.dllp() <= iommu.lookup_ns.value);
            // Where a link has one credit or place, the read waits for that of its question.
            let up = Path::up(self.platform, self.transfer.card)?;
            let has_room = up.hops.iter().all(|hop| hop.credits.nonposted.headers > 1 && hop.replay_tlps > 1);
            let all = largest.then(&asked);
            return Some(if walks.is_exact && is_free && is_acknowledged && has_room { all } else { all.blurred() });
        }
        // What a channel's requests take besides no term tells of.
        Some(largest.or(asked).blurred())
    }

    /// The same answer for so many transfers with what is translated for them; `one_by_one` if none begins before the last is over.
    pub(super) fn translated(&self, largest: Largest, transfers: u64, one_by_one: bool) -> Largest {
        let Some(iommu) = self.iommu() else { return largest };
        if self.has_ats() {
            return self.asked_for(iommu, largest, transfers, one_by_one).unwrap_or_else(|| largest.blurred());
        }
        let walks = self.walks(iommu, transfers, if one_by_one { 0 } else { self.most_waiting() });
        let interval_ns = iommu.walk_interval_ns.value.as_ns();
        let begun = Largest::of([(Bound::Translation, (walks.count - 1.0).max(0.0) * interval_ns)]);
        if one_by_one && self.is_one_request_each() {
            // Nothing else goes on meanwhile, and no walk waits for the one before, if that has begun long ago.
            let walked = largest.then(&Largest::of([(Bound::Translation, walks.time_ns)]));
            let is_free = walks.count == 0.0 || interval_ns * transfers as f64 <= largest.ns;
            return if walks.is_exact && is_free { walked } else { walked.or(begun).blurred() };
        }
        let walking = Largest::of([(Bound::Translation, walks.time_ns / f64::from(iommu.walkers.value))]);
        let largest = largest.or(walking.or_again(begun));
        // What waits behind a walk for another page no term tells of.
        if walks.has_room && walks.is_undisturbed { largest } else { largest.blurred() }
    }

    /// Requests that may wait at the IOMMU at once: each has credits of the root port.
    fn most_waiting(&self) -> u32 {
        let root = &self.platform.root_complex;
        match self.transfer.verb {
            Verb::Store => root.posted_header_credits.value,
            Verb::Load => root.nonposted_header_credits.value.min(self.dma.tags.value),
        }
    }

    /// What so many transfers walk for, at the least, if so many requests wait at once. Where walks that are under way have not put
    /// their translations into a set, it still has others; so pages beyond its room and theirs are missed for certain.
    fn walks(&self, iommu: &Iommu, transfers: u64, waiting: u32) -> Walks {
        let (window, bytes) = (&self.transfer.window, self.transfer.bytes);
        let places = window.places(bytes);
        if window.pattern == Pattern::Random || places > MOST_PLACES || bytes == 0 {
            return Walks::default();
        }
        let (all, ways) = (self.pages(iommu, places), iommu.iotlb_ways.value);
        let (known, reads) = (iommu.walk_cache_entries.value as usize, u64::from(iommu.walk_reads.value));
        let of_set = in_sets(iommu, &all);
        // Each page is met once in the first round: a set knew as many as it has room for, at the most.
        let first = if transfers < places { in_sets(iommu, &self.pages(iommu, transfers)) } else { of_set.clone() };
        let first: u32 = first.values().map(|pages| pages.saturating_sub(ways)).sum();
        let first_reads = f64::from(first) * if known == 0 { reads as f64 } else { 1.0 };
        let room = ways.saturating_add(waiting);
        let is_missed = |page: &&u64| of_set.get(&set_of(iommu, **page)).is_some_and(|pages| *pages > room);
        let missed: Vec<u64> = all.iter().filter(is_missed).copied().collect();
        let mut blocks: Vec<u64> = missed.iter().map(|page| page / Iommu::BLOCK_PAGES).collect();
        blocks.dedup();
        let whole = match known {
            0 => missed.len(),
            known if blocks.len() > known => blocks.len(),
            _ => 0,
        };
        let all_reads = missed.len() as f64 + (reads - 1) as f64 * whole as f64;
        let is_whole = self.is_warm && transfers.is_multiple_of(places);
        // Where whole rounds went before, the first one is like the others.
        let (rounds, first, first_reads) = match (transfers / places, is_whole) {
            (rounds, true) => (rounds as f64, 0.0, 0.0),
            (rounds, false) => (rounds.saturating_sub(1) as f64, f64::from(first), first_reads),
        };
        let through = iommu.walks_through_cache();
        // Of a table that goes through the cache, no entry takes less than from there.
        let read = if through { iommu.walk_cached_read_ns.value } else { iommu.walk_read_ns.value };
        let is_undisturbed = !through || self.has_room_for_table(&all, reads);
        let is_read = self.transfer.verb == Verb::Load;
        Walks {
            count: first + rounds * missed.len() as f64,
            time_ns: read.as_ns() * (first_reads + rounds * all_reads),
            // What a device writes pushes lines of the table out.
            is_exact: is_whole && is_undisturbed && (is_read || !through || missed.is_empty()),
            has_room: of_set.values().all(|pages| *pages <= ways),
            is_undisturbed,
        }
    }

    /// Whether the last-level cache has room for all lines of the table that walks for these pages may read beside what is transferred,
    /// wherever both lie; of writes, whether what it has makes no difference.
    fn has_room_for_table(&self, pages: &[u64], levels: u64) -> bool {
        let (Some(memory), Some(first), Some(last)) = (self.memory(), pages.iter().min(), pages.iter().max()) else {
            return true;
        };
        if self.transfer.verb == Verb::Store {
            return memory.partial_line_ns.value == Ticks::ZERO;
        }
        let entries = |level: u32| {
            let index = |page: u64| page.checked_shr(Iommu::BLOCK_PAGES.trailing_zeros() * level).unwrap_or(0);
            (index(*last) - index(*first) + 1) * Iommu::ENTRY_BYTES
        };
        let window = &self.transfer.window;
        let data = window.places(self.transfer.bytes).saturating_mul(window.step(self.transfer.bytes));
        let runs = (0..levels as u32).map(entries).chain([data]);
        // So many lines in a row fall to a set at the most; a run may begin and end inside of one.
        let sets = (memory.cached_lines() / Memory::CACHE_WAYS).max(1);
        let of_a_set = runs.map(|bytes| (bytes / Memory::LINE_BYTES + 2).div_ceil(sets));
        of_a_set.fold(0, u64::saturating_add) <= Memory::CACHE_WAYS
    }

    /// The pages of so many transfers, in order.
    fn pages(&self, iommu: &Iommu, transfers: u64) -> Vec<u64> {
        let (page, bytes) = (iommu.page_bytes.value, self.transfer.bytes);
        let mut pages: Vec<u64> = Vec::new();
        for nth in 0..transfers {
            let start = self.base.saturating_add(self.transfer.window.place(nth, bytes));
            let touched = start / page..=start.saturating_add(bytes - 1) / page;
            let last = pages.last().copied();
            pages.extend(touched.filter(|page| last != Some(*page)));
        }
        pages
    }

    /// Whether each transfer is one request.
    fn is_one_request_each(&self) -> bool {
        let places = self.transfer.window.places(self.transfer.bytes).min(MOST_PLACES);
        (0..places).all(|nth| self.pieces(nth).is_some_and(|pieces| pieces.len() == 1))
    }
}

/// In which set of the IOTLB the translation of a page is.
fn set_of(iommu: &Iommu, page: u64) -> u64 {
    let from = iommu.iotlb_index_bit.value.saturating_sub(iommu.page_bytes.value.trailing_zeros());
    (page >> from) & (iommu.sets() - 1)
}

/// How many of these fall to each set that any falls to.
fn in_sets(iommu: &Iommu, pages: &[u64]) -> BTreeMap<u64, u32> {
    let mut of_set: BTreeMap<u64, u32> = BTreeMap::new();
    for page in pages {
        *of_set.entry(set_of(iommu, *page)).or_default() += 1;
    }
    of_set
}
