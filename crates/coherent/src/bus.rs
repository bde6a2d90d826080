//! A bus that several masters share: who has it next, what they do on it, and how long that takes.
//!
//! Ports: [`Bus::request`] puts a master in line, [`Bus::next`] says whose turn it is, [`Bus::grant`] lets it. Masters are
//! served in the order in which they asked, but while one has [locked](Bus::lock) the bus, nobody else is. What a
//! transaction does to memory and caches it does when it is granted: the order of grants is the order of memory.

use crate::adapter_tlb::TlbCommand;
use lanemark_units::Ticks;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// The longest line there is room for, in bytes.
pub const MOST_LINE_BYTES: usize = 128;

/// The bytes of a line; of a shorter one, the first.
pub type LineBytes = [u8; MOST_LINE_BYTES];

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// One cycle.
    pub cycle: Ticks,
    /// Cycles until a master that asked has a bus that is free.
    pub arbitration_cycles: u64,
    /// Cycles of an address, and of everything that is said of it.
    pub address_cycles: u64,
    /// Bytes that go over in a cycle.
    pub cycle_bytes: u64,
    /// Where these numbers are from.
    pub source: &'static str,
}

impl Spec {
    /// A processor-memory bus of 64 bits, as Runway is one. No clock rate of it is published with what it is for, so the
    /// cycle of 10 ns is assumed, and so is one cycle each for arbitration and address.
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

    /// An I/O bus of 32 bits, as HSC is one. Cycles of 25 ns are assumed, and so are one for arbitration and one for
    /// the address.
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

    /// How long a transaction has the bus: (arbitration + address + bytes / bytes a cycle) cycles.
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

/// What a master does on a bus, with how many bytes: powers of two, up to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionKind {
    /// READ4 to READ32: the slave gives bytes; others may keep theirs.
    Read(u64),
    /// A line, to change it: nobody else keeps one.
    ReadPrivate(u64),
    /// WRITE4 to WRITE32: the master gives bytes. Of a whole line, nobody keeps one.
    Write(u64),
    /// `WRITE16_PURGE`: half a line goes to memory, and whoever has the line forgets it, changed or not.
    WritePurge(u64),
    /// Whoever has the line forgets it; what was changed in it goes to memory.
    Flush,
    /// Whoever has the line forgets it, and what was changed in it is lost.
    Purge,
}

impl TransactionKind {
    /// Bytes that go over the bus.
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

/// A line as the bus names it: where it is, and where a cache that is looked up by virtual addresses has it.
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

    /// The line at `physical` that programs see at `virt`.
    #[must_use]
    pub const fn new(physical: u64, virt: u64) -> Line {
        Line { physical, index: virt & ((1 << Line::INDEX_BITS) - 1) }
    }
}

/// A transaction of the processor bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// What.
    pub kind: TransactionKind,
    /// With which line.
    pub line: Line,
    /// Do caches look whether they have it?
    pub coherent: bool,
    /// Which byte of the line is the first.
    pub at: usize,
    /// What is written, each byte at its place in the line.
    pub data: LineBytes,
    /// Not to memory, but to the I/O adapter.
    pub command: Option<TlbCommand>,
}

impl Transaction {
    /// Of a whole line, which caches look at, and with nothing to write.
    #[must_use]
    pub const fn of(kind: TransactionKind, line: Line) -> Transaction {
        Transaction { kind, line, coherent: true, at: 0, data: [0; MOST_LINE_BYTES], command: None }
    }

    /// The same, which no cache looks at.
    #[must_use]
    pub const fn past_caches(kind: TransactionKind, line: Line) -> Transaction {
        Transaction { coherent: false, ..Transaction::of(kind, line) }
    }
}

/// What a cache says of a line that somebody else asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// `COH_OK`: it has none, or none any more.
    Ok,
    /// It keeps one, and memory has the same bytes.
    Shared,
    /// `COH_CPY`: it has changed the line, and sends it to whoever asked and to memory.
    Copy(LineBytes),
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    spec: Spec,
    free: Ticks,
    waiting: VecDeque<usize>,
    locked_by: Option<usize>,
    counts: BTreeMap<TransactionKind, u64>,
}

impl Bus {
    /// A bus that nobody uses.
    #[must_use]
    pub fn new(spec: Spec) -> Bus {
        Bus { spec, free: Ticks::ZERO, waiting: VecDeque::new(), locked_by: None, counts: BTreeMap::new() }
    }

    /// What it was made from.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// A master wants it; whoever is in line already stays where it is.
    pub fn request(&mut self, master: usize) {
        if !self.waiting.contains(&master) {
            self.waiting.push_back(master);
        }
    }

    /// From now on only `master` is served; or everybody.
    pub fn lock(&mut self, master: Option<usize>) {
        self.locked_by = master;
    }

    /// When the next one is served, as far as is known now.
    #[must_use]
    pub fn due(&self) -> Ticks {
        if self.place().is_some() { self.free } else { Ticks::NEVER }
    }

    /// Whose turn it is at `now`. It is in line no longer.
    pub fn next(&mut self, now: Ticks) -> Option<usize> {
        if self.free > now {
            return None;
        }
        self.place().and_then(|place| self.waiting.remove(place))
    }

    fn place(&self) -> Option<usize> {
        self.waiting.iter().position(|master| self.locked_by.is_none_or(|owner| owner == *master))
    }

    /// A transaction begins at `now`. Gives when it ends.
    pub fn grant(&mut self, now: Ticks, kind: TransactionKind) -> Ticks {
        *self.counts.entry(kind).or_default() += 1;
        self.free = now + self.spec.time(kind);
        self.free
    }

    /// How many transactions of this kind there were.
    #[must_use]
    pub fn count(&self, kind: TransactionKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    /// How many transactions there were of each kind.
    pub fn counts(&self) -> impl Iterator<Item = (TransactionKind, u64)> {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_are_served_in_the_order_in_which_they_asked() {
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
    fn whoever_has_locked_it_is_served_and_nobody_else() {
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
    fn kinds_have_the_names_of_the_bus() {
        let kinds = [
            TransactionKind::Read(4),
            TransactionKind::Write(32),
            TransactionKind::WritePurge(16),
            TransactionKind::ReadPrivate(32),
        ];
        assert_eq!(kinds.map(|kind| kind.to_string()), ["READ4", "WRITE32", "WRITE16_PURGE", "READ32_PRIVATE"]);
    }
}
