//! The I/O adapter: translates transactions of the I/O bus and performs them on the processor bus.
//!
//! ```text
//!  devices == I/O bus ==> | I/O TLB | one line | prefetched line | == processor bus ==> memory, processors' caches
//! ```
//!
//! Ports: [`IoAdapter::ask`] queues a transfer of a device, [`IoAdapter::want`] returns the next need of the adapter,
//! [`IoAdapter::take`] receives the result of a processor-bus transaction, [`IoAdapter::command`] executes a TLB
//! command, and
//! [`IoAdapter::holds_up`] stalls transactions that must wait for the adapter. Devices alternate, a transaction each,
//! except during an atomic transfer.
//!
//! The adapter writes to memory by one of these methods:
//!
//! | written | page | on the processor bus |
//! | --- | --- | --- |
//! | a line | | WRITE32 |
//! | half a line | fast | `WRITE16_PURGE` |
//! | half a line | safe | read private, merge, write |
//! | less | | read private, merge, write |
//!
//! While the adapter merges a line, a processor that requests it is stalled until the line is written; the response
//! is then `COH_OK`. The prefetched line of a reading device does not snoop the bus.

use crate::adapter_tlb::{self, AdapterTlb, PAGE_BYTES, PageEntry, TlbCommand};
use crate::bus::{Bus, Line, LineBytes, MOST_LINE_BYTES, Transaction, TransactionKind};
use crate::processor::{Granted, Want};
use lanemark_units::{Iova, Ticks};
use std::collections::VecDeque;
use std::fmt;

/// Least length of a device transaction: a word, in bytes.
pub const LEAST_BYTES: u64 = 4;

/// Constants of the adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The I/O TLB.
    pub tlb: adapter_tlb::Spec,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Whether caches snoop its transactions, and it snoops those of processors.
    pub coherent: bool,
    /// Time of a TLB lookup.
    pub lookup: Ticks,
    /// Time to merge bytes into its line.
    pub modify: Ticks,
    /// The largest transaction of each device, in bytes: a power of two from 4 to a line.
    pub devices: Vec<u64>,
}

/// A refused transaction of a device. No byte of it was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of the device.
    pub device: usize,
    /// Address of the transaction.
    pub at: Iova,
    /// Whether it was a write.
    pub is_write: bool,
    /// The reason.
    pub why: Forbidden,
}

/// Why a transaction of a device is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// The address is beyond the page directory.
    NoEntry,
    /// The directory entry is not valid.
    NotValid,
    /// The directory entry does not permit the access.
    NotPermitted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.is_write { "write" } else { "read" };
        let why = match self.why {
            Forbidden::NoEntry => "the page directory ends before it; give the device an address of k bits and a page",
            Forbidden::NotValid => "its entry in the page directory is not valid; map it before the device uses it",
            Forbidden::NotPermitted => "its page is not mapped for that; map it with the permission",
        };
        write!(f, "device {} cannot {done} {}: {why}", self.device, self.at)
    }
}

/// A transfer that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Identifier of the transfer.
    pub ticket: u64,
    /// Time of completion.
    pub at: Ticks,
    /// The bytes read or written. After a fault, only those before the faulting address are valid.
    pub data: Vec<u8>,
    /// The fault that stopped it.
    pub fault: Option<Fault>,
}

/// Counters of the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Device transactions whose translation was in the TLB.
    pub hits: u64,
    /// Device transactions that read the page directory.
    pub misses: u64,
    /// Lines read private, merged and written.
    pub modified: u64,
    /// Lines prefetched for a device.
    pub prefetched: u64,
    /// Device transactions served by a prefetched line.
    pub ahead: u64,
    /// Faults.
    pub faults: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Transfer {
    ticket: u64,
    at: Iova,
    is_write: bool,
    data: Vec<u8>,
    done: usize,
}

/// Phase of the current transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No transaction.
    Idle,
    /// Translating its address.
    Translate,
    /// Ready for its access.
    Access(PageEntry),
    /// The line is merged and must be written.
    Merged(Line, LineBytes),
    /// The next line must be prefetched.
    Ahead(Line),
}

/// State of the adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoAdapter {
    spec: Spec,
    io_bus: Bus,
    tlb: AdapterTlb,
    queues: Vec<VecDeque<Transfer>>,
    /// Device of the current transaction.
    device: usize,
    phase: Phase,
    is_locked: bool,
    busy: Ticks,
    ahead: Option<(u64, LineBytes)>,
    counts: Counts,
}

impl IoAdapter {
    /// Creates an idle adapter.
    #[must_use]
    pub fn new(spec: Spec, io_bus: Bus) -> IoAdapter {
        IoAdapter {
            tlb: AdapterTlb::new(spec.tlb.clone()),
            queues: vec![VecDeque::new(); spec.devices.len()],
            spec,
            io_bus,
            device: 0,
            phase: Phase::Idle,
            is_locked: false,
            busy: Ticks::ZERO,
            ahead: None,
            counts: Counts::default(),
        }
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the I/O bus.
    #[must_use]
    pub fn io_bus(&self) -> &Bus {
        &self.io_bus
    }

    /// Returns the I/O TLB.
    #[must_use]
    pub fn tlb(&self) -> &AdapterTlb {
        &self.tlb
    }

    /// Returns the number of outstanding transfers of a device.
    #[must_use]
    pub fn waiting(&self, device: usize) -> usize {
        self.queues.get(device).map_or(0, VecDeque::len)
    }

    /// Returns whether an atomic transfer has locked memory.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Returns the line being merged.
    #[must_use]
    pub fn held(&self) -> Option<Line> {
        if let Phase::Merged(line, _) = self.phase { Some(line) } else { None }
    }

    /// Returns whether a transaction must wait for the adapter: a request for the line being merged, or a command
    /// that invalidates the translation in use.
    #[must_use]
    pub fn holds_up(&self, transaction: &Transaction) -> bool {
        if transaction.command.is_some() {
            return !matches!(self.phase, Phase::Idle | Phase::Translate);
        }
        self.spec.coherent && self.held().is_some_and(|line| line.physical == transaction.line.physical)
    }

    /// Executes a TLB command, and drops the line prefetched with the translation.
    pub fn command(&mut self, command: TlbCommand) {
        self.tlb.command(command);
        self.ahead = None;
    }

    /// Queues a transfer of an existing device: a write of `data`, or a read of the same length.
    pub fn ask(&mut self, device: usize, ticket: u64, at: Iova, is_write: bool, data: Vec<u8>) {
        self.queues[device].push_back(Transfer { ticket, at, is_write, data, done: 0 });
    }

    /// Returns the next transaction of the current transfer: address and length. It is the largest naturally aligned
    /// one that the I/O bus supports.
    fn transaction(&self) -> Option<(Iova, usize)> {
        let transfer = self.queues.get(self.device)?.front()?;
        let (at, left) = (transfer.at.0 + transfer.done as u64, (transfer.data.len() - transfer.done) as u64);
        let most = self.spec.devices[self.device];
        let sizes = (LEAST_BYTES.trailing_zeros()..=most.trailing_zeros()).rev().map(|bits| 1 << bits);
        let bytes = sizes.into_iter().find(|bytes| at.is_multiple_of(*bytes) && left >= *bytes)?;
        Some((Iova(at), bytes as usize))
    }

    fn line(&self, entry: PageEntry, at: Iova) -> Line {
        let offset = at.0 & (PAGE_BYTES - 1) & !(self.spec.line_bytes - 1);
        Line::new(entry.physical().0 + offset, entry.index() + offset)
    }

    /// Returns the bus line of the directory entry for an address, as indexed by software.
    fn directory_line(&self, at: Iova) -> Option<Line> {
        let entry = self.spec.tlb.entry_at(at)?.0 & !(self.spec.line_bytes - 1);
        Some(Line::new(entry, entry))
    }

    fn on_bus(&self, kind: TransactionKind, line: Line) -> Transaction {
        Transaction { coherent: self.spec.coherent, ..Transaction::of(kind, line) }
    }

    /// Returns the next need of the adapter at `now`; adds transfers that end to `ended`.
    pub fn want(&mut self, now: Ticks, ended: &mut Vec<Ended>) -> Want {
        loop {
            if self.busy > now {
                return Want::Time(self.busy);
            }
            match self.phase {
                Phase::Idle => {
                    if !self.begin(now) {
                        return Want::Nothing;
                    }
                }
                Phase::Translate => {
                    if let Some(read) = self.translate(now, ended) {
                        return Want::Bus(read);
                    }
                }
                Phase::Access(entry) => {
                    if let Some(access) = self.access(now, entry, ended) {
                        return Want::Bus(access);
                    }
                }
                Phase::Merged(line, data) => {
                    return Want::Bus(Transaction {
                        data,
                        ..self.on_bus(TransactionKind::Write(self.spec.line_bytes), line)
                    });
                }
                Phase::Ahead(line) => return Want::Bus(self.on_bus(TransactionKind::Read(self.spec.line_bytes), line)),
            }
        }
    }

    /// Selects the next device with a transfer; returns false if there is none.
    fn begin(&mut self, now: Ticks) -> bool {
        let count = self.queues.len();
        let turns = if self.is_locked { 0..=0 } else { 1..=count };
        let mut turns = turns.map(|turn| (self.device + turn) % count.max(1));
        let Some(device) = turns.find(|device| self.waiting(*device) > 0) else { return false };
        self.device = device;
        let Some((_, bytes)) = self.transaction() else { return false };
        let is_write = self.queues[device].front().is_some_and(|transfer| transfer.is_write);
        let kind = if is_write { TransactionKind::Write(bytes as u64) } else { TransactionKind::Read(bytes as u64) };
        self.busy = self.io_bus.grant(now, kind) + self.spec.lookup;
        self.phase = Phase::Translate;
        true
    }

    /// Translates the current address; returns the transaction that reads the page directory after a TLB miss.
    fn translate(&mut self, now: Ticks, ended: &mut Vec<Ended>) -> Option<Transaction> {
        let (at, _) = self.transaction()?;
        let Some(line) = self.directory_line(at) else {
            self.fault(now, Forbidden::NoEntry, ended);
            return None;
        };
        let Some(entry) = self.tlb.find(at) else {
            return Some(self.on_bus(TransactionKind::Read(self.spec.line_bytes), line));
        };
        self.counts.hits += 1;
        self.phase = Phase::Access(entry);
        None
    }

    /// Returns the processor-bus transaction of the current access, if it needs one.
    fn access(&mut self, now: Ticks, entry: PageEntry, ended: &mut Vec<Ended>) -> Option<Transaction> {
        let (at, bytes) = self.transaction()?;
        let transfer = self.queues[self.device].front()?;
        if !entry.permits(transfer.is_write) {
            self.fault(now, Forbidden::NotPermitted, ended);
            return None;
        }
        self.is_locked = entry.is_atomic();
        let (line, first) = (self.line(entry, at), (at.0 % self.spec.line_bytes) as usize);
        let line_bytes = self.spec.line_bytes;
        if !transfer.is_write {
            let Some((_, data)) = self.ahead.filter(|(physical, _)| *physical == line.physical) else {
                return Some(self.on_bus(TransactionKind::Read(line_bytes), line));
            };
            self.counts.ahead += 1;
            self.read(now, entry, &data, ended);
            return None;
        }
        let half = line_bytes / 2;
        let kind = match bytes as u64 {
            whole if whole == line_bytes => TransactionKind::Write(line_bytes),
            part if part == half && !entry.is_safe() && self.spec.coherent => TransactionKind::WritePurge(half),
            part if part == half && !entry.is_safe() => TransactionKind::Write(half),
            _ => TransactionKind::ReadPrivate(line_bytes),
        };
        let mut data = [0; MOST_LINE_BYTES];
        data[first..first + bytes].copy_from_slice(&transfer.data[transfer.done..transfer.done + bytes]);
        Some(Transaction { at: first, data, ..self.on_bus(kind, line) })
    }

    /// Receives the result of the transaction that [`IoAdapter::want`] returned.
    pub fn take(&mut self, transaction: &Transaction, granted: Granted, ended: &mut Vec<Ended>) {
        self.busy = granted.at;
        match (self.phase, transaction.kind) {
            (Phase::Translate, _) => self.learn(transaction.line, granted, ended),
            (Phase::Access(entry), TransactionKind::Read(_)) => self.read(granted.at, entry, &granted.data, ended),
            (Phase::Access(_), TransactionKind::ReadPrivate(_)) => {
                let Some((_, bytes)) = self.transaction() else { return };
                let (mut line, part) = (granted.data, transaction.at..transaction.at + bytes);
                line[part.clone()].copy_from_slice(&transaction.data[part]);
                self.counts.modified += 1;
                self.busy = granted.at + self.spec.modify;
                self.phase = Phase::Merged(transaction.line, line);
            }
            (Phase::Ahead(line), _) => {
                self.counts.prefetched += 1;
                self.ahead = Some((line.physical, granted.data));
                self.phase = Phase::Idle;
            }
            (Phase::Access(_) | Phase::Merged(..), _) => {
                self.ahead.take_if(|(physical, _)| *physical == transaction.line.physical);
                self.end_transaction(granted.at, None, ended);
            }
            (Phase::Idle, _) => {}
        }
    }

    /// Receives a line of the page directory and fills the TLB.
    fn learn(&mut self, line: Line, granted: Granted, ended: &mut Vec<Ended>) {
        let Some((at, _)) = self.transaction() else { return };
        let Some(place) = self.spec.tlb.entry_at(at) else { return };
        let offset = (place.0 - line.physical) as usize;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&granted.data[offset..offset + 8]);
        let entry = PageEntry::from_bytes(bytes);
        self.counts.misses += 1;
        if entry.is_valid() {
            self.tlb.insert(at, entry);
            self.phase = Phase::Access(entry);
        } else {
            self.fault(granted.at, Forbidden::NotValid, ended);
        }
    }

    /// Copies the device's bytes from a line.
    fn read(&mut self, now: Ticks, entry: PageEntry, data: &LineBytes, ended: &mut Vec<Ended>) {
        let Some((at, bytes)) = self.transaction() else { return };
        let (line, first) = (self.line(entry, at), (at.0 % self.spec.line_bytes) as usize);
        if let Some(transfer) = self.queues[self.device].front_mut() {
            transfer.data[transfer.done..transfer.done + bytes].copy_from_slice(&data[first..first + bytes]);
        }
        let next = Line::new(line.physical + self.spec.line_bytes, line.index + self.spec.line_bytes);
        let is_read_up = (at.0 + bytes as u64).is_multiple_of(self.spec.line_bytes);
        let is_here = self.ahead.is_some_and(|(physical, _)| physical == next.physical);
        let is_ahead = entry.may_prefetch() && is_read_up && !is_here && !next.physical.is_multiple_of(PAGE_BYTES);
        self.end_transaction(now, is_ahead.then_some(next), ended);
    }

    /// Ends the transaction; a prefetch or the next transaction follows.
    fn end_transaction(&mut self, now: Ticks, ahead: Option<Line>, ended: &mut Vec<Ended>) {
        self.phase = ahead.map_or(Phase::Idle, Phase::Ahead);
        let Some((_, bytes)) = self.transaction() else { return };
        let Some(transfer) = self.queues[self.device].front_mut() else { return };
        transfer.done += bytes;
        if transfer.done == transfer.data.len() {
            self.end(now, None, ended);
        }
    }

    fn fault(&mut self, now: Ticks, why: Forbidden, ended: &mut Vec<Ended>) {
        self.phase = Phase::Idle;
        self.counts.faults += 1;
        let Some((at, _)) = self.transaction() else { return };
        let is_write = self.queues[self.device].front().is_some_and(|transfer| transfer.is_write);
        self.end(now, Some(Fault { device: self.device, at, is_write, why }), ended);
    }

    fn end(&mut self, now: Ticks, fault: Option<Fault>, ended: &mut Vec<Ended>) {
        self.is_locked = false;
        if let Some(Transfer { ticket, data, .. }) = self.queues[self.device].pop_front() {
            ended.push(Ended { ticket, at: now, data, fault });
        }
    }
}
