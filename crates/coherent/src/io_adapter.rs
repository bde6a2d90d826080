//! The I/O adapter: takes what devices do on the I/O bus, translates it, and does it on the processor bus.
//!
//! ```text
//!  devices == I/O bus ==> | I/O TLB | one line | prefetched line | == processor bus ==> memory, processors' caches
//! ```
//!
//! Ports: [`IoAdapter::ask`] takes a transfer of a device, [`IoAdapter::want`] says what the adapter needs next,
//! [`IoAdapter::take`] gives it what the processor bus did, [`IoAdapter::command`] is what software tells the TLB, and
//! [`IoAdapter::holds_up`] says who must wait for it. Devices take turns, a transaction each, but an atomic transfer
//! lets nobody between.
//!
//! What a device writes goes to memory in one of three ways:
//!
//! | what is written | page | on the processor bus |
//! | --- | --- | --- |
//! | a line | | WRITE32 |
//! | half a line | fast | `WRITE16_PURGE` |
//! | half a line | safe | the line is read private, changed here, and written |
//! | less | | the line is read private, changed here, and written |
//!
//! While a line is here to be changed, a processor that asks for it waits for its response until it is written; the
//! response is `COH_OK` then. The other line, which was prefetched for a device that reads, is not watched at all.

use crate::adapter_tlb::{self, AdapterTlb, PAGE_BYTES, PageEntry, TlbCommand};
use crate::bus::{Bus, Line, LineBytes, MOST_LINE_BYTES, Transaction, TransactionKind};
use crate::processor::{Granted, Want};
use lanemark_units::{Iova, Ticks};
use std::collections::VecDeque;
use std::fmt;

/// The fewest bytes of a transaction of a device: a word.
pub const LEAST_BYTES: u64 = 4;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its translations.
    pub tlb: adapter_tlb::Spec,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Do caches look at what it does, and does it look at what processors do?
    pub coherent: bool,
    /// How long it takes to look up an address.
    pub lookup: Ticks,
    /// How long it takes to change bytes of its line.
    pub modify: Ticks,
    /// For each device, the most bytes of a transaction: a power of two from 4 up to a line.
    pub devices: Vec<u64>,
}

/// What a device did that it may not do. Nothing was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which device.
    pub device: usize,
    /// Where.
    pub at: Iova,
    /// Was it to be written, or read?
    pub is_write: bool,
    /// Why not.
    pub why: Forbidden,
}

/// Why a device may not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// The page directory has no entry for such an address: it is too high.
    NoEntry,
    /// The entry in the page directory is not valid.
    NotValid,
    /// The page is not lent for that.
    NotPermitted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.is_write { "write" } else { "read" };
        let why = match self.why {
            Forbidden::NoEntry => "the page directory ends before it; give the device an address of k bits and a page",
            Forbidden::NotValid => "its entry in the page directory is not valid; map it before the device uses it",
            Forbidden::NotPermitted => "its page is not lent for that; map it with the permission",
        };
        write!(f, "device {} cannot {done} {}: {why}", self.device, self.at)
    }
}

/// How a transfer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whose it was.
    pub ticket: u64,
    /// When.
    pub at: Ticks,
    /// What was read or written; with a fault, what was before it is in order, and what follows is not.
    pub data: Vec<u8>,
    /// What stopped it.
    pub fault: Option<Fault>,
}

/// What it did so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Transactions of devices whose translation was in the TLB.
    pub hits: u64,
    /// Those for which the page directory was read.
    pub misses: u64,
    /// Lines that were read private, changed and written.
    pub modified: u64,
    /// Lines fetched ahead of a device.
    pub prefetched: u64,
    /// Transactions of devices that were served with a line fetched ahead.
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

/// How far the transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Idle,
    /// Its address is being looked up.
    Translate,
    /// It is to be done.
    Access(PageEntry),
    /// The line is here, changed, and is to be written.
    Merged(Line, LineBytes),
    /// The line after it is to be fetched.
    Ahead(Line),
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoAdapter {
    spec: Spec,
    io_bus: Bus,
    tlb: AdapterTlb,
    queues: Vec<VecDeque<Transfer>>,
    /// Whose transfer it is at.
    device: usize,
    phase: Phase,
    is_locked: bool,
    busy: Ticks,
    ahead: Option<(u64, LineBytes)>,
    counts: Counts,
}

impl IoAdapter {
    /// With nothing to do.
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

    /// What it was made from.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What it did so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The bus its devices are on.
    #[must_use]
    pub fn io_bus(&self) -> &Bus {
        &self.io_bus
    }

    /// Its translations.
    #[must_use]
    pub fn tlb(&self) -> &AdapterTlb {
        &self.tlb
    }

    /// Transfers of a device that have not ended.
    #[must_use]
    pub fn waiting(&self, device: usize) -> usize {
        self.queues.get(device).map_or(0, VecDeque::len)
    }

    /// Does a transfer own all of memory?
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// The line that is here to be changed.
    #[must_use]
    pub fn held(&self) -> Option<Line> {
        if let Phase::Merged(line, _) = self.phase { Some(line) } else { None }
    }

    /// Must whoever does this wait for it? One who asks for the line that is here; one who takes a translation away that
    /// is being used.
    #[must_use]
    pub fn holds_up(&self, transaction: &Transaction) -> bool {
        if transaction.command.is_some() {
            return !matches!(self.phase, Phase::Idle | Phase::Translate);
        }
        self.spec.coherent && self.held().is_some_and(|line| line.physical == transaction.line.physical)
    }

    /// Software says this. What was fetched ahead by a translation goes with it.
    pub fn command(&mut self, command: TlbCommand) {
        self.tlb.command(command);
        self.ahead = None;
    }

    /// A device, one of those there are, begins to write `data`, or to read as many bytes.
    pub fn ask(&mut self, device: usize, ticket: u64, at: Iova, is_write: bool, data: Vec<u8>) {
        self.queues[device].push_back(Transfer { ticket, at, is_write, data, done: 0 });
    }

    /// What the device does next: where, and with how many bytes. As much as the I/O bus carries at once, at a multiple
    /// of that.
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

    /// The line of an entry of the page directory, which software sees where it is.
    fn directory_line(&self, at: Iova) -> Option<Line> {
        let entry = self.spec.tlb.entry_at(at)?.0 & !(self.spec.line_bytes - 1);
        Some(Line::new(entry, entry))
    }

    fn on_bus(&self, kind: TransactionKind, line: Line) -> Transaction {
        Transaction { coherent: self.spec.coherent, ..Transaction::of(kind, line) }
    }

    /// What it needs next, at `now`, and what has ended.
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

    /// The next device has its turn on the I/O bus, if one wants it.
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

    /// The transaction that reads the page directory, where the translation is not here.
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

    /// The transaction that does what the device wants, where the processor bus is needed for it.
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

    /// The processor bus did what it [wanted](IoAdapter::want).
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

    /// A line of the page directory is here.
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

    /// The device gets its bytes of a line.
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

    /// The transaction is done; then a line is fetched ahead, or the next transaction begins.
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
