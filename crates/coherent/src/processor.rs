//! A processor on the bus: loads, stores, flushes, purges and prefetches of lines, and uncached loads and stores. It
//! executes them in order.
//!
//! Ports: [`Processor::ask`] queues an operation, [`Processor::want`] returns the next need of the processor,
//! [`Processor::take`] receives the result of a bus transaction, and [`Processor::hit`] executes an operation without
//! the bus.
//!
//! With prefetching, a load or store that misses also fetches the next line of its page.

use crate::adapter_tlb::{PAGE_BYTES, TlbCommand};
use crate::bus::{Line, LineBytes, Transaction, TransactionKind};
use crate::processor_cache::{self, LineState, ProcessorCache};
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// Largest uncached access, a double word, in bytes.
pub const MOST_UNCACHED_BYTES: usize = 8;

/// Constants of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The cache.
    pub cache: processor_cache::Spec,
    /// Time of a load or store that hits in the cache.
    pub hit: Ticks,
    /// Whether a miss prefetches the next line.
    pub prefetches: bool,
}

/// An operation of a processor on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Loads a line.
    Load,
    /// Stores `len` bytes from offset `at` on, each at its offset in `data`.
    Store {
        /// Offset of the first byte.
        at: usize,
        /// Number of bytes.
        len: usize,
        /// The bytes.
        data: LineBytes,
    },
    /// Loads `len` bytes of a line from memory; no cache snoops it, nor does its own.
    LoadUncached {
        /// Offset of the first byte.
        at: usize,
        /// Number of bytes.
        len: usize,
    },
    /// Stores bytes of a line to memory; caches keep their copies. Memory is assumed to accept any length: only the
    /// short writes of the I/O adapter are published.
    StoreUncached {
        /// Offset of the first byte.
        at: usize,
        /// Number of bytes.
        len: usize,
        /// The bytes.
        data: LineBytes,
    },
    /// Flushes a line from all caches.
    Flush,
    /// Purges a line from all caches.
    Purge,
    /// Prefetches a line.
    Prefetch,
    /// Sends a command to the I/O adapter.
    TlbCommand(TlbCommand),
}

/// A queued operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    /// The ticket; `None` for prefetches that the processor issued itself.
    ticket: Option<u64>,
    line: Line,
    act: Act,
}

/// The next need of a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Idle.
    Nothing,
    /// Busy until this time.
    Time(Ticks),
    /// The operation can be executed without the bus.
    Hit,
    /// A bus transaction.
    Bus(Transaction),
}

/// A completed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Identifier of the operation.
    pub ticket: u64,
    /// Time of completion.
    pub at: Ticks,
    /// The bytes loaded, from offset 0 on.
    pub data: LineBytes,
    /// Number of bytes loaded: a line, or those of an uncached load.
    pub len: usize,
}

/// The result of a bus transaction for its master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The line read.
    pub data: LineBytes,
    /// Whether another cache keeps the line.
    pub is_shared: bool,
    /// Time at which the data arrives.
    pub at: Ticks,
}

/// State of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    spec: Spec,
    cache: ProcessorCache,
    queue: VecDeque<Asked>,
    busy: Ticks,
}

impl Processor {
    /// Creates an idle processor with an empty cache.
    #[must_use]
    pub fn new(spec: Spec) -> Processor {
        let cache = ProcessorCache::new(spec.cache.clone());
        Processor { spec, cache, queue: VecDeque::new(), busy: Ticks::ZERO }
    }

    /// Returns the cache.
    #[must_use]
    pub fn cache(&self) -> &ProcessorCache {
        &self.cache
    }

    /// Returns the cache, to snoop transactions of others.
    pub fn cache_mut(&mut self) -> &mut ProcessorCache {
        &mut self.cache
    }

    /// Returns the number of outstanding operations.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Queues an operation.
    pub fn ask(&mut self, ticket: u64, line: Line, act: Act) {
        self.queue.push_back(Asked { ticket: Some(ticket), line, act });
    }

    /// Returns the next need of the processor at `now`.
    #[must_use]
    pub fn want(&self, now: Ticks) -> Want {
        let Some(Asked { line, act, .. }) = self.queue.front() else { return Want::Nothing };
        if self.busy > now {
            return Want::Time(self.busy);
        }
        let line_bytes = self.spec.cache.line_bytes;
        let kind = match (act, self.cache.state(*line)) {
            (Act::Flush, _) => TransactionKind::Flush,
            (Act::Purge, _) => TransactionKind::Purge,
            (Act::TlbCommand(command), _) => {
                return Want::Bus(Transaction {
                    command: Some(*command),
                    ..Transaction::past_caches(TransactionKind::Write(4), *line)
                });
            }
            (Act::LoadUncached { at, len }, _) => {
                let kind = TransactionKind::Read(*len as u64);
                return Want::Bus(Transaction { at: *at, ..Transaction::past_caches(kind, *line) });
            }
            (Act::StoreUncached { at, len, data }, _) => {
                let kind = TransactionKind::Write(*len as u64);
                return Want::Bus(Transaction { at: *at, data: *data, ..Transaction::past_caches(kind, *line) });
            }
            (Act::Load | Act::Prefetch, Some(_)) | (Act::Store { .. }, Some(LineState::Private | LineState::Dirty)) => {
                return Want::Hit;
            }
            (Act::Load | Act::Prefetch, None) => TransactionKind::Read(line_bytes),
            (Act::Store { .. }, _) => TransactionKind::ReadPrivate(line_bytes),
        };
        let fetches = matches!(kind, TransactionKind::Read(_) | TransactionKind::ReadPrivate(_));
        Want::Bus(match self.cache.in_the_way(*line).filter(|_| fetches) {
            Some((old, data)) => Transaction { data, ..Transaction::of(TransactionKind::Write(line_bytes), old) },
            None => Transaction::of(kind, *line),
        })
    }

    /// Executes the first operation without the bus.
    pub fn hit(&mut self, now: Ticks) -> Option<Done> {
        let is_free = self.queue.front().is_some_and(|asked| asked.act == Act::Prefetch);
        self.finish(if is_free { now } else { now + self.spec.hit }, None)
    }

    /// Receives the result of the transaction that [`Processor::want`] returned.
    pub fn take(&mut self, transaction: &Transaction, granted: Granted) -> Option<Done> {
        self.busy = granted.at;
        match transaction.kind {
            _ if !transaction.coherent => return self.finish(granted.at, Some(granted.data)),
            TransactionKind::Write(_) => {
                self.cache.invalidate(transaction.line);
                return None;
            }
            TransactionKind::Read(_) | TransactionKind::ReadPrivate(_) => {
                let is_shared = granted.is_shared && matches!(transaction.kind, TransactionKind::Read(_));
                let state = if is_shared { LineState::Shared } else { LineState::Private };
                self.cache.fill(transaction.line, state, granted.data);
                self.read_ahead(transaction.line);
            }
            TransactionKind::WritePurge(_) | TransactionKind::Flush | TransactionKind::Purge => {}
        }
        self.finish(granted.at, None)
    }

    /// Queues a prefetch of the next line of the page after a miss.
    fn read_ahead(&mut self, line: Line) {
        let step = self.spec.cache.line_bytes;
        let next = Line { physical: line.physical + step, index: line.index + step };
        let is_asked = self.queue.front().is_some_and(|asked| asked.act != Act::Prefetch);
        if self.spec.prefetches && is_asked && !next.physical.is_multiple_of(PAGE_BYTES) {
            self.queue.insert(1, Asked { ticket: None, line: next, act: Act::Prefetch });
        }
    }

    /// Completes the first operation at `at`. An uncached load passes its own bytes in `past_caches`.
    fn finish(&mut self, at: Ticks, past_caches: Option<LineBytes>) -> Option<Done> {
        let Asked { ticket, line, act } = self.queue.pop_front()?;
        self.busy = at;
        if let Act::Store { at, len, data } = act {
            self.cache.write(line, at, &data[at..at + len]);
        }
        let mut data = past_caches.or_else(|| self.cache.read(line).copied()).unwrap_or([0; _]);
        let len = if let Act::LoadUncached { at, len } = act {
            data.copy_within(at..at + len, 0);
            len
        } else {
            self.spec.cache.line_bytes as usize
        };
        ticket.map(|ticket| Done { ticket, at, data, len })
    }
}
