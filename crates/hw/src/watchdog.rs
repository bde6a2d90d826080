//! How long a call into a runtime is waited for, which cannot be called back.
//!
//! Calls are made on a thread of their own. If that does not come back, it is left to itself, and whoever waited goes on.

use lanemark_machine::{MachineError, Samples};
use lanemark_units::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// How long opening may take; between two looks at the flag lies a twentieth of a second.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(50);
/// How much longer than its timeout a sample may keep the thread that takes it.
const GRACE: Duration = Duration::from_secs(1);

/// Why nobody waits for opening any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum GivenUp {
    /// It has taken so long.
    Late { seconds: u64 },
    /// Somebody asked for an end.
    Interrupted,
    /// There is no such thread.
    NoThread(String),
}

/// What `open` gives, on a thread of its own, which is left to itself if it takes longer than `watchdog`.
///
/// # Errors
/// Those of `open`, and [`GivenUp`].
pub(crate) fn within<T: Send + 'static, E: From<GivenUp> + Send + 'static>(
    watchdog: Duration,
    interrupted: &AtomicBool,
    open: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let (tell, hear) = sync_channel(1);
    let body = move || {
        // If nobody listens any more, nobody wants it.
        let _ = tell.send(open());
    };
    let spawned = std::thread::Builder::new().name("opens a runtime".to_owned()).spawn(body);
    spawned.map_err(|error| GivenUp::NoThread(format!("starting the thread that opens it: {error}")))?;
    let begun = Instant::now();
    loop {
        match hear.recv_timeout(LOOK) {
            Ok(opened) => return opened,
            Err(_) if interrupted.load(Ordering::Relaxed) => return Err(GivenUp::Interrupted.into()),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() < watchdog => {}
            Err(RecvTimeoutError::Timeout) => return Err(GivenUp::Late { seconds: watchdog.as_secs() }.into()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(GivenUp::NoThread("the thread that opens it ended without a word".to_owned()).into());
            }
        }
    }
}

/// What the thread that takes samples has got done.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    steps: AtomicU64,
    /// Whether it makes what a plan needs, which may take longer than a sample.
    is_preparing: AtomicBool,
}

impl Progress {
    /// One thing more.
    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Does what a plan needs before its first sample, or after its last.
    pub(crate) fn preparing<T>(&self, job: impl FnOnce() -> T) -> T {
        self.is_preparing.store(true, Ordering::Relaxed);
        self.step();
        let done = job();
        self.is_preparing.store(false, Ordering::Relaxed);
        self.step();
        done
    }
}

/// Takes samples on threads of their own, until one of them does not come back.
#[derive(Debug, Default)]
pub(crate) struct Attendant {
    /// Since a thread did not come back.
    is_lost: bool,
}

impl Attendant {
    /// The samples that `take` takes on a thread of its own, which says how far it is. If it gets no further for `timeout` and a second, or
    /// where it prepares for two minutes, the thread is left to itself, and every further call is refused.
    ///
    /// # Errors
    /// Those of `take`, and [`MachineError::Timeout`]; afterwards [`MachineError::Device`].
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
        if self.is_lost {
            return Err(broken("its runtime has not come back from a call before; start the program again"));
        }
        let progress = Arc::new(Progress::default());
        let told = Arc::clone(&progress);
        let (tell, hear) = sync_channel(1);
        let body = move || {
            // If nobody listens any more, nobody wants to know.
            let _ = tell.send(take(&told));
        };
        let spawned = std::thread::Builder::new().name("asks a runtime".to_owned()).spawn(body);
        let thread = spawned.map_err(|source| MachineError::Os {
            machine: machine.to_owned(),
            doing: "starting the thread that asks its runtime",
            source,
        })?;
        let watchdog = Duration::from_secs_f64(timeout.as_ns() / 1e9) + GRACE;
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            match hear.recv_timeout(watchdog) {
                Ok(samples) => {
                    // It has told all it had to tell.
                    let _ = thread.join();
                    return samples;
                }
                Err(RecvTimeoutError::Timeout) if progress.steps.load(Ordering::Relaxed) != seen => {
                    (seen, since) = (progress.steps.load(Ordering::Relaxed), Instant::now());
                }
                // What prepares a plan may build kernels, and fill much memory.
                Err(RecvTimeoutError::Timeout)
                    if progress.is_preparing.load(Ordering::Relaxed) && since.elapsed() < PATIENCE => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.is_lost = true;
                    let waiting_for =
                        format!("the runtime, in a call that has not come back for {} s", since.elapsed().as_secs());
                    return Err(MachineError::Timeout { machine: machine.to_owned(), after: timeout, waiting_for });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(broken("the thread that asks its runtime ended without a word"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_does_not_come_back_is_waited_for_so_long_and_no_longer_or_until_somebody_interrupts() {
        // It ends with the test.
        let hangs = || {
            std::thread::park();
            Ok::<(), GivenUp>(())
        };
        let flag = AtomicBool::new(false);
        let late = within(Duration::from_millis(1), &flag, hangs).unwrap_err();
        assert_eq!(late, GivenUp::Late { seconds: 0 });
        flag.store(true, Ordering::Relaxed);
        assert_eq!(within(PATIENCE, &flag, hangs).unwrap_err(), GivenUp::Interrupted);
        flag.store(false, Ordering::Relaxed);
        assert_eq!(within(PATIENCE, &flag, || Ok::<u8, GivenUp>(7)), Ok(7));
    }

    #[test]
    fn samples_that_get_no_further_end_with_a_timeout_and_the_next_are_refused() {
        let mut attendant = Attendant::default();
        let short = Ticks::whole_ns(1000);
        assert!(attendant.samples("x", short, |_| Ok(Samples::wanted(3))).is_ok());
        let slow = attendant.samples("x", short, |told| {
            told.preparing(|| std::thread::sleep(GRACE + GRACE / 4));
            Ok(Samples::wanted(3))
        });
        assert!(slow.is_ok(), "what is prepared has more time");
        let late = attendant.samples("x", short, |told| {
            told.step();
            std::thread::park();
            Ok(Samples::wanted(3))
        });
        let late = late.unwrap_err().to_string();
        assert!(late.contains("in a call that has not come back for "), "{late}");
        let refused = attendant.samples("x", short, |_| Ok(Samples::wanted(3))).unwrap_err().to_string();
        assert_eq!(refused, "x: its runtime has not come back from a call before; start the program again");
    }
}
