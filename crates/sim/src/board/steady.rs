//! The steady state of a board: its state for snapshots, and the storage of transferred bytes.

use super::Board;
use crate::device::dma_engine::DmaEngine;
use crate::device::region::Kind;
use crate::host::stored_data::stored_bytes;
use crate::index::CardIndex;
use crate::steady::{Leg, Mover, Period, Snapshot, Survey, Writer};
use crate::tlp::{Tlp, TlpKind};
use lanemark_engine::{Memory, Slab};
use lanemark_machine::{Unsteady, Verb};

/// Bytes copied from memory to a sink at a time.
const PIECE: usize = 4096;

/// The storage of a leg's bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// DMA memory.
    Host,
    /// A region of a card.
    Region { card: CardIndex, place: usize },
}

impl Board {
    /// Visits the state that changes during DMA, without that of cores.
    fn visit(&mut self, view: &mut impl Survey) {
        let Board {
            events,
            slab: _,
            cores: _,
            root_complex,
            iommu: _,
            memory: _,
            fabric,
            endpoints,
            // A board with a compiled card skips nothing.
            compiled: _,
            is_clocked: _,
            failures,
            observation,
        } = self;
        root_complex.visit(view);
        fabric.visit(view, events.now);
        endpoints.visit(view);
        events.visit(view);
        view.count(observation.outbox.len());
        failures.visit(view);
    }

    /// Takes a snapshot, reusing the memory of an old one.
    pub(crate) fn snapshot(&mut self, over: Snapshot) -> Snapshot {
        self.fabric.deliver_all_dllps(&mut self.events);
        self.shown(over)
    }

    /// Takes a snapshot after every sent DLLP has been delivered.
    fn shown(&mut self, over: Snapshot) -> Snapshot {
        let (legs, slab) = (self.legs(), std::mem::replace(&mut self.slab, Slab::new(0)));
        let mut writer = Writer::new(over, self.events.now, legs, &slab);
        self.visit(&mut writer);
        let snapshot = writer.written();
        self.slab = slab;
        snapshot
    }

    /// Moves the board by `times` periods, at most [`Period::most_times`]; `legs` are the current ones.
    pub(crate) fn skip(&mut self, period: &Period, times: u64, legs: &[Leg]) {
        self.events.path.skip(self.events.now, period.span, times, period.span * times);
        let mut slab = std::mem::replace(&mut self.slab, Slab::new(0));
        let mut mover = Mover::new(period, times, legs, &mut slab);
        self.visit(&mut mover);
        let to_fill = mover.to_fill;
        let outstanding = slab.in_use() as u64;
        self.slab = slab;
        self.events.now += period.span * times;
        let legs_now = self.legs();
        for tlp in &to_fill {
            self.fill(tlp, &legs_now);
        }
        for ((leg, before), transfers) in legs_now.iter().zip(legs).zip(&period.transfers) {
            if *transfers > 0 {
                self.store(leg, leg.next - before.next + leg.open + outstanding + 1);
            }
        }
    }

    /// Returns whether every event of this tick has been processed.
    #[inline]
    pub(crate) fn is_between_ticks(&mut self) -> bool {
        self.events.first().is_some_and(|(at, _)| at > self.events.now)
    }

    /// Returns the number of transfers that a card has begun.
    #[inline]
    pub(crate) fn begun(&self, card: CardIndex) -> u64 {
        self.endpoints.begun(card)
    }

    /// Returns the legs of the jobs of all cards.
    pub(crate) fn legs(&self) -> Vec<Leg> {
        self.endpoints.legs()
    }

    /// Returns why no steady state can be skipped on this board, if so.
    fn never_steady(&self) -> Option<Unsteady> {
        if self.observation.is_active() || self.fabric.is_watched() {
            return Some(Unsteady::Watched);
        }
        if self.failures.injected.is_some() {
            return Some(Unsteady::Faults);
        }
        self.iommu.is_some().then_some(Unsteady::Translated)
    }

    /// Returns why no iteration of runtime commands can be skipped, if so.
    pub(crate) fn unsteady_runtime(&self) -> Option<Unsteady> {
        let beats = self.fabric.has_skp();
        let cached = self.memory.cache.is_there().then_some(Unsteady::Cached);
        // Ordered sets fall at a different time in each period.
        let by_the_clock = || beats.then_some(Unsteady::Irregular);
        self.never_steady().or_else(|| self.fabric.randomness()).or(cached).or_else(by_the_clock)
    }

    /// Returns why no period of the current jobs can be skipped, if so.
    pub(crate) fn unsteady(&self) -> Option<Unsteady> {
        let legs: Vec<Leg> = self.legs().into_iter().filter(|leg| !leg.is_over).collect();
        if let Some(because) = self.never_steady() {
            return Some(because);
        }
        if self.endpoints.engines().any(DmaEngine::is_joined) {
            return Some(Unsteady::Relayed);
        }
        if !self.endpoints.engines().all(DmaEngine::has_one_job) {
            return Some(Unsteady::Channels);
        }
        if let Some(because) = self.fabric.randomness() {
            return Some(because);
        }
        if legs.iter().any(|leg| leg.step.is_none()) {
            return Some(Unsteady::RandomPlaces);
        }
        for leg in &legs {
            let Some(storage) = self.storage(leg) else { return Some(Unsteady::NoStorage) };
            // The latency of reads then depends on which lines were written when.
            if storage == Storage::Host && self.memory.cache.is_there() {
                return Some(Unsteady::Cached);
            }
            let Storage::Region { card, place } = storage else { continue };
            if leg.verb == Verb::Load && self.root_complex.peers.splits(TlpKind::MRd) && self.goes_by_root(leg) {
                return Some(Unsteady::SplitReads);
            }
            let region = &self.endpoints[card].regions[place];
            let is_queue = matches!(region.spec.kind, Kind::Fifo(_));
            if region.changes_when_touched() || is_queue && leg.verb == Verb::Load {
                return Some(Unsteady::Registers);
            }
        }
        let share = |one: &Leg, other: &Leg| one.start() < other.end() && other.start() < one.end();
        let writes = |leg: &Leg| leg.verb == Verb::Store;
        for (number, one) in legs.iter().enumerate() {
            if legs[..number].iter().any(|other| (writes(one) || writes(other)) && share(one, other)) {
                return Some(Unsteady::SharedBytes);
            }
        }
        // A TLP passes only others that are in flight, and these are fewer than this.
        let most_under_way = 1 << 12;
        let may_meet = |leg: &Leg| leg.is_random() || leg.places() < most_under_way;
        if legs.iter().any(|leg| leg.are_free && writes(leg) && may_meet(leg)) {
            return Some(Unsteady::ReorderedWrites);
        }
        None
    }

    /// Returns whether the peer requests of a leg pass the root complex.
    fn goes_by_root(&self, leg: &Leg) -> bool {
        let kind = if leg.verb == Verb::Store { TlpKind::MWr } else { TlpKind::MRd };
        let tlp = Tlp { address: leg.start(), requester: leg.owner, length_dw: 1, ..Tlp::of(kind) };
        self.fabric.passes_root(leg.card(), &tlp)
    }

    /// Returns the storage of a leg's bytes, if it is a single one.
    fn storage(&self, leg: &Leg) -> Option<Storage> {
        if self.root_complex.is_memory(leg.start(), leg.end() - leg.start()) {
            return Some(Storage::Host);
        }
        let (card, place) = self.endpoints.region_at(leg.start(), leg.end())?;
        Some(Storage::Region { card, place })
    }

    /// Returns the memory of a storage, and the bus address of its start.
    fn memory_of(&mut self, storage: Storage) -> (&mut Memory, u64) {
        match storage {
            Storage::Host => (&mut self.memory.bytes, self.memory.address),
            Storage::Region { card, place } => {
                let region = &mut self.endpoints[card].regions[place];
                (&mut region.memory, region.spec.address)
            }
        }
    }

    /// Fills a moved TLP with the bytes of its new address.
    fn fill(&mut self, tlp: &Tlp, legs: &[Leg]) {
        let verb = if tlp.kind == TlpKind::MWr { Verb::Store } else { Verb::Load };
        let Some(leg) = legs.iter().find(|leg| leg.owner == tlp.requester && leg.verb == verb) else { return };
        if verb == Verb::Store {
            let skip = tlp.first_be.trailing_zeros() as usize;
            let turn = leg.first_pass + self.slab.note_of(tlp.payload) / leg.count;
            let bytes = &mut self.slab.bytes_mut(tlp.payload)[skip..skip + tlp.enabled_bytes() as usize];
            return stored_bytes(tlp.address + skip as u64, turn, bytes);
        }
        let Some(storage) = self.storage(leg) else { return };
        let mut slab = std::mem::replace(&mut self.slab, Slab::new(0));
        let (memory, base) = self.memory_of(storage);
        memory.read(tlp.address - base, &mut slab.bytes_mut(tlp.payload)[..tlp.payload_bytes() as usize]);
        self.slab = slab;
    }

    /// Stores the bytes of the last `most` transfers begun, as if they had been simulated.
    fn store(&mut self, leg: &Leg, most: u64) {
        let Some(storage) = self.storage(leg) else { return };
        let is_queue = matches!(storage, Storage::Region { card, place }
            if matches!(self.endpoints[card].regions[place].spec.kind, Kind::Fifo(_)));
        if is_queue {
            return;
        }
        let first = leg.next - most.min(leg.next);
        if !leg.is_random() {
            let first = first.max(leg.next.saturating_sub(leg.places()));
            return (first..leg.next).for_each(|number| self.store_transfer(leg, storage, number));
        }
        // The last transfer to a place determines its bytes, except the one that is not complete.
        let Some(last) = leg.next.checked_sub(1) else { return };
        let (distance, mut left) = (leg.window.step(leg.bytes), leg.places());
        let mut is_stored = vec![0_u64; (left / 64 + 1) as usize];
        for number in (first..last).rev() {
            let place = (leg.address_of(number) - leg.start()) / distance;
            let (word, bit) = (&mut is_stored[(place / 64) as usize], 1 << (place % 64));
            if *word & bit == 0 {
                *word |= bit;
                left -= 1;
                self.store_transfer(leg, storage, number);
            }
            if left == 0 {
                break;
            }
        }
        self.store_transfer(leg, storage, last);
    }

    /// Stores the bytes of transfer `number`, as if it had been simulated.
    fn store_transfer(&mut self, leg: &Leg, storage: Storage, number: u64) {
        // The last transfer has not requested all of its bytes.
        let unasked = if number + 1 == leg.next && leg.verb == Verb::Store { leg.unasked } else { 0 };
        let (mut at, mut left) = (leg.address_of(number), leg.bytes - unasked.min(leg.bytes));
        let mut piece = [0; PIECE];
        while left > 0 {
            let len = left.min(PIECE as u64) as usize;
            let bytes = &mut piece[..len];
            let (memory, base) = self.memory_of(storage);
            if leg.verb == Verb::Store {
                stored_bytes(at, leg.first_pass + number / leg.count, bytes);
                memory.write(at - base, bytes);
            } else {
                memory.read(at - base, bytes);
                if let Some(engine) = self.endpoints.engine_mut(leg.card()) {
                    engine.sink.write(at - leg.base, bytes);
                }
            }
            (at, left) = (at + len as u64, left - len as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_engine::Visitor;
    use lanemark_machine::{Partner, Pattern, Transfer, Window, WriteRead};
    use lanemark_units::Ticks;

    /// A visitor that changes one of the visited values.
    struct Disturber {
        shown: usize,
        changes: Option<usize>,
    }

    impl Disturber {
        fn is_it(&mut self) -> bool {
            self.shown += 1;
            Some(self.shown - 1) == self.changes
        }
    }

    impl Visitor for Disturber {
        fn state(&mut self, _value: u64) {}

        fn moment(&mut self, at: &mut Ticks) {
            if self.is_it() {
                at.0 = at.0.wrapping_add(1);
            }
        }

        fn time(&mut self, at: &mut Ticks) {
            self.moment(at);
        }

        fn mark(&mut self, at: &mut Ticks) {
            self.moment(at);
        }

        fn counter(&mut self, count: &mut u64) {
            if self.is_it() {
                *count += 1;
            }
        }

        fn log(&mut self, entries: &mut Vec<Ticks>, _most: usize) {
            if self.is_it() {
                entries.push(Ticks::ZERO);
            }
        }
    }

    impl Survey for Disturber {
        fn tlp(&mut self, tlp: &mut Tlp) {
            if self.is_it() {
                tlp.length_dw += 1;
            }
            self.place(tlp.requester, Verb::Load, 0, &mut tlp.address);
        }

        fn place(&mut self, _owner: u16, _verb: Verb, _number: u64, address: &mut u64) {
            if self.is_it() {
                *address += 4;
            }
        }

        fn tag(&mut self, _owner: u16, tag: u16) -> u64 {
            tag.into()
        }
    }

    /// Returns a board with cards in the middle of writing and reading each other and host memory.
    fn busy() -> Board {
        let platform = lanemark_platform::preset("rosta-virtex7").unwrap().unwrap();
        let mut board = Board::new(&platform).unwrap();
        let window = |offset| Window { offset, len: 1 << 20, pattern: Pattern::Sequential };
        let (verb, partner, outstanding) = (Verb::Store, Partner::Host, Some(2));
        let first = Transfer { card: 0, verb, partner, bytes: 512, count: 100, window: window(0), outstanding };
        let pairs = WriteRead { write: first, read: window(2 << 20), is_mixed: true };
        board.start_pairs(&pairs, 1, 0).unwrap();
        let partner = Partner::Peer { card: 4, bar: 0 };
        let second = Transfer { card: 1, partner, window: window(8 << 20), outstanding: None, ..first };
        board.start_transfer(&second, 1, 0).unwrap();
        for _ in 0..700 {
            assert!(board.step());
        }
        board.fabric.deliver_all_dllps(&mut board.events);
        board
    }

    #[test]
    fn every_visited_value_affects_the_snapshot() {
        let meant = busy().shown(Snapshot::default());
        assert_eq!(busy().shown(Snapshot::default()), meant);
        let mut all = Disturber { shown: 0, changes: None };
        busy().visit(&mut all);
        assert!(all.shown > 1000, "{}", all.shown);
        for number in 0..all.shown {
            let mut board = busy();
            board.visit(&mut Disturber { shown: 0, changes: Some(number) });
            assert_ne!(board.shown(Snapshot::default()), meant, "value {number}");
        }
    }
}
