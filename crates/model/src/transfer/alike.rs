//! Transfers and requests with the same sums and parameters, which are computed once.

use super::way::Way;
use lanemark_machine::{Partner, Transfer};
use lanemark_units::Ticks;
use lanemark_wire::Chunk;
use std::collections::HashMap;
use std::hash::Hash;

/// What transfers with the same sum have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Alike {
    /// Requests and completions are split at page boundaries, or at smaller ones.
    offset_in_page: u64,
    is_cached: bool,
}

/// What requests with the same parameters have in common, all from or to host memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AlikePiece {
    bytes: u32,
    offset_in_page: u64,
    is_cached: bool,
}

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Results of earlier transfers or requests by what they have in common.
pub(super) struct Kept<K, V> {
    entries: Vec<(K, V)>,
    places: HashMap<K, usize>,
    /// Entry after the one found last: most windows repeat their order.
    next: usize,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        Kept { entries: Vec::new(), places: HashMap::new(), next: 0 }
    }
}

/// Number of results that are kept: one for each byte of a page.
const MOST_KEPT: usize = 4096;

impl<K: Copy + Eq + Hash, V: Copy> Kept<K, V> {
    /// The result for this key.
    pub(super) fn find(&mut self, key: Option<K>) -> Option<V> {
        let key = key?;
        let expected = if self.next < self.entries.len() { self.next } else { 0 };
        let is_expected = self.entries.get(expected).is_some_and(|entry| entry.0 == key);
        let place = if is_expected { expected } else { *self.places.get(&key)? };
        self.next = place + 1;
        self.entries.get(place).map(|entry| entry.1)
    }

    /// Keeps a result, if there is room.
    pub(super) fn keep(&mut self, key: Option<K>, value: V) -> V {
        if let Some(key) = key.filter(|_| self.entries.len() < MOST_KEPT) {
            self.places.insert(key, self.entries.len());
            self.entries.push((key, value));
        }
        value
    }
}

impl Way<'_> {
    /// Everything that distinguishes the sum of transfer number `nth` from those of others; `None` if its address
    /// itself may matter.
    pub(super) fn alike(&self, nth: u64) -> Option<Alike> {
        let is_of_host = self.transfer.partner == Partner::Host;
        // Chunks of the engine are parts of a page, and its segments begin with the transfer.
        if !is_of_host || self.partial_line() > Ticks::ZERO {
            return None;
        }
        let Transfer { bytes, window, .. } = self.transfer;
        let start = self.base.checked_add(window.place(nth, *bytes))?;
        let end = start.checked_add(*bytes)?;
        // The engine reads a descriptor at each boundary behind the start.
        let block = u64::from(self.dma.descriptor_bytes.value);
        let has_boundary = (end - 1) / block > start / block;
        if has_boundary && !PAGE.is_multiple_of(block) {
            return None;
        }
        let is_cached = self.cached.contains(&start) && end <= self.cached.end;
        if !is_cached && start < self.cached.end && self.cached.start < end {
            return None;
        }
        Some(Alike { offset_in_page: start % PAGE, is_cached })
    }

    /// Everything that distinguishes the parameters of this request from those of others; `None` if its address itself
    /// may matter.
    pub(super) fn alike_piece(&self, chunk: Chunk) -> Option<AlikePiece> {
        let is_of_host = self.transfer.partner == Partner::Host;
        let is_alike = is_of_host && !self.pauses_on_link();
        is_alike.then(|| AlikePiece {
            bytes: chunk.bytes,
            offset_in_page: chunk.address % PAGE,
            is_cached: self.is_cached(chunk),
        })
    }
}
