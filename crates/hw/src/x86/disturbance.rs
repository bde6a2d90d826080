//! Detection of samples that were disturbed by something other than the plan.
//!
//! The state is read just before the first timestamp and just after the last, so that reading it is not part of the sample.
//! Time that a virtual machine's host steals without reporting it shows in neither clock and is not detected.
//!
//! A runtime call differs from a load: it wakes threads of the same program, waits for them, and sleeps meanwhile. If they
//! run on the caller's core, they preempt it, and that is part of the cost of a launch there. Dropping such samples would
//! keep only those in which the runtime happened to use another core. Such a sample therefore counts as disturbed only if
//! the caller waited for its core longer than all other threads of the program ran meanwhile: then another program used
//! the core.

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

/// Threads that may preempt a sample without disturbing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    /// No thread.
    None,
    /// Other threads of this program, which the sample wakes and waits for.
    OwnThreads,
    /// Any, while a device works: a preemption counts if the thread waited for its core for a hundredth of the sample.
    Device,
}

/// Observer of samples: [`before`](Watch::before) and [`after`](Watch::after) surround each.
#[derive(Debug)]
pub(crate) struct Watch {
    timer: Timer,
    placement: Placement,
    company: Company,
    /// Kernel file with this thread's waiting time; `None` if no thread may preempt it, or if the kernel has no such file.
    waiting: Option<File>,
    before: Seen,
}

/// State of a thread and of two clocks at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    /// Number of involuntary context switches.
    switches: i64,
    /// Time spent runnable but waiting for a core; `None` if unused or unknown.
    waited_ns: Option<u64>,
    /// Processor time of all other threads of the program.
    others_ns: u64,
    /// System number of the core.
    cpu: usize,
    /// Time-stamp counter.
    cycles: u64,
    /// `CLOCK_MONOTONIC_RAW`, which NTP does not adjust.
    raw_ns: u64,
}

impl Watch {
    /// Permitted difference between the two clocks over a sample. Reading one after the other takes about 0.1 us, an
    /// interrupt between the readings at most 10 us. The timer's rate may be off by 200 ppm ([`Timer::checked`]), twice
    /// that with the error of the clock it was checked against.
    const APART_NS: u64 = 20_000;
    const APART_PER_MILLION: u64 = 400;
    /// Time that a thread may wait for its core beyond the run time of the program's other threads: a few context switches,
    /// which count for neither. Another program takes a core for a time slice, 1 ms or more.
    const UNCOUNTED_NS: u64 = 20_000;

    /// Creates an observer for samples of the calling thread, timed by `timer`.
    ///
    /// # Errors
    /// Error of the system call that reads the number of context switches.
    pub(crate) fn new(timer: Timer, placement: Placement, company: Company) -> Result<Watch, Errno> {
        let waiting = match company {
            Company::None => None,
            // A kernel may be built without it: then every preemption is a disturbance.
            Company::OwnThreads | Company::Device => File::open("/proc/thread-self/schedstat").ok(),
        };
        let before = Seen::now(waiting.as_ref())?;
        Ok(Watch { timer, placement, company, waiting, before })
    }

    /// Records the state before a sample.
    ///
    /// # Errors
    /// The errors of [`Watch::new`].
    pub(crate) fn before(&mut self) -> Result<(), Errno> {
        self.before = Seen::now(self.waiting.as_ref())?;
        Ok(())
    }

    /// Disturbance of the sample that began at [`before`](Watch::before), if any, and the system number of the core on
    /// which it ended.
    ///
    /// # Errors
    /// The errors of [`Watch::new`].
    pub(crate) fn after(&self) -> Result<(Option<Disturbance>, u32), Errno> {
        let after = Seen::now(self.waiting.as_ref())?;
        Ok((self.between(self.before, after), after.cpu as u32))
    }

    fn between(&self, before: Seen, after: Seen) -> Option<Disturbance> {
        // A context switch between the readings also separates the clocks, so it is checked first.
        let has_moved = self.placement == Placement::Pinned && after.cpu != before.cpu;
        if has_moved || after.switches != before.switches && !self.is_harmless(before, after) {
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

    /// Whether the preemptions of a sample are part of it, or too short to matter.
    fn is_harmless(&self, before: Seen, after: Seen) -> bool {
        match self.company {
            Company::None => false,
            Company::OwnThreads => Watch::was_for_own_threads(before, after),
            Company::Device => {
                let (Some(before_ns), Some(after_ns)) = (before.waited_ns, after.waited_ns) else { return false };
                let length = after.raw_ns.saturating_sub(before.raw_ns);
                after_ns.saturating_sub(before_ns) <= length / 100
            }
        }
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
        let switches = involuntary_switches()?;
        let waited_ns = waiting.and_then(waited_ns);
        let others_ns = match waited_ns {
            Some(_) => ns(ClockId::ProcessCPUTime).saturating_sub(ns(ClockId::ThreadCPUTime)),
            None => 0,
        };
        let raw_ns = ns(ClockId::MonotonicRaw);
        let cycles = stamp_before();
        Ok(Seen { switches, waited_ns, others_ns, cpu: sched_getcpu(), cycles, raw_ns })
    }
}

/// Reads a monotonic clock in nanoseconds.
fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both parts of a monotonic time are nonnegative.
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Time that a thread has waited for a core since its start: the second value of its `schedstat`
/// (Linux, Documentation/scheduler/sched-stats.rst).
fn waited_ns(schedstat: &File) -> Option<u64> {
    let mut text = [0_u8; 64];
    let len = schedstat.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..len]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// Involuntary context switches of the calling thread since its start.
fn involuntary_switches() -> Result<i64, Errno> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the structure completely unless it returns an error.
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
        Watch::new(Timer::checked(None), Placement::Pinned, Company::None).unwrap()
    }

    fn watch_beside_own_threads(placement: Placement) -> Watch {
        Watch::new(Timer::checked(None), placement, Company::OwnThreads).unwrap()
    }

    /// The state `ns` later by both clocks.
    fn later(watch: &Watch, seen: Seen, ns: u64) -> Seen {
        let cycles = watch.timer.cycles(lanemark_units::Ticks::whole_ns(ns));
        Seen { cycles: seen.cycles + cycles, raw_ns: seen.raw_ns + ns, ..seen }
    }

    #[test]
    fn an_undisturbed_sample_counts() {
        let watch = watch();
        for ns in [0, 100, 20_000, 1_000_000_000] {
            assert_eq!(watch.between(watch.before, later(&watch, watch.before, ns)), None);
        }
    }

    #[test]
    fn a_context_switch_or_a_core_migration_is_a_disturbance() {
        let watch = watch();
        let after = later(&watch, watch.before, 20_000);
        let switched = Seen { switches: after.switches + 1, ..after };
        let moved = Seen { cpu: after.cpu + 1, ..after };
        for after in [switched, moved] {
            assert_eq!(watch.between(watch.before, after), Some(Disturbance::ContextSwitch));
        }
    }

    #[test]
    fn preemption_by_own_threads_is_no_disturbance_but_20_us_by_others_is() {
        let watch = watch_beside_own_threads(Placement::Pinned);
        let before = Seen { waited_ns: Some(1_000), others_ns: 5_000, ..watch.before };
        let after = |waited_ns: u64| {
            let after = later(&watch, before, 2_000_000);
            let (switches, waited_ns) = (after.switches + 1, Some(before.waited_ns.unwrap() + waited_ns));
            Seen { switches, waited_ns, others_ns: before.others_ns + 300_000, ..after }
        };
        assert_eq!(watch.between(before, after(320_000)), None);
        assert_eq!(watch.between(before, after(320_001)), Some(Disturbance::ContextSwitch));
        let unknown = Seen { waited_ns: None, ..after(0) };
        assert_eq!(watch.between(before, unknown), Some(Disturbance::ContextSwitch), "the waiting time is unknown");
        let slept = Seen { switches: before.switches, ..after(5_000_000) };
        assert_eq!(watch.between(before, slept), None, "the thread slept voluntarily");
    }

    #[test]
    fn while_a_device_works_a_preemption_of_a_hundredth_of_the_sample_is_no_disturbance() {
        let watch = Watch::new(Timer::checked(None), Placement::Pinned, Company::Device).unwrap();
        let before = Seen { waited_ns: Some(1_000), ..watch.before };
        let after = |waited_ns: u64| {
            let after = later(&watch, before, 2_000_000);
            Seen { switches: after.switches + 1, waited_ns: Some(1_000 + waited_ns), ..after }
        };
        assert_eq!(watch.between(before, after(20_000)), None);
        assert_eq!(watch.between(before, after(20_001)), Some(Disturbance::ContextSwitch));
        let unknown = Seen { waited_ns: None, ..after(0) };
        assert_eq!(watch.between(before, unknown), Some(Disturbance::ContextSwitch), "the waiting time is unknown");
    }

    #[test]
    fn an_unpinned_thread_may_migrate() {
        for (placement, expected) in
            [(Placement::Unpinned, None), (Placement::Pinned, Some(Disturbance::ContextSwitch))]
        {
            let watch = watch_beside_own_threads(placement);
            let after = later(&watch, watch.before, 20_000);
            assert_eq!(watch.between(watch.before, Seen { cpu: after.cpu + 1, ..after }), expected);
        }
    }

    #[test]
    fn clocks_may_differ_by_20_us_and_400_ppm_but_no_more() {
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
    fn a_clock_that_goes_back_is_a_disturbance() {
        let watch = watch();
        let before = Seen { raw_ns: watch.before.raw_ns + 1, ..watch.before };
        assert_eq!(watch.between(before, watch.before), Some(Disturbance::ClockStep));
    }

    /// Two threads compete for one core until one is observed to lose it.
    #[test]
    fn preemption_by_another_thread_is_detected_with_its_duration() {
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
        // A kernel may be built without schedstat.
        if let (Some(schedstat), Some(before)) = (&schedstat, waited) {
            assert!(waited_ns(schedstat).unwrap() > before + 100_000, "the core was lost for more than 0.1 ms");
        }
    }
}
