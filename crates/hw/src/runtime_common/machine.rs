//! State of a machine behind a runtime, and how one run is put together.
//!
//! A backend implements [`RuntimeQueue`], which allocates what a plan requests, and [`Prepared`], which times it.
//! [`RuntimeMachine`] checks the plan, runs it on a thread of its own, takes the samples and verifies the data.

use super::facts;
use super::request::{DeviceLimits, PlanCheck, doing, name};
use crate::watchdog::{OPEN_LIMIT, OpenFailure, Progress, SampleThread, within};
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::pin::allowed_cpus;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, Limits, Stamps, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{Confirmed, Facts, MachineError, Plan, QueueRequest, RuntimeFacts, Samples, Unsupported};
use lanemark_units::Ticks;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Open queue of a device, with everything that was allocated for its plans.
pub(crate) trait RuntimeQueue: Send + 'static {
    /// Error of the runtime.
    type Error;
    /// A request whose kernels and memory exist.
    type Prepared<'a>: Prepared<Error = Self::Error>
    where
        Self: 'a;

    /// Builds kernels and allocates memory for `request`, or reuses those of an earlier plan.
    ///
    /// # Errors
    /// Errors of the runtime or the system.
    fn allocate(&mut self, request: QueueRequest) -> Result<Self::Prepared<'_>, Self::Error>;

    /// Converts an error to one of the machine: [`Unsupported`] if a smaller or another plan can still succeed.
    fn failure(failed: &Failed<'_>, error: &Self::Error) -> MachineError;
}

/// A request whose kernels and memory exist.
pub(crate) trait Prepared {
    /// Error of the runtime.
    type Error;

    /// Fills the memory with contents that depend on `seed`.
    ///
    /// # Errors
    /// Errors of the runtime.
    fn fill(&mut self, seed: u64) -> Result<(), Self::Error>;

    /// Times `passes` iterations, of which the first has number `first`.
    ///
    /// # Errors
    /// Errors of the runtime.
    fn sample(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, Self::Error>;

    /// Number of correct bytes after the last iteration, [filled](Prepared::fill) with the same `seed`; `None` for launches.
    ///
    /// # Errors
    /// Errors of the runtime or the system.
    fn confirmed(&mut self, seed: u64) -> Result<Option<Confirmed>, Self::Error>;
}

/// Stage of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Building kernels and allocating memory.
    Allocating,
    /// Filling memory, taking samples, verifying data.
    Sampling,
}

/// The run in which a call failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed<'a> {
    machine: &'a str,
    what: &'a str,
    /// Stage of the run.
    pub(crate) stage: Stage,
}

impl<'a> Failed<'a> {
    /// The run of `what` on `machine` in this stage.
    pub(crate) const fn new(machine: &'a str, what: &'a str, stage: Stage) -> Failed<'a> {
        Failed { machine, what, stage }
    }

    /// Error for a plan that this machine cannot run, although it can run others.
    pub(crate) fn unsupported(&self, because: String) -> MachineError {
        Unsupported { what: self.what.to_owned(), machine: self.machine.to_owned(), because }.into()
    }

    /// Error for an operation that has not ended for `seconds`.
    pub(crate) fn timeout(&self, seconds: u64, doing: &str) -> MachineError {
        let after = Ticks::whole_ns(seconds.saturating_mul(1_000_000_000));
        let waiting_for = format!("{}: {doing}", self.what);
        MachineError::Timeout { machine: self.machine.to_owned(), after, waiting_for }
    }

    /// Error for a device that stopped working.
    pub(crate) fn device(&self, error: &str) -> MachineError {
        let machine = self.machine.to_owned();
        MachineError::Device { what: format!("{machine}: {}: {error}", self.what), machine }
    }
}

/// Machine behind a runtime.
#[derive(Debug)]
pub(crate) struct RuntimeMachine<Q> {
    facts: Facts,
    runtime: RuntimeFacts,
    limits: DeviceLimits,
    /// System numbers of the cores that a plan may name.
    cpus: Vec<usize>,
    timer: Timer,
    queue: Arc<Mutex<Q>>,
    interrupted: Arc<AtomicBool>,
    sample_thread: SampleThread,
    /// Number of runs so far.
    runs: u64,
}

impl<Q: RuntimeQueue> RuntimeMachine<Q> {
    /// Machine `name` for an open queue. Once `interrupted` is set, every run ends between two samples or within a
    /// long one.
    ///
    /// # Errors
    /// Error of the system call that reads the CPU affinity mask.
    pub(crate) fn new(
        queue: Q,
        name: String,
        summary: String,
        runtime: RuntimeFacts,
        limits: DeviceLimits,
        interrupted: Arc<AtomicBool>,
    ) -> Result<RuntimeMachine<Q>, String> {
        let cpus = allowed_cpus().map_err(|error| error.to_string())?;
        Ok(RuntimeMachine {
            facts: facts(name, summary, cpus.len(), runtime.clone()),
            runtime,
            limits,
            cpus,
            timer: Timer::checked(Cpu::detected().tsc_hz),
            queue: Arc::new(Mutex::new(queue)),
            interrupted,
            sample_thread: SampleThread::default(),
            runs: 0,
        })
    }

    /// System numbers of the cores that a plan may name.
    pub(crate) fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Facts of the machine.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Calls `job` with the queue, on a thread of its own, which is abandoned after two minutes.
    ///
    /// # Errors
    /// Errors of `job`, and [`OpenFailure`].
    pub(crate) fn with_queue<T: Send + 'static, E: From<OpenFailure> + Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Q) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let queue = Arc::clone(&self.queue);
        within(OPEN_LIMIT, &self.interrupted, move || job(&mut queue.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Request of a plan, and the core that makes the calls.
    ///
    /// # Errors
    /// [`Unsupported`] with the reason.
    pub(crate) fn request(&self, plan: &Plan) -> Result<(QueueRequest, usize), Unsupported> {
        let RuntimeMachine { facts, runtime, limits, cpus, .. } = self;
        let check = PlanCheck { machine: &facts.name, cores: cpus.len(), runtime, limits: *limits };
        check.request(plan).map(|(request, core)| (request.clone(), core))
    }

    /// Runs a plan and fills `samples`.
    ///
    /// # Errors
    /// The errors of [`Machine::run`](lanemark_machine::Machine::run).
    pub(crate) fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (request, core) = self.request(plan)?;
        let cpu = self.cpus[core];
        self.run_by(plan, samples, move |queue, job| {
            let run = Run {
                machine: job.machine,
                timer: job.timer,
                plan: job.plan,
                cpu,
                company: Company::OwnThreads,
                // The check takes 20 to 40 ns, a launch at least 1 us.
                passes_per_check: 1,
                delivery: Delivery::Drained,
                interrupted: job.interrupted,
                numbering: Numbering::EndingWith(job.number),
            };
            take(queue, &run, request, job.number, job.samples, job.progress)
        })
    }

    /// Fills `samples` by `take`, which works on a thread of its own and reports its progress.
    ///
    /// # Errors
    /// Errors of `take`, and [`MachineError::Timeout`].
    pub(crate) fn run_by(
        &mut self,
        plan: &Plan,
        samples: &mut Samples,
        take: impl FnOnce(&mut Q, Job<'_>) -> Result<Samples, MachineError> + Send + 'static,
    ) -> Result<(), MachineError> {
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        let (wanted, timeout) = (samples.count_wanted(), plan.timeout);
        let (timer, number, machine) = (self.timer, self.runs, self.facts.name.clone());
        let (plan, queue, interrupted) = (plan.clone(), Arc::clone(&self.queue), Arc::clone(&self.interrupted));
        *samples = self.sample_thread.samples(&self.facts.name, timeout, move |progress| {
            // A thread that panicked left no half-changed state: everything is allocated and filled per plan.
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let samples = Samples::wanted(wanted);
            let (machine, plan, interrupted) = (machine.as_str(), &plan, &*interrupted);
            take(&mut *queue, Job { machine, plan, timer, interrupted, number, samples, progress })
        })?;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

/// A run, as the thread that works on it sees it.
pub(crate) struct Job<'a> {
    /// Machine name, for messages.
    pub(crate) machine: &'a str,
    pub(crate) plan: &'a Plan,
    /// Time-stamp counter.
    pub(crate) timer: Timer,
    /// Interrupt flag.
    pub(crate) interrupted: &'a AtomicBool,
    /// Number of the run, counted from 1.
    pub(crate) number: u64,
    /// Results, still empty.
    pub(crate) samples: Samples,
    pub(crate) progress: &'a Progress,
}

/// Prepares a request, takes its samples and verifies the data of the last one; reports progress after each step.
fn take<Q: RuntimeQueue>(
    queue: &mut Q,
    run: &Run<'_>,
    request: QueueRequest,
    seed: u64,
    mut samples: Samples,
    progress: &Progress,
) -> Result<Samples, MachineError> {
    let (what, doing) = (name(&request), doing(&request));
    let failure = |stage, error: Q::Error| Q::failure(&Failed { machine: run.machine, what: &what, stage }, &error);
    let allocating = |error| failure(Stage::Allocating, error);
    let sampling = |error| failure(Stage::Sampling, error);
    let mut prepared = progress.preparing(|| queue.allocate(request)).map_err(allocating)?;
    progress.preparing(|| prepared.fill(seed)).map_err(sampling)?;
    run.take(
        &mut samples,
        doing,
        || (),
        |limits, first, passes| {
            progress.step();
            prepared.sample(limits, first, passes).map_err(sampling)
        },
    )?;
    samples.confirmed = progress.preparing(|| prepared.confirmed(seed)).map_err(sampling)?;
    Ok(samples)
}
