//! Which copy for which size, found by measuring.

#![allow(unsafe_code)]

use super::buffer::Buffer;
use super::copy::{Blocks, Copy, ROUTINES, plain64_in_line};
use super::cpu::Cpu;
use super::flush::flush_lines;
use super::pattern;
use super::sample::{Delivery, Limits, Stamps, timed};
use crate::Destination;
use lanemark_machine::{Access, Verb, Width};
use rustix::io::Errno;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// For each size class the routine that was the fastest when it was measured.
#[derive(Clone, Debug)]
pub(crate) struct CopyTable {
    /// By [`class`].
    copies: [Copy; CLASSES],
    accesses: [Access; CLASSES],
    /// How many lengths from [`SHORTEST_IN_LINE`] on go by [`plain64_in_line`] instead: compared, for looking into a table
    /// takes longer.
    in_line: usize,
}

const CLASSES: usize = usize::BITS as usize;
/// The class of 64 B, the first that is measured. What is shorter goes by `memcpy`.
const FIRST: usize = class(64);
/// The class of 4 MiB, the last that is measured. What is longer goes as 4 MiB does, and so does nothing at all.
const LAST: usize = class(4 << 20);

/// The shortest length that may go without a call: the first of the first class that is measured.
const SHORTEST_IN_LINE: usize = 33;
/// The last class that may go without a call. A call and its look into the table take one to five cycles, 1 KiB about
/// twenty.
const LAST_IN_LINE: usize = class(1024);

/// The lengths above one power of two, up to the next, are one class. Three instructions, because a copy of 64 B
/// takes only a few times as many.
const fn class(len: usize) -> usize {
    (len.wrapping_sub(1) | 1).ilog2() as usize
}

/// The longest length of a class.
const fn longest(class: usize) -> usize {
    2 << class
}

/// Bytes that one sample copies at least, so that it is long beside its timestamps and its caches are in a steady
/// state.
const SAMPLE_BYTES: usize = 256 << 10;
/// No measurement of every routine takes as long: an hour.
const LONGEST: Duration = Duration::from_hours(1);
/// Samples of every routine before the slow ones are given up.
const TRIALS: usize = 3;
/// How many times the fastest one's time a routine may take to be tried on.
const IN_THE_RUNNING: f64 = 1.3;
/// Samples of a routine that are enough.
const ENOUGH: usize = 25;

impl CopyTable {
    /// Measures on memory of its own, for about `limit`.
    ///
    /// # Errors
    /// What `mmap` said.
    pub(crate) fn measured(destination: Destination, limit: Duration) -> Result<CopyTable, Errno> {
        let most = longest(LAST);
        let (mut to, mut from) = (Buffer::new(most)?, Buffer::new(most)?);
        pattern::fill(from.bytes_mut(), 1);
        // SAFETY: two mappings of that length, which nobody else has.
        Ok(unsafe { CopyTable::measured_on(to.at(0), from.at(0), most, destination, limit) })
    }

    /// Measures copies of up to `most` bytes to `to`, for about `limit`. Sizes that do not fit go as the largest
    /// that does.
    ///
    /// # Safety
    /// Both ends are valid for `most` bytes, do not overlap, and are used by nobody else meanwhile.
    pub(crate) unsafe fn measured_on(
        to: *mut u8,
        from: *const u8,
        most: usize,
        destination: Destination,
        limit: Duration,
    ) -> CopyTable {
        let there = ways();
        let mut table = CopyTable::of(there[0]);
        let begun = Instant::now();
        let limit = limit.min(LONGEST);
        let sizes = (FIRST..=LAST).filter(|class| longest(*class) <= most).count().max(1) as u32;
        for (place, class) in (FIRST..=LAST).filter(|class| longest(*class) <= most).enumerate() {
            let len = longest(class);
            let count = match destination {
                Destination::Hot => 1,
                Destination::Cold => (SAMPLE_BYTES.min(most) / len).max(1),
            };
            let blocks = Blocks { to, from, len, count };
            // A time left over by smaller sizes is there for larger ones.
            let until = begun + limit * (place as u32 + 1) / sizes;
            let there: Vec<Way> =
                there.iter().filter(|way| !way.is_in_line || class <= LAST_IN_LINE).copied().collect();
            // SAFETY: the blocks lie within both ends, and the processor has every instruction.
            let best = unsafe { fastest(&blocks, destination, &there, until) };
            for entry in class..CLASSES {
                (table.accesses[entry], table.copies[entry]) = (best.access, best.copy);
            }
            // Only from the shortest on without a gap.
            if best.is_in_line && (class == FIRST || table.in_line == longest(class - 1) + 1 - SHORTEST_IN_LINE) {
                table.in_line = longest(class) + 1 - SHORTEST_IN_LINE;
            }
        }
        table
    }

    /// Everything by one way; in line, every class.
    fn of(way: Way) -> CopyTable {
        let in_line = if way.is_in_line { usize::MAX } else { 0 };
        CopyTable { copies: [way.copy; CLASSES], accesses: [way.access; CLASSES], in_line }
    }

    /// What copies of this length are made with.
    pub(crate) fn choice(&self, len: usize) -> Access {
        self.accesses[class(len)]
    }

    /// Copies by the routine for this length.
    ///
    /// # Safety
    /// Both ends are valid for `len` bytes and do not overlap.
    #[inline(always)]
    #[allow(clippy::inline_always)] // A call more would cost as much as the choice.
    pub(crate) unsafe fn copy(&self, to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: the table has routines whose instruction the processor has; the rest is handed on to the caller.
        unsafe {
            if len.wrapping_sub(SHORTEST_IN_LINE) < self.in_line {
                plain64_in_line(to, from, len);
            } else {
                (self.copies[class(len)])(to, from, len);
            }
        }
    }

    /// Times `passes` passes over the zone, a choice for every copy. Compiled once, so that what was measured to be the
    /// fastest is what runs: such short loops differ by where they lie in a line.
    ///
    /// # Safety
    /// As for [`Blocks::timed`].
    #[inline(never)]
    pub(crate) unsafe fn timed(&self, blocks: &Blocks, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        timed(limits, first, passes, |_| {
            // SAFETY: handed on to the caller.
            blocks.each(|to| unsafe { self.copy(to, blocks.from, black_box(blocks.len)) });
            Ok(())
        })
    }
}

/// A way to copy that is tried.
#[derive(Clone, Copy)]
struct Way {
    access: Access,
    copy: Copy,
    /// It is [`plain64_in_line`], and `copy` the routine of the same instruction.
    is_in_line: bool,
}

/// Those that this processor has.
fn ways() -> Vec<Way> {
    let cpu = Cpu::detected();
    let called = ROUTINES.into_iter().map(|(access, copy)| Way { access, copy, is_in_line: false });
    let in_line = called.clone().filter(|way| way.access == Access::Plain(Width::B64));
    let in_line = in_line.map(|way| Way { is_in_line: true, ..way });
    called.chain(in_line).filter(|way| cpu.lacks(Verb::Store, way.access).is_none()).collect()
}

/// The way with the least time, each tried in turn. Times are compared by their lower quartile, because whoever
/// else uses the machine only makes them longer.
///
/// # Safety
/// As for [`Blocks::timed`].
unsafe fn fastest(blocks: &Blocks, destination: Destination, there: &[Way], until: Instant) -> Way {
    static NEVER: AtomicBool = AtomicBool::new(false);
    let limits = Limits {
        timeout_cycles: u64::MAX,
        passes_per_look: u64::MAX,
        interrupted: &NEVER,
        delivery: Delivery::Drained,
    };
    // Each by a table of its own: what is timed is what will run, the look into the table included.
    let mut tried: Vec<(Way, CopyTable, Vec<u64>)> =
        there.iter().map(|way| (*way, CopyTable::of(*way), Vec::new())).collect();
    for round in 0..ENOUGH {
        if round >= TRIALS && Instant::now() >= until {
            break;
        }
        for (_, table, cycles) in &mut tried {
            // SAFETY: handed on to the caller.
            let stamps = unsafe {
                match destination {
                    Destination::Hot => {
                        // What the routine before left in the caches is not this one's affair.
                        table.timed(blocks, &limits, 0, 1);
                        table.timed(blocks, &limits, 0, (SAMPLE_BYTES / blocks.len).max(1) as u64)
                    }
                    Destination::Cold => {
                        flush_lines(blocks.to, blocks.len * blocks.count);
                        table.timed(blocks, &limits, 0, 1)
                    }
                }
            };
            cycles.push(stamps.delivered.saturating_sub(stamps.start));
        }
        if round + 1 == TRIALS {
            let least = tried.iter().map(|(_, _, cycles)| lower_quartile(cycles)).min().unwrap_or(0);
            tried.retain(|(_, _, cycles)| lower_quartile(cycles) as f64 <= least as f64 * IN_THE_RUNNING);
        }
    }
    tried.iter().min_by_key(|(_, _, cycles)| lower_quartile(cycles)).map_or(there[0], |(way, _, _)| *way)
}

fn lower_quartile(cycles: &[u64]) -> u64 {
    let mut sorted = cycles.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 4).copied().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_ends_with_its_power_of_two() {
        for (len, wanted) in [(1, 0), (2, 0), (3, 1), (64, 5), (65, 6), (128, 6), (129, 7), (4 << 20, 21)] {
            assert_eq!(class(len), wanted, "{len}");
            assert!(len <= longest(wanted) && longest(wanted) < 2 * len.max(2), "{len}");
        }
        assert!(class(usize::MAX) < CLASSES && class(0) < CLASSES);
    }

    #[test]
    fn a_table_copies_every_length_to_any_place_and_nothing_else() {
        for destination in [Destination::Hot, Destination::Cold] {
            let table = CopyTable::measured(destination, Duration::from_millis(20)).unwrap();
            let mut from = vec![0; 70_000];
            pattern::fill(&mut from, 3);
            for len in [0, 1, 7, 63, 64, 65, 100, 4096, 4097, 65_536] {
                for start in [0, 1, 64, 100] {
                    let mut to = vec![0_u8; 70_000];
                    // SAFETY: both lie inside their vectors.
                    unsafe { table.copy(to.as_mut_ptr().add(start), from.as_ptr(), len) };
                    assert!(to[start..start + len] == from[..len], "{len} B to {start}");
                    assert!(to[..start].iter().chain(&to[start + len..]).all(|byte| *byte == 0), "{len} B to {start}");
                }
            }
            assert_eq!(table.choice(8), Access::Memcpy);
            assert!(table.in_line + SHORTEST_IN_LINE <= longest(LAST_IN_LINE) + 1);
            assert_eq!(table.choice(4 << 20), table.choice(1 << 40));
        }
    }

    #[test]
    fn a_table_measured_without_time_is_still_one() {
        let begun = Instant::now();
        let table = CopyTable::measured(Destination::Hot, Duration::ZERO).unwrap();
        assert!(super::super::copy::routine(table.choice(4096)).is_some());
        assert!(begun.elapsed() < Duration::from_secs(20), "it must end by itself");
    }
}
