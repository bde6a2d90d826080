//! A core's cached lines of device memory (WT, WP), and the fill buffers that fetch them.
//!
//! Device memory is not kept coherent: when the device writes, a cached line stays as it was until it is
//! flushed, stored to, or given up.

use std::collections::{BTreeMap, VecDeque};

/// What a cached load finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The line is here.
    Hit,
    /// The line is on its way to this fill buffer.
    Coming(usize),
    /// It must be fetched, and this fill buffer is free.
    Fetch(usize),
    /// It must be fetched, and no fill buffer is free.
    Wait,
}

/// Lines and fill buffers of one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    lines: BTreeMap<u64, [u8; 64]>,
    oldest: VecDeque<u64>,
    capacity: usize,
    fills: Vec<Fill>,
    coming: u32,
}

/// A fill buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    Free,
    /// Fetches this line.
    Coming(u64),
    /// Fetches a line that somebody has stored to since: it serves the loads that wait and is not kept.
    Outdated,
}

impl Cache {
    /// Room for `capacity` lines and `fills` fetches together.
    #[must_use]
    pub fn new(capacity: usize, fills: usize) -> Cache {
        Cache { lines: BTreeMap::new(), oldest: VecDeque::new(), capacity, fills: vec![Fill::Free; fills], coming: 0 }
    }

    /// Looks for `line`.
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

    /// The bytes of a line that is here.
    #[must_use]
    pub fn line(&self, line: u64) -> Option<&[u8; 64]> {
        self.lines.get(&line)
    }

    /// Fill buffer `place` fetches `line`.
    pub fn fetch(&mut self, place: usize, line: u64) {
        self.fills[place] = Fill::Coming(line);
        self.coming += 1;
    }

    /// Fill buffer `place` has got its line.
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

    /// Drops a line, if it is here; if it is on its way, it will not be kept.
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

    /// Drops every line, as when whoever used them is gone.
    pub fn drop_all(&mut self) {
        self.lines.clear();
        self.oldest.clear();
    }

    /// A store through the cache: bytes of a line that is here change with it.
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
    fn the_line_given_up_is_the_oldest() {
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
    fn a_line_dropped_while_it_comes_is_not_kept() {
        let mut cache = Cache::new(8, 2);
        cache.fetch(0, 0);
        cache.drop_line(0);
        assert_eq!(cache.find(0), Found::Fetch(1), "a load after the drop needs the line anew");
        cache.fill(0, &[1; 64]);
        assert_eq!((cache.find(0), cache.line(0)), (Found::Fetch(0), None));
    }
}
