//! Pages of a window, and the sets of the IOTLB to which they map.
//!
//! A fit predicts the same transfers many times, with other times of the parts of the card. Their pages depend on addresses
//! only, so they are found once for each thread.

use super::iotlb::set_of;
use super::way::Way;
use lanemark_machine::Window;
use lanemark_platform::Iommu;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::hash::Hash;
use std::rc::Rc;

/// Maximum number of places of a window that are examined one by one.
pub(super) const MOST_PLACES: u64 = 1 << 20;

/// Number of results that are kept: the figures of a large table, with several sizes of an IOTLB.
const MOST_KEPT: usize = 1024;

/// Number of pages that are kept, of all results together: 32 MiB for each thread.
const MOST_PAGES: usize = 1 << 22;

/// All that the pages of transfers depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Touched {
    window: Window,
    bytes: u64,
    base: u64,
    page_bytes: u64,
    transfers: u64,
}

/// All that the sets of these pages depend on, and the number of requests that wait at the IOMMU.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Placed {
    touched: Touched,
    ways: u32,
    sets: u64,
    index_bit: u32,
    waiting: u32,
}

/// Pages of a window in the sets of the IOTLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    /// Pages that are certain to miss when they are used again, and blocks of these.
    pub(super) missed: usize,
    pub(super) blocks: usize,
    /// Whether every set holds all translations that map to it.
    pub(super) has_room: bool,
    /// Whether all pages of a window in order miss when they are used again.
    pub(super) are_all_missed: bool,
}

/// The pages of some windows.
#[derive(Default)]
struct KeptPages {
    of_window: FxHashMap<Touched, Rc<[u64]>>,
    /// Number of pages of all results.
    count: usize,
}

impl KeptPages {
    /// Keeps a result, instead of all others if they have too many pages together; none that has too many alone.
    fn keep(&mut self, key: Touched, pages: Rc<[u64]>) {
        if pages.len() > MOST_PAGES {
            return;
        }
        if self.of_window.len() >= MOST_KEPT || self.count.saturating_add(pages.len()) > MOST_PAGES {
            *self = KeptPages::default();
        }
        self.count += pages.len();
        self.of_window.insert(key, pages);
    }
}

thread_local! {
    static TOUCHED: RefCell<KeptPages> = RefCell::default();
    static PLACED: RefCell<FxHashMap<Placed, Pages>> = RefCell::default();
}

/// The result for this key: a kept one, or else that of `find`.
fn kept<K: Hash + Eq, V: Clone>(known: &RefCell<FxHashMap<K, V>>, key: K, find: impl FnOnce() -> V) -> V {
    if let Some(found) = known.borrow().get(&key) {
        return found.clone();
    }
    let found = find();
    let mut known = known.borrow_mut();
    if known.len() >= MOST_KEPT {
        known.clear();
    }
    known.insert(key, found.clone());
    found
}

impl Way<'_> {
    fn touched(&self, iommu: &Iommu, transfers: u64) -> Touched {
        let (window, bytes) = (self.transfer.window, self.transfer.bytes);
        Touched { window, bytes, base: self.base, page_bytes: iommu.page_bytes.value, transfers }
    }

    /// The pages of this many transfers, in order.
    pub(super) fn pages(&self, iommu: &Iommu, transfers: u64) -> Rc<[u64]> {
        let key = self.touched(iommu, transfers);
        TOUCHED.with_borrow_mut(|known| {
            if let Some(found) = known.of_window.get(&key) {
                return found.clone();
            }
            let found = self.pages_in_order(iommu, transfers);
            known.keep(key, found.clone());
            found
        })
    }

    fn pages_in_order(&self, iommu: &Iommu, transfers: u64) -> Rc<[u64]> {
        let (page, bytes) = (iommu.page_bytes.value, self.transfer.bytes);
        let (mut pages, order): (Vec<u64>, _) = (Vec::new(), self.transfer.window.order_of(bytes));
        for nth in 0..transfers {
            let start = self.base.saturating_add(order.place(nth));
            let touched = start / page..=start.saturating_add(bytes - 1) / page;
            let last = pages.last().copied();
            pages.extend(touched.filter(|page| last != Some(*page)));
        }
        pages.into()
    }

    /// The pages of the first transfers of a window in their sets, while at most `waiting` requests wait at the IOMMU.
    ///
    /// While walks in progress have not filled their entries, a set still holds others. Only pages beyond its capacity plus
    /// those are certain to miss.
    pub(super) fn pages_in_sets(&self, iommu: &Iommu, transfers: u64, waiting: u32) -> Pages {
        let (ways, sets, index_bit) = (iommu.iotlb_ways.value, iommu.sets(), iommu.iotlb_index_bit.value);
        let placed = Placed { touched: self.touched(iommu, transfers), ways, sets, index_bit, waiting };
        PLACED.with(|known| kept(known, placed, || self.found_in_sets(iommu, transfers, waiting)))
    }

    fn found_in_sets(&self, iommu: &Iommu, transfers: u64, waiting: u32) -> Pages {
        let (all, ways) = (self.pages(iommu, transfers), iommu.iotlb_ways.value);
        let of_set = in_sets(iommu, &all);
        let in_set = |page: &u64| of_set.get(&set_of(iommu, *page)).copied().unwrap_or(0);
        let room = ways.saturating_add(waiting);
        let missed: Vec<u64> = all.iter().filter(|page| in_set(page) > room).copied().collect();
        let mut blocks: Vec<u64> = missed.iter().map(|page| page / Iommu::BLOCK_PAGES).collect();
        blocks.dedup();
        // A page and others in flight with it may have entered their set in any order.
        let in_flight = self.most_in_flight(iommu, &all, waiting).saturating_mul(2);
        let are_all_missed = of_set.values().all(|pages| *pages > ways.saturating_add(in_flight));
        let has_room = of_set.values().all(|pages| *pages <= ways);
        Pages { missed: missed.len(), blocks: blocks.len(), has_room, are_all_missed }
    }

    /// Whether all pages of this many transfers are cached after a warm-up that went to the same places.
    pub(super) fn fit_after_warm_up(&self, iommu: &Iommu, transfers: u64) -> bool {
        let of_a_transfer = self.transfer.bytes / iommu.page_bytes.value + 1;
        let is_small = self.warmed.checked_mul(of_a_transfer).is_some_and(|pages| pages <= MOST_PLACES);
        if transfers > self.warmed || !is_small || self.transfer.bytes == 0 {
            return false;
        }
        let (ways, sets, index_bit) = (iommu.iotlb_ways.value, iommu.sets(), iommu.iotlb_index_bit.value);
        let touched = self.touched(iommu, self.warmed);
        let placed = Placed { touched, ways, sets, index_bit, waiting: 0 };
        let found = || {
            let mut all = self.pages_in_order(iommu, self.warmed).to_vec();
            all.sort_unstable();
            all.dedup();
            let has_room = in_sets(iommu, &all).values().all(|pages| *pages <= ways);
            Pages { missed: 0, blocks: 0, has_room, are_all_missed: false }
        };
        PLACED.with(|known| kept(known, placed, found)).has_room
    }

    /// Most pages of one set that `waiting` requests in turn may use, of a window in order with these pages.
    fn most_in_flight(&self, iommu: &Iommu, all: &[u64], waiting: u32) -> u32 {
        // Each transfer that begins in a page has a request there. The first and the last page may have fewer.
        let least = (iommu.page_bytes.value / self.transfer.window.step(self.transfer.bytes).max(1)).max(1);
        let span = usize::try_from(u64::from(waiting) / least + 3).unwrap_or(usize::MAX).min(all.len());
        let (mut of_set, mut most): (FxHashMap<u64, u32>, u32) = (FxHashMap::default(), 0);
        for (nth, page) in all.iter().chain(&all[..span]).enumerate() {
            if let Some(left) = nth.checked_sub(span).and_then(|before| all.get(before)) {
                of_set.entry(set_of(iommu, *left)).and_modify(|pages| *pages -= 1);
            }
            let pages = of_set.entry(set_of(iommu, *page)).or_default();
            *pages += 1;
            most = most.max(*pages);
        }
        most
    }

    /// Number of transfers after which the requests and their places in a page repeat, up to the end of the window, if every
    /// page misses whenever it is reached and all walks take as long; otherwise `None`. At most `waiting` requests wait at the
    /// IOMMU.
    pub(super) fn period_of_misses(&self, iommu: &Iommu, waiting: u32) -> Option<u64> {
        let (window, bytes) = (&self.transfer.window, self.transfer.bytes);
        let (places, step) = (window.places(bytes), window.step(bytes));
        let has_equal_walks = iommu.walk_cache_entries.value == 0 && !iommu.walks_through_cache();
        if !has_equal_walks || window.pattern.is_random() || self.channels > 1 || places > MOST_PLACES || bytes == 0 {
            return None;
        }
        // A page has a power of two of bytes.
        let in_page = iommu.page_bytes.value >> step.trailing_zeros().min(iommu.page_bytes.value.trailing_zeros());
        let period = self.period()?;
        let both = in_page.checked_mul(period)? >> in_page.trailing_zeros().min(period.trailing_zeros());
        // The warm-up may end within the window, whose first pages then follow its last ones.
        let are_missed = |transfers: u64| self.pages_in_sets(iommu, transfers, waiting).are_all_missed;
        let of_warm_up = self.warmed % places;
        (are_missed(places) && (of_warm_up == 0 || are_missed(of_warm_up))).then_some(both)
    }
}

/// Number of these pages in each set that has any.
fn in_sets(iommu: &Iommu, pages: &[u64]) -> FxHashMap<u64, u32> {
    let mut of_set: FxHashMap<u64, u32> = FxHashMap::default();
    for page in pages {
        *of_set.entry(set_of(iommu, *page)).or_default() += 1;
    }
    of_set
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Transfer, Verb};

    /// The pages of a window of so many 4 KiB pages in order, at an IOTLB of 4 sets of 2 ways.
    fn pages(count: u64, bytes: u64, waiting: u32) -> Pages {
        let platform = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        let mut iommu = platform.iommu.clone().unwrap();
        (iommu.iotlb_entries.value, iommu.iotlb_ways.value) = (8, 2);
        let window = Window { offset: 0, len: count << 12, pattern: Pattern::Sequential };
        let (verb, partner) = (Verb::Load, Partner::Host);
        let transfer = Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None };
        let way = Way::of(&platform, &transfer).unwrap();
        // Asked again, the answer is the same.
        let found = way.pages_in_sets(&iommu, window.places(bytes), waiting);
        assert_eq!(way.pages_in_sets(&iommu, window.places(bytes), waiting), found);
        assert_eq!(way.pages(&iommu, window.places(bytes)).len() as u64, count);
        found
    }

    #[test]
    fn pages_are_missed_beyond_the_ways_of_their_sets_and_those_that_wait() {
        assert!(pages(8, 4096, 0).has_room && !pages(9, 4096, 0).has_room);
        assert_eq!([8, 9, 11, 12].map(|count| pages(count, 4096, 0).missed), [0, 3, 9, 12]);
        assert_eq!([16, 20].map(|count| pages(count, 4096, 2).missed), [0, 20]);
    }

    #[test]
    fn all_pages_are_missed_beyond_the_ways_and_twice_the_pages_in_flight() {
        // Two requests of 64 B are in at most four pages in turn, and two requests of a page in five, of which two share a set.
        assert_eq!([16, 17, 20].map(|count| pages(count, 64, 2).are_all_missed), [false, false, true]);
        assert_eq!([24, 28].map(|count| pages(count, 4096, 2).are_all_missed), [false, true]);
    }

    #[test]
    fn windows_with_many_pages_are_not_all_kept() {
        let platform = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        let iommu = platform.iommu.as_ref().unwrap();
        let window = Window { offset: 0, len: 1 << 32, pattern: Pattern::Sequential };
        let (verb, partner) = (Verb::Load, Partner::Host);
        let transfer = Transfer { card: 0, verb, partner, bytes: 4096, count: 1, window, outstanding: None };
        let way = Way::of(&platform, &transfer).unwrap();
        let kept = || {
            TOUCHED.with_borrow(|known| (known.count, known.of_window.values().map(|pages| pages.len()).sum::<usize>()))
        };
        for less in 0..6 {
            assert_eq!(way.pages(iommu, MOST_PLACES - less).len() as u64, MOST_PLACES - less);
            let (count, all) = kept();
            assert!(count == all && all <= MOST_PAGES, "{count}, {all}");
        }
        // The last result is kept.
        assert!(kept().0 as u64 >= MOST_PLACES - 5);
    }
}
