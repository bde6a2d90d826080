//! The calls of a sample: of the first channel in the calling thread, of each other one in a thread of its own.

use super::channel::{CallError, Channel, Memory};
use super::plan::Stream;
use crate::x86::pin::Pin;
use crate::x86::sample::{Limits, Stamps, stamp_before, timed};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope, Thread};
use std::time::{Duration, Instant};

/// A wait for another thread is a loop for this long, and sleeps afterwards: giving the core away would count as a disturbance.
const SPIN: Duration = Duration::from_micros(50);
/// Longest sleep between two looks.
const SLEEP: Duration = Duration::from_millis(1);

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

/// A failure, and the number of the job that has it.
pub(super) type Failed = (usize, Failure);

/// Jobs, counters and results of a sample, which the threads of all channels share.
pub(super) struct Crew<'a> {
    jobs: &'a [Job<'a>],
    memory: Memory<'a>,
    interrupted: &'a AtomicBool,
    /// The thread that times the samples.
    main: Thread,
    /// Number of samples for which the threads were called, and of those that have begun.
    called: AtomicU64,
    begun: AtomicU64,
    /// Iterations of this sample, and its limit in cycles.
    passes: AtomicU64,
    timeout_cycles: AtomicU64,
    /// Threads that are ready for this sample, and that have done it.
    ready: AtomicU32,
    done: AtomicU32,
    /// Set by the first stream of a sample that fails.
    is_over: AtomicBool,
    /// The first failure of another thread.
    failed: Mutex<Option<Failed>>,
    has_ended: AtomicBool,
}

/// Threads that wait for samples, until dropped.
pub(super) struct Threads<'a> {
    crew: &'a Crew<'a>,
    threads: Vec<Thread>,
}

impl Drop for Threads<'_> {
    fn drop(&mut self) {
        self.crew.has_ended.store(true, Ordering::Release);
        self.threads.iter().for_each(Thread::unpark);
    }
}

impl<'a> Crew<'a> {
    pub(super) fn new(jobs: &'a [Job<'a>], memory: Memory<'a>, interrupted: &'a AtomicBool) -> Crew<'a> {
        let zero = AtomicU64::default;
        Crew {
            jobs,
            memory,
            interrupted,
            main: thread::current(),
            called: zero(),
            begun: zero(),
            passes: zero(),
            timeout_cycles: zero(),
            ready: AtomicU32::default(),
            done: AtomicU32::default(),
            is_over: AtomicBool::default(),
            failed: Mutex::default(),
            has_ended: AtomicBool::default(),
        }
    }

    /// Starts a thread for each job but the first. The calling thread must not be pinned yet: they begin on its cores.
    ///
    /// # Errors
    /// Error of creating a thread.
    pub(super) fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<Threads<'scope>, Errno> {
        let mut started = Threads { crew: self, threads: Vec::new() };
        for (number, job) in self.jobs.iter().enumerate().skip(1) {
            let thread = thread::Builder::new().spawn_scoped(scope, move || self.work(number, job));
            let thread = thread.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?;
            started.threads.push(thread.thread().clone());
        }
        Ok(started)
    }

    /// The thread of a job other than the first one.
    fn work(&self, number: usize, job: &Job<'_>) {
        let pin = Pin::to(job.cpu);
        for sample in 1.. {
            self.wait(|| self.called.load(Ordering::Acquire) >= sample);
            if self.has_ended.load(Ordering::Acquire) {
                return;
            }
            self.ready.fetch_add(1, Ordering::Release);
            self.main.unpark();
            self.wait(|| self.begun.load(Ordering::Acquire) >= sample);
            // Whatever ends these calls, the thread that times them must not wait any longer.
            let _done = Done(self);
            let ran = match &pin {
                Ok(_) => self.run(job),
                Err(error) => Err(Failure::Thread(*error)),
            };
            if let Err(failure) = ran {
                self.is_over.store(true, Ordering::Relaxed);
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((number, failure));
            }
        }
    }

    /// Runs the transfers of a stream in this sample.
    fn run(&self, job: &Job<'_>) -> Result<(), Failure> {
        let start = stamp_before();
        let Stream { transfer, .. } = job.stream;
        let longest = self.timeout_cycles.load(Ordering::Relaxed);
        let transfers = transfer.count.saturating_mul(self.passes.load(Ordering::Relaxed));
        for nth in 0..job.stream.share(transfers) {
            let (at, on_card) = job.stream.places(job.stream.number(nth));
            job.channel.transfer(self.memory, at, on_card, transfer.bytes, self.interrupted).map_err(Failure::Call)?;
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            if stamp_before().saturating_sub(start) > longest {
                return Err(Failure::Late);
            }
            if self.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits for another thread, or for the end.
    fn wait(&self, is_over: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_over() && !self.has_ended.load(Ordering::Acquire) {
            if begun.elapsed() < SPIN {
                std::hint::spin_loop();
            } else {
                thread::park_timeout(SLEEP);
            }
        }
    }
}

/// Counts a thread that has done a sample, whatever ends it.
struct Done<'a>(&'a Crew<'a>);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, Ordering::Release);
        self.0.main.unpark();
    }
}

impl Threads<'_> {
    /// Runs `passes` iterations of all jobs at once, and times them: from the first call until the last one has returned.
    pub(super) fn sample(&self, limits: &Limits<'_>, passes: u64) -> Result<Stamps, Failed> {
        let Threads { crew, threads } = self;
        let Some(first) = crew.jobs.first() else { return Err((0, Failure::Thread(Errno::INVAL))) };
        let others = threads.len() as u32;
        crew.passes.store(passes, Ordering::Relaxed);
        crew.timeout_cycles.store(limits.timeout_cycles, Ordering::Relaxed);
        crew.is_over.store(false, Ordering::Relaxed);
        crew.ready.store(0, Ordering::Relaxed);
        crew.done.store(0, Ordering::Relaxed);
        crew.called.fetch_add(1, Ordering::Release);
        threads.iter().for_each(Thread::unpark);
        crew.wait(|| crew.ready.load(Ordering::Acquire) == others);
        let mut own = Ok(());
        let stamps = timed(limits, 0, 1, |_| {
            crew.begun.fetch_add(1, Ordering::Release);
            threads.iter().for_each(Thread::unpark);
            own = crew.run(first);
            if own.is_err() {
                crew.is_over.store(true, Ordering::Relaxed);
            }
            // Each call of the driver ends by itself, so these threads do.
            crew.wait(|| crew.done.load(Ordering::Acquire) == others);
            Ok(())
        });
        own.map_err(|failure| (0, failure))?;
        crew.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(stamps), Err)
    }
}
