//! What translates the addresses that devices ask for, between root ports and host memory.
//!
//! ```text
//!  root port --requests in order--> IOTLB --hit------------------------> memory
//!                                     |                            ^
//!                                     +--miss--> walkers --reads--> +
//! ```
//!
//! Ports: [`Iommu::receive`] takes what comes up to a root port, [`Iommu::look`] looks up what is [due](Iommu::due), and
//! [`Iommu::take`] hands it on. What came to one root port leaves in that order, but a request is looked up when it comes, so that
//! several walks for one port are under way. Requests for a page that is walked for already wait for that walk.
//!
//! A translation is in its set from when its walk ends; the one that was used longest ago makes room. What is not memory that was
//! lent, a message for instance, needs no translation, and waits only for what was before it.

use crate::engine::Wire;
use crate::part::iotlb::{self, Iotlb};
use crate::tlp::{Tlp, TlpKind};
use lanemark_machine::Cause;
use lanemark_platform::{self as platform, Platform};
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Bus address of the memory lent to devices, and its length.
    pub lent: (u64, u64),
    /// Bytes of a page, a power of two.
    pub page_bytes: u64,
    /// Its IOTLB.
    pub iotlb: iotlb::Spec,
    /// A look in the IOTLB.
    pub lookup: Ticks,
    /// Reads of a walk, and one of them.
    pub walk_reads: u64,
    /// See `walk_reads`.
    pub walk_read: Ticks,
    /// Pages whose last level is one page of the table, and of how many of these it is known where they are.
    pub block_pages: u64,
    /// See `block_pages`.
    pub blocks: usize,
    /// Walks at once.
    pub walkers: usize,
    /// From the beginning of one walk to that of the next.
    pub interval: Ticks,
}

impl Spec {
    /// That of a platform, if it has one.
    #[must_use]
    pub fn of(platform: &Platform) -> Option<Spec> {
        let (iommu, memory) = (platform.iommu.as_ref()?, platform.memory.as_ref()?);
        Some(Spec {
            lent: (memory.address_bytes.value, memory.size_bytes.value),
            page_bytes: iommu.page_bytes.value,
            iotlb: iotlb::Spec {
                sets: iommu.sets(),
                ways: iommu.iotlb_ways.value as usize,
                index_bit: iommu.iotlb_index_bit.value.saturating_sub(iommu.page_bytes.value.trailing_zeros()),
            },
            lookup: iommu.lookup_ns.value,
            walk_reads: u64::from(iommu.walk_reads.value),
            walk_read: iommu.walk_read_ns.value,
            block_pages: platform::Iommu::BLOCK_PAGES,
            blocks: iommu.walk_cache_entries.value as usize,
            walkers: iommu.walkers.value as usize,
            interval: iommu.walk_interval_ns.value,
        })
    }
}

/// Blocks: the one used last first.
type Recent = VecDeque<u64>;

/// A walk under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Walk {
    page: u64,
    until: Ticks,
}

/// A request that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Looked {
    ready: Ticks,
    because: Option<Cause>,
    tlp: Tlp,
}

/// What came to one root port.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct AtPort {
    coming: Wire<(Option<Cause>, Tlp)>,
    looked: VecDeque<Looked>,
    last: Ticks,
}

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translated {
    /// Which root port it came to.
    pub port: usize,
    /// What it waited for last, here or before.
    pub because: Option<Cause>,
    /// The packet.
    pub tlp: Tlp,
}

/// How often it was asked, and how often it had to walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests for memory that was lent.
    pub lookups: u64,
    /// Those that found no translation, and no walk for it.
    pub walks: u64,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iommu {
    spec: Spec,
    ports: Vec<AtPort>,
    iotlb: Iotlb,
    blocks: Recent,
    /// Walks under way, by their ends.
    walks: VecDeque<Walk>,
    /// When each walker is free.
    walkers: Vec<Ticks>,
    next_walk: Ticks,
    /// Since it was built.
    pub counted: Counted,
}

impl Iommu {
    /// Knows no translation; of so many root ports.
    #[must_use]
    pub fn new(spec: Spec, root_ports: usize) -> Iommu {
        Iommu {
            ports: vec![AtPort::default(); root_ports],
            iotlb: Iotlb::new(spec.iotlb),
            blocks: Recent::new(),
            walks: VecDeque::new(),
            walkers: vec![Ticks::ZERO; spec.walkers.max(1)],
            next_walk: Ticks::ZERO,
            counted: Counted::default(),
            spec,
        }
    }

    /// This comes to root port `port` at `at`, and `because` says why no earlier. It may be told so before that time: what comes to one port
    /// comes in order.
    pub fn receive(&mut self, at: Ticks, port: usize, because: Option<Cause>, tlp: Tlp) {
        self.ports[port].coming.send(at, (because, tlp));
    }

    /// When something is to be looked up, or goes on.
    #[must_use]
    pub fn due(&self) -> Ticks {
        let of = |port: &AtPort| port.coming.due().min(port.looked.front().map_or(Ticks::NEVER, |first| first.ready));
        self.ports.iter().map(of).min().unwrap_or(Ticks::NEVER)
    }

    /// From when on the walks before keep nothing waiting.
    #[must_use]
    pub fn quiet_at(&self) -> Ticks {
        self.next_walk
    }

    /// Looks up everything that has come by `now`: of several root ports in their order.
    pub fn look(&mut self, now: Ticks) {
        for port in 0..self.ports.len() {
            while let Some((because, tlp)) = self.ports[port].coming.take(now) {
                let ready = self.ready(now, &tlp).max(self.ports[port].last);
                let because = if ready > now { Some(Cause::Translation) } else { because };
                self.ports[port].last = ready;
                self.ports[port].looked.push_back(Looked { ready, because, tlp });
            }
        }
    }

    /// The next one that goes on at `now`.
    pub fn take(&mut self, now: Ticks) -> Option<Translated> {
        let is_ready = |port: &AtPort| port.looked.front().is_some_and(|first| first.ready <= now);
        let port = self.ports.iter().position(is_ready)?;
        let Looked { because, tlp, .. } = self.ports[port].looked.pop_front()?;
        Some(Translated { port, because, tlp })
    }

    /// When the address of a request that comes now is known.
    fn ready(&mut self, now: Ticks, tlp: &Tlp) -> Ticks {
        let (lent, len) = self.spec.lent;
        let is_request = matches!(tlp.kind, TlpKind::MRd | TlpKind::MWr);
        if !is_request || tlp.address.wrapping_sub(lent) >= len {
            return now;
        }
        // No request crosses a boundary of 4 KiB, so each is about one page.
        let page = tlp.address / self.spec.page_bytes;
        self.counted.lookups += 1;
        self.end_walks(now);
        if self.iotlb.find(page) {
            return now + self.spec.lookup;
        }
        let looked = now + self.spec.lookup;
        match self.walks.iter().find(|walk| walk.page == page) {
            Some(walk) => walk.until.max(looked),
            None => self.walk(looked, page),
        }
    }

    /// Walks the table for a page from `from` on, when a walker is free; says until when.
    fn walk(&mut self, from: Ticks, page: u64) -> Ticks {
        self.counted.walks += 1;
        let Spec { walk_reads, walk_read, block_pages, blocks, interval, .. } = self.spec;
        let free = self.walkers.iter_mut().min();
        let start = free.as_ref().map_or(from, |free| from.max(**free)).max(self.next_walk);
        let block = page / block_pages;
        let known = self.blocks.iter().position(|other| *other == block);
        let until = start + walk_read * if known.is_some() { 1 } else { walk_reads };
        if let Some(used) = known.and_then(|place| self.blocks.remove(place)) {
            self.blocks.push_front(used);
        } else {
            self.blocks.push_front(block);
            self.blocks.truncate(blocks);
        }
        if let Some(free) = free {
            *free = until;
        }
        self.next_walk = start + interval;
        let place = self.walks.partition_point(|walk| walk.until <= until);
        self.walks.insert(place, Walk { page, until });
        until
    }

    /// Translations whose walks are over are in their sets.
    fn end_walks(&mut self, now: Ticks) {
        while let Some(walk) = self.walks.front().copied().filter(|walk| walk.until <= now) {
            self.walks.pop_front();
            self.iotlb.enter(walk.page);
        }
    }

    /// Whether nothing is on its way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.due() == Ticks::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: Spec = Spec {
        lent: (0, 1 << 40),
        page_bytes: 4096,
        iotlb: iotlb::Spec { sets: 2, ways: 2, index_bit: 0 },
        lookup: Ticks(1),
        walk_reads: 4,
        walk_read: Ticks(10),
        block_pages: 512,
        blocks: 0,
        walkers: 2,
        interval: Ticks(0),
    };

    /// Requests for these pages at these times, at one root port: when each goes on.
    fn goes_on(iommu: &mut Iommu, requests: &[(u64, u64)]) -> Vec<u64> {
        for (at, page) in requests {
            let tlp = Tlp { address: page * 4096, ..Tlp::of(TlpKind::MRd) };
            iommu.receive(Ticks(*at), 0, None, tlp);
        }
        let mut gone = Vec::new();
        while iommu.due() < Ticks::NEVER {
            let now = iommu.due();
            iommu.look(now);
            while iommu.take(now).is_some() {
                gone.push(now.0);
            }
        }
        gone
    }

    fn fresh(spec: Spec, requests: &[(u64, u64)]) -> Vec<u64> {
        goes_on(&mut Iommu::new(spec, 1), requests)
    }

    #[test]
    fn the_first_request_for_a_page_waits_for_a_walk_and_the_next_for_a_look() {
        assert_eq!(fresh(SPEC, &[(0, 7), (100, 7), (200, 8)]), [41, 101, 241]);
    }

    #[test]
    fn requests_for_a_page_that_is_walked_for_wait_for_that_walk() {
        let mut iommu = Iommu::new(SPEC, 1);
        assert_eq!(goes_on(&mut iommu, &[(0, 7), (5, 7), (41, 7)]), [41, 41, 42]);
        assert_eq!(iommu.counted, Counted { lookups: 3, walks: 1 });
        let slow = Spec { lookup: Ticks(30), ..SPEC };
        assert_eq!(fresh(slow, &[(0, 7), (50, 7)]), [70, 80], "a look takes its time all the same");
    }

    #[test]
    fn a_request_behind_one_that_waits_is_looked_up_and_goes_on_behind_it() {
        assert_eq!(fresh(SPEC, &[(0, 7), (100, 8), (101, 7)]), [41, 141, 141]);
        assert_eq!(fresh(SPEC, &[(0, 1), (1, 2)]), [41, 42], "two walks at once");
    }

    #[test]
    fn as_many_walks_are_under_way_as_there_are_walkers_and_none_begins_too_soon() {
        assert_eq!(fresh(SPEC, &[(0, 1), (0, 2), (0, 3)]), [41, 41, 81]);
        assert_eq!(fresh(Spec { walkers: 3, ..SPEC }, &[(0, 1), (0, 2), (0, 3)]), [41, 41, 41]);
        assert_eq!(fresh(Spec { interval: Ticks(5), ..SPEC }, &[(0, 1), (0, 2)]), [41, 46]);
    }

    #[test]
    fn of_a_set_that_is_full_the_one_used_longest_ago_leaves() {
        // Even pages fall to one set, which holds two.
        let all = [(0, 0), (100, 2), (200, 0), (300, 4), (400, 0), (500, 2), (600, 1)];
        assert_eq!(fresh(SPEC, &all), [41, 141, 201, 341, 401, 541, 641]);
    }

    #[test]
    fn the_bits_that_tell_the_set_are_those_asked_for() {
        let coarse = Spec { iotlb: iotlb::Spec { sets: 2, ways: 1, index_bit: 1 }, ..SPEC };
        // Pages 0 and 1 share a set then, 0 and 2 do not.
        assert_eq!(fresh(coarse, &[(0, 0), (100, 2), (200, 0)]), [41, 141, 201]);
        assert_eq!(fresh(coarse, &[(0, 0), (100, 1), (200, 0)]), [41, 141, 241]);
    }

    #[test]
    fn where_the_last_level_of_a_block_is_known_a_walk_is_one_read() {
        let cached = Spec { blocks: 1, ..SPEC };
        assert_eq!(fresh(cached, &[(0, 0), (100, 511), (200, 512), (300, 1)]), [41, 111, 241, 341]);
        let two = Spec { blocks: 2, ..SPEC };
        assert_eq!(fresh(two, &[(0, 0), (100, 511), (200, 512), (300, 1)]), [41, 111, 241, 311]);
    }

    #[test]
    fn what_is_not_lent_waits_only_for_what_was_before_it() {
        let mut iommu = Iommu::new(Spec { lent: (0, 4096), ..SPEC }, 1);
        assert_eq!(goes_on(&mut iommu, &[(0, 1), (1, 0), (2, 1)]), [0, 42, 42]);
        assert_eq!(iommu.counted, Counted { lookups: 1, walks: 1 });
    }

    #[test]
    fn what_came_to_another_root_port_does_not_wait_for_it() {
        let mut iommu = Iommu::new(SPEC, 2);
        let read = |page: u64| Tlp { address: page * 4096, ..Tlp::of(TlpKind::MRd) };
        iommu.receive(Ticks(0), 0, None, read(1));
        iommu.receive(Ticks(50), 0, None, read(3));
        iommu.receive(Ticks(60), 1, Some(Cause::RootComplex), read(1));
        let mut gone = Vec::new();
        while iommu.due() < Ticks::NEVER {
            let now = iommu.due();
            iommu.look(now);
            while let Some(Translated { port, because, .. }) = iommu.take(now) {
                gone.push((now.0, port, because));
            }
        }
        let translation = Some(Cause::Translation);
        assert_eq!(gone, [(41, 0, translation), (61, 1, translation), (91, 0, translation)]);
    }
}
