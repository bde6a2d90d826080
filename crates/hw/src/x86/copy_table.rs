//! Table of the fastest copy routine for each size, found by measurement.

#![allow(unsafe_code)]

use super::buffer::Buffer;
use super::copy::{Blocks, Copy, ROUTINES, plain64_in_line};
use super::cpu::Cpu;
use super::flush::flush_lines;
use super::pattern;
use super::sample::{Delivery, Limits, Stamps, timed};
use crate::destination::Destination;
use lanemark_machine::{Access, Verb, Width};
use rustix::io::Errno;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Fastest measured routine of each size class.
#[derive(Clone, Debug)]
pub(crate) struct CopyTable {
    /// Indexed by [`class`].
    copies: [Copy; CLASSES],
    accesses: [Access; CLASSES],
    /// Number of lengths, from [`SHORTEST_IN_LINE`] on, that use [`plain64_in_line`]. A comparison is faster than a table
    /// look-up.
    in_line: usize,
}

const CLASSES: usize = usize::BITS as usize;
/// Class of 64 B, the first that is measured; shorter copies use `memcpy`.
const FIRST: usize = class(64);
/// Class of 4 MiB, the last that is measured; longer copies, and those of 0 B, use its routine.
const LAST: usize = class(4 << 20);

/// Shortest length that may be copied inline: the shortest of the first measured class.
const SHORTEST_IN_LINE: usize = 33;
/// Last class that may be copied inline. A call with its table look-up takes one to five cycles, a copy of 1 KiB about
/// twenty.
const LAST_IN_LINE: usize = class(1024);

/// Size class: lengths above one power of two, up to the next. It takes three instructions, because a copy of 64 B
/// takes only a few times as many.
const fn class(len: usize) -> usize {
    (len.wrapping_sub(1) | 1).ilog2() as usize
}

/// Longest length of a class.
const fn longest(class: usize) -> usize {
    2 << class
}

/// Minimum number of bytes per sample, which makes a sample long relative to its timestamps and brings caches to a steady
/// state.
const SAMPLE_BYTES: usize = 256 << 10;
/// Upper limit of the measuring time: one hour.
const LONGEST: Duration = Duration::from_hours(1);
/// Samples of every routine before slow ones are dropped.
const TRIALS: usize = 3;
/// Time of a routine, relative to the fastest, up to which it is measured further.
const STILL_TRIED: f64 = 1.3;
/// Maximum number of samples per routine.
const ENOUGH: usize = 25;

impl CopyTable {
    /// Measures on newly allocated memory, for about `limit`.
    ///
    /// # Errors
    /// Error of `mmap`.
    pub(crate) fn measured(destination: Destination, limit: Duration) -> Result<CopyTable, Errno> {
        let most = longest(LAST);
        let (mut to, mut from) = (Buffer::new(most)?, Buffer::new(most)?);
        pattern::fill(from.bytes_mut(), 1);
        // SAFETY: two separate mappings of that length, without other users.
        Ok(unsafe { CopyTable::measured_on(to.at(0), from.at(0), most, destination, limit) })
    }

    /// Measures copies of up to `most` bytes to `to`, for about `limit`. Larger sizes use the routine of the largest size
    /// that fits.
    ///
    /// # Safety
    /// Both ends must be valid for `most` bytes, must not overlap, and must have no other users meanwhile.
    pub(crate) unsafe fn measured_on(
        to: *mut u8,
        from: *const u8,
        most: usize,
        destination: Destination,
        limit: Duration,
    ) -> CopyTable {
        let candidates = candidates();
        let mut table = CopyTable::of(candidates[0]);
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
            // Time that smaller sizes did not use is available to larger ones.
            let until = begun + limit * (place as u32 + 1) / sizes;
            let candidates: Vec<Candidate> =
                candidates.iter().filter(|candidate| !candidate.is_in_line || class <= LAST_IN_LINE).copied().collect();
            // SAFETY: the blocks lie within both ends, and the processor supports every instruction.
            let best = unsafe { fastest(&blocks, destination, &candidates, until) };
            for entry in class..CLASSES {
                (table.accesses[entry], table.copies[entry]) = (best.access, best.copy);
            }
            // Inline lengths must be contiguous from the shortest on.
            if best.is_in_line && (class == FIRST || table.in_line == longest(class - 1) + 1 - SHORTEST_IN_LINE) {
                table.in_line = longest(class) + 1 - SHORTEST_IN_LINE;
            }
        }
        table
    }

    /// Table that uses one routine for every length; if inline, for every class.
    fn of(candidate: Candidate) -> CopyTable {
        let in_line = if candidate.is_in_line { usize::MAX } else { 0 };
        CopyTable { copies: [candidate.copy; CLASSES], accesses: [candidate.access; CLASSES], in_line }
    }

    /// Instruction that copies of `len` bytes use.
    pub(crate) fn choice(&self, len: usize) -> Access {
        self.accesses[class(len)]
    }

    /// Copies with the routine for this length.
    ///
    /// # Safety
    /// Both ends must be valid for `len` bytes and must not overlap.
    #[inline(always)]
    #[allow(clippy::inline_always)] // A call would cost as much as the choice.
    pub(crate) unsafe fn copy(&self, to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: the table contains supported instructions only; the rest is guaranteed by the caller.
        unsafe {
            if len.wrapping_sub(SHORTEST_IN_LINE) < self.in_line {
                plain64_in_line(to, from, len);
            } else {
                (self.copies[class(len)])(to, from, len);
            }
        }
    }

    /// Times `passes` iterations over the zone, with a table look-up per copy. Never inlined, so that the code that runs
    /// is the code that was measured: such short loops depend on their alignment.
    ///
    /// # Safety
    /// Same as for [`Blocks::timed`].
    #[inline(never)]
    pub(crate) unsafe fn timed(&self, blocks: &Blocks, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        timed(limits, first, passes, |_| {
            // SAFETY: guaranteed by the caller.
            blocks.each(|to| unsafe { self.copy(to, blocks.from, black_box(blocks.len)) });
            Ok(())
        })
    }
}

/// Copy routine under measurement.
#[derive(Clone, Copy)]
struct Candidate {
    access: Access,
    copy: Copy,
    /// Whether it is [`plain64_in_line`]; `copy` is then the routine with the same instruction.
    is_in_line: bool,
}

/// Candidates that this processor supports.
fn candidates() -> Vec<Candidate> {
    let cpu = Cpu::detected();
    let called = ROUTINES.into_iter().map(|(access, copy)| Candidate { access, copy, is_in_line: false });
    let in_line = called.clone().filter(|candidate| candidate.access == Access::Plain(Width::B64));
    let in_line = in_line.map(|candidate| Candidate { is_in_line: true, ..candidate });
    called.chain(in_line).filter(|candidate| cpu.lacks(Verb::Store, candidate.access).is_none()).collect()
}

/// Fastest candidate. Candidates are measured in turn and compared by their lower quartiles, because other load on the
/// machine only makes times longer.
///
/// # Safety
/// Same as for [`Blocks::timed`].
unsafe fn fastest(blocks: &Blocks, destination: Destination, candidates: &[Candidate], until: Instant) -> Candidate {
    static NEVER: AtomicBool = AtomicBool::new(false);
    let limits = Limits {
        timeout_cycles: u64::MAX,
        passes_per_check: u64::MAX,
        interrupted: &NEVER,
        delivery: Delivery::Drained,
    };
    // Each through a table of its own, so that the measured code, with its look-up, is the code that will run.
    let mut tried: Vec<(Candidate, CopyTable, Vec<u64>)> =
        candidates.iter().map(|candidate| (*candidate, CopyTable::of(*candidate), Vec::new())).collect();
    for round in 0..ENOUGH {
        if round >= TRIALS && Instant::now() >= until {
            break;
        }
        for (_, table, cycles) in &mut tried {
            // SAFETY: guaranteed by the caller.
            let stamps = unsafe {
                match destination {
                    Destination::Hot => {
                        // Warm up: replace the cache contents that the previous routine left.
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
            tried.retain(|(_, _, cycles)| lower_quartile(cycles) as f64 <= least as f64 * STILL_TRIED);
        }
    }
    tried.iter().min_by_key(|(_, _, cycles)| lower_quartile(cycles)).map_or(candidates[0], |(best, _, _)| *best)
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
    fn a_size_class_ends_at_a_power_of_two() {
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
                    // SAFETY: both ranges lie within their vectors.
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
    fn a_table_measured_without_time_is_complete() {
        let begun = Instant::now();
        let table = CopyTable::measured(Destination::Hot, Duration::ZERO).unwrap();
        assert!(super::super::copy::routine(table.choice(4096)).is_some());
        assert!(begun.elapsed() < Duration::from_secs(20), "the calibration must end by itself");
    }
}
