//! A set-associative cache of translations with LRU replacement, used for the IOTLB and for the ATC of a device.
//!
//! Ports: [`Iotlb::find`] looks a page up and marks it as used, [`Iotlb::enter`] inserts a page, [`Iotlb::leave`]
//! removes one. A full set replaces its least recently used page.

/// Constants of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Number of sets, a power of two.
    pub sets: u64,
    /// Ways of each set.
    pub ways: usize,
    /// Lowest bit of the page number that selects the set.
    pub index_bit: u32,
}

/// State of the cache.
///
/// ```
/// use lanemark_sim::{Iotlb, IotlbSpec};
/// let mut iotlb = Iotlb::new(IotlbSpec { sets: 4, ways: 1, index_bit: 0 });
/// iotlb.enter(7);
/// assert!(iotlb.find(7) && !iotlb.find(3));
/// iotlb.enter(3);
/// assert!(!iotlb.find(7), "they share a set of one way");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iotlb {
    spec: Spec,
    /// Pages, one set after the other; [`NONE`] in an empty way.
    pages: Vec<u64>,
    /// Time of the last use of each way, by `clock`, with the way number in its low bits. The minimum of a set gives
    /// its least recently used way without an unpredictable branch.
    used: Vec<u64>,
    /// Number of uses, times [`WAYS`].
    clock: u64,
}

/// An empty way. Page numbers have fewer than 64 bits.
const NONE: u64 = u64::MAX;
/// Upper limit of the ways of a set.
const WAYS: u64 = 1 << 21;

impl Iotlb {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(spec: Spec) -> Iotlb {
        let places = spec.sets as usize * spec.ways;
        let mut iotlb = Iotlb { spec, pages: vec![NONE; places], used: vec![0; places], clock: 0 };
        iotlb.clear();
        iotlb
    }

    /// Returns the index of the first way of a page's set.
    #[inline]
    fn first(&self, page: u64) -> usize {
        let set = (page >> self.spec.index_bit) & (self.spec.sets - 1);
        set as usize * self.spec.ways
    }

    /// Returns the first way of a page's set and the way of the page. It compares every way, because an early exit
    /// would be an unpredictable branch.
    #[inline]
    fn place(&self, page: u64) -> Option<(usize, usize)> {
        let first = self.first(page);
        let set = &self.pages[first..first + self.spec.ways];
        let place =
            set.iter().enumerate().fold(NONE, |found, (way, other)| if *other == page { way as u64 } else { found });
        (place != NONE).then_some((first, place as usize))
    }

    /// Returns whether a page is cached, and marks it as the most recently used one.
    #[inline]
    pub fn find(&mut self, page: u64) -> bool {
        let Some((first, way)) = self.place(page) else { return false };
        self.clock += WAYS;
        self.used[first + way] = self.clock | way as u64;
        true
    }

    /// Inserts a page that is not cached. Returns the least recently used page of a full set, which it replaces.
    #[inline]
    pub fn enter(&mut self, page: u64) -> Option<u64> {
        let first = self.first(page);
        let set = &self.used[first..first + self.spec.ways];
        let oldest = set.iter().fold(u64::MAX, |oldest, used| oldest.min(*used));
        let way = (oldest & (WAYS - 1)) as usize;
        self.clock += WAYS;
        self.used[first + way] = self.clock | way as u64;
        let left = std::mem::replace(&mut self.pages[first + way], page);
        (left != NONE).then_some(left)
    }

    /// Removes a page; its way is the next one to be filled.
    pub fn leave(&mut self, page: u64) {
        if let Some((first, way)) = self.place(page) {
            self.pages[first + way] = NONE;
            self.used[first + way] = way as u64;
        }
    }

    /// Removes every page.
    pub fn clear(&mut self) {
        self.pages.fill(NONE);
        let ways = self.spec.ways.max(1);
        self.used.iter_mut().enumerate().for_each(|(place, used)| *used = (place % ways) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_page_is_replaced() {
        let mut iotlb = Iotlb::new(Spec { sets: 2, ways: 2, index_bit: 0 });
        iotlb.enter(0);
        iotlb.enter(2);
        assert!(iotlb.find(0));
        iotlb.enter(4);
        assert_eq!([0, 2, 4].map(|page| iotlb.find(page)), [true, false, true]);
        assert!(!iotlb.find(1), "another set");
    }

    #[test]
    fn removing_a_page_keeps_the_order_of_the_others() {
        let mut iotlb = Iotlb::new(Spec { sets: 1, ways: 3, index_bit: 0 });
        assert_eq!([1, 2, 3].map(|page| iotlb.enter(page)), [None; 3]);
        iotlb.leave(2);
        assert!(!iotlb.find(2));
        assert_eq!((iotlb.enter(4), iotlb.enter(5)), (None, Some(1)));
        iotlb.clear();
        assert_eq!([3, 4, 5].map(|page| iotlb.find(page)), [false; 3]);
    }

    #[test]
    fn the_set_index_uses_the_configured_bits() {
        let mut iotlb = Iotlb::new(Spec { sets: 2, ways: 1, index_bit: 4 });
        iotlb.enter(0);
        iotlb.enter(16);
        assert!(iotlb.find(0) && iotlb.find(16));
        iotlb.enter(1);
        assert_eq!([0, 1, 16].map(|page| iotlb.find(page)), [false, true, true]);
    }

    #[test]
    fn a_removed_way_is_filled_before_the_least_recently_used_one() {
        let mut iotlb = Iotlb::new(Spec { sets: 1, ways: 3, index_bit: 0 });
        for page in [1, 2, 3] {
            iotlb.enter(page);
        }
        iotlb.leave(3);
        iotlb.leave(7);
        assert!(!iotlb.find(3));
        assert_eq!(iotlb.enter(4), None);
        assert_eq!([1, 2, 4].map(|page| iotlb.find(page)), [true; 3]);
    }

    #[test]
    fn it_agrees_with_a_plain_lru_list() {
        for (sets, ways) in [(1, 1), (1, 8), (16, 1), (4, 3), (64, 4)] {
            let mut iotlb = Iotlb::new(Spec { sets, ways, index_bit: 0 });
            let mut lists = vec![Vec::<u64>::new(); sets as usize];
            let mut state = 3_u64;
            for turn in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let page = (state >> 33) % (2 * sets * ways as u64);
                let list = &mut lists[(page % sets) as usize];
                let known = list.iter().position(|other| *other == page);
                if let Some(place) = known {
                    list.remove(place);
                }
                list.insert(0, page);
                list.truncate(ways);
                assert_eq!(iotlb.find(page), known.is_some(), "{sets} sets of {ways}, turn {turn}");
                if known.is_none() {
                    iotlb.enter(page);
                }
            }
        }
    }
}
