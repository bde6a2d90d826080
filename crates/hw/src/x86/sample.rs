//! One sample: timestamp, passes, timestamp, drain, timestamp.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A call of ours between two timestamps would be measured too.

use rustix::io::Errno;
use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a sample ends: when it has to do so early, and how it is known that its stores are where they were meant to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    /// The longest a sample may take, in cycles of the time-stamp counter.
    pub(crate) timeout_cycles: u64,
    /// Passes between two looks at the clock and at the flag; at least 1, and so many that a look (20 to 40 ns) is
    /// lost beside them. A sample of no more passes than this has no look in it at all.
    pub(crate) passes_per_look: u64,
    /// Somebody wants an end.
    pub(crate) interrupted: &'a AtomicBool,
    /// What stands before the last timestamp.
    pub(crate) delivery: Delivery,
}

/// What tells that everything stored has been delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delivery {
    /// An `MFENCE`: all stores are visible to every core. Ordinary memory asks for no more.
    Drained,
    /// An `MFENCE` and then a load of 4 B from here, answered: it cannot pass posted writes on its way to the device,
    /// so they have been accepted there. One round trip is inside.
    ReadBack(*const u32),
    /// As `ReadBack`, for a span too short for 4 B.
    ReadBackByte(*const u8),
}

impl Delivery {
    /// A read-back from the end of a span that was stored to: from its last aligned 4 B, or else from its last byte, so
    /// that nothing is loaded which was not stored before. Nothing is read back from an empty span.
    ///
    /// # Safety
    /// The span stays readable as long as this is used.
    pub(crate) unsafe fn read_back(span: *const u8, len: usize) -> Delivery {
        let end = span as usize + len;
        let word = (end & !3).wrapping_sub(4);
        if len == 0 {
            Delivery::Drained
        } else if word >= span as usize && word < end {
            Delivery::ReadBack(span.wrapping_add(word - span as usize).cast())
        } else {
            Delivery::ReadBackByte(span.wrapping_add(len - 1))
        }
    }
}

/// How a sample ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// All passes are done.
    Done,
    /// The time was over, or somebody wanted an end, after this many passes.
    Stopped(u64),
    /// The kernel refused a call.
    Failed(Errno),
}

/// The time-stamp counter around one sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamps {
    /// Before the first instruction.
    pub(crate) start: u64,
    /// After the last instruction; stores may still be buffered.
    pub(crate) issued: u64,
    /// After everything stored can be seen by others.
    pub(crate) delivered: u64,
    /// Whether all of it was done.
    pub(crate) ending: Ending,
}

/// Runs `pass` with the numbers from `first` on (wrapping), `passes` times, between timestamps.
///
/// Compiled into each of the loops: between the stamps there is no call but those `pass` makes. Where the limits name a
/// place to read back from, it must be readable.
#[inline(always)]
pub(crate) fn timed(
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
    mut pass: impl FnMut(u64) -> Result<(), Errno>,
) -> Stamps {
    let (mut next, mut left, mut ending) = (first, passes, Ending::Done);
    let start = stamp_before();
    'all: loop {
        let now = left.min(limits.passes_per_look);
        for n in 0..now {
            if let Err(error) = pass(next.wrapping_add(n)) {
                ending = Ending::Failed(error);
                break 'all;
            }
        }
        (next, left) = (next.wrapping_add(now), left - now);
        if left == 0 {
            break;
        }
        if stamp_before().saturating_sub(start) > limits.timeout_cycles || limits.interrupted.load(Ordering::Relaxed) {
            ending = Ending::Stopped(passes - left);
            break;
        }
    }
    let issued = stamp_after();
    let delivered = match limits.delivery {
        Delivery::Drained => stamp_drained(),
        Delivery::ReadBack(at) => stamp_read_back::<4>(at.cast()),
        Delivery::ReadBackByte(at) => stamp_read_back::<1>(at),
    };
    Stamps { start, issued, delivered, ending }
}

/// The counter now, with nothing later started and all earlier instructions done.
#[inline(always)]
pub(crate) fn stamp_before() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter; user mode may, or every timer of this system would fault.
    unsafe { asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}

/// The counter once all earlier instructions are done and loads answered; later ones wait.
#[inline(always)]
pub(crate) fn stamp_after() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as for `stamp_before`.
    unsafe {
        asm!("rdtscp", "lfence", out("rax") low, out("rdx") high, out("rcx") _, options(nostack, preserves_flags));
    };
    high << 32 | low
}

/// Does nothing until the counter has gone on by `cycles`.
#[inline(always)]
pub(crate) fn pause(cycles: u64) {
    let start = stamp_before();
    while stamp_before().saturating_sub(start) < cycles {
        std::hint::spin_loop();
    }
}

/// The counter once all earlier stores, those in write-combining buffers too, are visible to everybody.
///
/// Source: Intel SDM volume 2, RDTSC: "If software requires RDTSC to be executed only after all previous
/// instructions have executed and all previous loads and stores are globally visible, it can execute the
/// sequence MFENCE;LFENCE immediately before RDTSC."
#[inline(always)]
fn stamp_drained() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as for `stamp_before`.
    unsafe {
        asm!("mfence", "lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// As [`stamp_drained`], once a load of `WIDTH` (4 or 1) bytes from `at` is answered too.
///
/// The fence before it is `MFENCE`, not `SFENCE`: the load must not start before the stores have left the core.
/// Source: PCI Express Base Specification, "Transaction Ordering Rules": a read request must not pass a posted write.
#[inline(always)]
fn stamp_read_back<const WIDTH: u8>(at: *const u8) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: whoever made the limits vouches for the place; the rest is as for `stamp_before`.
    unsafe {
        asm!(
            "mfence",
            ".if {width} == 4",
            "mov eax, dword ptr [{at}]",
            ".else",
            "movzx eax, byte ptr [{at}]",
            ".endif",
            "lfence",
            "rdtsc",
            "lfence",
            at = in(reg) at,
            width = const WIDTH,
            out("rax") low,
            out("rdx") high,
            options(nostack, preserves_flags)
        );
    }
    high << 32 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    static NO: AtomicBool = AtomicBool::new(false);
    static YES: AtomicBool = AtomicBool::new(true);

    fn limits(passes_per_look: u64) -> Limits<'static> {
        Limits { timeout_cycles: u64::MAX, passes_per_look, interrupted: &NO, delivery: Delivery::Drained }
    }

    #[test]
    fn every_pass_runs_once_in_order_whenever_the_clock_is_looked_at() {
        for passes_per_look in [1, 3, 7, 8, u64::MAX] {
            let mut seen = Vec::new();
            let stamps = timed(&limits(passes_per_look), 100, 7, |n| {
                seen.push(n);
                Ok(())
            });
            assert_eq!(seen, [100, 101, 102, 103, 104, 105, 106]);
            assert_eq!(stamps.ending, Ending::Done);
            assert!(stamps.start <= stamps.issued && stamps.issued <= stamps.delivered);
        }
    }

    #[test]
    fn pass_numbers_wrap_without_losing_a_pass() {
        let mut seen = Vec::new();
        timed(&limits(2), u64::MAX - 1, 3, |n| {
            seen.push(n);
            Ok(())
        });
        assert_eq!(seen, [u64::MAX - 1, u64::MAX, 0]);
    }

    #[test]
    fn a_sample_stops_at_the_first_look_after_its_time_or_a_flag() {
        let late = Limits { timeout_cycles: 0, ..limits(5) };
        assert_eq!(timed(&late, 0, u64::MAX, |_| Ok(())).ending, Ending::Stopped(5));
        let flagged = Limits { interrupted: &YES, ..limits(2) };
        assert_eq!(timed(&flagged, 0, u64::MAX, |_| Ok(())).ending, Ending::Stopped(2));
        assert_eq!(timed(&flagged, 0, 2, |_| Ok(())).ending, Ending::Done);
    }

    #[test]
    fn a_read_back_comes_after_every_pass_and_may_be_of_one_byte() {
        let place = [7_u32; 2];
        let bytes: *const u8 = place.as_ptr().cast();
        let chosen = |start: usize, len: usize| {
            // SAFETY: the tests ask for bytes of `place`.
            match unsafe { Delivery::read_back(bytes.wrapping_add(start), len) } {
                Delivery::Drained => (0, 0),
                Delivery::ReadBack(at) => (4, at as usize - bytes as usize),
                Delivery::ReadBackByte(at) => (1, at as usize - bytes as usize),
            }
        };
        assert_eq!([chosen(0, 8), chosen(0, 4), chosen(1, 7), chosen(0, 7)], [(4, 4), (4, 0), (4, 4), (4, 0)]);
        assert_eq!([chosen(1, 6), chosen(0, 3), chosen(0, 1), chosen(0, 0)], [(1, 6), (1, 2), (1, 0), (0, 0)]);
        for len in [8, 1] {
            // SAFETY: as above.
            let delivery = unsafe { Delivery::read_back(bytes, len) };
            let stamps = timed(&Limits { delivery, ..limits(1) }, 0, 3, |_| Ok(()));
            assert_eq!(stamps.ending, Ending::Done);
            assert!(stamps.start <= stamps.issued && stamps.issued <= stamps.delivered);
        }
    }

    #[test]
    fn a_refused_call_ends_the_sample_and_its_number_is_kept() {
        let ending = timed(&limits(1), 0, 9, |n| if n == 3 { Err(Errno::NOSPC) } else { Ok(()) }).ending;
        assert_eq!(ending, Ending::Failed(Errno::NOSPC));
    }
}
