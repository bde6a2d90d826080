//! Whether something else than the plan had a part in a sample.
//!
//! Looked at just before the first timestamp and just after the last, so that nothing of it is in the sample. What a
//! virtual machine's host takes away without telling shows in neither clock and is not found here.

#![allow(unsafe_code)]

use super::sample::stamp_before;
use super::timer::Timer;
use lanemark_machine::Disturbance;
use rustix::io::Errno;
use rustix::thread::sched_getcpu;
use rustix::time::{ClockId, clock_gettime};
use std::mem::MaybeUninit;

/// Watches samples: [`before`](Watch::before) each, [`after`](Watch::after) each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    timer: Timer,
    before: Seen,
}

/// What can be told of a thread and two clocks at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    /// How often the kernel took the core from this thread although it had not asked for it.
    taken_away: i64,
    /// The system's number of the core.
    cpu: usize,
    /// The time-stamp counter.
    cycles: u64,
    /// `CLOCK_MONOTONIC_RAW`, which nobody steers.
    raw_ns: u64,
}

impl Watch {
    /// How far the two clocks may lie apart over a sample: reading one after the other takes some 0.1 us, an interrupt
    /// between the readings 10 us at worst; and the timer's rate may be off by 200 in a million
    /// ([`Timer::checked`]), twice that with the error of the clock it was held against.
    const APART_NS: u64 = 20_000;
    const APART_PER_MILLION: u64 = 400;

    /// A watch for samples timed by `timer`.
    ///
    /// # Errors
    /// What the kernel said, if it does not tell how often it took the core away.
    pub(crate) fn new(timer: Timer) -> Result<Watch, Errno> {
        Ok(Watch { timer, before: Seen::now()? })
    }

    /// A sample is about to begin.
    ///
    /// # Errors
    /// As for [`Watch::new`].
    pub(crate) fn before(&mut self) -> Result<(), Errno> {
        self.before = Seen::now()?;
        Ok(())
    }

    /// What disturbed the sample that began at [`before`](Watch::before), if anything did.
    ///
    /// # Errors
    /// As for [`Watch::new`].
    pub(crate) fn after(&self) -> Result<Option<Disturbance>, Errno> {
        Ok(self.between(self.before, Seen::now()?))
    }

    fn between(&self, before: Seen, after: Seen) -> Option<Disturbance> {
        // A switch between the readings of the clocks sets those apart too, so it is looked for first.
        if after.taken_away != before.taken_away || after.cpu != before.cpu {
            return Some(Disturbance::ContextSwitch);
        }
        let (Some(cycles), Some(raw_ns)) =
            (after.cycles.checked_sub(before.cycles), after.raw_ns.checked_sub(before.raw_ns))
        else {
            return Some(Disturbance::ClockStep);
        };
        let apart = self.timer.ticks(cycles).as_ns() - raw_ns as f64;
        let most = Watch::APART_NS as f64 + raw_ns as f64 * Watch::APART_PER_MILLION as f64 / 1e6;
        (apart.abs() > most).then_some(Disturbance::ClockStep)
    }
}

impl Seen {
    fn now() -> Result<Seen, Errno> {
        let taken_away = taken_away()?;
        let raw = clock_gettime(ClockId::MonotonicRaw);
        let cycles = stamp_before();
        // Both parts of a monotonic time are positive.
        let raw_ns = (raw.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(raw.tv_nsec as u64);
        Ok(Seen { taken_away, cpu: sched_getcpu(), cycles, raw_ns })
    }
}

/// Involuntary context switches of the calling thread since it began.
fn taken_away() -> Result<i64, Errno> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills all of what it is given, or says that it did not; nothing else is touched.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error().raw_os_error().map_or(Errno::NOSYS, Errno::from_raw_os_error));
        }
        usage.assume_init()
    };
    Ok(usage.ru_nivcsw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::pin::{Pin, allowed_cpus};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    fn watch() -> Watch {
        Watch::new(Timer::checked(None)).unwrap()
    }

    /// The instant `ns` by both clocks after another.
    fn later(watch: &Watch, seen: Seen, ns: u64) -> Seen {
        let cycles = watch.timer.cycles(lanemark_units::Ticks::whole_ns(ns));
        Seen { cycles: seen.cycles + cycles, raw_ns: seen.raw_ns + ns, ..seen }
    }

    #[test]
    fn what_nothing_happened_to_counts() {
        let watch = watch();
        for ns in [0, 100, 20_000, 1_000_000_000] {
            assert_eq!(watch.between(watch.before, later(&watch, watch.before, ns)), None);
        }
    }

    #[test]
    fn one_switch_or_another_core_is_enough() {
        let watch = watch();
        let after = later(&watch, watch.before, 20_000);
        let switched = Seen { taken_away: after.taken_away + 1, ..after };
        let moved = Seen { cpu: after.cpu + 1, ..after };
        for after in [switched, moved] {
            assert_eq!(watch.between(watch.before, after), Some(Disturbance::ContextSwitch));
        }
    }

    #[test]
    fn clocks_may_lie_20_us_and_400_in_a_million_apart_and_no_further() {
        let watch = watch();
        let after = |ns: u64, apart: i64| {
            let after = later(&watch, watch.before, ns);
            let raw_ns = after.raw_ns.saturating_add_signed(apart);
            watch.between(watch.before, Seen { raw_ns, ..after })
        };
        for sign in [1, -1] {
            assert_eq!(after(1_000_000, sign * 20_300), None);
            assert_eq!(after(1_000_000, sign * 20_500), Some(Disturbance::ClockStep));
            assert_eq!(after(1_000_000_000, sign * 400_000), None);
            assert_eq!(after(1_000_000_000, sign * 440_000), Some(Disturbance::ClockStep));
        }
    }

    #[test]
    fn a_clock_that_goes_back_was_stepped() {
        let watch = watch();
        let before = Seen { raw_ns: watch.before.raw_ns + 1, ..watch.before };
        assert_eq!(watch.between(before, watch.before), Some(Disturbance::ClockStep));
    }

    /// Two threads that want the same core, until one has been seen to lose it.
    #[test]
    fn losing_the_core_to_another_thread_is_seen() {
        let cpu = allowed_cpus().unwrap()[0];
        let _pin = Pin::to(cpu).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let done = AtomicBool::new(false);
        let mut watch = watch();
        let mut seen = None;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _pin = Pin::to(cpu).unwrap();
                while !done.load(Ordering::Relaxed) && Instant::now() < deadline {
                    std::hint::spin_loop();
                }
            });
            while seen != Some(Disturbance::ContextSwitch) && Instant::now() < deadline {
                watch.before().unwrap();
                let end = Instant::now() + Duration::from_millis(50);
                while Instant::now() < end {}
                seen = watch.after().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(seen, Some(Disturbance::ContextSwitch));
    }
}
