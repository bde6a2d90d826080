//! The last-level cache as seen by devices: which lines of host memory it holds, without their bytes.
//!
//! A line enters on a write by a core or a device, or on a read of a table entry by an IOMMU. It replaces the line of
//! its set that was written the longest ago: any line for a core, a line in the DDIO ways for a device. A cached line
//! stays in its way when it is written again. Device reads change nothing. Of a range that a core wrote in order, the
//! last lines stay, up to the capacity; of one that a device wrote, up to the capacity of the DDIO ways.

use lanemark_platform::{Memory, Platform};

/// Ways of a set.
const WAYS: usize = Memory::CACHE_WAYS as usize;
const LINE: u64 = Memory::LINE_BYTES;
/// An empty way; line numbers are smaller.
const INVALID: u64 = u64::MAX;

/// A line and its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    line: u64,
    way: u8,
}

/// Sets of lines, the line written last first; empty ways are at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLevelCache {
    sets: Vec<[Held; WAYS]>,
    /// Number of ways that devices may fill, from way 0 on.
    ddio_ways: u8,
}

impl LastLevelCache {
    /// Creates an empty cache of `lines` lines, a multiple of the ways; devices fill the first `ddio_ways` ways.
    #[must_use]
    pub fn new(lines: u64, ddio_ways: u8) -> LastLevelCache {
        let empty = std::array::from_fn(|way| Held { line: INVALID, way: way as u8 });
        LastLevelCache { sets: vec![empty; lines as usize / WAYS], ddio_ways }
    }

    /// Creates the empty cache of a platform.
    #[must_use]
    pub fn of(platform: &Platform) -> LastLevelCache {
        let lines = |memory: &Memory| LastLevelCache::new(memory.cached_lines(), memory.ddio_ways.value as u8);
        platform.memory.as_ref().map_or_else(|| LastLevelCache::new(0, 1), lines)
    }

    /// Returns whether the platform has such a cache.
    #[inline]
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Writes bytes by a core. Lines that the same range evicts again are skipped.
    #[inline]
    pub fn write_by_core(&mut self, address: u64, bytes: u64) {
        self.write(address, bytes, WAYS as u8, WAYS as u64);
    }

    /// Reads a table entry, which caches its line as a core's read does; returns whether it hit.
    pub fn read_entry(&mut self, address: u64) -> bool {
        let was_here = self.holds(address, 1);
        self.write_by_core(address, 1);
        was_here
    }

    /// Writes bytes by a device.
    #[inline]
    pub fn write_by_device(&mut self, address: u64, bytes: u64) {
        self.write(address, bytes, self.ddio_ways, u64::MAX);
    }

    /// Writes bytes by a device that are in no cache. Lines that the same range evicts again are skipped.
    pub fn fill_by_device(&mut self, address: u64, bytes: u64) {
        self.invalidate(address, bytes);
        self.write(address, bytes, self.ddio_ways, u64::from(self.ddio_ways));
    }

    /// Fills the lines of a range in order into the first `ways` ways; of each set only the last `most`.
    #[inline]
    fn write(&mut self, address: u64, bytes: u64, ways: u8, most: u64) {
        if !self.is_there() || bytes == 0 {
            return;
        }
        let (first, last) = (address / LINE, (address + bytes - 1) / LINE);
        let count = self.sets.len() as u64;
        for line in first.max((last + 1).saturating_sub(count.saturating_mul(most)))..=last {
            let set = &mut self.sets[(line % count) as usize];
            let there = set.iter().position(|held| held.line == line);
            let oldest = || set.iter().rposition(|held| held.way < ways);
            let Some(place) = there.or_else(oldest) else { continue };
            set[place].line = line;
            set[..=place].rotate_right(1);
        }
    }

    /// Drops every line.
    pub fn clear(&mut self) {
        self.sets.iter_mut().flatten().for_each(|held| held.line = INVALID);
    }

    /// Drops the lines of a range.
    pub fn invalidate(&mut self, address: u64, bytes: u64) {
        if !self.is_there() || bytes == 0 {
            return;
        }
        let (lines, count) = (address / LINE..=(address + bytes - 1) / LINE, self.sets.len() as u64);
        let touched = count.min(lines.end() - lines.start() + 1);
        for first in *lines.start()..lines.start() + touched {
            let set = &mut self.sets[(first % count) as usize];
            set.iter_mut().filter(|held| lines.contains(&held.line)).for_each(|held| held.line = INVALID);
            set.sort_by_key(|held| held.line == INVALID);
        }
    }

    /// Returns whether every line of a range is cached.
    #[inline]
    #[must_use]
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        (address / LINE..=(address + bytes.max(1) - 1) / LINE).all(|line| self.has(line))
    }

    /// Returns whether a line is cached.
    #[inline]
    #[must_use]
    pub fn has(&self, line: u64) -> bool {
        let count = self.sets.len() as u64;
        self.is_there() && self.sets[(line % count) as usize].iter().any(|held| held.line == line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a cache of two sets, hence 32 lines.
    fn cache() -> LastLevelCache {
        LastLevelCache::new(32, 16)
    }

    #[test]
    fn only_the_last_lines_of_a_written_range_stay_cached() {
        for lines in [32_u64, 33, 100, 1 << 40] {
            let mut cache = cache();
            cache.write_by_core(64, 7 * 64);
            cache.write_by_core(1 << 20, lines * 64);
            let end = (1 << 20) + lines * 64;
            assert!(cache.holds(end - 32 * 64, 32 * 64));
            assert!(!cache.holds(end - 33 * 64, 64) && !cache.holds(end - 32 * 64 - 1, 2));
        }
    }

    #[test]
    fn the_least_recently_written_line_is_evicted_whatever_was_read() {
        for write in [LastLevelCache::write_by_core, LastLevelCache::write_by_device] {
            let mut cache = cache();
            // Sixteen lines of the even set; the first one is written again, and all are looked up.
            for line in (0..32).step_by(2).chain([0]) {
                write(&mut cache, line * 64, 1);
            }
            assert!((0..32).step_by(2).all(|line| cache.holds(line * 64, 64)));
            write(&mut cache, 32 * 64 + 63, 1);
            assert!(!cache.holds(2 * 64, 1) && cache.holds(0, 64) && cache.holds(32 * 64, 64));
            assert!(!cache.holds(64, 1), "the odd set is empty");
        }
    }

    #[test]
    fn a_streaming_device_evicts_lines_of_the_ddio_ways_only() {
        for ways in 1..=16_u8 {
            let mut cache = LastLevelCache::new(32, ways);
            cache.write_by_core(0, 32 * 64);
            cache.write_by_device(1 << 20, 1000 * 64);
            let end = (1 << 20) + 1000 * 64;
            let held = |from: u64, lines: u64| (0..lines).filter(|line| cache.holds(from + line * 64, 64)).count();
            let share = 2 * u64::from(ways);
            assert!(cache.holds(end - share * 64, share * 64));
            assert_eq!(held(1 << 20, 1000), share as usize, "{ways}");
            assert_eq!(held(0, 32), 32 - share as usize, "{ways}");
        }
    }

    #[test]
    fn reading_table_entries_caches_their_lines() {
        let mut cache = LastLevelCache::new(32, 2);
        let entries: Vec<u64> = (0..16).map(|entry| entry * 8).collect();
        assert_eq!(entries.iter().filter(|entry| !cache.read_entry(**entry)).count(), 2, "two lines");
        assert!(entries.iter().all(|entry| cache.read_entry(*entry)));
        cache.write_by_core(1 << 20, 32 * 64);
        assert!(!cache.read_entry(0));
        assert!(!LastLevelCache::new(0, 1).read_entry(0));
    }

    #[test]
    fn a_write_to_a_cached_line_keeps_its_way() {
        let mut cache = LastLevelCache::new(32, 2);
        cache.write_by_core(0, 32 * 64);
        // Every line stays cached, although devices fill only four ways.
        cache.write_by_device(0, 32 * 64);
        assert!(cache.holds(0, 32 * 64));
        // A core also fills the DDIO ways: they hold the least recently written lines once the others are replaced.
        cache.write_by_core(1 << 20, 32 * 64);
        assert!(cache.holds(1 << 20, 32 * 64) && (0..32).all(|line| !cache.has(line)));
    }

    #[test]
    fn a_device_evicts_the_least_recently_written_line_of_the_ddio_ways() {
        let mut cache = LastLevelCache::new(16, 2);
        for line in [0, 1, 0, 2] {
            cache.write_by_device(line * 64, 64);
        }
        assert_eq!([0, 1, 2].map(|line| cache.has(line)), [true, false, true]);
    }

    #[test]
    fn a_device_fill_caches_the_last_lines_up_to_the_ddio_ways() {
        for lines in [3_u64, 4, 5, 32, 1 << 40] {
            let mut cache = LastLevelCache::new(32, 2);
            cache.write_by_core(0, lines * 64);
            cache.fill_by_device(0, lines * 64);
            let there = lines.min(4);
            assert!(cache.holds((lines - there) * 64, there * 64), "{lines}");
            assert!(lines == there || !cache.has(lines - there - 1), "{lines}");
        }
    }

    #[test]
    fn invalidated_ways_are_filled_before_lines_are_evicted() {
        for lines in [2_u64, 1 << 40] {
            let mut cache = LastLevelCache::new(16, 4);
            cache.write_by_core(0, 16 * 64);
            cache.invalidate(64, lines * 64);
            assert!(cache.has(0) && !cache.has(1) && !cache.has(2) && cache.has(3) == (lines == 2));
            cache.write_by_core(1 << 20, 2 * 64);
            assert!(cache.has(0) && cache.holds(1 << 20, 128), "{lines}");
        }
    }

    #[test]
    fn a_cache_without_capacity_holds_nothing() {
        let mut none = LastLevelCache::new(0, 16);
        none.write_by_core(0, 64);
        none.fill_by_device(0, 64);
        none.invalidate(0, 64);
        assert!(!none.is_there() && !none.holds(0, 1));
    }
}
