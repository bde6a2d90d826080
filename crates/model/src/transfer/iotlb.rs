//! The IOMMU of formulas: IOTLB, page walkers and paging-structure cache, request by request.
//!
//! The rules are those of the simulation. A request looks its page up on arrival. A page that misses needs a walk,
//! which starts on the first free walker; a request for a page whose walk is outstanding waits for that walk. A
//! translation enters its set at the end of its walk and replaces the least recently used one. Pages of one set whose
//! walks end between two uses of a page therefore evict it, however many requests wait.
//!
//! | state | at the start |
//! | --- | --- |
//! | IOTLB | empty; after a warm-up, what its requests leave |
//! | paging-structure cache | the same |
//! | table lines in the last-level cache | none; lines that were read once stay, so the time of a walk is a lower bound |

use lanemark_platform::{Iommu, Memory};
use lanemark_units::Ticks;
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Index of no entry.
const NONE: u32 = 0;

/// A cached translation, and its neighbours in the order of the last uses in its set.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    page: u64,
    older: u32,
    newer: u32,
}

/// A set: its entries by their last use.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    oldest: u32,
    newest: u32,
    count: u32,
}

/// State of a page that is not in memory only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Cached, in the entry of this index.
    Cached(u32),
    /// Its walk ends at this time.
    Walking(Ticks),
}

/// States of pages: of those of a window in an array, of all others by their number.
#[derive(Clone, Debug, Default)]
struct States {
    /// Number of the first page in the array.
    first: u64,
    near: Vec<Option<Known>>,
    others: FxHashMap<u64, Known>,
}

impl States {
    /// Place of a page in the array; beyond its end for the others.
    fn place(&self, page: u64) -> usize {
        usize::try_from(page.wrapping_sub(self.first)).unwrap_or(usize::MAX)
    }

    fn get(&self, page: u64) -> Option<Known> {
        match self.near.get(self.place(page)) {
            Some(state) => *state,
            None => self.others.get(&page).copied(),
        }
    }

    fn set(&mut self, page: u64, state: Known) {
        let place = self.place(page);
        match self.near.get_mut(place) {
            Some(place) => *place = Some(state),
            None => _ = self.others.insert(page, state),
        }
    }

    fn remove(&mut self, page: u64) {
        let place = self.place(page);
        match self.near.get_mut(place) {
            Some(place) => *place = None,
            None => _ = self.others.remove(&page),
        }
    }
}

/// State of the IOMMU after the requests so far.
#[derive(Clone, Debug)]
pub(super) struct Translator<'a> {
    iommu: &'a Iommu,
    /// Cached pages, and those whose walk is outstanding.
    known: States,
    sets: Vec<Set>,
    /// Cached translations of all sets, from index 1 on.
    entries: Vec<Entry>,
    /// The page used last, if it is cached.
    last: Option<u64>,
    /// End and page of each outstanding walk, the first end first.
    walks: VecDeque<(Ticks, u64)>,
    /// Time at which each walker is free.
    walkers: Vec<Ticks>,
    /// Time at which the next walk may start.
    next: Ticks,
    /// Blocks in the paging-structure cache, the most recently used one first.
    blocks: VecDeque<u64>,
    /// Lines of the table that were read, by level, if walks read through the last-level cache.
    table: Option<BTreeSet<(u32, u64)>>,
    /// Time for which a walker was busy, or the next walk could not start: the mean of all walkers.
    pub(super) busy: Ticks,
}

/// Outstanding walks, with their pages relative to the next one, and times of the walkers.
#[derive(Debug)]
pub(super) struct WalkMark {
    walks: Vec<(Ticks, u64)>,
    /// The first one that is free first.
    walkers: Vec<Ticks>,
    next: Ticks,
    /// Whether the page of the next request is cached.
    is_cached: bool,
    /// As [`Translator::busy`].
    pub(super) busy: Ticks,
}

impl WalkMark {
    /// Whether every walk ends, and every walker is free, exactly `passed` after one of `earlier`.
    pub(super) fn is_like(&self, earlier: &WalkMark, passed: Ticks) -> bool {
        let is_later = |(now, then): (&Ticks, &Ticks)| *now == *then + passed;
        let is_walked_later = |(now, then): (&(Ticks, u64), &(Ticks, u64))| now.0 == then.0 + passed && now.1 == then.1;
        self.is_cached == earlier.is_cached
            && self.walks.len() == earlier.walks.len()
            && is_later((&self.next, &earlier.next))
            && self.walkers.iter().zip(&earlier.walkers).all(is_later)
            && self.walks.iter().zip(&earlier.walks).all(is_walked_later)
    }
}

impl<'a> Translator<'a> {
    pub(super) fn new(iommu: &'a Iommu) -> Translator<'a> {
        Translator {
            iommu,
            known: States::default(),
            sets: vec![Set::default(); iommu.sets() as usize],
            entries: vec![Entry::default()],
            last: None,
            walks: VecDeque::new(),
            walkers: vec![Ticks::ZERO; iommu.walkers.value.max(1) as usize],
            next: Ticks::ZERO,
            blocks: VecDeque::new(),
            table: iommu.walks_through_cache().then(BTreeSet::new),
            busy: Ticks::ZERO,
        }
    }

    /// As [`new`](Translator::new), for requests most of which are for these pages.
    pub(super) fn for_pages(iommu: &'a Iommu, pages: Range<u64>) -> Translator<'a> {
        let near = vec![None; pages.end.saturating_sub(pages.start) as usize];
        let known = States { first: pages.start, near, others: FxHashMap::default() };
        Translator { known, ..Translator::new(iommu) }
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> u64 {
        self.iommu.page_bytes.value
    }

    /// Looks up the page of a request that arrives at `now`, no earlier than the one before; returns the time at which
    /// its translation is ready.
    pub(super) fn look(&mut self, now: Ticks, page: u64) -> Ticks {
        let looked = now + self.iommu.lookup_ns.value;
        self.end_walks(now);
        if self.last == Some(page) {
            return looked;
        }
        match self.known.get(page) {
            Some(Known::Cached(place)) => {
                let set = set_of(self.iommu, page);
                self.take_out(set, place);
                self.put_newest(set, place);
                self.last = Some(page);
                looked
            }
            Some(Known::Walking(until)) => looked.max(until),
            None => self.walk(looked, page),
        }
    }

    /// Completes all walks. The next request arrives at time zero of a new count, when all walkers are free.
    pub(super) fn rest(&mut self) {
        self.end_walks(Ticks::NEVER);
        self.walkers.fill(Ticks::ZERO);
        (self.next, self.busy) = (Ticks::ZERO, Ticks::ZERO);
    }

    /// The outstanding walks and the walkers before a request for `page`.
    pub(super) fn mark(&self, page: u64) -> WalkMark {
        let mut walkers = self.walkers.clone();
        walkers.sort_unstable();
        let walks = self.walks.iter().map(|(until, walked)| (*until, walked.wrapping_sub(page))).collect();
        let is_cached = matches!(self.known.get(page), Some(Known::Cached(_)));
        WalkMark { walks, walkers, next: self.next, is_cached, busy: self.busy }
    }

    /// Removes an entry from the order of its set.
    fn take_out(&mut self, set: u64, place: u32) {
        let Entry { older, newer, .. } = self.entries[place as usize];
        let ends = &mut self.sets[set as usize];
        match older {
            NONE => ends.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => ends.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        ends.count -= 1;
    }

    /// Adds an entry to its set as the most recently used one.
    fn put_newest(&mut self, set: u64, place: u32) {
        let ends = &mut self.sets[set as usize];
        match ends.newest {
            NONE => ends.oldest = place,
            newest => self.entries[newest as usize].newer = place,
        }
        let entry = &mut self.entries[place as usize];
        (entry.older, entry.newer) = (ends.newest, NONE);
        (ends.newest, ends.count) = (place, ends.count + 1);
    }

    /// Starts a walk that is needed at `from`; returns its end.
    fn walk(&mut self, from: Ticks, page: u64) -> Ticks {
        let (count, time) = (self.walkers.len() as u64, self.walked(page));
        let Some(free) = self.walkers.iter_mut().min() else { return from };
        let start = from.max(*free).max(self.next);
        let until = start + time;
        *free = until;
        self.next = start + self.iommu.walk_interval_ns.value;
        self.busy += Ticks(time.0 / count).max(self.iommu.walk_interval_ns.value);
        match self.walks.iter().rev().take_while(|(end, _)| *end > until).count() {
            0 => self.walks.push_back((until, page)),
            later => self.walks.insert(self.walks.len() - later, (until, page)),
        }
        self.known.set(page, Known::Walking(until));
        until
    }

    /// Time of the reads of a walk.
    fn walked(&mut self, page: u64) -> Ticks {
        let read = self.iommu.walk_read_ns.value;
        let blocks = self.iommu.walk_cache_entries.value as usize;
        let block = page / Iommu::BLOCK_PAGES;
        let known = self.blocks.iter().position(|other| *other == block);
        let reads = if known.is_some() { 1 } else { self.iommu.walk_reads.value };
        if blocks > 0 {
            if let Some(place) = known {
                self.blocks.remove(place);
            }
            self.blocks.push_front(block);
            self.blocks.truncate(blocks);
        }
        let Some(table) = &mut self.table else { return read * u64::from(reads) };
        let lines = (0..reads).map(|level| {
            let entry = page.checked_shr(Iommu::BLOCK_PAGES.trailing_zeros() * level).unwrap_or(0);
            let is_new = table.insert((level, entry * Iommu::ENTRY_BYTES / Memory::LINE_BYTES));
            if is_new { read } else { self.iommu.walk_cached_read_ns.value.min(read) }
        });
        lines.sum()
    }

    /// Inserts the translations of the walks that have ended by `now`.
    fn end_walks(&mut self, now: Ticks) {
        while let Some((_, page)) = self.walks.front().copied().filter(|(until, _)| *until <= now) {
            self.walks.pop_front();
            let set = set_of(self.iommu, page);
            let ends = &mut self.sets[set as usize];
            let place = if ends.count >= self.iommu.iotlb_ways.value && ends.oldest != NONE {
                let place = ends.oldest;
                self.take_out(set, place);
                self.known.remove(self.entries[place as usize].page);
                place
            } else {
                self.entries.push(Entry::default());
                (self.entries.len() - 1) as u32
            };
            self.entries[place as usize].page = page;
            self.put_newest(set, place);
            self.known.set(page, Known::Cached(place));
            self.last = Some(page);
        }
    }
}

/// Index of the IOTLB set of a page.
pub(super) fn set_of(iommu: &Iommu, page: u64) -> u64 {
    let from = iommu.iotlb_index_bit.value.saturating_sub(iommu.page_bytes.value.trailing_zeros());
    (page >> from) & (iommu.sets() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_platform::preset;

    /// An IOMMU with one set of two ways and one walker, whose lookups take 1 and whose walks take 10 ticks.
    fn two_ways() -> Iommu {
        let platform = preset("card-gen5-x16-iommu").unwrap().unwrap();
        let mut iommu = platform.iommu.unwrap();
        (iommu.iotlb_entries.value, iommu.iotlb_ways.value) = (2, 2);
        (iommu.lookup_ns.value, iommu.walk_read_ns.value) = (Ticks(1), Ticks(10));
        (iommu.walk_reads.value, iommu.walk_cache_entries.value, iommu.walkers.value) = (1, 0, 1);
        iommu.walk_interval_ns.value = Ticks::ZERO;
        iommu
    }

    /// Time from the arrival of each of these requests until its translation.
    fn waits(iommu: &Iommu, requests: &[(u64, u64)]) -> Vec<u64> {
        let mut translator = Translator::new(iommu);
        requests.iter().map(|(now, page)| translator.look(Ticks(*now), *page).0 - now).collect()
    }

    #[test]
    fn a_page_misses_if_as_many_others_were_used_as_there_are_ways() {
        let requests = [1, 2, 1, 3, 1, 2].into_iter().zip((0..).step_by(100)).map(|(page, now)| (now, page));
        assert_eq!(waits(&two_ways(), &requests.collect::<Vec<_>>()), [11, 11, 1, 11, 1, 11]);
    }

    #[test]
    fn a_request_for_a_page_waits_for_its_outstanding_walk() {
        assert_eq!(waits(&two_ways(), &[(0, 1), (4, 1), (11, 1), (12, 1)]), [11, 7, 1, 1]);
    }

    #[test]
    fn a_page_is_evicted_by_a_walk_that_ends_before_its_next_use() {
        // Both walks of pages 3 and 4 end at 121: page 1 is looked up one tick before that, or at that time.
        let mut iommu = two_ways();
        iommu.walkers.value = 2;
        assert_eq!(waits(&iommu, &[(0, 1), (50, 2), (110, 3), (110, 4), (120, 1)]), [11, 11, 11, 11, 1]);
        assert_eq!(waits(&iommu, &[(0, 1), (50, 2), (110, 3), (110, 4), (121, 1)]), [11, 11, 11, 11, 11]);
    }

    #[test]
    fn walks_wait_for_a_free_walker_and_for_the_interval() {
        let mut iommu = two_ways();
        assert_eq!(waits(&iommu, &[(0, 1), (0, 2), (0, 3)]), [11, 21, 31]);
        iommu.walkers.value = 2;
        assert_eq!(waits(&iommu, &[(0, 1), (0, 2), (0, 3)]), [11, 11, 21]);
        iommu.walk_interval_ns.value = Ticks(4);
        assert_eq!(waits(&iommu, &[(0, 1), (0, 2), (0, 3)]), [11, 15, 21]);
    }

    #[test]
    fn a_walk_in_a_cached_block_is_one_read() {
        let mut iommu = two_ways();
        (iommu.walk_reads.value, iommu.walk_cache_entries.value) = (3, 1);
        assert_eq!(waits(&iommu, &[(0, 0), (100, 511), (200, 512), (300, 1)]), [31, 11, 31, 31]);
    }

    #[test]
    fn walkers_are_free_after_a_rest_and_translations_stay() {
        let iommu = two_ways();
        let mut translator = Translator::new(&iommu);
        translator.look(Ticks(1000), 1);
        translator.rest();
        assert_eq!([1, 2].map(|page| translator.look(Ticks(0), page)), [Ticks(1), Ticks(11)]);
    }
}
