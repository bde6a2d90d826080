//! Results that are kept for later transfers and requests.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Results of earlier transfers or requests by what they have in common.
pub(super) struct Kept<K, V> {
    entries: Vec<(K, V)>,
    /// Places of all entries by their keys, once there are more than a few.
    places: FxHashMap<K, usize>,
    /// Entry after the one found last: most windows repeat their order.
    next: usize,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        Kept { entries: Vec::new(), places: FxHashMap::default(), next: 0 }
    }
}

/// Number of results that are kept: one for each byte of a page.
const MOST_KEPT: usize = 4096;

/// Number of results that are searched one after the other: that is faster than to fill a map.
const FEW: usize = 8;

impl<K: Copy + Eq + Hash, V> Kept<K, V> {
    /// The result for this key.
    pub(super) fn find(&mut self, key: Option<K>) -> Option<&mut V> {
        let key = key?;
        let expected = if self.next < self.entries.len() { self.next } else { 0 };
        let place = match self.entries.get(expected) {
            Some((other, _)) if *other == key => expected,
            _ if self.entries.len() <= FEW => self.entries.iter().position(|(other, _)| *other == key)?,
            _ => *self.places.get(&key)?,
        };
        self.next = place + 1;
        self.entries.get_mut(place).map(|(_, value)| value)
    }

    /// Keeps a result, if there is a key and room.
    pub(super) fn keep(&mut self, key: Option<K>, value: V) -> Option<&mut V> {
        let key = key.filter(|_| self.entries.len() < MOST_KEPT)?;
        self.entries.push((key, value));
        let new = if self.entries.len() == FEW + 1 { 0 } else { self.entries.len() - 1 };
        if self.entries.len() > FEW {
            self.places.extend(self.entries[new..].iter().zip(new..).map(|((key, _), place)| (*key, place)));
        }
        self.entries.last_mut().map(|(_, value)| value)
    }

    /// All results, in the order in which they were kept.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_found_by_their_keys_in_any_order_as_long_as_there_is_room() {
        let mut kept = Kept::default();
        assert_eq!(kept.keep(None, 1), None, "without a key");
        for key in 0..MOST_KEPT {
            assert_eq!(kept.find(Some(key)), None);
            assert_eq!(kept.keep(Some(key), 2 * key), Some(&mut (2 * key)));
            for known in [key, 0, key / 2] {
                assert_eq!(kept.find(Some(known)), Some(&mut (2 * known)), "{known} of {key}");
            }
        }
        assert_eq!(kept.keep(Some(MOST_KEPT), 1), None);
        assert_eq!(kept.find(Some(MOST_KEPT)), None);
        assert_eq!(kept.values().count(), MOST_KEPT);
    }
}
