//! Whether something else than the plan had a part in a sample.
//!
//! Looked at just before the first timestamp and just after the last, so that nothing of it is in the sample. What a
//! virtual machine's host takes away without telling shows in neither clock and is not found here.
//!
//! A call into a runtime is another matter than a load: it wakes threads of the same program, waits for them, and sleeps
//! meanwhile. Where they are woken on the caller's own core they take it away, and that is a part of what a launch costs
//! there. To drop such samples would keep only those in which the runtime happened to work elsewhere. So there a
//! sample is disturbed if the caller, after it lost its core, waited for it longer than all other threads of the program
//! ran meanwhile: then somebody else had it.

#![allow(unsafe_code)]

use super::sample::stamp_before;
use super::timer::Timer;
use lanemark_machine::{Disturbance, Placement};
use rustix::io::Errno;
use rustix::thread::sched_getcpu;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// Whom a sample may lose its core to without being disturbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    /// Nobody.
    Nobody,
    /// The other threads of this program, which it wakes and waits for.
    OwnThreads,
}

/// Watches samples: [`before`](Watch::before) each, [`after`](Watch::after) each.
#[derive(Debug)]
pub(crate) struct Watch {
    timer: Timer,
    placement: Placement,
    /// What the kernel says of this thread's waiting; `None` where nobody may take its core, or the kernel does not say.
    waiting: Option<File>,
    before: Seen,
}

/// What can be told of a thread and two clocks at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    /// How often the kernel took the core from this thread although it had not asked for it.
    taken_away: i64,
    /// How long it had something to do and waited for a core; `None` where that is not asked or not known.
    waited_ns: Option<u64>,
    /// Processor time of all other threads of the program.
    others_ns: u64,
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
    /// How much longer than the program's other threads ran it may have waited for its core: a few switches, which belong
    /// to neither; somebody else keeps a core for a time slice, 1 ms and more.
    const UNCOUNTED_NS: u64 = 20_000;

    /// A watch for samples of the calling thread timed by `timer`.
    ///
    /// # Errors
    /// What the kernel said, if it does not tell how often it took the core away.
    pub(crate) fn new(timer: Timer, placement: Placement, company: Company) -> Result<Watch, Errno> {
        let waiting = match company {
            Company::Nobody => None,
            // A kernel may be built without it: then every loss of the core is a disturbance.
            Company::OwnThreads => File::open("/proc/thread-self/schedstat").ok(),
        };
        let before = Seen::now(waiting.as_ref())?;
        Ok(Watch { timer, placement, waiting, before })
    }

    /// A sample is about to begin.
    ///
    /// # Errors
    /// As for [`Watch::new`].
    pub(crate) fn before(&mut self) -> Result<(), Errno> {
        self.before = Seen::now(self.waiting.as_ref())?;
        Ok(())
    }

    /// What disturbed the sample that began at [`before`](Watch::before), if anything did, and the system's number of the
    /// processor that it ended on.
    ///
    /// # Errors
    /// As for [`Watch::new`].
    pub(crate) fn after(&self) -> Result<(Option<Disturbance>, u32), Errno> {
        let after = Seen::now(self.waiting.as_ref())?;
        Ok((self.between(self.before, after), after.cpu as u32))
    }

    fn between(&self, before: Seen, after: Seen) -> Option<Disturbance> {
        // A switch between the readings of the clocks sets those apart too, so it is looked for first.
        let has_moved = self.placement == Placement::Pinned && after.cpu != before.cpu;
        if has_moved || after.taken_away != before.taken_away && !Watch::was_for_own_threads(before, after) {
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

    /// Whether the program's other threads ran for as long as the thread waited for its core.
    fn was_for_own_threads(before: Seen, after: Seen) -> bool {
        let (Some(before_ns), Some(after_ns)) = (before.waited_ns, after.waited_ns) else { return false };
        let waited_ns = after_ns.saturating_sub(before_ns);
        waited_ns <= after.others_ns.saturating_sub(before.others_ns).saturating_add(Watch::UNCOUNTED_NS)
    }
}

impl Seen {
    fn now(waiting: Option<&File>) -> Result<Seen, Errno> {
        let taken_away = taken_away()?;
        let waited_ns = waiting.and_then(waited_ns);
        let others_ns = match waited_ns {
            Some(_) => ns(ClockId::ProcessCPUTime).saturating_sub(ns(ClockId::ThreadCPUTime)),
            None => 0,
        };
        let raw_ns = ns(ClockId::MonotonicRaw);
        let cycles = stamp_before();
        Ok(Seen { taken_away, waited_ns, others_ns, cpu: sched_getcpu(), cycles, raw_ns })
    }
}

/// A clock that does not go back, in nanoseconds.
fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both parts of such a time are positive.
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// How long a thread waited for a core since it began: the second figure of its `schedstat`
/// (Documentation/scheduler/sched-stats.rst of Linux).
fn waited_ns(schedstat: &File) -> Option<u64> {
    let mut text = [0_u8; 64];
    let len = schedstat.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..len]).ok()?.split_whitespace().nth(1)?.parse().ok()
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
        Watch::new(Timer::checked(None), Placement::Pinned, Company::Nobody).unwrap()
    }

    fn watch_beside_own_threads(placement: Placement) -> Watch {
        Watch::new(Timer::checked(None), placement, Company::OwnThreads).unwrap()
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
    fn a_core_lost_to_own_threads_is_no_disturbance_and_to_anybody_else_for_longer_than_20_us_it_is() {
        let watch = watch_beside_own_threads(Placement::Pinned);
        let before = Seen { waited_ns: Some(1_000), others_ns: 5_000, ..watch.before };
        let after = |waited_ns: u64| {
            let after = later(&watch, before, 2_000_000);
            let (taken_away, waited_ns) = (after.taken_away + 1, Some(before.waited_ns.unwrap() + waited_ns));
            Seen { taken_away, waited_ns, others_ns: before.others_ns + 300_000, ..after }
        };
        assert_eq!(watch.between(before, after(320_000)), None);
        assert_eq!(watch.between(before, after(320_001)), Some(Disturbance::ContextSwitch));
        let unknown = Seen { waited_ns: None, ..after(0) };
        assert_eq!(watch.between(before, unknown), Some(Disturbance::ContextSwitch), "nobody says for whom it was");
        let slept = Seen { taken_away: before.taken_away, ..after(5_000_000) };
        assert_eq!(watch.between(before, slept), None, "it gave its core away itself, and the processor slept");
    }

    #[test]
    fn a_thread_that_nobody_holds_may_end_on_another_core() {
        for (placement, expected) in
            [(Placement::Unpinned, None), (Placement::Pinned, Some(Disturbance::ContextSwitch))]
        {
            let watch = watch_beside_own_threads(placement);
            let after = later(&watch, watch.before, 20_000);
            assert_eq!(watch.between(watch.before, Seen { cpu: after.cpu + 1, ..after }), expected);
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
    fn losing_the_core_to_another_thread_is_seen_and_for_how_long_it_was_waited_for() {
        let cpu = allowed_cpus().unwrap()[0];
        let _pin = Pin::to(cpu).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let done = AtomicBool::new(false);
        let mut watch = watch();
        let mut seen = None;
        let schedstat = File::open("/proc/thread-self/schedstat").ok();
        let waited = schedstat.as_ref().and_then(waited_ns);
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
                seen = watch.after().unwrap().0;
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(seen, Some(Disturbance::ContextSwitch));
        // A kernel may be built without it.
        if let (Some(schedstat), Some(before)) = (&schedstat, waited) {
            assert!(waited_ns(schedstat).unwrap() > before + 100_000, "somebody had the core for longer than 0.1 ms");
        }
    }
}
