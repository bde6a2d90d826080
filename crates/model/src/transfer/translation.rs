//! IOMMU time of requests to host memory.
//!
//! A window that is accessed repeatedly in the same order hits in the IOTLB if each set can hold the translations of
//! all pages of the window that map to it. If a set cannot, all its pages miss, because the least recently used entry
//! is always the next one needed. Of `p` pages, of which `w` map to such sets, each pass takes `w` page walks.
//!
//! With several requests outstanding, requests wait behind walks for other pages; `at_iommu.rs` passes them through the
//! IOMMU one by one, for windows in order and at random, and for a first pass. Single requests one after the other do
//! not overlap: their walks add to their times.
//!
//! A walk is one read if the paging-structure cache holds the last table level of its block of 512 pages; blocks hit
//! or miss by the same rule as pages. Before the first pass, every cache of translations is empty. If walks read
//! through the last-level cache, a table that fits there is read from it after its first read; for a table that may not
//! fit, the cache latency is a lower bound.
//!
//! A device with ATS has a fully associative cache of its own. If it holds all pages of the window, there are no
//! lookups and no walks. If not, each page is requested every time, and these translation requests follow the rules
//! for requests. A translation request takes beats of the engine, the upstream path, a lookup, the downstream path of
//! an 8 B completion, and its beats; meanwhile the channel issues no request. If the lookup is shorter than the
//! acknowledgment of the request on the link, the completion waits for it, and the formula is a lower bound.

use super::pages::{MOST_PLACES, Pages};
use super::way::{PAGE, Way};
use crate::bound::Bound;
use crate::bounds::Largest;
use crate::path::Path;
use lanemark_machine::{Partner, Verb};
use lanemark_platform::{Iommu, Memory};
use lanemark_units::Ticks;
use lanemark_wire::ats::ENTRY_BYTES;

/// Translation requests of a device, when all translations that stay cached are cached.
#[derive(Clone, Copy, Debug)]
struct Questions {
    /// Number of requests.
    count: f64,
    /// Whether the number is exact, not only a lower bound.
    is_exact: bool,
    /// Whether the device's cache holds all pages.
    has_room: bool,
}

/// Page walks of transfers, when all translations that stay cached are cached.
#[derive(Clone, Copy, Debug, Default)]
struct Walks {
    /// Number of walks.
    count: f64,
    /// Time of all walks, one at a time.
    time_ns: f64,
    /// Whether the number is exact, not only a lower bound.
    is_exact: bool,
    /// Whether every set holds all translations that map to it.
    has_room: bool,
    /// Whether the last-level cache holds the same lines as without walks.
    is_undisturbed: bool,
}

impl Way<'_> {
    /// The IOMMU that translates these requests, if any.
    fn iommu(&self) -> Option<&Iommu> {
        let iommu = self.platform.iommu.as_ref().filter(|iommu| iommu.translates());
        iommu.filter(|_| self.transfer.partner == Partner::Host)
    }

    /// Whether the device requests translations.
    fn has_ats(&self) -> bool {
        self.dma.ats_entries.value > 0
    }

    /// Whether the device keeps requesting translations, because its cache is too small for all pages of the window.
    pub(super) fn asks_again(&self) -> bool {
        let places = self.transfer.window.places(self.transfer.bytes);
        self.has_ats() && self.iommu().is_some_and(|iommu| !self.questions(iommu, places).has_room)
    }

    /// IOTLB lookup of a data request: zero if the device has translated the address.
    pub(super) fn lookup(&self) -> Ticks {
        self.iommu().filter(|_| !self.has_ats()).map_or(Ticks::ZERO, |iommu| iommu.lookup_ns.value)
    }

    /// From the start of a translation request by a device until its completion, without a walk.
    fn question(&self, iommu: &Iommu) -> Option<Ticks> {
        let (endpoint, card) = (&self.platform.endpoint, self.transfer.card);
        let up = Path::up(self.platform, card)?.unloaded(self.header_dw, 0);
        let down = Path::down(self.platform, card)?.unloaded(3, ENTRY_BYTES);
        let request = self.dma.read_request_ns.value + self.dma.shared_request_ns.value;
        let asking = self.beats(self.header_dw, 0) + request + endpoint.egress_ns.value;
        let answered = endpoint.ingress_ns.value + self.beats(3, ENTRY_BYTES);
        Some(asking + up + iommu.lookup_ns.value + down + answered)
    }

    /// Minimum number of translation requests of this many transfers.
    fn questions(&self, iommu: &Iommu, transfers: u64) -> Questions {
        let (window, bytes) = (&self.transfer.window, self.transfer.bytes);
        let places = window.places(bytes);
        // Channels hit on translations that another channel requested.
        let is_known = !window.pattern.is_random() && places <= MOST_PLACES && bytes > 0 && self.channels == 1;
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

    /// The prediction with the translation requests of a device with ATS.
    fn asked_for(&self, iommu: &Iommu, largest: Largest, transfers: u64, one_by_one: bool) -> Option<Largest> {
        let questions = self.questions(iommu, transfers);
        if questions.has_room {
            // There are no more walks, but earlier ones may have evicted data from the cache.
            let is_undisturbed = self.walks(iommu, transfers, 0).is_undisturbed;
            return Some(if is_undisturbed { largest } else { largest.blurred() });
        }
        let asked_ns = questions.count * self.question(iommu)?.as_ns();
        let (places, walks) =
            (self.transfer.window.places(self.transfer.bytes).max(1), self.walks(iommu, transfers, 0));
        let walks = if questions.is_exact {
            walks
        } else if transfers.is_multiple_of(places) {
            // Translations cached by the device in the first pass are not walked for then, and may be found in the
            // second.
            let read_ns = iommu.walk_read_ns.value.as_ns() * f64::from(iommu.walk_reads.value);
            let less_ns = 2.0 * f64::from(self.dma.ats_entries.value) * read_ns;
            Walks { time_ns: (walks.time_ns - less_ns).max(0.0), ..Walks::default() }
        } else {
            // The pages requested in a partial pass are unknown.
            Walks::default()
        };
        let interval_ns = iommu.walk_interval_ns.value.as_ns();
        let asked = Largest::of([(Bound::Translation, asked_ns + walks.time_ns)]);
        if one_by_one && self.is_one_request_each() {
            let is_free = walks.count == 0.0 || interval_ns * transfers as f64 <= largest.ns;
            let down = Path::down(self.platform, self.transfer.card)?;
            let is_acknowledged = down.hops.first().is_some_and(|hop| hop.dllp() <= iommu.lookup_ns.value);
            // With a single credit or replay-buffer entry, the read waits for that of its translation request.
            let up = Path::up(self.platform, self.transfer.card)?;
            let has_room = up.hops.iter().all(|hop| hop.credits.nonposted.headers > 1 && hop.replay_tlps > 1);
            let all = largest.then(&asked);
            return Some(if walks.is_exact && is_free && is_acknowledged && has_room { all } else { all.blurred() });
        }
        // No term models the other costs of a channel's requests.
        Some(largest.or(asked).blurred())
    }

    /// The prediction for `count` transfers with their page walks; `one_by_one` if each starts after the previous one
    /// has ended.
    /// `beyond` is the time after the end of the last request.
    pub(super) fn translated(&self, largest: Largest, transfers: u64, one_by_one: bool, beyond: Ticks) -> Largest {
        let Some(iommu) = self.iommu() else { return largest };
        if self.has_ats() {
            return self.asked_for(iommu, largest, transfers, one_by_one).unwrap_or_else(|| largest.blurred());
        }
        // Requests of one transfer wait for each other, even if no other transfer is outstanding.
        let is_single = one_by_one && self.is_one_request_each();
        let walks = self.walks(iommu, transfers, if is_single { 0 } else { self.most_waiting() });
        let interval_ns = iommu.walk_interval_ns.value.as_ns();
        if is_single {
            // Nothing overlaps.
            let looked_up = self.looked_up(iommu, transfers, largest.ns / transfers as f64);
            let walked = largest.then(&Largest::of([(Bound::Translation, looked_up.walked_ns)]));
            let is_hit = looked_up.walked_ns == 0.0;
            // Writes of a device evict lines of the table.
            let is_read = self.transfer.verb == Verb::Load;
            let knows_table = !iommu.walks_through_cache() || walks.is_undisturbed && (is_read || is_hit);
            let is_free = is_hit || interval_ns * transfers as f64 <= largest.ns;
            return if looked_up.is_complete && knows_table && is_free { walked } else { walked.blurred() };
        }
        let begun = Largest::of([(Bound::Translation, (walks.count - 1.0).max(0.0) * interval_ns)]);
        let walking = Largest::of([(Bound::Translation, walks.time_ns / f64::from(iommu.walkers.value))]);
        let largest = largest.or(walking.or_again(begun));
        let is_looked_up = self.warmed >= transfers.min(self.transfer.window.places(self.transfer.bytes));
        if walks.has_room && is_looked_up {
            // Every page hits.
            return if walks.is_undisturbed { largest } else { largest.blurred() };
        }
        // Requests wait behind walks for other pages.
        let Some(queued) = self.at_iommu(iommu, transfers, one_by_one, beyond) else {
            return largest.blurred();
        };
        let bound = if 2.0 * queued.walking_ns > queued.ns { Bound::Translation } else { largest.bound };
        largest.or_again(Largest::of([(bound, queued.ns + beyond.as_ns())])).blurred()
    }

    /// Maximum number of requests that wait at the IOMMU, limited by the credits of the root port.
    pub(super) fn most_waiting(&self) -> u32 {
        let root = &self.platform.root_complex;
        match self.transfer.verb {
            Verb::Store => root.posted_header_credits.value,
            Verb::Load => root.nonposted_header_credits.value.min(self.dma.tags.value),
        }
    }

    /// Minimum number of walks of this many transfers, with at most `waiting` requests at a time. While walks in
    /// progress have not filled their entries, the set still holds others. Only pages beyond its capacity plus those
    /// are certain to miss.
    fn walks(&self, iommu: &Iommu, transfers: u64, waiting: u32) -> Walks {
        let (window, bytes) = (&self.transfer.window, self.transfer.bytes);
        let places = window.places(bytes);
        let through = iommu.walks_through_cache();
        // A table in the cache: no entry takes less than a cache hit.
        let read = if through { iommu.walk_cached_read_ns.value } else { iommu.walk_read_ns.value };
        // A warm-up that ends in its first round went to the places of the run, as at random.
        if window.pattern.is_random() || self.warmed <= places {
            let has_room = !through && self.fit_after_warm_up(iommu, transfers);
            if has_room || window.pattern.is_random() {
                let is_exact = !window.pattern.is_random() && self.is_warm && transfers.is_multiple_of(places.max(1));
                return Walks { has_room, is_exact, is_undisturbed: has_room, ..Walks::default() };
            }
        }
        if places > MOST_PLACES || bytes == 0 {
            return Walks::default();
        }
        let (known, reads) = (iommu.walk_cache_entries.value as usize, u64::from(iommu.walk_reads.value));
        let Pages { missed, blocks, has_room, .. } = self.pages_in_sets(iommu, places, waiting);
        // Each page occurs once in the first pass, before which the IOTLB is empty.
        let first = self.pages(iommu, transfers.min(places)).len();
        let first_reads = first as f64 * if known == 0 { reads as f64 } else { 1.0 };
        let whole = match known {
            0 => missed,
            known if blocks > known => blocks,
            _ => 0,
        };
        let all_reads = missed as f64 + (reads - 1) as f64 * whole as f64;
        let is_whole = self.is_warm && transfers.is_multiple_of(places);
        // After whole passes, the first is like the others.
        let (rounds, first, first_reads) = match (transfers / places, is_whole) {
            (rounds, true) => (rounds as f64, 0.0, 0.0),
            (rounds, false) if self.is_warm => (rounds.saturating_sub(1) as f64, 0.0, 0.0),
            (rounds, false) => (rounds.saturating_sub(1) as f64, first as f64, first_reads),
        };
        let is_undisturbed = !through || self.has_room_for_table(&self.pages(iommu, places), reads);
        let is_read = self.transfer.verb == Verb::Load;
        Walks {
            count: first + rounds * missed as f64,
            time_ns: read.as_ns() * (first_reads + rounds * all_reads),
            // Writes of a device evict lines of the table.
            is_exact: is_whole && is_undisturbed && (is_read || !through || missed == 0),
            has_room,
            is_undisturbed,
        }
    }

    /// Whether the last-level cache holds all lines of the table that walks for these pages read, together with the
    /// transferred data, at any addresses. For writes, whether its state makes no difference.
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
        // At most this many of consecutive lines map to one set; a run may begin and end inside of one.
        let sets = (memory.cached_lines() / Memory::CACHE_WAYS).max(1);
        let of_a_set = runs.map(|bytes| (bytes / Memory::LINE_BYTES + 2).div_ceil(sets));
        of_a_set.fold(0, u64::saturating_add) <= Memory::CACHE_WAYS
    }

    /// Whether each transfer is one request.
    fn is_one_request_each(&self) -> bool {
        let places = self.transfer.window.places(self.transfer.bytes).min(MOST_PLACES);
        // Transfers in blocks of a page or less, and those that repeat, are split alike.
        let others = match self.period() {
            _ if self.has_blocks() && self.transfer.window.step(self.transfer.bytes) <= PAGE => 1,
            period => period.map_or(places, |period| period.min(places)),
        };
        (0..others).all(|nth| self.count_and_last(nth).is_some_and(|(requests, _)| requests == 1))
    }
}
