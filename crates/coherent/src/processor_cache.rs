//! A processor's cache on a bus that it watches: lines with their bytes, each shared, private or dirty.
//!
//! Ports: what its processor does is [`ProcessorCache::state`], [`ProcessorCache::fill`], [`ProcessorCache::read`] and
//! [`ProcessorCache::write`]; what others do on the bus is [`ProcessorCache::snoop`].
//!
//! One line has one place in it. Which, the low bits of an address say: of the physical one, or of the virtual one, which
//! is known sooner. Whoever asks on the bus for a line of a virtually indexed cache must say its virtual
//! index, too: with another one the cache looks in the wrong place, and finds nothing.

use crate::bus::{Line, LineBytes, Response, Transaction, TransactionKind};

/// By which address lines are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// By the virtual one.
    Virtually,
    /// By the physical one.
    Physically,
}

/// What never changes during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// How much it holds, in bytes: a power of two.
    pub size_bytes: u64,
    /// How long a line is, in bytes: a power of two.
    pub line_bytes: u64,
    /// By which address lines are looked up.
    pub indexed: Indexed,
}

/// What a cache may do with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Read it; others may have it, too.
    Shared,
    /// Change it; nobody else has it, and memory has the same bytes.
    Private,
    /// Change it; nobody else has it, and memory has older bytes.
    Dirty,
}

/// A line that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    line: Line,
    state: LineState,
    data: LineBytes,
}

/// Everything that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorCache {
    spec: Spec,
    places: Vec<Option<Held>>,
}

impl ProcessorCache {
    /// An empty one.
    #[must_use]
    pub fn new(spec: Spec) -> ProcessorCache {
        let places = vec![None; (spec.size_bytes / spec.line_bytes.max(1)).max(1) as usize];
        ProcessorCache { spec, places }
    }

    /// What it was made from.
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

    /// What may be done with a line, if it is here.
    #[must_use]
    pub fn state(&self, line: Line) -> Option<LineState> {
        self.held(line).map(|held| held.state)
    }

    /// The line that must go to memory before `line` can come.
    #[must_use]
    pub fn in_the_way(&self, line: Line) -> Option<(Line, LineBytes)> {
        let held = self.places[self.place(line)].as_ref()?;
        (held.line.physical != line.physical && held.state == LineState::Dirty).then_some((held.line, held.data))
    }

    /// A line comes, in place of whatever was there.
    pub fn fill(&mut self, line: Line, state: LineState, data: LineBytes) {
        let place = self.place(line);
        self.places[place] = Some(Held { line, state, data });
    }

    /// The bytes of a line that is here.
    #[must_use]
    pub fn read(&self, line: Line) -> Option<&LineBytes> {
        self.held(line).map(|held| &held.data)
    }

    /// Bytes of a line that is here and private change, from byte `at` on; it is dirty then.
    pub fn write(&mut self, line: Line, at: usize, data: &[u8]) {
        if let Some(held) = self.held_mut(line) {
            held.data[at..at + data.len()].copy_from_slice(data);
            held.state = LineState::Dirty;
        }
    }

    /// The line is here no longer.
    pub fn invalidate(&mut self, line: Line) {
        let place = self.place(line);
        self.places[place].take_if(|held| held.line.physical == line.physical);
    }

    /// Every line that is dirty, with its bytes.
    pub fn dirty(&self) -> impl Iterator<Item = (Line, &LineBytes)> {
        self.places.iter().flatten().filter(|held| held.state == LineState::Dirty).map(|held| (held.line, &held.data))
    }

    /// Somebody does this on the bus.
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
    fn whoever_reads_gets_what_is_dirty_and_leaves_it_shared() {
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
    fn whoever_wants_to_change_a_line_leaves_none_behind_and_only_what_is_kept_is_sent() {
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
    fn a_virtually_indexed_cache_finds_a_line_by_its_index_and_a_physical_one_without() {
        for (indexed, state) in [(Indexed::Virtually, None), (Indexed::Physically, Some(LineState::Dirty))] {
            let mut cache = cache(indexed);
            cache.fill(Line::new(0x7020, 0x1020), LineState::Dirty, BYTES);
            assert_eq!(cache.state(Line::new(0x7020, 0x0020)), state, "another index");
            assert_eq!(cache.state(Line::new(0x7020, 0x1020)), Some(LineState::Dirty));
            assert_eq!(cache.state(Line::new(0x9020, 0x1020)), None, "another line");
        }
    }

    #[test]
    fn only_another_line_that_is_dirty_is_in_the_way() {
        let (mut cache, line) = with(LineState::Dirty);
        let other = Line::new(0x9020, 0x1020);
        assert_eq!((cache.in_the_way(line), cache.in_the_way(other)), (None, Some((line, BYTES))));
        cache.snoop(&Transaction::of(TransactionKind::Read(32), line));
        assert_eq!(cache.in_the_way(other), None);
    }
}
