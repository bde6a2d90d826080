//! The IOTLB of formulas: the requests that are certain to miss.
//!
//! A page misses if its set has as many other pages with a later use as it has ways. Requests that wait at the same
//! time may enter their pages in another order than they arrive, so uses that are at most as far apart as requests can
//! wait do not count. The pages at the start are unknown: as many as a set has ways may be any.

use lanemark_platform::Iommu;
use lanemark_units::Ticks;
use std::collections::{BTreeMap, VecDeque};

/// The last use of a page.
#[derive(Clone, Copy, Debug)]
struct Use {
    page: u64,
    request: u64,
    /// End of its last walk.
    until: Ticks,
}

/// The uses of each set, the last one first.
pub(super) struct Iotlb<'a> {
    iommu: &'a Iommu,
    /// Maximum number of requests that wait at the same time.
    waiting: u64,
    sets: BTreeMap<u64, VecDeque<Use>>,
}

/// Most entries that are looked at for all requests.
const MOST_LOOKED_AT: u64 = 1 << 26;

impl<'a> Iotlb<'a> {
    /// Number of requests that can be examined in a bounded time.
    pub(super) fn most_requests(iommu: &Iommu, waiting: u32) -> u64 {
        MOST_LOOKED_AT / (u64::from(iommu.iotlb_ways.value) + 2 * u64::from(waiting) + 2)
    }

    pub(super) fn new(iommu: &'a Iommu, waiting: u32) -> Iotlb<'a> {
        Iotlb { iommu, waiting: waiting.into(), sets: BTreeMap::new() }
    }

    /// Uses a page by request number `request`; numbers ascend. Returns the end of its last walk, or `None` if it
    /// misses for certain.
    pub(super) fn find(&mut self, page: u64, request: u64) -> Option<Ticks> {
        let (ways, waiting) = (self.iommu.iotlb_ways.value as usize, self.waiting);
        let uses = self.sets.entry(set_of(self.iommu, page)).or_default();
        if let Some(last) = uses.front_mut().filter(|last| last.page == page) {
            last.request = request;
            return Some(last.until);
        }
        let place = uses.iter().position(|other| other.page == page);
        let known = place.and_then(|place| uses.get(place).copied());
        let counts = |other: &&Use| {
            let is_entered = other.request.saturating_add(waiting) <= request;
            is_entered && known.is_none_or(|known| known.request.saturating_add(waiting) <= other.request)
        };
        let later = uses.iter().take(place.unwrap_or(uses.len())).filter(counts).take(ways).count();
        let until = known.map_or(Ticks::ZERO, |known| known.until);
        if let Some(place) = place {
            uses.remove(place);
        }
        uses.push_front(Use { page, request, until });
        // Further uses are behind as many as count.
        uses.truncate(ways.saturating_add(2 * waiting as usize + 2));
        (later < ways).then_some(until)
    }

    /// Notes the end of a walk for a page just used.
    pub(super) fn walked(&mut self, page: u64, until: Ticks) {
        if let Some(last) = self.sets.get_mut(&set_of(self.iommu, page)).and_then(|uses| uses.front_mut()) {
            last.until = until;
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

    /// An IOTLB with one set of two ways.
    fn two_ways() -> Iommu {
        let platform = preset("card-gen5-x16-iommu").unwrap().unwrap();
        let mut iommu = platform.iommu.unwrap();
        (iommu.iotlb_entries.value, iommu.iotlb_ways.value) = (2, 2);
        iommu
    }

    fn misses(waiting: u32, pages: &[u64]) -> Vec<bool> {
        let iommu = two_ways();
        let mut iotlb = Iotlb::new(&iommu, waiting);
        pages.iter().zip(0..).map(|(page, request)| iotlb.find(*page, request).is_none()).collect()
    }

    #[test]
    fn a_page_misses_if_as_many_others_were_used_as_there_are_ways() {
        assert_eq!(misses(0, &[1, 2, 1, 2]), [false; 4], "pages at the start are unknown");
        assert_eq!(misses(0, &[1, 2, 3, 1, 3, 1, 2]), [false, false, true, true, false, false, true]);
    }

    #[test]
    fn uses_as_near_as_requests_can_wait_do_not_count() {
        assert_eq!(misses(2, &[1, 2, 3, 1]), [false; 4]);
        assert_eq!(misses(2, &[1, 1, 1, 2, 2, 2, 3, 3, 3, 1]), [[false; 9].as_slice(), &[false]].concat());
        assert!(misses(1, &[1, 1, 1, 2, 2, 2, 3, 3, 3, 1])[9]);
    }
}
