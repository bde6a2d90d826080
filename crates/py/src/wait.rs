//! Work without the interpreter's lock, which Ctrl-C ends, and which tells its progress.

use crate::error::bug;
use lanemark_runner::Cancel;
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Longest time between two looks at signals.
const LOOK: Duration = Duration::from_millis(20);

/// A step of the work: steps done, all steps, and the question in progress; `None` leaves a value as it was.
pub struct Step {
    /// Steps done.
    pub done: Option<f64>,
    /// All steps.
    pub all: Option<f64>,
    /// Name of the question and the target in progress.
    pub what: Option<String>,
}

/// Steps for the caller that waits.
#[derive(Clone)]
pub struct Steps(Sender<Step>);

impl Steps {
    /// Tells a step; the caller may have ended.
    pub fn tell(&self, step: Step) {
        let _ = self.0.send(step);
    }
}

/// The result of `work`, which runs on a thread of its own, and the exception of a signal (`KeyboardInterrupt`) that came
/// meanwhile: `work` was then cancelled, and has ended. A second signal leaves the thread to end by itself. `progress` is called with each [`Step`].
///
/// # Errors
/// The exception of `progress`, after the work has ended; an error if a thread cannot be started, or if it panics.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Cancel, Steps) -> T + Send + 'static,
) -> PyResult<(T, Option<PyErr>)> {
    let (cancel, (sender, mut steps)) = (Cancel::new(), channel());
    let mine = cancel.clone();
    let thread = std::thread::Builder::new().name("lanemark".to_owned());
    let thread = thread.spawn(move || work(&mine, Steps(sender)))?;
    let mut stopped: Option<PyErr> = None;
    loop {
        let received;
        (steps, received) = received_from(py, steps);
        match received {
            Ok(step) => {
                // Steps that came meanwhile are told together.
                let step = steps.try_iter().fold(step, |before, after| Step {
                    done: after.done.or(before.done),
                    all: after.all.or(before.all),
                    what: after.what.or(before.what),
                });
                if let (Some(progress), None) = (progress, &stopped) {
                    stopped = progress.call1((step.done, step.all, step.what)).err();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        match (py.check_signals(), &stopped) {
            (Ok(()), _) => {}
            (Err(error), None) => stopped = Some(error),
            // The work has not ended since the first signal: it is left.
            (Err(error), Some(_)) => return Err(error),
        }
        if stopped.is_some() {
            cancel.cancel();
        }
    }
    let done = py.detach(|| thread.join());
    let done = done.map_err(|_| bug("a thread of a request has panicked, for the reason above"))?;
    Ok((done, stopped.or_else(|| py.check_signals().err())))
}

/// Waits for a message without the interpreter's lock, for a short time.
fn received_from<T: Send>(py: Python<'_>, from: Receiver<T>) -> (Receiver<T>, Result<T, RecvTimeoutError>) {
    py.detach(move || {
        let received = from.recv_timeout(LOOK);
        (from, received)
    })
}

/// The result of `work`, which cannot be cancelled, on a thread of its own.
///
/// # Errors
/// The exception of a signal (`KeyboardInterrupt`): the thread is then left to end by itself, and its result is dropped. An
/// error if a thread cannot be started, or if it panics.
pub fn or_left<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (sender, mut done) = channel();
    let thread = std::thread::Builder::new().name("lanemark".to_owned());
    // Nobody receives the result after a signal.
    thread.spawn(move || drop(sender.send(work())))?;
    loop {
        let received;
        (done, received) = received_from(py, done);
        match received {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(bug("a thread of a request has panicked, for the reason above"));
            }
        }
    }
}
