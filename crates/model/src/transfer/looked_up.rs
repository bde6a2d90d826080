//! Single requests at the IOMMU, one after the other: nothing overlaps, so their walks add to their times.
//!
//! Which of them miss then depends on their addresses only, and each walk takes as long as its reads. A fit predicts the same
//! requests many times, with other times, so the reads are counted once for each thread. Walks through the last-level cache,
//! and those that wait for the interval between walks, are followed each time.

use super::iotlb::Translator;
use super::way::Way;
use lanemark_machine::Window;
use lanemark_platform::Iommu;
use lanemark_units::Ticks;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Maximum number of single requests that are looked up one by one.
const MOST_LOOKED_UP: u64 = 1 << 18;

/// Number of results that are kept: the figures of a large table, with several sizes of an IOTLB.
const MOST_KEPT: usize = 1024;

/// Walks of single requests, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LookedUp {
    /// Time from their lookups until the ends of their walks.
    pub(super) walked_ns: f64,
    /// Whether each request was looked up.
    pub(super) is_complete: bool,
}

/// Time of walks, after those of the warm-up.
#[derive(Clone, Copy)]
struct Walked {
    of_half: Ticks,
    of_all: Ticks,
}

/// All that the misses of single requests depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Counted {
    window: Window,
    bytes: u64,
    base: u64,
    warmed: u64,
    transfers: u64,
    page_bytes: u64,
    ways: u32,
    sets: u64,
    index_bit: u32,
    reads: u32,
    blocks: u32,
}

thread_local! {
    /// Reads of walks, a tick each.
    static READS: RefCell<FxHashMap<Counted, Walked>> = RefCell::default();
}

impl Way<'_> {
    /// Walks of this many transfers of one request each, one after the other, after those of the warm-up; each takes
    /// `hit_ns` if its page hits.
    pub(super) fn looked_up(&self, iommu: &Iommu, transfers: u64, hit_ns: f64) -> LookedUp {
        let hit = Ticks::from_ns(hit_ns).unwrap_or(Ticks::ZERO);
        let overlaps = iommu.walk_interval_ns.value > hit || iommu.lookup_ns.value > hit;
        let walked = if overlaps || iommu.walks_through_cache() {
            self.walked_one_by_one(iommu, transfers, hit)
        } else {
            let (reads, read) = (self.reads_of_walks(iommu, transfers), iommu.walk_read_ns.value);
            Walked { of_half: read * reads.of_half.0, of_all: read * reads.of_all.0 }
        };
        let (half, is_complete) = (self.looked_up_in_half(transfers), transfers <= MOST_LOOKED_UP);
        let others = if is_complete { 0.0 } else { (transfers - 2 * half) as f64 / half as f64 };
        let walked_ns = walked.of_all.as_ns() + others * walked.of_all.since(walked.of_half).as_ns();
        LookedUp { walked_ns, is_complete }
    }

    /// Number of transfers in a half of those that are looked up: of more than the maximum, of whole rounds if they are in
    /// order.
    fn looked_up_in_half(&self, transfers: u64) -> u64 {
        let window = &self.transfer.window;
        let round = if window.pattern.is_random() { 1 } else { window.places(self.transfer.bytes) };
        let most = MOST_LOOKED_UP / 2;
        if transfers <= MOST_LOOKED_UP { transfers / 2 } else { (most / round * round).max(most.min(round)) }
    }

    /// Number of reads of the walks, as ticks.
    fn reads_of_walks(&self, iommu: &Iommu, transfers: u64) -> Walked {
        let counted = Counted {
            window: self.transfer.window,
            bytes: self.transfer.bytes,
            base: self.base,
            warmed: self.warmed,
            transfers,
            page_bytes: iommu.page_bytes.value,
            ways: iommu.iotlb_ways.value,
            sets: iommu.sets(),
            index_bit: iommu.iotlb_index_bit.value,
            reads: iommu.walk_reads.value,
            blocks: iommu.walk_cache_entries.value,
        };
        if let Some(known) = READS.with_borrow(|known| known.get(&counted).copied()) {
            return known;
        }
        let mut by_reads = iommu.clone();
        (by_reads.lookup_ns.value, by_reads.walk_read_ns.value) = (Ticks::ZERO, Ticks(1));
        by_reads.walk_interval_ns.value = Ticks::ZERO;
        let found = self.walked_one_by_one(&by_reads, transfers, Ticks(1));
        READS.with_borrow_mut(|known| {
            if known.len() >= MOST_KEPT {
                known.clear();
            }
            known.insert(counted, found);
        });
        found
    }

    /// Time of the walks if each request follows the end of the one before; it takes `hit` if its page hits.
    fn walked_one_by_one(&self, iommu: &Iommu, transfers: u64, hit: Ticks) -> Walked {
        let (order, lookup) = (self.transfer.window.order_of(self.transfer.bytes), iommu.lookup_ns.value);
        let mut translator = Translator::new(iommu);
        let (mut now, mut walked) = (Ticks::ZERO, Ticks::ZERO);
        let mut look = |translator: &mut Translator<'_>, nth: u64| {
            let page = self.base.saturating_add(order.place(nth)) / iommu.page_bytes.value;
            let walk = translator.look(now, page).since(now + lookup);
            (now, walked) = (now + hit + walk, walked + walk);
            walked
        };
        let mut before = Ticks::ZERO;
        for nth in self.warmed.saturating_sub(MOST_LOOKED_UP)..self.warmed {
            before = look(&mut translator, nth);
        }
        translator.rest();
        let half = self.looked_up_in_half(transfers);
        let (mut of_half, mut of_all) = (before, before);
        for nth in 0..if transfers <= MOST_LOOKED_UP { transfers } else { 2 * half } {
            of_all = look(&mut translator, nth);
            if nth + 1 == half {
                of_half = of_all;
            }
        }
        Walked { of_half: of_half.since(before), of_all: of_all.since(before) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Transfer, Verb};

    #[test]
    fn counted_reads_take_as_long_as_walks_followed_one_by_one() {
        let card = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        let mut walked = 0;
        for (pattern, len) in [
            (Pattern::Random, 1 << 20),
            (Pattern::Random, 1 << 24),
            (Pattern::Strided(4096), 1 << 20),
            (Pattern::Strided(8192), 1 << 24),
        ] {
            for (blocks, warmed, transfers) in [(0, 0, 1000), (2, 500, 1000), (32, 5000, 5000), (0, 100, 400_000)] {
                let window = Window { offset: 0, len, pattern };
                let (verb, partner) = (Verb::Load, Partner::Host);
                let transfer = Transfer { card: 0, verb, partner, bytes: 64, count: 1, window, outstanding: Some(1) };
                let way = Way { warmed, ..Way::of(&card, &transfer).unwrap() };
                let mut iommu = card.iommu.clone().unwrap();
                iommu.walk_cache_entries.value = blocks;
                let hit = Ticks::whole_ns(700);
                let expected = way.walked_one_by_one(&iommu, transfers, hit);
                // Counted first, and asked again with another time of a read.
                for read in [80, 33] {
                    iommu.walk_read_ns.value = Ticks::whole_ns(read);
                    let found = way.looked_up(&iommu, transfers, 700.0);
                    let one_by_one = way.walked_one_by_one(&iommu, transfers, hit);
                    if transfers <= MOST_LOOKED_UP {
                        assert_eq!(found.walked_ns.to_bits(), one_by_one.of_all.as_ns().to_bits());
                    }
                    let counted = way.reads_of_walks(&iommu, transfers);
                    assert_eq!(counted.of_half.0 * iommu.walk_read_ns.value.0, one_by_one.of_half.0);
                    assert_eq!(counted.of_all.0 * iommu.walk_read_ns.value.0, one_by_one.of_all.0);
                    assert_eq!(found.is_complete, transfers <= MOST_LOOKED_UP);
                }
                walked += u32::from(expected.of_all > Ticks::ZERO);
            }
        }
        assert!(walked > 10, "{walked}");
    }
}
