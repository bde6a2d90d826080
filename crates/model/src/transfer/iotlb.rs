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
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Cached translations of a set.
#[derive(Clone, Debug, Default)]
struct Set {
    /// Number of the last use of each page.
    used: BTreeMap<u64, u64>,
    /// The page of each of these uses.
    order: BTreeMap<u64, u64>,
}

impl Set {
    /// Marks a page as the most recently used one, as number `clock`.
    fn put(&mut self, page: u64, clock: u64) {
        if let Some(before) = self.used.insert(page, clock) {
            self.order.remove(&before);
        }
        self.order.insert(clock, page);
    }
}

/// State of the IOMMU after the requests so far.
#[derive(Clone, Debug)]
pub(super) struct Translator<'a> {
    iommu: &'a Iommu,
    sets: BTreeMap<u64, Set>,
    /// Number of uses of cached translations.
    clock: u64,
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

impl<'a> Translator<'a> {
    pub(super) fn new(iommu: &'a Iommu) -> Translator<'a> {
        Translator {
            iommu,
            sets: BTreeMap::new(),
            clock: 0,
            last: None,
            walks: VecDeque::new(),
            walkers: vec![Ticks::ZERO; iommu.walkers.value.max(1) as usize],
            next: Ticks::ZERO,
            blocks: VecDeque::new(),
            table: iommu.walks_through_cache().then(BTreeSet::new),
            busy: Ticks::ZERO,
        }
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
        if self.finds(page) {
            return looked;
        }
        match self.walks.iter().find(|(_, walked)| *walked == page) {
            Some((until, _)) => looked.max(*until),
            None => self.walk(looked, page),
        }
    }

    /// Completes all walks. The next request arrives at time zero of a new count, when all walkers are free.
    pub(super) fn rest(&mut self) {
        self.end_walks(Ticks::NEVER);
        self.walkers.fill(Ticks::ZERO);
        (self.next, self.busy) = (Ticks::ZERO, Ticks::ZERO);
    }

    /// Whether a page is cached, which its use makes the most recently used one.
    fn finds(&mut self, page: u64) -> bool {
        if self.last == Some(page) {
            return true;
        }
        let Some(set) = self.sets.get_mut(&set_of(self.iommu, page)).filter(|set| set.used.contains_key(&page)) else {
            return false;
        };
        self.clock += 1;
        set.put(page, self.clock);
        self.last = Some(page);
        true
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
        let place = self.walks.partition_point(|(end, _)| *end <= until);
        self.walks.insert(place, (until, page));
        until
    }

    /// Time of the reads of a walk.
    fn walked(&mut self, page: u64) -> Ticks {
        let block = page / Iommu::BLOCK_PAGES;
        let known = self.blocks.iter().position(|other| *other == block);
        let reads = if known.is_some() { 1 } else { self.iommu.walk_reads.value };
        if let Some(place) = known {
            self.blocks.remove(place);
        }
        self.blocks.push_front(block);
        self.blocks.truncate(self.iommu.walk_cache_entries.value as usize);
        let read = self.iommu.walk_read_ns.value;
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
            let set = self.sets.entry(set_of(self.iommu, page)).or_default();
            if set.used.len() as u64 >= u64::from(self.iommu.iotlb_ways.value)
                && let Some((_, oldest)) = set.order.pop_first()
            {
                set.used.remove(&oldest);
            }
            self.clock += 1;
            set.put(page, self.clock);
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
