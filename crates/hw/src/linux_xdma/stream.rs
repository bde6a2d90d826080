//! The calls of a sample: of one channel in the calling thread, of several channels in a thread for each.

use super::channel::{CallError, Channel, Memory};
use super::plan::Stream;
use crate::x86::pin::Pin;
use crate::x86::sample::{Limits, Stamps, stamp_before, timed};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// A stream with its channel, and the core of its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) stream: Stream,
    pub(super) channel: &'a Channel,
    pub(super) cpu: usize,
}

/// Why a sample has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    Call(CallError),
    /// The plan's timeout is over.
    Late,
    Interrupted,
    /// A thread cannot be created, or not on its core.
    Thread(Errno),
}

/// Conditions that end a sample early.
struct Ends<'a> {
    timeout_cycles: u64,
    interrupted: &'a AtomicBool,
    /// Set by the first stream that fails.
    is_over: AtomicBool,
}

impl Ends<'_> {
    /// Runs the transfers of a stream, `transfers` of its whole job.
    fn run(&self, job: &Job<'_>, memory: Memory<'_>, transfers: u64) -> Result<(), Failure> {
        let start = stamp_before();
        let bytes = job.stream.transfer.bytes;
        for nth in 0..job.stream.share(transfers) {
            let (at, on_card) = job.stream.places(job.stream.number(nth));
            let done = job.channel.transfer(memory, at, on_card, bytes).map_err(Failure::Call);
            let done = done.and_then(|()| {
                if self.interrupted.load(Ordering::Relaxed) {
                    Err(Failure::Interrupted)
                } else if stamp_before().saturating_sub(start) > self.timeout_cycles {
                    Err(Failure::Late)
                } else {
                    Ok(())
                }
            });
            if done.is_err() {
                self.is_over.store(true, Ordering::Relaxed);
                return done;
            }
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// A failure, and the number of the job that has it.
pub(super) type Failed = (usize, Failure);

/// Runs `passes` iterations of all jobs at once, and times them: from the first call until the last one has returned.
pub(super) fn run(jobs: &[Job<'_>], memory: Memory<'_>, limits: &Limits<'_>, passes: u64) -> Result<Stamps, Failed> {
    let Limits { timeout_cycles, interrupted, .. } = *limits;
    let ends = Ends { timeout_cycles, interrupted, is_over: AtomicBool::new(false) };
    let transfers = |job: &Job<'_>| job.stream.transfer.count.saturating_mul(passes);
    let mut failed = None;
    let [first, others @ ..] = jobs else { return Err((0, Failure::Thread(Errno::INVAL))) };
    if others.is_empty() {
        let stamps = timed(limits, 0, 1, |_| {
            failed = ends.run(first, memory, transfers(first)).err();
            Ok(())
        });
        return failed.map_or(Ok(stamps), |failure| Err((0, failure)));
    }
    let (is_begun, ready, done) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for job in others {
            let work = || {
                let pin = Pin::to(job.cpu).map_err(Failure::Thread);
                ready.fetch_add(1, Ordering::Release);
                let _done = Counted(&done);
                wait(|| is_begun.load(Ordering::Acquire));
                pin.and_then(|_pin| {
                    if ends.is_over.load(Ordering::Relaxed) { Ok(()) } else { ends.run(job, memory, transfers(job)) }
                })
            };
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    failed = Some(Failure::Thread(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)));
                    ends.is_over.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
        let started = threads.len() as u32;
        wait(|| ready.load(Ordering::Acquire) == started);
        let stamps = timed(limits, 0, 1, |_| {
            is_begun.store(true, Ordering::Release);
            if failed.is_none() {
                failed = ends.run(first, memory, transfers(first)).err();
            }
            // Each call of the driver ends by itself, so these threads do.
            wait(|| done.load(Ordering::Acquire) == started);
            Ok(())
        });
        let mut failed = failed.map(|failure| (0, failure));
        for (nth, thread) in threads.into_iter().enumerate() {
            let other = thread.join().unwrap_or(Err(Failure::Thread(Errno::CANCELED)));
            failed = failed.or(other.err().map(|failure| (nth + 1, failure)));
        }
        failed.map_or(Ok(stamps), Err)
    })
}

/// Counts a thread when it ends, whatever ends it.
struct Counted<'a>(&'a AtomicU32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// Waits for another thread, which may need this core.
fn wait(is_over: impl Fn() -> bool) {
    while !is_over() {
        thread::yield_now();
    }
}
