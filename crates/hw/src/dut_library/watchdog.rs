//! A limit on the time of each call into a library: a design can loop for ever, and a thread in it cannot be ended.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// Polls within the limit of a call: a hang is seen at most an eighth of the limit late.
const POLLS: u32 = 8;

/// A function of the interface, or loading and unloading.
#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    Load,
    Abi,
    BeatBytes,
    New,
    Clock,
    Ports,
    Evaluate,
    /// The second half of a clock.
    Rise,
    Failure,
    Free,
    Unload,
}

const NAMES: [&str; 11] = [
    "its initialiser",
    "lanemark_dut_abi",
    "lanemark_dut_beat_bytes",
    "lanemark_dut_new",
    "lanemark_dut_clock",
    "lanemark_dut_ports",
    "lanemark_dut_evaluate",
    "lanemark_dut_evaluate",
    "lanemark_dut_failure",
    "lanemark_dut_free",
    "its finaliser",
];

/// A call into a library that has not returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hang {
    /// Path of the library.
    pub path: String,
    /// The run that made the call, such as `seed 7`; empty while the library is loaded.
    pub run: String,
    /// Name of the function.
    pub function: &'static str,
    /// Clocks that the device has made before.
    pub clocks: u64,
    /// Limit of a call.
    pub limit: Duration,
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hang { path, run, function, clocks, limit } = self;
        write!(f, "{path}: {function} has not returned for {} s", limit.as_secs_f64())?;
        if run.is_empty() { Ok(()) } else { write!(f, " ({run}, after {clocks} clocks)") }
    }
}

/// The calls of one device. Only the thread that makes the calls writes here.
#[derive(Debug)]
pub(super) struct Calls {
    path: Arc<str>,
    run: String,
    /// Calls that began, and calls that returned: odd during a call.
    edges: AtomicU64,
    function: AtomicUsize,
    clocks: AtomicU64,
}

impl Calls {
    /// Makes a call.
    pub fn call<T>(&self, function: Function, body: impl FnOnce() -> T) -> T {
        let edges = self.edges.load(Ordering::Relaxed);
        self.function.store(function as usize, Ordering::Relaxed);
        self.edges.store(edges + 1, Ordering::Release);
        let result = body();
        self.edges.store(edges + 2, Ordering::Release);
        if matches!(function, Function::Clock | Function::Rise) {
            self.clocks.store(self.clocks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        result
    }
}

/// Calls, and how long the same call was seen.
#[derive(Debug)]
struct Watched {
    calls: Weak<Calls>,
    edges: u64,
    polls: u32,
}

/// A thread that watches every call into libraries; it ends with its last clone.
///
/// ```
/// use lanemark_hw::dut_library::{DutLibrary, Watchdog};
/// use std::time::Duration;
///
/// let watchdog = Watchdog::start(Duration::from_secs(10), |hang| eprintln!("{hang}"))?;
/// let error = DutLibrary::load("absent.so".as_ref(), &watchdog).unwrap_err();
/// assert!(error.to_string().starts_with("absent.so cannot be loaded"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Watchdog {
    watched: Arc<Mutex<Vec<Watched>>>,
}

impl Watchdog {
    /// Starts the thread. It calls `on_hang` once, in the first call that takes longer than `limit`; the call goes on, so that
    /// `on_hang` has to end the process if nothing may wait for it.
    ///
    /// # Errors
    /// The error of the system if no thread can be started.
    pub fn start(limit: Duration, on_hang: impl FnOnce(&Hang) + Send + 'static) -> std::io::Result<Watchdog> {
        let watched = Arc::new(Mutex::new(Vec::new()));
        let weak = Arc::downgrade(&watched);
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            loop {
                std::thread::sleep(limit / POLLS);
                let Some(watched) = weak.upgrade() else { return };
                let Ok(mut watched) = watched.lock() else { return };
                if let Some(hang) = poll(&mut watched, limit) {
                    drop(watched);
                    return on_hang(&hang);
                }
            }
        })?;
        Ok(Watchdog { watched })
    }

    /// Watches the calls of a new device.
    pub(super) fn watch(&self, path: &Arc<str>, run: &str) -> Arc<Calls> {
        let calls = Arc::new(Calls {
            path: path.clone(),
            run: run.to_owned(),
            edges: AtomicU64::new(0),
            function: AtomicUsize::new(0),
            clocks: AtomicU64::new(0),
        });
        if let Ok(mut watched) = self.watched.lock() {
            watched.push(Watched { calls: Arc::downgrade(&calls), edges: 0, polls: 0 });
        }
        calls
    }
}

/// Looks at each device once; returns a call that has been the same for the whole limit.
fn poll(watched: &mut Vec<Watched>, limit: Duration) -> Option<Hang> {
    let mut hang = None;
    watched.retain_mut(|watched| {
        let Some(calls) = watched.calls.upgrade() else { return false };
        let edges = calls.edges.load(Ordering::Acquire);
        watched.polls = if edges == watched.edges && edges % 2 == 1 { watched.polls + 1 } else { 0 };
        watched.edges = edges;
        if watched.polls >= POLLS {
            hang.get_or_insert(Hang {
                path: calls.path.to_string(),
                run: calls.run.clone(),
                function: NAMES[calls.function.load(Ordering::Relaxed)],
                clocks: calls.clocks.load(Ordering::Relaxed),
                limit,
            });
        }
        true
    });
    hang
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_does_not_return_is_named_after_the_limit_and_one_that_returns_is_not() {
        let limit = Duration::from_secs(10);
        let watchdog = Watchdog { watched: Arc::default() };
        let calls = watchdog.watch(&"my.so".into(), "seed 7");
        let poll = || poll(&mut watchdog.watched.lock().unwrap(), limit);
        for _ in 0..3 * POLLS {
            calls.call(Function::Clock, || assert_eq!(poll(), None));
        }
        let hang = calls.call(Function::Clock, || {
            let hangs: Vec<Option<Hang>> = (0..=POLLS).map(|_| poll()).collect();
            assert!(hangs[..POLLS as usize].iter().all(Option::is_none), "{hangs:?}");
            hangs.into_iter().next_back().flatten().unwrap()
        });
        assert_eq!(hang.to_string(), "my.so: lanemark_dut_clock has not returned for 10 s (seed 7, after 24 clocks)");
        // Outside a call, no time is too long.
        assert_eq!((0..=POLLS).find_map(|_| poll()), None);
    }

    #[test]
    fn devices_that_are_gone_are_not_watched() {
        let watchdog = Watchdog { watched: Arc::default() };
        drop(watchdog.watch(&"my.so".into(), "seed 7"));
        poll(&mut watchdog.watched.lock().unwrap(), Duration::from_secs(10));
        assert!(watchdog.watched.lock().unwrap().is_empty());
    }
}
