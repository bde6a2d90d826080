//! A bus shared by several masters: arbitration, transactions and their times.
//!
//! Ports: [`Bus::request`] queues a master, [`Bus::next`] selects the next one, [`Bus::grant`] starts its
//! transaction. Masters are served in request order; while one holds the [lock](Bus::lock), no other is served. A
//! transaction takes effect on memory and caches when it is granted, so the order of grants is the memory order.

use crate::adapter_tlb::TlbCommand;
use lanemark_units::Ticks;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Largest line, in bytes.
pub const MOST_LINE_BYTES: usize = 128;

/// The bytes of a line; a shorter line uses the first ones.
pub type LineBytes = [u8; MOST_LINE_BYTES];

/// Constants of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Duration of a cycle.
    pub cycle: Ticks,
    /// Cycles of arbitration, from a request to the grant of a free bus.
    pub arbitration_cycles: u64,
    /// Cycles of an address phase.
    pub address_cycles: u64,
    /// Bytes of a data cycle.
    pub cycle_bytes: u64,
    /// Source of these numbers.
    pub source: &'static str,
}

impl Spec {
    /// Returns a processor-memory bus of 64 bits, such as Runway. No clock rate is published together with this use;
    /// a cycle of 10 ns and one cycle each for arbitration and address are assumed.
    #[must_use]
    pub const fn runway_like() -> Spec {
        Spec {
            cycle: Ticks::whole_ns(10),
            arbitration_cycles: 1,
            address_cycles: 1,
            cycle_bytes: 8,
            source: "assumed: 64 bits, 10 ns a cycle",
        }
    }

    /// Returns an I/O bus of 32 bits, such as HSC. Cycles of 25 ns, and one each for arbitration and address, are
    /// assumed.
    #[must_use]
    pub const fn hsc_like() -> Spec {
        Spec {
            cycle: Ticks::whole_ns(25),
            arbitration_cycles: 1,
            address_cycles: 1,
            cycle_bytes: 4,
            source: "assumed: 32 bits, 25 ns a cycle",
        }
    }

    /// Returns the bus time of a transaction: (arbitration + address + bytes / bytes a cycle) cycles.
    ///
    /// ```
    /// use lanemark_coherent::{BusSpec, TransactionKind};
    /// use lanemark_units::Ticks;
    /// assert_eq!(BusSpec::runway_like().time(TransactionKind::Read(32)), Ticks::whole_ns(60));
    /// assert_eq!(BusSpec::runway_like().time(TransactionKind::Read(4)), Ticks::whole_ns(30));
    /// ```
    #[must_use]
    pub fn time(&self, kind: TransactionKind) -> Ticks {
        let data = kind.bytes().div_ceil(self.cycle_bytes.max(1));
        self.cycle * (self.arbitration_cycles + self.address_cycles + data)
    }
}

/// The kind of a bus transaction, with its length in bytes: a power of two up to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionKind {
    /// READ4 to READ32: the slave supplies bytes; other caches may keep the line.
    Read(u64),
    /// Reads a line to change it: other caches drop it.
    ReadPrivate(u64),
    /// WRITE4 to WRITE32: the master supplies bytes. If it writes a whole line, caches drop the line.
    Write(u64),
    /// `WRITE16_PURGE`: writes half a line to memory; caches drop the line even if it is dirty.
    WritePurge(u64),
    /// Removes a line from all caches; dirty data is written back.
    Flush,
    /// Removes a line from all caches; dirty data is lost.
    Purge,
}

impl TransactionKind {
    /// Returns the number of data bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            TransactionKind::Read(bytes)
            | TransactionKind::ReadPrivate(bytes)
            | TransactionKind::Write(bytes)
            | TransactionKind::WritePurge(bytes) => bytes,
            TransactionKind::Flush | TransactionKind::Purge => 0,
        }
    }
}

impl fmt::Display for TransactionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransactionKind::Read(bytes) => write!(f, "READ{bytes}"),
            TransactionKind::ReadPrivate(bytes) => write!(f, "READ{bytes}_PRIVATE"),
            TransactionKind::Write(bytes) => write!(f, "WRITE{bytes}"),
            TransactionKind::WritePurge(bytes) => write!(f, "WRITE{bytes}_PURGE"),
            TransactionKind::Flush => f.write_str("FLUSH"),
            TransactionKind::Purge => f.write_str("PURGE"),
        }
    }
}

/// A line as addressed on the bus: its physical address and its index in virtually indexed caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The physical address of its first byte.
    pub physical: u64,
    /// Its coherence index: the low bits of the virtual address of its first byte.
    pub index: u64,
}

impl Line {
    /// Bits of a coherence index.
    pub const INDEX_BITS: u32 = 24;

    /// Creates the line at `physical` whose virtual address is `virt`.
    #[must_use]
    pub const fn new(physical: u64, virt: u64) -> Line {
        Line { physical, index: virt & ((1 << Line::INDEX_BITS) - 1) }
    }
}

/// A transaction on the processor bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its kind and length.
    pub kind: TransactionKind,
    /// The line.
    pub line: Line,
    /// Whether caches snoop it.
    pub coherent: bool,
    /// Offset of the first byte in the line.
    pub at: usize,
    /// The bytes written, each at its offset in the line.
    pub data: LineBytes,
    /// The command to the I/O adapter, if the transaction does not go to memory.
    pub command: Option<TlbCommand>,
}

impl Transaction {
    /// Creates a snooped transaction of a whole line, without data.
    #[must_use]
    pub const fn of(kind: TransactionKind, line: Line) -> Transaction {
        Transaction { kind, line, coherent: true, at: 0, data: [0; MOST_LINE_BYTES], command: None }
    }

    /// Creates a transaction of a whole line that caches do not snoop.
    #[must_use]
    pub const fn past_caches(kind: TransactionKind, line: Line) -> Transaction {
        Transaction { coherent: false, ..Transaction::of(kind, line) }
    }
}

/// The snoop response of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// `COH_OK`: the cache does not have the line, or has dropped it.
    Ok,
    /// The cache keeps the line, which is clean.
    Shared,
    /// `COH_CPY`: the cache supplies its dirty line to the requester and to memory.
    Copy(LineBytes),
}

/// State of a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    spec: Spec,
    free: Ticks,
    waiting: VecDeque<usize>,
    locked_by: Option<usize>,
    counts: BTreeMap<TransactionKind, u64>,
}

impl Bus {
    /// Creates an idle bus.
    #[must_use]
    pub fn new(spec: Spec) -> Bus {
        Bus { spec, free: Ticks::ZERO, waiting: VecDeque::new(), locked_by: None, counts: BTreeMap::new() }
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Queues a master; a queued master keeps its place.
    pub fn request(&mut self, master: usize) {
        if !self.waiting.contains(&master) {
            self.waiting.push_back(master);
        }
    }

    /// Locks the bus for `master`, or unlocks it.
    pub fn lock(&mut self, master: Option<usize>) {
        self.locked_by = master;
    }

    /// Returns when the next master can be served; [`Ticks::NEVER`] if there is none.
    #[must_use]
    pub fn due(&self) -> Ticks {
        if self.place().is_some() { self.free } else { Ticks::NEVER }
    }

    /// Removes and returns the master to be served at `now`.
    pub fn next(&mut self, now: Ticks) -> Option<usize> {
        if self.free > now {
            return None;
        }
        self.place().and_then(|place| self.waiting.remove(place))
    }

    fn place(&self) -> Option<usize> {
        self.waiting.iter().position(|master| self.locked_by.is_none_or(|owner| owner == *master))
    }

    /// Starts a transaction at `now` and returns its end.
    pub fn grant(&mut self, now: Ticks, kind: TransactionKind) -> Ticks {
        *self.counts.entry(kind).or_default() += 1;
        self.free = now + self.spec.time(kind);
        self.free
    }

    /// Returns the number of transactions of a kind.
    #[must_use]
    pub fn count(&self, kind: TransactionKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// Returns the number of transactions of each kind.
    pub fn counts(&self) -> impl Iterator<Item = (TransactionKind, u64)> {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_are_served_in_request_order() {
        let mut bus = Bus::new(Spec::runway_like());
        for master in [2, 0, 2, 1] {
            bus.request(master);
        }
        assert_eq!(bus.next(Ticks::ZERO), Some(2));
        let end = bus.grant(Ticks::ZERO, TransactionKind::Read(32));
        assert_eq!((end, bus.due()), (Ticks::whole_ns(60), Ticks::whole_ns(60)));
        assert_eq!(bus.next(Ticks(end.0 - 1)), None);
        bus.request(2);
        assert_eq!([bus.next(end), bus.next(end), bus.next(end), bus.next(end)], [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn only_the_holder_of_the_lock_is_served() {
        let mut bus = Bus::new(Spec::runway_like());
        bus.request(0);
        bus.lock(Some(1));
        assert_eq!((bus.due(), bus.next(Ticks(9))), (Ticks::NEVER, None));
        bus.request(1);
        assert_eq!((bus.next(Ticks(9)), bus.next(Ticks(9))), (Some(1), None));
        bus.lock(None);
        assert_eq!(bus.next(Ticks(9)), Some(0));
    }

    #[test]
    fn transaction_kinds_print_as_the_names_of_the_bus() {
        let kinds = [
            TransactionKind::Read(4),
            TransactionKind::Write(32),
            TransactionKind::WritePurge(16),
            TransactionKind::ReadPrivate(32),
        ];
        assert_eq!(kinds.map(|kind| kind.to_string()), ["READ4", "WRITE32", "WRITE16_PURGE", "READ32_PRIVATE"]);
    }
}
