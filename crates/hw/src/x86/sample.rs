//! One sample: timestamp, iterations, timestamp, drain, timestamp.

#![allow(unsafe_code)]
#![allow(clippy::inline_always)] // A function call between two timestamps would be measured too.

use rustix::io::Errno;
use std::arch::asm;
use std::sync::atomic::{AtomicBool, Ordering};

/// Conditions that end a sample early, and the method that shows when its stores are delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    /// Longest duration of a sample in cycles of the time-stamp counter.
    pub(crate) timeout_cycles: u64,
    /// Iterations between two checks of the clock and the flag, at least 1; enough to make the check (20 to 40 ns)
    /// negligible. A sample with no more iterations than this contains no check.
    pub(crate) passes_per_check: u64,
    /// Interrupt flag.
    pub(crate) interrupted: &'a AtomicBool,
    /// Operation before the last timestamp.
    pub(crate) delivery: Delivery,
}

/// Method that shows that all stores are delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delivery {
    /// `MFENCE`: all stores are visible to every core, which is sufficient for ordinary memory.
    Drained,
    /// `MFENCE`, then a load of 4 B from this address. The read cannot pass posted writes to the device, so its
    /// completion shows that they have been accepted. Includes one round trip.
    ReadBack(*const u32),
    /// Like `ReadBack`, for a span shorter than 4 B.
    ReadBackByte(*const u8),
}

impl Delivery {
    /// Read-back from the end of a stored span: from its last aligned 4 B, or else from its last byte, so that only stored
    /// bytes are loaded. An empty span is not read back.
    ///
    /// # Safety
    /// The span must stay readable as long as the value is used.
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

/// Outcome of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// All iterations completed.
    Done,
    /// Stopped by the timeout or the interrupt flag after this many iterations.
    Stopped(u64),
    /// A system call failed.
    Failed(Errno),
}

/// Timestamps of one sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamps {
    /// Before the first instruction.
    pub(crate) start: u64,
    /// After the last instruction; stores may still be buffered.
    pub(crate) issued: u64,
    /// After all stores are visible to others.
    pub(crate) delivered: u64,
    /// Outcome.
    pub(crate) ending: Ending,
}

/// Runs `pass` `passes` times, with consecutive (wrapping) numbers from `first` on, between timestamps.
///
/// Inlined into each loop: between the timestamps there are no calls except those in `pass`. An address to read back
/// from must be readable.
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
        let now = left.min(limits.passes_per_check);
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

/// Reads the counter after all earlier instructions complete and before any later one starts.
#[inline(always)]
pub(crate) fn stamp_before() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter, which user mode may do on every Linux system.
    unsafe { asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}

/// Reads the counter after all earlier instructions and loads complete; later ones wait.
#[inline(always)]
pub(crate) fn stamp_after() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as for `stamp_before`.
    unsafe {
        asm!("rdtscp", "lfence", out("rax") low, out("rdx") high, out("rcx") _, options(nostack, preserves_flags));
    };
    high << 32 | low
}

/// Waits until the counter has advanced by `cycles`.
#[inline(always)]
pub(crate) fn pause(cycles: u64) {
    let start = stamp_before();
    while stamp_before().saturating_sub(start) < cycles {
        std::hint::spin_loop();
    }
}

/// Reads the counter after all earlier stores, including those in write-combining buffers, are globally visible.
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

/// Like [`stamp_drained`], but after a load of `WIDTH` (4 or 1) bytes from `at` completes as well.
///
/// The fence is `MFENCE`, not `SFENCE`: the load must not start before the stores have left the core.
/// Source: PCI Express Base Specification, "Transaction Ordering Rules": a read request must not pass a posted write.
#[inline(always)]
fn stamp_read_back<const WIDTH: u8>(at: *const u8) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: the creator of the limits guarantees the address; the rest is as for `stamp_before`.
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

    fn limits(passes_per_check: u64) -> Limits<'static> {
        Limits { timeout_cycles: u64::MAX, passes_per_check, interrupted: &NO, delivery: Delivery::Drained }
    }

    #[test]
    fn every_iteration_runs_once_in_order_for_any_check_interval() {
        for passes_per_check in [1, 3, 7, 8, u64::MAX] {
            let mut seen = Vec::new();
            let stamps = timed(&limits(passes_per_check), 100, 7, |n| {
                seen.push(n);
                Ok(())
            });
            assert_eq!(seen, [100, 101, 102, 103, 104, 105, 106]);
            assert_eq!(stamps.ending, Ending::Done);
            assert!(stamps.start <= stamps.issued && stamps.issued <= stamps.delivered);
        }
    }

    #[test]
    fn iteration_numbers_wrap() {
        let mut seen = Vec::new();
        timed(&limits(2), u64::MAX - 1, 3, |n| {
            seen.push(n);
            Ok(())
        });
        assert_eq!(seen, [u64::MAX - 1, u64::MAX, 0]);
    }

    #[test]
    fn a_sample_stops_at_the_first_check_after_its_timeout_or_the_flag() {
        let late = Limits { timeout_cycles: 0, ..limits(5) };
        assert_eq!(timed(&late, 0, u64::MAX, |_| Ok(())).ending, Ending::Stopped(5));
        let flagged = Limits { interrupted: &YES, ..limits(2) };
        assert_eq!(timed(&flagged, 0, u64::MAX, |_| Ok(())).ending, Ending::Stopped(2));
        assert_eq!(timed(&flagged, 0, 2, |_| Ok(())).ending, Ending::Done);
    }

    #[test]
    fn a_read_back_loads_the_last_aligned_word_or_the_last_byte() {
        let place = [7_u32; 2];
        let bytes: *const u8 = place.as_ptr().cast();
        let chosen = |start: usize, len: usize| {
            // SAFETY: the ranges lie within `place`.
            match unsafe { Delivery::read_back(bytes.wrapping_add(start), len) } {
                Delivery::Drained => (0, 0),
                Delivery::ReadBack(at) => (4, at as usize - bytes as usize),
                Delivery::ReadBackByte(at) => (1, at as usize - bytes as usize),
            }
        };
        assert_eq!([chosen(0, 8), chosen(0, 4), chosen(1, 7), chosen(0, 7)], [(4, 4), (4, 0), (4, 4), (4, 0)]);
        assert_eq!([chosen(1, 6), chosen(0, 3), chosen(0, 1), chosen(0, 0)], [(1, 6), (1, 2), (1, 0), (0, 0)]);
        for len in [8, 1] {
            // SAFETY: the range lies within `place`.
            let delivery = unsafe { Delivery::read_back(bytes, len) };
            let stamps = timed(&Limits { delivery, ..limits(1) }, 0, 3, |_| Ok(()));
            assert_eq!(stamps.ending, Ending::Done);
            assert!(stamps.start <= stamps.issued && stamps.issued <= stamps.delivered);
        }
    }

    #[test]
    fn a_failed_system_call_ends_the_sample_and_its_error_is_kept() {
        let ending = timed(&limits(1), 0, 9, |n| if n == 3 { Err(Errno::NOSPC) } else { Ok(()) }).ending;
        assert_eq!(ending, Ending::Failed(Errno::NOSPC));
    }
}
