//! Which lines of host memory the last-level cache holds for devices: no bytes, only whether a read finds them there.
//!
//! A line comes in when a core or a device writes it, and the one of its set that was written longest ago leaves. Reads
//! change nothing. So of a range that was written from its start to its end, the last lines stay, as many as there is room
//! for, whatever was there before.

use lanemark_platform::Memory;

/// Lines of a set.
const WAYS: usize = Memory::CACHE_WAYS as usize;
const LINE: u64 = Memory::LINE_BYTES;
/// No line: addresses are shorter.
const NOTHING: u64 = u64::MAX;

/// Sets, each with the line written last first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLevelCache {
    sets: Vec<[u64; WAYS]>,
}

impl LastLevelCache {
    /// With room for so many lines, a multiple of those of a set, and none in it.
    #[must_use]
    pub fn new(lines: u64) -> LastLevelCache {
        LastLevelCache { sets: vec![[NOTHING; WAYS]; lines as usize / WAYS] }
    }

    /// Whether there is one at all.
    #[inline]
    #[must_use]
    pub fn is_there(&self) -> bool {
        !self.sets.is_empty()
    }

    /// These bytes are written.
    #[inline]
    pub fn write(&mut self, address: u64, bytes: u64) {
        if self.is_there() && bytes > 0 {
            self.enter(address / LINE, (address + bytes - 1) / LINE);
        }
    }

    /// Lines from `first` to `last` are written, in this order; those that would leave again are not looked at.
    fn enter(&mut self, first: u64, last: u64) {
        let count = self.sets.len() as u64;
        for line in first.max((last + 1).saturating_sub(count * WAYS as u64))..=last {
            let set = &mut self.sets[(line % count) as usize];
            let place = set.iter().position(|other| *other == line).unwrap_or(WAYS - 1);
            set[place] = line;
            set[..=place].rotate_right(1);
        }
    }

    /// Whether all lines that these bytes touch are here.
    #[inline]
    #[must_use]
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        let (count, last) = (self.sets.len() as u64, (address + bytes.max(1) - 1) / LINE);
        self.is_there() && (address / LINE..=last).all(|line| self.sets[(line % count) as usize].contains(&line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sets: 32 lines.
    fn cache() -> LastLevelCache {
        LastLevelCache::new(32)
    }

    #[test]
    fn of_a_range_that_was_written_the_last_lines_stay_and_one_before_them_does_not() {
        for lines in [32_u64, 33, 100, 1 << 40] {
            let mut cache = cache();
            cache.write(64, 7 * 64);
            cache.write(1 << 20, lines * 64);
            let end = (1 << 20) + lines * 64;
            assert!(cache.holds(end - 32 * 64, 32 * 64));
            assert!(!cache.holds(end - 33 * 64, 64) && !cache.holds(end - 32 * 64 - 1, 2));
        }
    }

    #[test]
    fn the_line_of_a_set_that_leaves_is_the_one_written_longest_ago_and_reads_do_not_keep_it() {
        let mut cache = cache();
        // Sixteen lines of the even set; the first is written again, and all are looked for.
        for line in (0..32).step_by(2).chain([0]) {
            cache.write(line * 64, 1);
        }
        assert!((0..32).step_by(2).all(|line| cache.holds(line * 64, 64)));
        cache.write(32 * 64 + 63, 1);
        assert!(!cache.holds(2 * 64, 1) && cache.holds(0, 64) && cache.holds(32 * 64, 64));
        assert!(!cache.holds(64, 1), "the odd set is empty");
    }

    #[test]
    fn without_room_nothing_is_ever_there() {
        let mut none = LastLevelCache::new(0);
        none.write(0, 64);
        assert!(!none.is_there() && !none.holds(0, 1));
    }
}
