//! Timeouts for calls into a runtime, which cannot be cancelled.
//!
//! Each call runs on a thread of its own. If it does not return in time, the thread is abandoned and the caller
//! continues.

use lanemark_machine::{MachineError, Samples};
use lanemark_units::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Time limit for opening a device or preparing a plan.
pub(crate) const OPEN_LIMIT: Duration = Duration::from_mins(2);
/// Interval at which the interrupt flag is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time beyond a sample's timeout before its thread is abandoned.
const GRACE: Duration = Duration::from_secs(1);

/// Reason why opening a device was abandoned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OpenFailure {
    /// The call did not return within `seconds`.
    Late { seconds: u64 },
    /// The user interrupted the program.
    Interrupted,
    /// The thread could not be started, or ended without a result.
    NoThread(String),
}

/// Runs `open` on a thread of its own and abandons the thread if it takes longer than `watchdog`.
///
/// # Errors
/// Errors of `open`, and [`OpenFailure`].
pub(crate) fn within<T: Send + 'static, E: From<OpenFailure> + Send + 'static>(
    watchdog: Duration,
    interrupted: &AtomicBool,
    open: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let (sender, receiver) = sync_channel(1);
    let body = move || {
        // Sending fails only if the caller has given up.
        let _ = sender.send(open());
    };
    let spawned = std::thread::Builder::new().name("runtime open".to_owned()).spawn(body);
    spawned.map_err(|error| OpenFailure::NoThread(format!("starting the thread that opens the device: {error}")))?;
    let begun = Instant::now();
    loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(opened) => return opened,
            Err(_) if interrupted.load(Ordering::Relaxed) => return Err(OpenFailure::Interrupted.into()),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < watchdog => {}
            Err(RecvTimeoutError::Timeout) => return Err(OpenFailure::Late { seconds: watchdog.as_secs() }.into()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(OpenFailure::NoThread(
                    "the thread that opens the device ended without a result".to_owned(),
                )
                .into());
            }
        }
    }
}

/// Progress of the thread that takes samples.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    steps: AtomicU64,
    /// Whether the thread is preparing or verifying a plan, which may take longer than a sample.
    is_preparing: AtomicBool,
}

impl Progress {
    /// Records one completed step.
    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs `job`, work that precedes the first sample or follows the last one.
    pub(crate) fn preparing<T>(&self, job: impl FnOnce() -> T) -> T {
        self.is_preparing.store(true, Ordering::Relaxed);
        self.step();
        let done = job();
        self.is_preparing.store(false, Ordering::Relaxed);
        self.step();
        done
    }
}

/// Takes samples on threads of their own, until one of them does not return.
#[derive(Debug, Default)]
pub(crate) struct SampleThread {
    /// Whether an earlier thread did not return.
    is_abandoned: bool,
}

impl SampleThread {
    /// Runs `take` on a thread of its own and returns its samples.
    ///
    /// If `take` makes no progress for `timeout` and one second, or for two minutes while it prepares, the thread is
    /// abandoned and every further call fails.
    ///
    /// # Errors
    /// Errors of `take`, and [`MachineError::Timeout`]; afterwards always [`MachineError::Device`].
    pub(crate) fn samples(
        &mut self,
        machine: &str,
        timeout: Ticks,
        take: impl FnOnce(&Progress) -> Result<Samples, MachineError> + Send + 'static,
    ) -> Result<Samples, MachineError> {
        let broken = |what: &str| {
            let what = format!("{machine}: {what}");
            MachineError::Device { machine: machine.to_owned(), what }
        };
        if self.is_abandoned {
            return Err(broken("an earlier call into its runtime did not return; restart the program"));
        }
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        let (sender, receiver) = sync_channel(1);
        let body = move || {
            // Sending fails only if the caller has given up.
            let _ = sender.send(take(&shared));
        };
        let spawned = std::thread::Builder::new().name("runtime calls".to_owned()).spawn(body);
        let thread = spawned.map_err(|source| MachineError::Os {
            machine: machine.to_owned(),
            doing: "starting the thread that calls its runtime",
            source,
        })?;
        let watchdog = Duration::from_secs_f64(timeout.as_ns() / 1e9) + GRACE;
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            match receiver.recv_timeout(watchdog) {
                Ok(samples) => {
                    // The thread has sent its result and is ending.
                    let _ = thread.join();
                    return samples;
                }
                Err(RecvTimeoutError::Timeout) if progress.steps.load(Ordering::Relaxed) != seen => {
                    (seen, since) = (progress.steps.load(Ordering::Relaxed), Instant::now());
                }
                // Preparation may compile kernels and fill large arrays.
                Err(RecvTimeoutError::Timeout)
                    if progress.is_preparing.load(Ordering::Relaxed) && since.elapsed() < OPEN_LIMIT => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.is_abandoned = true;
                    let waiting_for =
                        format!("the runtime: a call has not returned for {} s", since.elapsed().as_secs());
                    return Err(MachineError::Timeout { machine: machine.to_owned(), after: timeout, waiting_for });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(broken("the thread that calls its runtime ended without a result"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_stops_at_its_time_limit_or_at_an_interrupt() {
        // This thread ends with the test process.
        let hangs = || {
            std::thread::park();
            Ok::<(), OpenFailure>(())
        };
        let flag = AtomicBool::new(false);
        let late = within(Duration::from_millis(1), &flag, hangs).unwrap_err();
        assert_eq!(late, OpenFailure::Late { seconds: 0 });
        flag.store(true, Ordering::Relaxed);
        assert_eq!(within(OPEN_LIMIT, &flag, hangs).unwrap_err(), OpenFailure::Interrupted);
        flag.store(false, Ordering::Relaxed);
        assert_eq!(within(OPEN_LIMIT, &flag, || Ok::<u8, OpenFailure>(7)), Ok(7));
    }

    #[test]
    fn samples_without_progress_time_out_and_later_calls_fail() {
        let mut sample_thread = SampleThread::default();
        let short = Ticks::whole_ns(1000);
        assert!(sample_thread.samples("x", short, |_| Ok(Samples::wanted(3))).is_ok());
        let slow = sample_thread.samples("x", short, |progress| {
            progress.preparing(|| std::thread::sleep(GRACE + GRACE / 4));
            Ok(Samples::wanted(3))
        });
        assert!(slow.is_ok(), "preparation has a longer time limit");
        let late = sample_thread.samples("x", short, |progress| {
            progress.step();
            std::thread::park();
            Ok(Samples::wanted(3))
        });
        let late = late.unwrap_err().to_string();
        assert!(late.contains("a call has not returned for "), "{late}");
        let refused = sample_thread.samples("x", short, |_| Ok(Samples::wanted(3))).unwrap_err().to_string();
        assert_eq!(refused, "x: an earlier call into its runtime did not return; restart the program");
    }
}
