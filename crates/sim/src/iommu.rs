//! The IOMMU: translates requests between root ports and host memory.
//!
//! ```text
//!  root port --requests in order--> IOTLB --hit------------------------> memory
//!                                     |                            ^
//!                                     +--miss--> walkers --reads--> +
//! ```
//!
//! Ports: [`Iommu::receive`] receives requests from root ports, [`Iommu::look`] looks up those that are
//! [due](Iommu::due), and [`Iommu::take`] forwards them. Requests of a root port leave in order, but each one is
//! looked up on arrival, so several walks for one port may be outstanding. A request for a page whose walk is
//! outstanding waits for that walk.
//!
//! A translation enters its set at the end of its walk and replaces the least recently used one. Requests outside DMA
//! mappings, such as messages, need no translation; they only keep their order.
//!
//! DMA memory is identity-mapped until [`Iommu::table_mut`] changes the table. From then on, an address is translated
//! as the table was at the end of its walk, while its translation stays in the IOTLB. Requests without a mapping or
//! permission are refused and [recorded](Iommu::faults).

pub mod fault_queue;
pub mod invalidation_queue;
pub mod iotlb;
pub mod mapping;
pub mod translation_table;

use crate::busy::Busy;
use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::fabric::route::Range;
use crate::host::last_level_cache::LastLevelCache;
use crate::index::RootPortIndex;
use crate::iommu::fault_queue::{FaultQueue, FaultReason, TranslationFault};
use crate::iommu::invalidation_queue::{Command, InvalidationQueue};
use crate::iommu::iotlb::Iotlb;
use crate::iommu::translation_table::{Entry, TranslationTable};
use crate::tlp::{AddressType, Flaw, Tlp, TlpKind};
use lanemark_dma::Permission;
use lanemark_engine::Wire;
use lanemark_machine::Cause;
use lanemark_platform::{self as platform, Mailbox, Platform};
use lanemark_units::{Iova, Ticks};
use std::collections::{BTreeMap, VecDeque};

/// Constants of the IOMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Bus address and length of the DMA memory.
    pub lent: (u64, u64),
    /// Bytes of a page, a power of two.
    pub page_bytes: u64,
    /// The IOTLB.
    pub iotlb: iotlb::Spec,
    /// Time of an IOTLB lookup.
    pub lookup: Ticks,
    /// Number of reads of a walk, and the time of each.
    pub walk_reads: u64,
    /// See `walk_reads`.
    pub walk_read: Ticks,
    /// Time of a read whose line hits in the last-level cache, if walks read through that cache.
    pub walk_cached_read: Option<Ticks>,
    /// Pages covered by one last-level table page, and the number of such table pages whose address is cached.
    pub block_pages: u64,
    /// See `block_pages`.
    pub blocks: usize,
    /// Number of concurrent walks.
    pub walkers: usize,
    /// Minimum time between the starts of two walks.
    pub interval: Ticks,
    /// The invalidation queue.
    pub invalidation: invalidation_queue::Spec,
    /// Whether devices have ATS: the IOMMU answers Translation Requests and accepts translated requests.
    pub has_ats: bool,
}

impl Spec {
    /// Capacity of the fault queue. The specification allows 1 to 256 fault recording registers; this number is
    /// assumed.
    const FAULTS: usize = 8;

    /// Reads the constants of a platform whose IOMMU translates.
    #[must_use]
    pub fn of(platform: &Platform) -> Option<Spec> {
        let iommu = platform.iommu.as_ref().filter(|iommu| iommu.translates())?;
        let memory = platform.memory.as_ref()?;
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
            walk_cached_read: iommu.walks_through_cache().then_some(iommu.walk_cached_read_ns.value),
            block_pages: platform::Iommu::BLOCK_PAGES,
            blocks: iommu.walk_cache_entries.value as usize,
            walkers: iommu.walkers.value as usize,
            interval: iommu.walk_interval_ns.value,
            invalidation: invalidation_queue::Spec {
                latency: iommu.invalidation_ns.value,
                entries: iommu.invalidation_entries.value as usize,
            },
            has_ats: platform.has_ats(),
        })
    }
}

impl Spec {
    /// Returns the time of the last `reads` reads of a walk, which are back to back.
    fn walked(&self, page: u64, reads: u64, cache: &mut LastLevelCache) -> Ticks {
        let Some(cached) = self.walk_cached_read else { return self.walk_read * reads };
        let each = (1..=reads as u32).rev().map(|level| {
            let is_cached = cache.read_entry(self.entry_at(page, level));
            if is_cached { cached } else { self.walk_read }
        });
        each.fold(Ticks::ZERO, |sum, read| sum + read)
    }

    /// Returns the address of the entry for a page in a level of the table; the last level is 1. The levels lie above
    /// the DMA memory, each in its own part.
    fn entry_at(&self, page: u64, level: u32) -> u64 {
        let above = level.saturating_sub(1);
        let part = (self.lent.0.saturating_add(self.lent.1)).saturating_add(u64::from(above) << 56);
        let index = page.checked_shr(self.block_pages.trailing_zeros() * above).unwrap_or(0);
        part.saturating_add(index.saturating_mul(platform::Iommu::ENTRY_BYTES))
    }
}

/// Recently used blocks, the most recent one first.
type Recent = VecDeque<u64>;

/// An outstanding walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Walk {
    page: u64,
    until: Ticks,
    milestone: Milestone,
}

/// A request that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Looked {
    ready: Ticks,
    because: Option<Cause>,
    tlp: Tlp,
    to: Leads,
}

/// How a request is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads {
    /// Identity.
    There,
    /// By an entry; `None` if the page is not mapped.
    By(Option<Entry>),
    /// By the result of an outstanding walk.
    Walked(u64),
    /// Refused: a translated request from a requester without ATS.
    Blocked,
}

/// State of an IOMMU whose table is not the identity.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Translations {
    table: TranslationTable,
    /// Translations in the IOTLB, by page.
    held: BTreeMap<u64, Entry>,
    /// Address ranges below root ports, which need no translation.
    below: Vec<Range<RootPortIndex>>,
    faults: FaultQueue,
    queue: InvalidationQueue,
}

/// Requests of one root port.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct AtPort {
    coming: Wire<(Option<Cause>, Tlp)>,
    looked: VecDeque<Looked>,
    last: Ticks,
    last_ready: Milestone,
}

/// A request leaving the IOMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translated {
    /// The root port at which it arrived.
    pub port: RootPortIndex,
    /// Its last stall cause, here or before.
    pub because: Option<Cause>,
    /// The TLP, with its host address.
    pub tlp: Tlp,
    /// The untranslated address, if it differs.
    pub named: Option<Iova>,
    /// Why the request is refused, if it is.
    pub refused: Option<FaultReason>,
    /// The table entry of its page, if it was looked up and mapped; the answer to a Translation Request.
    pub entry: Option<Entry>,
}

/// Lookup counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests looked up.
    pub lookups: u64,
    /// Requests that started a walk.
    pub walks: u64,
}

/// State of the IOMMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iommu {
    spec: Spec,
    ports: Vec<AtPort>,
    iotlb: Iotlb,
    blocks: Recent,
    /// Outstanding walks, in the order of their ends.
    walks: VecDeque<Walk>,
    /// When each walker is free.
    walkers: Vec<(Ticks, Milestone)>,
    /// When the next walk may start, and the start of the last one.
    next_walk: Ticks,
    started: Milestone,
    /// Use of the walkers, summed over them.
    pub(crate) busy: Busy,
    /// `None` while the DMA memory is identity-mapped.
    own: Option<Box<Translations>>,
    /// Counters since construction.
    pub counted: Counted,
}

impl Iommu {
    /// Creates an IOMMU with an empty IOTLB and `root_ports` root ports.
    #[must_use]
    pub fn new(spec: Spec, root_ports: usize) -> Iommu {
        Iommu {
            ports: vec![AtPort::default(); root_ports],
            iotlb: Iotlb::new(spec.iotlb),
            blocks: Recent::new(),
            walks: VecDeque::new(),
            walkers: vec![(Ticks::ZERO, Milestone::NONE); spec.walkers.max(1)],
            next_walk: Ticks::ZERO,
            started: Milestone::NONE,
            busy: Busy::default(),
            own: None,
            counted: Counted::default(),
            spec,
        }
    }

    /// Returns the number of walkers.
    pub(crate) fn walkers(&self) -> u32 {
        self.walkers.len() as u32
    }

    /// Receives a request of root port `port` with arrival time `at`; `because` is its stall cause. The call may
    /// precede that time, because requests of a port arrive in order.
    pub fn receive(&mut self, at: Ticks, port: RootPortIndex, because: Option<Cause>, tlp: Tlp) {
        self.ports[port].coming.send(at, (because, tlp));
    }

    /// Returns when a request must be looked up or forwarded.
    #[must_use]
    pub fn due(&self) -> Ticks {
        let of = |port: &AtPort| port.coming.due().min(port.looked.front().map_or(Ticks::NEVER, |first| first.ready));
        let queue = self.own.as_ref().map_or(Ticks::NEVER, |own| own.queue.due());
        self.ports.iter().map(of).fold(queue, Ticks::min)
    }

    /// Returns the time from which previous walks delay no new walk.
    #[must_use]
    pub fn quiet_at(&self) -> Ticks {
        self.next_walk
    }

    /// Looks up every request that has arrived by `now`, in the order of root ports. A walk finds the state of the
    /// last-level cache at this time.
    pub fn look(&mut self, now: Ticks, cache: &mut LastLevelCache, path: &mut CriticalPath) {
        for port in 0..self.ports.len() {
            while let Some((because, mut tlp)) = self.ports[port].coming.take(now) {
                if matches!(tlp.flaw, Flaw::Unmapped | Flaw::ReadOnly) {
                    self.apply_fault(now, &mut tlp);
                }
                let (ready, to) = self.ready(now, &mut tlp, cache, path);
                if self.ports[port].last > ready {
                    tlp.milestone = self.ports[port].last_ready;
                }
                let ready = ready.max(self.ports[port].last);
                self.ports[port].last_ready = tlp.milestone;
                let because = if ready > now { Some(Cause::Translation) } else { because };
                self.ports[port].last = ready;
                self.ports[port].looked.push_back(Looked { ready, because, tlp, to });
            }
        }
    }

    /// Returns the next request to forward at `now`.
    pub fn take(&mut self, now: Ticks) -> Option<Translated> {
        if self.own.is_some() {
            // Requests use the results of completed walks.
            self.end_walks(now);
        }
        let is_ready = |port: &AtPort| port.looked.front().is_some_and(|first| first.ready <= now);
        let port = RootPortIndex(self.ports.iter().position(is_ready)?);
        let Looked { because, tlp, to, .. } = self.ports[port].looked.pop_front()?;
        let plain = Translated { port, because, tlp, named: None, refused: None, entry: None };
        match to {
            Leads::By(entry) if tlp.at == AddressType::TranslationRequest => Some(Translated { entry, ..plain }),
            Leads::By(entry) => Some(self.translated(now, plain, entry)),
            Leads::Blocked => Some(self.refused(now, plain, FaultReason::NotEnabled)),
            Leads::There | Leads::Walked(_) => Some(plain),
        }
    }

    /// Refuses a request and records the fault.
    fn refused(&mut self, now: Ticks, translated: Translated, reason: FaultReason) -> Translated {
        let tlp = &translated.tlp;
        if let Some(own) = &mut self.own {
            own.faults.record(TranslationFault { requester: tlp.requester, at: Iova(tlp.address), reason, when: now });
        }
        Translated { refused: Some(reason), ..translated }
    }

    /// Translates a request by an entry, or refuses it.
    fn translated(&mut self, now: Ticks, plain: Translated, entry: Option<Entry>) -> Translated {
        let tlp = plain.tlp;
        let is_write = tlp.kind == TlpKind::MWr;
        let Some(Entry { page, permission }) = entry else { return self.refused(now, plain, FaultReason::NotMapped) };
        if is_write && !permission.writes() {
            return self.refused(now, plain, FaultReason::NotWritable);
        }
        if !is_write && !permission.reads() {
            return self.refused(now, plain, FaultReason::NotReadable);
        }
        let page_bytes = self.spec.page_bytes;
        let address = page * page_bytes + tlp.address % page_bytes;
        let named = (address != tlp.address).then_some(Iova(tlp.address));
        Translated { tlp: Tlp { address, ..tlp }, named, entry, ..plain }
    }

    /// Returns whether a TLP is a memory request that needs translation.
    fn is_for_memory(&self, tlp: &Tlp) -> bool {
        if !matches!(tlp.kind, TlpKind::MRd | TlpKind::MWr) {
            return false;
        }
        let (lent, len) = self.spec.lent;
        let is_lent = tlp.address.wrapping_sub(lent) < len;
        match &self.own {
            None => is_lent,
            // Every address may be mapped, except those of messages and of ranges below root ports.
            Some(own) => is_lent || !own.mean_something_else(tlp.address, tlp.address),
        }
    }

    /// Looks up a request: returns when its translation is known, and how it is translated.
    fn ready(
        &mut self,
        now: Ticks,
        tlp: &mut Tlp,
        cache: &mut LastLevelCache,
        path: &mut CriticalPath,
    ) -> (Ticks, Leads) {
        if tlp.at == AddressType::Translated && tlp.flaw == Flaw::None {
            return (now, if self.spec.has_ats { Leads::There } else { Leads::Blocked });
        }
        if !self.is_for_memory(tlp) {
            return (now, Leads::There);
        }
        // A request does not cross a 4 KiB boundary, so it needs one page.
        let page = tlp.address / self.spec.page_bytes;
        self.counted.lookups += 1;
        self.end_walks(now);
        let looked = now + self.spec.lookup;
        tlp.milestone = path.add(tlp.milestone, looked, Place::IOMMU, Cause::Transit);
        if self.iotlb.find(page) {
            let held = |own: &Translations| Leads::By(own.held.get(&page).copied());
            return (looked, self.own.as_deref().map_or(Leads::There, held));
        }
        let ready = if let Some(walk) = self.walks.iter().find(|walk| walk.page == page) {
            if walk.until > looked {
                tlp.milestone = walk.milestone;
            }
            walk.until.max(looked)
        } else {
            let (until, milestone) = self.walk(looked, page, cache, tlp.milestone, path);
            tlp.milestone = milestone;
            until
        };
        (ready, if self.own.is_some() { Leads::Walked(page) } else { Leads::There })
    }

    /// Schedules a walk for a page on a free walker, not before `from`, when it is needed at `milestone`; returns its
    /// end.
    fn walk(
        &mut self,
        from: Ticks,
        page: u64,
        cache: &mut LastLevelCache,
        milestone: Milestone,
        path: &mut CriticalPath,
    ) -> (Ticks, Milestone) {
        self.counted.walks += 1;
        let Spec { walk_reads, block_pages, blocks, interval, .. } = self.spec;
        let free = self.walkers.iter_mut().min_by_key(|(at, _)| *at);
        let (free_at, freed) = free.as_ref().map_or((from, milestone), |free| **free);
        let start = from.max(free_at).max(self.next_walk);
        let before = match start {
            _ if start == from => milestone,
            _ if start == free_at => freed,
            _ => self.started,
        };
        let block = page / block_pages;
        let known = self.blocks.iter().position(|other| *other == block);
        let reads = if known.is_some() { 1 } else { walk_reads };
        let until = start + self.spec.walked(page, reads, cache);
        self.busy.occupy(until - start, until);
        if let Some(used) = known.and_then(|place| self.blocks.remove(place)) {
            self.blocks.push_front(used);
        } else {
            self.blocks.push_front(block);
            self.blocks.truncate(blocks);
        }
        let started = if start == from { milestone } else { path.add(before, start, Place::IOMMU, Cause::Translation) };
        let milestone = path.add(started, until, Place::IOMMU, Cause::Translation);
        if let Some(free) = free {
            *free = (until, milestone);
        }
        (self.next_walk, self.started) = (start + interval, started);
        let place = self.walks.partition_point(|walk| walk.until <= until);
        self.walks.insert(place, Walk { page, until, milestone });
        (until, milestone)
    }

    /// Inserts the translations of completed walks into the IOTLB.
    fn end_walks(&mut self, now: Ticks) {
        while let Some(walk) = self.walks.front().copied().filter(|walk| walk.until <= now) {
            self.walks.pop_front();
            match &mut self.own {
                None => {
                    self.iotlb.enter(walk.page);
                }
                Some(_) => self.end_walk(walk.page),
            }
        }
    }

    /// Completes a walk with the current table entry, which the waiting requests use. A page that is not mapped is
    /// not cached.
    fn end_walk(&mut self, page: u64) {
        let Some(own) = &mut self.own else { return };
        let found = own.table.find(page);
        if let Some(entry) = found {
            own.held.insert(page, entry);
            if let Some(left) = self.iotlb.enter(page) {
                own.held.remove(&left);
            }
        }
        let waiting = self.ports.iter_mut().flat_map(|port| &mut port.looked);
        for looked in waiting.filter(|looked| looked.to == Leads::Walked(page)) {
            looked.to = Leads::By(found);
        }
    }

    /// Makes the table changeable and empties the IOTLB. DMA memory is identity-mapped if `is_lent`; no other page is
    /// mapped. The ranges `below` root ports are not memory.
    pub fn own_table(&mut self, is_lent: bool, below: &[Range<RootPortIndex>]) {
        let (lent, len) = self.spec.lent;
        let pages = if is_lent { len / self.spec.page_bytes } else { 0 };
        let table = TranslationTable::identical(lent / self.spec.page_bytes, pages);
        self.iotlb.clear();
        self.own = Some(Box::new(match self.own.take() {
            Some(own) => Translations { table, held: BTreeMap::new(), ..*own },
            None => Translations {
                table,
                held: BTreeMap::new(),
                below: below.to_vec(),
                faults: FaultQueue::new(Spec::FAULTS),
                queue: InvalidationQueue::new(self.spec.invalidation),
            },
        }));
    }

    /// Returns whether the table is changeable.
    #[must_use]
    pub fn has_own_table(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the page size in bytes.
    #[must_use]
    pub const fn page_bytes(&self) -> u64 {
        self.spec.page_bytes
    }

    /// Returns the table for writing, if it is [changeable](Iommu::own_table). A change at `now` does not affect the
    /// IOTLB.
    pub fn table_mut(&mut self, now: Ticks) -> Option<&mut TranslationTable> {
        // Completed walks have read the entries before the change.
        self.end_walks(now);
        Some(&mut self.own.as_mut()?.table)
    }

    /// Returns the table, if it is changeable.
    #[must_use]
    pub fn table(&self) -> Option<&TranslationTable> {
        Some(&self.own.as_ref()?.table)
    }

    /// Returns the fault queue for writing, if the table is changeable.
    pub fn faults_mut(&mut self) -> Option<&mut FaultQueue> {
        Some(&mut self.own.as_mut()?.faults)
    }

    /// Returns the fault queue, if the table is changeable.
    #[must_use]
    pub fn faults(&self) -> Option<&FaultQueue> {
        Some(&self.own.as_ref()?.faults)
    }

    /// Returns the invalidation queue for writing, if the table is changeable.
    pub fn queue_mut(&mut self) -> Option<&mut InvalidationQueue> {
        Some(&mut self.own.as_mut()?.queue)
    }

    /// Returns the invalidation queue, if the table is changeable.
    #[must_use]
    pub fn queue(&self) -> Option<&InvalidationQueue> {
        Some(&self.own.as_ref()?.queue)
    }

    /// Invalidates translations for requests that arrive from `now` on. Returns when the last request looked up
    /// before has left.
    pub fn invalidate(&mut self, now: Ticks, command: Command) -> Ticks {
        self.end_walks(now);
        let Some(own) = &mut self.own else { return now };
        match command {
            Command::All => {
                self.iotlb.clear();
                own.held.clear();
            }
            Command::Pages { first, pages } => {
                let gone: Vec<u64> =
                    own.held.range(first..first.saturating_add(pages)).map(|(page, _)| *page).collect();
                for page in gone {
                    own.held.remove(&page);
                    self.iotlb.leave(page);
                }
            }
        }
        self.ports.iter().map(|port| port.last).fold(now, Ticks::max)
    }

    /// Empties the IOTLB and the paging-structure cache; walks that end after `now` fill them again.
    pub fn clear_caches(&mut self, now: Ticks) {
        self.end_walks(now);
        self.iotlb.clear();
        self.blocks.clear();
        if let Some(own) = &mut self.own {
            own.held.clear();
        }
    }

    /// Returns whether walks read through the last-level cache.
    #[must_use]
    pub fn walks_through_cache(&self) -> bool {
        self.spec.walk_cached_read.is_some()
    }

    /// Applies an injected fault to the page of a request, as if software had changed the table just before.
    #[cold]
    fn apply_fault(&mut self, now: Ticks, tlp: &mut Tlp) {
        let page = tlp.address / self.spec.page_bytes;
        let is_unmapped = tlp.flaw == Flaw::Unmapped;
        tlp.flaw = Flaw::None;
        if !self.is_for_memory(tlp) {
            return;
        }
        if let Some(table) = self.table_mut(now) {
            let entry = table.find(page).filter(|_| !is_unmapped);
            table.set(page, entry.map(|entry| Entry { permission: Permission::Read, ..entry }));
        }
        self.invalidate(now, Command::Pages { first: page, pages: 1 });
    }

    /// Takes over table and fault records after a link reset; outstanding requests are lost.
    pub fn take_over(&mut self, now: Ticks, used: &mut Iommu) {
        self.own = used.own.take();
        if let Some(own) = &mut self.own {
            own.held.clear();
            own.queue.devices_are_new(now);
        }
    }
}

impl Translations {
    /// Returns whether any address in a range is a message address or lies below a root port.
    fn mean_something_else(&self, first: u64, last: u64) -> bool {
        let meets = |start: u64, end: u64| start < end && start <= last && first < end;
        meets(Mailbox::MESSAGES.start, Mailbox::MESSAGES.end)
            || self.below.iter().any(|range| meets(range.start, range.end))
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
        walk_cached_read: None,
        block_pages: 512,
        blocks: 0,
        walkers: 2,
        interval: Ticks(0),
        invalidation: invalidation_queue::Spec { latency: Ticks(100), entries: 4 },
        has_ats: false,
    };

    fn no_cache() -> LastLevelCache {
        LastLevelCache::new(0, 1)
    }

    /// Returns when requests for these pages at these times leave, on one root port.
    fn goes_on(iommu: &mut Iommu, requests: &[(u64, u64)]) -> Vec<u64> {
        goes_on_with(iommu, &mut no_cache(), requests)
    }

    fn goes_on_with(iommu: &mut Iommu, cache: &mut LastLevelCache, requests: &[(u64, u64)]) -> Vec<u64> {
        for (at, page) in requests {
            let tlp = Tlp { address: page * 4096, ..Tlp::of(TlpKind::MRd) };
            iommu.receive(Ticks(*at), RootPortIndex(0), None, tlp);
        }
        let mut gone = Vec::new();
        while iommu.due() < Ticks::NEVER {
            let now = iommu.due();
            iommu.look(now, cache, &mut CriticalPath::default());
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
    fn the_first_request_for_a_page_waits_for_a_walk_and_the_next_one_hits() {
        assert_eq!(fresh(SPEC, &[(0, 7), (100, 7), (200, 8)]), [41, 101, 241]);
    }

    #[test]
    fn requests_for_a_page_wait_for_its_outstanding_walk() {
        let mut iommu = Iommu::new(SPEC, 1);
        assert_eq!(goes_on(&mut iommu, &[(0, 7), (5, 7), (41, 7)]), [41, 41, 42]);
        assert_eq!(iommu.counted, Counted { lookups: 3, walks: 1 });
        let slow = Spec { lookup: Ticks(30), ..SPEC };
        assert_eq!(fresh(slow, &[(0, 7), (50, 7)]), [70, 80], "a lookup takes its time even after the walk");
    }

    #[test]
    fn a_request_is_looked_up_on_arrival_and_leaves_in_order() {
        assert_eq!(fresh(SPEC, &[(0, 7), (100, 8), (101, 7)]), [41, 141, 141]);
        assert_eq!(fresh(SPEC, &[(0, 1), (1, 2)]), [41, 42], "two concurrent walks");
    }

    #[test]
    fn concurrent_walks_are_limited_by_walkers_and_interval() {
        assert_eq!(fresh(SPEC, &[(0, 1), (0, 2), (0, 3)]), [41, 41, 81]);
        assert_eq!(fresh(Spec { walkers: 3, ..SPEC }, &[(0, 1), (0, 2), (0, 3)]), [41, 41, 41]);
        assert_eq!(fresh(Spec { interval: Ticks(5), ..SPEC }, &[(0, 1), (0, 2)]), [41, 46]);
    }

    #[test]
    fn a_full_set_replaces_its_least_recently_used_page() {
        // Even pages map to one set of two ways.
        let all = [(0, 0), (100, 2), (200, 0), (300, 4), (400, 0), (500, 2), (600, 1)];
        assert_eq!(fresh(SPEC, &all), [41, 141, 201, 341, 401, 541, 641]);
    }

    #[test]
    fn the_set_index_uses_the_configured_bits() {
        let coarse = Spec { iotlb: iotlb::Spec { sets: 2, ways: 1, index_bit: 1 }, ..SPEC };
        // Pages 0 and 1 share a set; pages 0 and 2 do not.
        assert_eq!(fresh(coarse, &[(0, 0), (100, 2), (200, 0)]), [41, 141, 201]);
        assert_eq!(fresh(coarse, &[(0, 0), (100, 1), (200, 0)]), [41, 141, 241]);
    }

    #[test]
    fn a_walk_in_a_cached_block_is_one_read() {
        let cached = Spec { blocks: 1, ..SPEC };
        assert_eq!(fresh(cached, &[(0, 0), (100, 511), (200, 512), (300, 1)]), [41, 111, 241, 341]);
        let two = Spec { blocks: 2, ..SPEC };
        assert_eq!(fresh(two, &[(0, 0), (100, 511), (200, 512), (300, 1)]), [41, 111, 241, 311]);
    }

    #[test]
    fn a_walk_read_that_hits_in_the_cache_is_faster() {
        let through = Spec { walk_cached_read: Some(Ticks(2)), walk_reads: 3, ..SPEC };
        let (mut iommu, mut cache) = (Iommu::new(through, 1), LastLevelCache::new(64, 16));
        // Three lines are read. Page 7 uses the same lines; the last entry of page 8 is in the next line, and so are
        // the last two of page 512.
        let walked = [(0, 0), (100, 7), (200, 8), (300, 512), (400, 4096)];
        assert_eq!(goes_on_with(&mut iommu, &mut cache, &walked), [31, 107, 215, 315, 423]);
        // A core has replaced every line of the cache.
        cache.write_by_core(1 << 40, 64 * 64);
        assert_eq!(goes_on_with(&mut iommu, &mut cache, &[(500, 2)]), [531]);
    }

    #[test]
    fn a_walk_in_a_cached_block_reads_its_last_entry_through_the_cache() {
        let through = Spec { walk_cached_read: Some(Ticks(2)), blocks: 1, ..SPEC };
        let (mut iommu, mut cache) = (Iommu::new(through, 1), LastLevelCache::new(64, 16));
        assert_eq!(goes_on_with(&mut iommu, &mut cache, &[(0, 0), (100, 1), (200, 8)]), [41, 103, 211]);
    }

    #[test]
    fn every_page_number_has_distinct_entries() {
        let deep = Spec { walk_cached_read: Some(Ticks(2)), walk_reads: 8, ..SPEC };
        assert_eq!(deep.walked(u64::MAX / 4096, 8, &mut LastLevelCache::new(64, 16)), Ticks(80));
    }

    #[test]
    fn a_request_outside_dma_memory_waits_only_for_its_order() {
        let mut iommu = Iommu::new(Spec { lent: (0, 4096), ..SPEC }, 1);
        assert_eq!(goes_on(&mut iommu, &[(0, 1), (1, 0), (2, 1)]), [0, 42, 42]);
        assert_eq!(iommu.counted, Counted { lookups: 1, walks: 1 });
    }

    #[test]
    fn requests_of_other_root_ports_are_not_delayed() {
        let mut iommu = Iommu::new(SPEC, 2);
        let read = |page: u64| Tlp { address: page * 4096, ..Tlp::of(TlpKind::MRd) };
        iommu.receive(Ticks(0), RootPortIndex(0), None, read(1));
        iommu.receive(Ticks(50), RootPortIndex(0), None, read(3));
        iommu.receive(Ticks(60), RootPortIndex(1), Some(Cause::RootComplex), read(1));
        let mut gone = Vec::new();
        while iommu.due() < Ticks::NEVER {
            let now = iommu.due();
            iommu.look(now, &mut no_cache(), &mut CriticalPath::default());
            while let Some(Translated { port, because, .. }) = iommu.take(now) {
                gone.push((now.0, port.0, because));
            }
        }
        let translation = Some(Cause::Translation);
        assert_eq!(gone, [(41, 0, translation), (61, 1, translation), (91, 0, translation)]);
    }

    /// Reads these pages at these times: returns the translated page of each, or why it was refused.
    fn leads(iommu: &mut Iommu, requests: &[(u64, u64)]) -> Vec<(u64, Option<FaultReason>)> {
        for (at, page) in requests {
            iommu.receive(
                Ticks(*at),
                RootPortIndex(0),
                None,
                Tlp { address: page * 4096 + 64, ..Tlp::of(TlpKind::MRd) },
            );
        }
        let mut all = Vec::new();
        while iommu.due() < Ticks::NEVER {
            let now = iommu.due();
            iommu.look(now, &mut no_cache(), &mut CriticalPath::default());
            while let Some(Translated { tlp, refused, .. }) = iommu.take(now) {
                assert_eq!(tlp.address % 4096, 64);
                all.push((tlp.address / 4096, refused));
            }
        }
        all
    }

    fn reads(page: u64) -> Entry {
        Entry { page, permission: Permission::Read }
    }

    #[test]
    fn a_translation_is_cached_until_it_is_invalidated() {
        let mut iommu = Iommu::new(SPEC, 1);
        iommu.own_table(false, &[]);
        iommu.table_mut(Ticks(0)).unwrap().set(7, Some(reads(9)));
        assert_eq!(leads(&mut iommu, &[(0, 7)]), [(9, None)]);
        iommu.table_mut(Ticks(50)).unwrap().set(7, None);
        assert_eq!(leads(&mut iommu, &[(60, 7)]), [(9, None)], "the IOTLB still holds it");
        iommu.invalidate(Ticks(70), Command::Pages { first: 7, pages: 1 });
        let refused = Some(FaultReason::NotMapped);
        assert_eq!(leads(&mut iommu, &[(80, 7), (200, 7)]), [(7, refused); 2]);
        // A page that is not mapped is not cached.
        iommu.table_mut(Ticks(300)).unwrap().set(7, Some(reads(3)));
        assert_eq!(leads(&mut iommu, &[(301, 7)]), [(3, None)]);
        assert_eq!(iommu.faults().unwrap().iter().map(|fault| fault.at).collect::<Vec<_>>(), [Iova(7 * 4096 + 64); 2]);
    }

    #[test]
    fn a_completed_walk_reads_the_entry_before_a_later_change() {
        // The walk ends at 41; it is observed at 100.
        for (changed, leads_to) in [(40, 5), (41, 9)] {
            let mut iommu = Iommu::new(SPEC, 1);
            iommu.own_table(false, &[]);
            iommu.table_mut(Ticks(0)).unwrap().set(7, Some(reads(9)));
            iommu.receive(Ticks(0), RootPortIndex(0), None, Tlp { address: 7 * 4096, ..Tlp::of(TlpKind::MRd) });
            iommu.look(Ticks(0), &mut no_cache(), &mut CriticalPath::default());
            iommu.table_mut(Ticks(changed)).unwrap().set(7, Some(reads(5)));
            assert_eq!(iommu.take(Ticks(100)).map(|gone| gone.tlp.address / 4096), Some(leads_to), "{changed}");
        }
    }

    #[test]
    fn the_permission_of_an_entry_is_enforced() {
        for (permission, kind, refused) in [
            (Permission::Read, TlpKind::MRd, None),
            (Permission::Read, TlpKind::MWr, Some(FaultReason::NotWritable)),
            (Permission::Write, TlpKind::MRd, Some(FaultReason::NotReadable)),
            (Permission::Write, TlpKind::MWr, None),
            (Permission::ReadWrite, TlpKind::MWr, None),
        ] {
            let mut iommu = Iommu::new(SPEC, 1);
            iommu.own_table(false, &[]);
            iommu.table_mut(Ticks(0)).unwrap().set(7, Some(Entry { page: 9, permission }));
            iommu.receive(Ticks(0), RootPortIndex(0), None, Tlp { address: 7 * 4096, ..Tlp::of(kind) });
            iommu.look(Ticks(0), &mut no_cache(), &mut CriticalPath::default());
            assert_eq!(iommu.take(Ticks(50)).unwrap().refused, refused, "{permission:?} {kind:?}");
        }
    }

    #[test]
    fn cleared_caches_hold_no_page_and_no_block() {
        for is_own in [false, true] {
            let mut iommu = Iommu::new(Spec { blocks: 1, ..SPEC }, 1);
            if is_own {
                iommu.own_table(true, &[]);
            }
            assert_eq!(goes_on(&mut iommu, &[(0, 7), (100, 7), (200, 8)]), [41, 101, 211]);
            iommu.clear_caches(Ticks(300));
            assert_eq!(goes_on(&mut iommu, &[(300, 7), (400, 8)]), [341, 411]);
        }
    }

    #[test]
    fn an_identity_table_takes_the_same_time_as_no_table() {
        let requests = [(0, 1), (0, 2), (3, 1), (100, 4), (101, 6), (200, 2), (300, 8), (301, 4), (302, 1)];
        let mut own = Iommu::new(SPEC, 1);
        own.own_table(true, &[]);
        assert_eq!(goes_on(&mut own, &requests), fresh(SPEC, &requests));
    }
}
