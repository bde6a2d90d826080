//! Which lines of host memory the last-level cache holds for devices: no bytes, only whether a read finds them there.
//!
//! A line comes in when a core or a device writes it, or an IOMMU reads an entry of its table there. One that is not there takes the place of the line of its set that was
//! written longest ago: a core's of any, a device's of those in the ways that devices may fill. One that is there stays where it
//! is. Reads of devices change nothing. So of a range that a core wrote from its start to its end, the last lines stay, as many as there is
//! room for, whatever was there before; of one that a device wrote and that was nowhere before, as many as its ways have room for.

use lanemark_platform::Memory;

/// Lines of a set.
const WAYS: usize = Memory::CACHE_WAYS as usize;
const LINE: u64 = Memory::LINE_BYTES;
/// No line: addresses are shorter.
const INVALID: u64 = u64::MAX;

/// A line and the way that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    line: u64,
    way: u8,
}

/// Sets, each with the line written last first, and ways without a line at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLevelCache {
    sets: Vec<[Held; WAYS]>,
    /// Devices fill the ways below this one.
    ddio_ways: u8,
}

impl LastLevelCache {
    /// With room for so many lines, a multiple of those of a set, and none in it; a device's may fill so many ways.
    #[must_use]
    pub fn new(lines: u64, ddio_ways: u8) -> LastLevelCache {
        let empty = std::array::from_fn(|way| Held { line: INVALID, way: way as u8 });
        LastLevelCache { sets: vec![empty; lines as usize / WAYS], ddio_ways }
    }

    /// Whether there is one at all.
    #[inline]
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.sets.is_empty()
    }

    /// A core writes these bytes; lines that would leave again are not looked at.
    #[inline]
    pub fn write_by_core(&mut self, address: u64, bytes: u64) {
        self.write(address, bytes, WAYS as u8, WAYS as u64);
    }

    /// An entry of a table at this address is read, as if by a core: whether its line was here. From now on it is.
    pub fn read_entry(&mut self, address: u64) -> bool {
        let was_here = self.holds(address, 1);
        self.write_by_core(address, 1);
        was_here
    }

    /// A device writes these bytes.
    #[inline]
    pub fn write_by_device(&mut self, address: u64, bytes: u64) {
        self.write(address, bytes, self.ddio_ways, u64::MAX);
    }

    /// A device writes these bytes, which were in no cache; lines that would leave again are not looked at.
    pub fn fill_by_device(&mut self, address: u64, bytes: u64) {
        self.invalidate(address, bytes);
        self.write(address, bytes, self.ddio_ways, u64::from(self.ddio_ways));
    }

    /// Lines enter in order, into ways below `ways`: of each set the last `most`.
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

    /// Lines of these bytes leave.
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

    /// Whether all lines that these bytes touch are here.
    #[inline]
    #[must_use]
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        (address / LINE..=(address + bytes.max(1) - 1) / LINE).all(|line| self.has(line))
    }

    /// Whether a line is here.
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

    /// Two sets: 32 lines.
    fn cache() -> LastLevelCache {
        LastLevelCache::new(32, 16)
    }

    #[test]
    fn of_a_range_that_was_written_the_last_lines_stay_and_one_before_them_does_not() {
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
    fn the_line_of_a_set_that_leaves_is_the_one_written_longest_ago_and_reads_do_not_keep_it() {
        for write in [LastLevelCache::write_by_core, LastLevelCache::write_by_device] {
            let mut cache = cache();
            // Sixteen lines of the even set; the first is written again, and all are looked for.
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
    fn a_device_that_streams_pushes_out_what_is_in_its_ways_and_nothing_else() {
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
    fn entries_of_a_table_come_in_line_by_line_when_they_are_read() {
        let mut cache = LastLevelCache::new(32, 2);
        let entries: Vec<u64> = (0..16).map(|entry| entry * 8).collect();
        assert_eq!(entries.iter().filter(|entry| !cache.read_entry(**entry)).count(), 2, "two lines");
        assert!(entries.iter().all(|entry| cache.read_entry(*entry)));
        cache.write_by_core(1 << 20, 32 * 64);
        assert!(!cache.read_entry(0));
        assert!(!LastLevelCache::new(0, 1).read_entry(0));
    }

    #[test]
    fn a_line_that_is_there_is_updated_where_it_is_whoever_writes_it() {
        let mut cache = LastLevelCache::new(32, 2);
        cache.write_by_core(0, 32 * 64);
        // All of them are there, though devices have four places.
        cache.write_by_device(0, 32 * 64);
        assert!(cache.holds(0, 32 * 64));
        // A core fills a device's ways too, for those were written longest ago once all others are.
        cache.write_by_core(1 << 20, 32 * 64);
        assert!(cache.holds(1 << 20, 32 * 64) && (0..32).all(|line| !cache.has(line)));
    }

    #[test]
    fn among_the_ways_of_devices_the_line_written_longest_ago_leaves() {
        let mut cache = LastLevelCache::new(16, 2);
        for line in [0, 1, 0, 2] {
            cache.write_by_device(line * 64, 64);
        }
        assert_eq!([0, 1, 2].map(|line| cache.has(line)), [true, false, true]);
    }

    #[test]
    fn what_a_device_fills_leaves_its_share_of_the_last_lines_wherever_they_were_before() {
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
    fn lines_that_leave_make_room_before_others_have_to() {
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
    fn without_room_nothing_is_ever_there() {
        let mut none = LastLevelCache::new(0, 16);
        none.write_by_core(0, 64);
        none.fill_by_device(0, 64);
        none.invalidate(0, 64);
        assert!(!none.is_there() && !none.holds(0, 1));
    }
}
