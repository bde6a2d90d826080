//! The translations that an IOMMU has at hand: sets of pages, of which each keeps those used last.
//!
//! Ports: [`Iotlb::find`] looks a page up and uses it, [`Iotlb::enter`] puts one in, [`Iotlb::leave`] takes one out. A set has as many places as there are ways; the
//! page that was used longest ago makes room.

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// How many sets, a power of two.
    pub sets: u64,
    /// Places in each.
    pub ways: usize,
    /// The lowest bit of a page's number that tells its set.
    pub index_bit: u32,
}

/// Everything that changes.
///
/// ```
/// use lanemark_sim::{Iotlb, IotlbSpec};
/// let mut iotlb = Iotlb::new(IotlbSpec { sets: 4, ways: 1, index_bit: 0 });
/// iotlb.enter(7);
/// assert!(iotlb.find(7) && !iotlb.find(3));
/// iotlb.enter(3);
/// assert!(!iotlb.find(7), "they share a set that has room for one");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iotlb {
    spec: Spec,
    /// One set behind the other; [`NONE`] where there is no page.
    pages: Vec<u64>,
    /// When each of them was used last, by `clock`, and in its low bits which place of its set it is: the least of a set says which
    /// page was used longest ago without a choice that nobody can foretell.
    used: Vec<u64>,
    /// Uses so far, times [`WAYS`].
    clock: u64,
}

/// No page: addresses have 64 bits, and pages' numbers fewer.
const NONE: u64 = u64::MAX;
/// More places than a set has.
const WAYS: u64 = 1 << 21;

impl Iotlb {
    /// Without any translation.
    #[must_use]
    pub fn new(spec: Spec) -> Iotlb {
        let places = spec.sets as usize * spec.ways;
        let mut iotlb = Iotlb { spec, pages: vec![NONE; places], used: vec![0; places], clock: 0 };
        iotlb.clear();
        iotlb
    }

    /// Where the set of a page begins.
    #[inline]
    fn first(&self, page: u64) -> usize {
        let set = (page >> self.spec.index_bit) & (self.spec.sets - 1);
        set as usize * self.spec.ways
    }

    /// Where the set of a page begins, and at which place of it the page is. Every place of its set is looked at, for which one it is nobody can foretell.
    #[inline]
    fn place(&self, page: u64) -> Option<(usize, usize)> {
        let first = self.first(page);
        let set = &self.pages[first..first + self.spec.ways];
        let place =
            set.iter().enumerate().fold(NONE, |found, (way, other)| if *other == page { way as u64 } else { found });
        (place != NONE).then_some((first, place as usize))
    }

    /// Whether the translation of a page is there; then it is the one used last.
    #[inline]
    pub fn find(&mut self, page: u64) -> bool {
        let Some((first, way)) = self.place(page) else { return false };
        self.clock += WAYS;
        self.used[first + way] = self.clock | way as u64;
        true
    }

    /// The translation of a page that is not there is; the one of its set that was used longest ago is not, if there is no room: then
    /// this is its page.
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

    /// The translation of a page is not there any more; its place is the next to be used.
    pub fn leave(&mut self, page: u64) {
        if let Some((first, way)) = self.place(page) {
            self.pages[first + way] = NONE;
            self.used[first + way] = way as u64;
        }
    }

    /// No translation is there any more.
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
    fn the_page_used_longest_ago_makes_room() {
        let mut iotlb = Iotlb::new(Spec { sets: 2, ways: 2, index_bit: 0 });
        iotlb.enter(0);
        iotlb.enter(2);
        assert!(iotlb.find(0));
        iotlb.enter(4);
        assert_eq!([0, 2, 4].map(|page| iotlb.find(page)), [true, false, true]);
        assert!(!iotlb.find(1), "another set");
    }

    #[test]
    fn a_page_that_leaves_makes_room_and_the_others_keep_their_order() {
        let mut iotlb = Iotlb::new(Spec { sets: 1, ways: 3, index_bit: 0 });
        assert_eq!([1, 2, 3].map(|page| iotlb.enter(page)), [None; 3]);
        iotlb.leave(2);
        assert!(!iotlb.find(2));
        assert_eq!((iotlb.enter(4), iotlb.enter(5)), (None, Some(1)));
        iotlb.clear();
        assert_eq!([3, 4, 5].map(|page| iotlb.find(page)), [false; 3]);
    }

    #[test]
    fn the_bits_that_tell_the_set_are_those_asked_for() {
        let mut iotlb = Iotlb::new(Spec { sets: 2, ways: 1, index_bit: 4 });
        iotlb.enter(0);
        iotlb.enter(16);
        assert!(iotlb.find(0) && iotlb.find(16));
        iotlb.enter(1);
        assert_eq!([0, 1, 16].map(|page| iotlb.find(page)), [false, true, true]);
    }

    #[test]
    fn what_leaves_makes_room_before_what_was_used_longest_ago() {
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
    fn it_agrees_with_lists_of_pages_in_the_order_of_their_use() {
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
