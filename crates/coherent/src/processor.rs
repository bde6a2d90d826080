//! A processor on a bus: loads, stores, flushes, purges and prefetches of lines, and loads and stores of words that go past
//! all caches, one after the other.
//!
//! Ports: [`Processor::ask`] takes what it is to do, [`Processor::want`] says what it needs next, [`Processor::take`] gives
//! it what the bus did for it, and [`Processor::hit`] is what it does alone.
//!
//! Where it prefetches, a load or store that had to fetch its line fetches the next one of the page, too, unasked.

use crate::adapter_tlb::{PAGE_BYTES, TlbCommand};
use crate::bus::{Line, LineBytes, Transaction, TransactionKind};
use crate::processor_cache::{self, LineState, ProcessorCache};
use lanemark_units::Ticks;
use std::collections::VecDeque;

/// The most bytes of an access that goes past the caches: a double word.
pub const MOST_UNCACHED_BYTES: usize = 8;

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Its cache.
    pub cache: processor_cache::Spec,
    /// How long a load or store takes that finds its line.
    pub hit: Ticks,
    /// Does it fetch lines that nobody asked for?
    pub prefetches: bool,
}

/// What a processor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reads a line.
    Load,
    /// Writes bytes of a line: so many, from byte `at` on, each at its place in `data`.
    Store {
        /// The first.
        at: usize,
        /// How many.
        len: usize,
        /// The bytes.
        data: LineBytes,
    },
    /// Reads so many bytes of a line, from byte `at` on, as memory has them: no cache looks, its own neither.
    LoadUncached {
        /// The first.
        at: usize,
        /// How many.
        len: usize,
    },
    /// Writes bytes of a line to memory; whoever has the line keeps what it has. Memory is assumed to take so few bytes: what is
    /// published of writes that are shorter than half a line is of the I/O adapter.
    StoreUncached {
        /// The first.
        at: usize,
        /// How many.
        len: usize,
        /// The bytes.
        data: LineBytes,
    },
    /// Has a line flushed from all caches.
    Flush,
    /// Has a line purged from all caches.
    Purge,
    /// Fetches a line.
    Prefetch,
    /// Tells the I/O adapter something.
    TlbCommand(TlbCommand),
}

/// What is to be done, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    /// `None` for what nobody asked for.
    ticket: Option<u64>,
    line: Line,
    act: Act,
}

/// What a master needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing, until somebody asks.
    Nothing,
    /// Time, until then.
    Time(Ticks),
    /// No bus: it has what it needs.
    Hit,
    /// The bus.
    Bus(Transaction),
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// For whom.
    pub ticket: u64,
    /// From when on whoever asked knows.
    pub at: Ticks,
    /// What was loaded, from its first byte on.
    pub data: LineBytes,
    /// How many bytes that is: a line, or what was loaded past the caches.
    pub len: usize,
}

/// What the bus did for a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The line that was read.
    pub data: LineBytes,
    /// Did somebody else keep it?
    pub is_shared: bool,
    /// When it is here.
    pub at: Ticks,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    spec: Spec,
    cache: ProcessorCache,
    queue: VecDeque<Asked>,
    busy: Ticks,
}

impl Processor {
    /// With nothing to do, and an empty cache.
    #[must_use]
    pub fn new(spec: Spec) -> Processor {
        let cache = ProcessorCache::new(spec.cache.clone());
        Processor { spec, cache, queue: VecDeque::new(), busy: Ticks::ZERO }
    }

    /// Its cache, to look into.
    #[must_use]
    pub fn cache(&self) -> &ProcessorCache {
        &self.cache
    }

    /// Its cache, for what others do on the bus.
    pub fn cache_mut(&mut self) -> &mut ProcessorCache {
        &mut self.cache
    }

    /// How much it has been asked for and has not done.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// It is to do this, after what it was asked before.
    pub fn ask(&mut self, ticket: u64, line: Line, act: Act) {
        self.queue.push_back(Asked { ticket: Some(ticket), line, act });
    }

    /// What it needs next, at `now`.
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

    /// It does what it needs no bus for.
    pub fn hit(&mut self, now: Ticks) -> Option<Done> {
        let is_free = self.queue.front().is_some_and(|asked| asked.act == Act::Prefetch);
        self.finish(if is_free { now } else { now + self.spec.hit }, None)
    }

    /// The bus did for it what it [wanted](Processor::want).
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

    /// A line was fetched because somebody asked for it: the next of its page follows.
    fn read_ahead(&mut self, line: Line) {
        let step = self.spec.cache.line_bytes;
        let next = Line { physical: line.physical + step, index: line.index + step };
        let is_asked = self.queue.front().is_some_and(|asked| asked.act != Act::Prefetch);
        if self.spec.prefetches && is_asked && !next.physical.is_multiple_of(PAGE_BYTES) {
            self.queue.insert(1, Asked { ticket: None, line: next, act: Act::Prefetch });
        }
    }

    /// The first thing in line is done, as far as caches are concerned; whoever asked knows at `at`. What went past the caches
    /// brought its own bytes.
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
