//! The translations that an IOMMU has at hand: sets of pages, of which each keeps those used last.
//!
//! Ports: [`Iotlb::find`] looks a page up and uses it, [`Iotlb::enter`] puts one in. A set has as many places as there are ways; the
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
/// use lanemark_sim::part::iotlb::{Iotlb, Spec};
/// let mut iotlb = Iotlb::new(Spec { sets: 4, ways: 1, index_bit: 0 });
/// iotlb.enter(7);
/// assert!(iotlb.find(7) && !iotlb.find(3));
/// iotlb.enter(3);
/// assert!(!iotlb.find(7), "they share a set that has room for one");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iotlb {
    spec: Spec,
    /// One set behind the other, in each the page used last first; [`NONE`] where there is none.
    pages: Vec<u64>,
}

/// No page: addresses have 64 bits, and pages' numbers fewer.
const NONE: u64 = u64::MAX;

impl Iotlb {
    /// Without any translation.
    #[must_use]
    pub fn new(spec: Spec) -> Iotlb {
        Iotlb { spec, pages: vec![NONE; spec.sets as usize * spec.ways] }
    }

    #[inline]
    fn set_mut(&mut self, page: u64) -> &mut [u64] {
        let set = (page >> self.spec.index_bit) & (self.spec.sets - 1);
        let first = set as usize * self.spec.ways;
        &mut self.pages[first..first + self.spec.ways]
    }

    /// Whether the translation of a page is there; then it is the one used last.
    #[inline]
    pub fn find(&mut self, page: u64) -> bool {
        let set = self.set_mut(page);
        let Some(place) = set.iter().position(|other| *other == page) else { return false };
        // Most often it is the first.
        if place > 0 {
            set[..=place].rotate_right(1);
        }
        true
    }

    /// The translation of a page that is not there is; the one of its set that was used longest ago is not, if there is no room.
    #[inline]
    pub fn enter(&mut self, page: u64) {
        let set = self.set_mut(page);
        set.rotate_right(1);
        if let Some(first) = set.first_mut() {
            *first = page;
        }
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
    fn the_bits_that_tell_the_set_are_those_asked_for() {
        let mut iotlb = Iotlb::new(Spec { sets: 2, ways: 1, index_bit: 4 });
        iotlb.enter(0);
        iotlb.enter(16);
        assert!(iotlb.find(0) && iotlb.find(16));
        iotlb.enter(1);
        assert_eq!([0, 1, 16].map(|page| iotlb.find(page)), [false, true, true]);
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
