//! The coherent board: processors, memory and an I/O adapter on a bus, driven by events.

mod access;
mod mapping;
mod request;
mod spec;

pub use request::{Answer, NoAccess, Request, RequestId};
pub use spec::{NoBoard, Spec};

use crate::adapter_tlb::PAGE_BYTES;
use crate::bus::{Bus, Line, LineBytes, MOST_LINE_BYTES, Response, Transaction, TransactionKind};
use crate::io_adapter::{Ended, Fault, IoAdapter};
use crate::processor::{Done, Granted, Processor, Want};
use lanemark_engine::Memory;
use lanemark_engine::Schedule;
use lanemark_units::{HostPhys, HostVirt, Ticks};
use std::collections::{BTreeMap, VecDeque};

/// Counters of the board, besides [`IoAdapter::counts`] and [`Bus::count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Dirty lines that a cache supplied to a requester and to memory.
    pub copies: u64,
    /// Transactions of processors that stalled until the adapter had written its line.
    pub held_up: u64,
    /// Number of events.
    pub events: u64,
}

/// State of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoherentBoard {
    spec: Spec,
    now: Ticks,
    /// A port for each processor, one for the adapter and one for the bus.
    schedule: Schedule,
    processors: Vec<Processor>,
    adapter: IoAdapter,
    bus: Bus,
    memory: Memory,
    /// Virtual pages and their physical pages; any other page is mapped to itself.
    pages: BTreeMap<u64, u64>,
    /// Masters stalled by the adapter.
    held_up: Vec<usize>,
    answers: BTreeMap<u64, Answer>,
    /// Transfers that ended in this event; empty between events.
    ended: Vec<Ended>,
    faults: VecDeque<Fault>,
    next_ticket: u64,
    counts: Counts,
}

impl CoherentBoard {
    /// Number of faults kept, the latest ones.
    pub const MOST_FAULTS: usize = 64;

    /// Creates an idle board.
    ///
    /// # Errors
    /// [`NoBoard`] if a constant is out of its range.
    pub fn new(spec: Spec) -> Result<CoherentBoard, NoBoard> {
        spec.check()?;
        let ports = spec.processors + 2;
        let board = CoherentBoard {
            now: Ticks::ZERO,
            schedule: Schedule::new(ports),
            processors: vec![Processor::new(spec.processor.clone()); spec.processors],
            adapter: IoAdapter::new(spec.adapter.clone(), Bus::new(spec.io_bus.clone())),
            bus: Bus::new(spec.bus.clone()),
            memory: Memory::default(),
            pages: BTreeMap::new(),
            held_up: Vec::new(),
            answers: BTreeMap::new(),
            ended: Vec::new(),
            faults: VecDeque::new(),
            next_ticket: 0,
            counts: Counts::default(),
            spec,
        };
        Ok(board.with_empty_directory())
    }

    /// Invalidates every directory entry, whatever memory contains initially.
    fn with_empty_directory(mut self) -> CoherentBoard {
        let (directory, bytes) = (self.spec.adapter.tlb.directory.0, self.spec.adapter.tlb.directory_bytes());
        for page in 0..bytes.div_ceil(PAGE_BYTES) {
            let left = (bytes - page * PAGE_BYTES).min(PAGE_BYTES) as usize;
            self.memory.write(directory + page * PAGE_BYTES, &[0; PAGE_BYTES as usize][..left]);
        }
        self
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Ticks {
        self.now
    }

    /// Returns the counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the I/O adapter.
    #[must_use]
    pub fn adapter(&self) -> &IoAdapter {
        &self.adapter
    }

    /// Returns the processor bus.
    #[must_use]
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Returns a processor.
    #[must_use]
    pub fn processor(&self, number: usize) -> Option<&Processor> {
        self.processors.get(number)
    }

    /// Returns the latest faults of devices, at most [`CoherentBoard::MOST_FAULTS`]. [`IoAdapter::counts`] counts all
    /// of them.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter()
    }

    /// Reads memory, without the dirty lines of caches.
    pub fn in_memory(&mut self, at: HostPhys, into: &mut [u8]) {
        self.memory.read(at.0, into);
    }

    /// Returns the line of `virt` as addressed on the bus (PA-RISC: load physical address, load coherence index).
    #[must_use]
    pub fn line_of(&self, virt: HostVirt) -> Line {
        let mask = self.spec.adapter.line_bytes - 1;
        let page = self.pages.get(&(virt.0 / PAGE_BYTES)).copied().unwrap_or(virt.0 / PAGE_BYTES);
        let within = (virt.0 % PAGE_BYTES) & !mask;
        Line::new(page * PAGE_BYTES + within, virt.0 & !mask)
    }

    fn adapter_port(&self) -> usize {
        self.processors.len()
    }

    fn bus_port(&self) -> usize {
        self.processors.len() + 1
    }

    /// Returns the time of the next event; [`Ticks::NEVER`] if no request is outstanding.
    #[must_use]
    pub fn next_at(&self) -> Ticks {
        self.schedule.first().map_or(Ticks::NEVER, |(at, _)| at)
    }

    /// Processes every event up to `until`, and advances the time to it.
    pub fn run_until(&mut self, until: Ticks) {
        while let Some((at, port)) = self.schedule.first()
            && at <= until
        {
            self.event(at, port);
        }
        self.now = self.now.max(until);
    }

    /// Processes the event of a port.
    fn event(&mut self, at: Ticks, port: usize) {
        self.now = self.now.max(at);
        self.counts.events += 1;
        if port == self.bus_port() {
            if let Some(master) = self.bus.next(self.now) {
                self.serve(master);
            }
        } else {
            self.look(port);
        }
        self.arbitrate();
    }

    fn want(&mut self, master: usize) -> Want {
        match self.processors.get(master) {
            Some(processor) => processor.want(self.now),
            None => self.adapter.want(self.now, &mut self.ended),
        }
    }

    /// Schedules the next need of a master.
    fn look(&mut self, master: usize) {
        let due = match self.want(master) {
            Want::Nothing => Ticks::NEVER,
            Want::Time(until) => until,
            Want::Hit => {
                let done = self.processors.get_mut(master).and_then(|processor| processor.hit(self.now));
                self.done(done);
                self.now
            }
            Want::Bus(_) => {
                if !self.held_up.contains(&master) {
                    self.bus.request(master);
                }
                Ticks::NEVER
            }
        };
        self.schedule.set(master, due);
    }

    /// Executes the transaction of a master that the bus has selected.
    fn serve(&mut self, master: usize) {
        let Want::Bus(transaction) = self.want(master) else {
            self.schedule.set(master, self.now);
            return;
        };
        if master != self.adapter_port() && self.adapter.holds_up(&transaction) {
            self.counts.held_up += 1;
            self.held_up.push(master);
            return;
        }
        let granted = self.perform(master, &transaction);
        match self.processors.get_mut(master) {
            Some(processor) => {
                let done = processor.take(&transaction, granted);
                self.done(done);
            }
            None => self.adapter.take(&transaction, granted, &mut self.ended),
        }
        self.schedule.set(master, granted.at);
    }

    /// Performs a transaction: caches snoop it, then memory.
    fn perform(&mut self, master: usize, transaction: &Transaction) -> Granted {
        let Transaction { kind, line, coherent, at, data, command } = *transaction;
        let end = self.bus.grant(self.now, kind);
        if let Some(command) = command {
            self.adapter.command(command);
            return Granted { data, is_shared: false, at: end };
        }
        let (mut copy, mut is_shared) = (None, false);
        let is_for_all = matches!(kind, TransactionKind::Flush | TransactionKind::Purge);
        let snooping = self.processors.iter_mut().enumerate().filter(|(number, _)| is_for_all || *number != master);
        for (_, processor) in snooping.filter(|_| coherent) {
            match processor.cache_mut().snoop(transaction) {
                Response::Ok => {}
                Response::Shared => is_shared = true,
                Response::Copy(data) => copy = Some(data),
            }
        }
        if let Some(data) = copy {
            self.counts.copies += u64::from(!is_for_all);
            is_shared = true;
            self.memory.write(line.physical, self.whole(&data));
        }
        match kind {
            TransactionKind::Write(bytes) | TransactionKind::WritePurge(bytes) => {
                self.memory.write(line.physical + at as u64, &data[at..at + bytes as usize]);
                Granted { data, is_shared, at: end }
            }
            TransactionKind::Flush | TransactionKind::Purge => Granted { data, is_shared, at: end },
            TransactionKind::Read(_) | TransactionKind::ReadPrivate(_) => {
                let latency = if copy.is_some() { self.spec.copy } else { self.spec.memory_read };
                Granted { data: self.memory_line(line), is_shared, at: end + latency }
            }
        }
    }

    fn whole<'a>(&self, data: &'a LineBytes) -> &'a [u8] {
        &data[..self.spec.adapter.line_bytes as usize]
    }

    fn memory_line(&mut self, line: Line) -> LineBytes {
        let mut data = [0; MOST_LINE_BYTES];
        self.memory.read(line.physical, &mut data[..self.spec.adapter.line_bytes as usize]);
        data
    }

    /// Runs after every event: releases stalled masters, schedules the bus and completes ended transfers.
    fn arbitrate(&mut self) {
        let owner = self.adapter.is_locked().then_some(self.adapter_port());
        self.bus.lock(owner);
        let mut still = Vec::new();
        for master in std::mem::take(&mut self.held_up) {
            match self.want(master) {
                Want::Bus(transaction) if self.adapter.holds_up(&transaction) => still.push(master),
                _ => self.bus.request(master),
            }
        }
        self.held_up = still;
        for Ended { ticket, at, data, fault } in std::mem::take(&mut self.ended) {
            if let Some(fault) = fault {
                if self.faults.len() == CoherentBoard::MOST_FAULTS {
                    self.faults.pop_front();
                }
                self.faults.push_back(fault);
            }
            self.answers.insert(ticket, Answer { at, bytes: data, fault });
        }
        let due = self.bus.due();
        self.schedule.set(self.bus_port(), if due == Ticks::NEVER { due } else { due.max(self.now) });
    }

    fn done(&mut self, done: Option<Done>) {
        if let Some(Done { ticket, at, data, len }) = done {
            self.answers.insert(ticket, Answer { at, bytes: data[..len].to_vec(), fault: None });
        }
    }
}
