//! A core's cache of device memory (WT, WP), and its fill buffers.
//!
//! Device memory is not coherent: a device write does not change a cached line until it is flushed, stored to or
//! evicted.

use std::collections::{BTreeMap, VecDeque};

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Hit.
    Hit,
    /// Miss; this fill buffer is fetching the line.
    Coming(usize),
    /// Miss; this fill buffer is free to fetch the line.
    Fetch(usize),
    /// Miss; no fill buffer is free.
    Wait,
}

/// Cached lines and fill buffers of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    lines: BTreeMap<u64, [u8; 64]>,
    oldest: VecDeque<u64>,
    capacity: usize,
    fills: Vec<Fill>,
    coming: u32,
}

/// State of a fill buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Free,
    /// Fetching this line.
    Coming(u64),
    /// Fetching a line that was stored to since: it serves the waiting loads and is not cached.
    Outdated,
}

impl Cache {
    /// Creates a cache of `capacity` lines with `fills` fill buffers.
    #[must_use]
    pub fn new(capacity: usize, fills: usize) -> Cache {
        Cache { lines: BTreeMap::new(), oldest: VecDeque::new(), capacity, fills: vec![Fill::Free; fills], coming: 0 }
    }

    /// Looks up `line`.
    #[must_use]
    pub fn find(&self, line: u64) -> Found {
        if self.lines.contains_key(&line) {
            Found::Hit
        } else if let Some(place) = self.fills.iter().position(|fill| *fill == Fill::Coming(line)) {
            Found::Coming(place)
        } else {
            self.fills.iter().position(|fill| *fill == Fill::Free).map_or(Found::Wait, Found::Fetch)
        }
    }

    /// Returns the bytes of a cached line.
    #[must_use]
    pub fn line(&self, line: u64) -> Option<&[u8; 64]> {
        self.lines.get(&line)
    }

    /// Starts the fetch of `line` in fill buffer `place`.
    pub fn fetch(&mut self, place: usize, line: u64) {
        self.fills[place] = Fill::Coming(line);
        self.coming += 1;
    }

    /// Completes the fetch of fill buffer `place`.
    pub fn fill(&mut self, place: usize, data: &[u8; 64]) {
        self.coming -= 1;
        let Fill::Coming(line) = std::mem::replace(&mut self.fills[place], Fill::Free) else { return };
        if self.lines.insert(line, *data).is_none() {
            self.oldest.push_back(line);
        }
        while self.lines.len() > self.capacity {
            if let Some(old) = self.oldest.pop_front() {
                self.lines.remove(&old);
            }
        }
    }

    /// Drops a line. A line being fetched will not be cached.
    #[inline]
    pub fn drop_line(&mut self, line: u64) {
        if self.coming > 0 || !self.lines.is_empty() {
            self.drop_present(line);
        }
    }

    fn drop_present(&mut self, line: u64) {
        for fill in &mut self.fills {
            if *fill == Fill::Coming(line) {
                *fill = Fill::Outdated;
            }
        }
        if self.lines.remove(&line).is_some() {
            self.oldest.retain(|other| *other != line);
        }
    }

    /// Drops every line, at the end of a program.
    pub fn drop_all(&mut self) {
        self.lines.clear();
        self.oldest.clear();
    }

    /// Updates a cached line by a write-through store.
    pub fn update(&mut self, address: u64, data: &[u8]) {
        if let Some(line) = self.lines.get_mut(&(address & !63)) {
            let offset = (address % 64) as usize;
            line[offset..offset + data.len()].copy_from_slice(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_line_is_evicted() {
        let mut cache = Cache::new(2, 1);
        for line in [0, 64, 128] {
            cache.fetch(0, line);
            cache.fill(0, &[0; 64]);
        }
        assert_eq!((cache.find(0), cache.find(64), cache.find(128)), (Found::Fetch(0), Found::Hit, Found::Hit));
    }

    #[test]
    fn fetches_beyond_the_fill_buffers_wait() {
        let mut cache = Cache::new(8, 2);
        cache.fetch(0, 0);
        assert_eq!(cache.find(64), Found::Fetch(1));
        cache.fetch(1, 64);
        assert_eq!((cache.find(64), cache.find(128)), (Found::Coming(1), Found::Wait));
    }

    #[test]
    fn a_line_dropped_during_its_fetch_is_not_cached() {
        let mut cache = Cache::new(8, 2);
        cache.fetch(0, 0);
        cache.drop_line(0);
        assert_eq!(cache.find(0), Found::Fetch(1), "a load after the drop fetches the line again");
        cache.fill(0, &[1; 64]);
        assert_eq!((cache.find(0), cache.line(0)), (Found::Fetch(0), None));
    }
}
