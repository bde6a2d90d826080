//! The snooping cache of a processor: lines with their bytes and states (shared, private or dirty).
//!
//! Ports: its processor calls [`ProcessorCache::state`], [`ProcessorCache::fill`], [`ProcessorCache::read`] and
//! [`ProcessorCache::write`]; the bus calls [`ProcessorCache::snoop`].
//!
//! The cache is direct-mapped. The index comes from the low bits of the physical address, or of the virtual one,
//! which is known sooner. A bus transaction must carry the virtual index for a virtually indexed cache: with a wrong
//! index, the snoop misses.

use crate::bus::{Line, LineBytes, Response, Transaction, TransactionKind};

/// The address that selects the cache index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// Virtually indexed.
    Virtually,
    /// Physically indexed.
    Physically,
}

/// Constants of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Size in bytes, a power of two.
    pub size_bytes: u64,
    /// Line size in bytes, a power of two.
    pub line_bytes: u64,
    /// The address that selects the index.
    pub indexed: Indexed,
}

/// State of a line in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Readable; other caches may have the line.
    Shared,
    /// Writable; no other cache has the line, which is clean.
    Private,
    /// Writable; no other cache has the line, which is dirty.
    Dirty,
}

/// A cached line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    line: Line,
    state: LineState,
    data: LineBytes,
}

/// State of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorCache {
    spec: Spec,
    places: Vec<Option<Held>>,
}

impl ProcessorCache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(spec: Spec) -> ProcessorCache {
        let places = vec![None; (spec.size_bytes / spec.line_bytes.max(1)).max(1) as usize];
        ProcessorCache { spec, places }
    }

    /// Returns the constants.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    fn place(&self, line: Line) -> usize {
        let by = match self.spec.indexed {
            Indexed::Virtually => line.index,
            Indexed::Physically => line.physical,
        };
        (by / self.spec.line_bytes) as usize % self.places.len()
    }

    fn held(&self, line: Line) -> Option<&Held> {
        self.places[self.place(line)].as_ref().filter(|held| held.line.physical == line.physical)
    }

    fn held_mut(&mut self, line: Line) -> Option<&mut Held> {
        let place = self.place(line);
        self.places[place].as_mut().filter(|held| held.line.physical == line.physical)
    }

    /// Returns the state of a line, if it is cached.
    #[must_use]
    pub fn state(&self, line: Line) -> Option<LineState> {
        self.held(line).map(|held| held.state)
    }

    /// Returns the dirty line that must be written back before `line` can be filled.
    #[must_use]
    pub fn in_the_way(&self, line: Line) -> Option<(Line, LineBytes)> {
        let held = self.places[self.place(line)].as_ref()?;
        (held.line.physical != line.physical && held.state == LineState::Dirty).then_some((held.line, held.data))
    }

    /// Fills a line, replacing the one at its index.
    pub fn fill(&mut self, line: Line, state: LineState, data: LineBytes) {
        let place = self.place(line);
        self.places[place] = Some(Held { line, state, data });
    }

    /// Returns the bytes of a cached line.
    #[must_use]
    pub fn read(&self, line: Line) -> Option<&LineBytes> {
        self.held(line).map(|held| &held.data)
    }

    /// Writes bytes of a cached, writable line from offset `at` on; the line becomes dirty.
    pub fn write(&mut self, line: Line, at: usize, data: &[u8]) {
        if let Some(held) = self.held_mut(line) {
            held.data[at..at + data.len()].copy_from_slice(data);
            held.state = LineState::Dirty;
        }
    }

    /// Drops a line.
    pub fn invalidate(&mut self, line: Line) {
        let place = self.place(line);
        self.places[place].take_if(|held| held.line.physical == line.physical);
    }

    /// Returns every dirty line and its bytes.
    pub fn dirty(&self) -> impl Iterator<Item = (Line, &LineBytes)> {
        self.places.iter().flatten().filter(|held| held.state == LineState::Dirty).map(|held| (held.line, &held.data))
    }

    /// Snoops a transaction of another master.
    pub fn snoop(&mut self, transaction: &Transaction) -> Response {
        let line = transaction.line;
        let Some(held) = self.held_mut(line) else { return Response::Ok };
        let copy = if held.state == LineState::Dirty { Response::Copy(held.data) } else { Response::Ok };
        match transaction.kind {
            TransactionKind::Read(_) => {
                held.state = LineState::Shared;
                if copy == Response::Ok { Response::Shared } else { copy }
            }
            TransactionKind::ReadPrivate(_) | TransactionKind::Flush => {
                self.invalidate(line);
                copy
            }
            TransactionKind::Write(_) | TransactionKind::WritePurge(_) | TransactionKind::Purge => {
                self.invalidate(line);
                Response::Ok
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::MOST_LINE_BYTES;

    const BYTES: LineBytes = [7; MOST_LINE_BYTES];

    fn cache(indexed: Indexed) -> ProcessorCache {
        ProcessorCache::new(Spec { size_bytes: 8192, line_bytes: 32, indexed })
    }

    fn with(state: LineState) -> (ProcessorCache, Line) {
        let (mut cache, line) = (cache(Indexed::Virtually), Line::new(0x7020, 0x1020));
        cache.fill(line, state, BYTES);
        (cache, line)
    }

    #[test]
    fn a_snooped_read_of_a_dirty_line_supplies_it_and_leaves_it_shared() {
        use LineState::{Dirty, Private, Shared};
        for (before, response) in
            [(Dirty, Response::Copy(BYTES)), (Private, Response::Shared), (Shared, Response::Shared)]
        {
            let (mut cache, line) = with(before);
            assert_eq!(cache.snoop(&Transaction::of(TransactionKind::Read(32), line)), response, "{before:?}");
            assert_eq!(cache.state(line), Some(Shared), "{before:?}");
        }
    }

    #[test]
    fn a_snooped_private_read_drops_the_line_and_supplies_only_dirty_data() {
        use LineState::{Dirty, Private, Shared};
        let kinds = [
            (TransactionKind::ReadPrivate(32), true),
            (TransactionKind::Flush, true),
            (TransactionKind::Purge, false),
            (TransactionKind::Write(32), false),
            (TransactionKind::WritePurge(16), false),
        ];
        for (kind, is_sent) in kinds {
            for before in [Shared, Private, Dirty] {
                let (mut cache, line) = with(before);
                let meant = if is_sent && before == Dirty { Response::Copy(BYTES) } else { Response::Ok };
                assert_eq!(cache.snoop(&Transaction::of(kind, line)), meant, "{kind} {before:?}");
                assert_eq!(cache.state(line), None, "{kind} {before:?}");
            }
        }
    }

    #[test]
    fn only_a_virtually_indexed_cache_needs_the_virtual_index() {
        for (indexed, state) in [(Indexed::Virtually, None), (Indexed::Physically, Some(LineState::Dirty))] {
            let mut cache = cache(indexed);
            cache.fill(Line::new(0x7020, 0x1020), LineState::Dirty, BYTES);
            assert_eq!(cache.state(Line::new(0x7020, 0x0020)), state, "another index");
            assert_eq!(cache.state(Line::new(0x7020, 0x1020)), Some(LineState::Dirty));
            assert_eq!(cache.state(Line::new(0x9020, 0x1020)), None, "another line");
        }
    }

    #[test]
    fn only_a_dirty_line_of_another_address_must_be_written_back() {
        let (mut cache, line) = with(LineState::Dirty);
        let other = Line::new(0x9020, 0x1020);
        assert_eq!((cache.in_the_way(line), cache.in_the_way(other)), (None, Some((line, BYTES))));
        cache.snoop(&Transaction::of(TransactionKind::Read(32), line));
        assert_eq!(cache.in_the_way(other), None);
    }
}
