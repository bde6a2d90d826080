//! Results that are kept for later transfers and requests.

use std::collections::HashMap;
use std::hash::Hash;

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
