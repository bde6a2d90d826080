//! The samples of one run: the thread held on its core, passes numbered, each sample watched and judged.

use super::disturbance::{Company, Watch};
use super::pin::Pin;
use super::sample::{Delivery, Ending, Limits, Stamps};
use super::timer::{EmptySample, Timer};
use lanemark_machine::{MachineError, Placement, Plan, Samples};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a way in brings to a run of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    /// Who runs, for messages.
    pub(crate) machine: &'a str,
    /// Its time.
    pub(crate) timer: Timer,
    /// What is run.
    pub(crate) plan: &'a Plan,
    /// The system's number of the core, where the plan holds its thread on one.
    pub(crate) cpu: usize,
    /// Whom it may lose its core to.
    pub(crate) company: Company,
    /// See [`Limits`].
    pub(crate) passes_per_look: u64,
    /// What tells that stores were delivered.
    pub(crate) delivery: Delivery,
    /// Somebody wants an end.
    pub(crate) interrupted: &'a AtomicBool,
    /// How passes are numbered.
    pub(crate) numbering: Numbering,
}

/// How the passes of a run are numbered; their values follow from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Numbering {
    /// So that the last is the one before this number, the machine's runs so far: it differs from the last of each of the
    /// 31 runs before.
    EndingWith(u64),
    /// From 0 on and never the same twice: messages, none of which may be the 0 that stands in their lines.
    Messages,
}

/// What a run leaves to be looked into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// The number of the last pass, whose values are in memory now.
    pub(crate) last: u64,
    /// What an empty sample takes.
    pub(crate) empty: EmptySample,
}

impl Run<'_> {
    /// Fills `samples` with what `job` gives for the passes it is told: the number of the first, and how many. `before`
    /// is done before each sample; `doing` says what a job does, for messages.
    ///
    /// # Errors
    /// Those of `job`, of the kernel, and [`MachineError::Timeout`] and [`MachineError::Interrupted`].
    pub(crate) fn take(
        &self,
        samples: &mut Samples,
        doing: &'static str,
        before: impl Fn(),
        mut job: impl FnMut(&Limits<'_>, u64, u64) -> Result<Stamps, MachineError>,
    ) -> Result<Left, MachineError> {
        let Run { timer, plan, passes_per_look, interrupted, .. } = *self;
        let _pin = match plan.placement {
            Placement::Pinned => {
                Some(Pin::to(self.cpu).map_err(|error| self.os("holding the thread on its core", error))?)
            }
            Placement::Unpinned => None,
        };
        let timeout_cycles = timer.cycles(plan.timeout);
        let limits = Limits { timeout_cycles, passes_per_look, interrupted, delivery: self.delivery };
        // An empty sample stores nothing, so that there is nothing to read back: a round trip stays in `delivered`.
        let empty = EmptySample::measured(&Limits { delivery: Delivery::Drained, ..limits });
        samples.timer_cost = timer.cost(empty);

        let wanted = samples.count_wanted() as u64;
        let passes_in_all = plan.passes.wrapping_add(plan.warmup_passes).wrapping_mul(wanted);
        let mut next = match self.numbering {
            Numbering::EndingWith(end) => end.wrapping_sub(passes_in_all),
            Numbering::Messages => 0,
        };
        let mut last = next;
        let counting = |error| self.os("asking how often the core was taken away", error);
        let mut watch = Watch::new(timer, plan.placement, self.company).map_err(counting)?;
        let mut take = |first: u64, passes: u64| {
            if interrupted.load(Ordering::Relaxed) {
                return Err(MachineError::Interrupted { machine: self.machine.to_owned() });
            }
            watch.before().map_err(counting)?;
            let stamps = job(&limits, first, passes)?;
            let (disturbance, cpu) = watch.after().map_err(counting)?;
            last = first.wrapping_add(passes).wrapping_sub(1);
            self.judge(&stamps, passes, &limits, doing)?;
            Ok((stamps, disturbance, cpu))
        };
        while samples.wants_more() {
            before();
            if plan.warmup_passes > 0 {
                take(next, plan.warmup_passes)?;
            }
            let (stamps, disturbance, cpu) = take(next.wrapping_add(plan.warmup_passes), plan.passes)?;
            samples.keep(timer.sample(&stamps, empty), disturbance);
            // Where nobody else may run on its core, it is the plan's.
            if self.company == Company::OwnThreads {
                samples.cpus.push(cpu);
            }
            // What replaces a dropped sample has its numbers, so that the last of all is the last one meant.
            if disturbance.is_none() || self.numbering == Numbering::Messages {
                next = next.wrapping_add(plan.warmup_passes).wrapping_add(plan.passes);
            }
        }
        Ok(Left { last, empty })
    }

    /// Whether a sample of `passes` passes counts.
    fn judge(
        &self,
        stamps: &Stamps,
        passes: u64,
        limits: &Limits<'_>,
        doing: &'static str,
    ) -> Result<(), MachineError> {
        let machine = || self.machine.to_owned();
        let cycles = stamps.delivered.saturating_sub(stamps.start);
        let late =
            |waiting_for| MachineError::Timeout { machine: machine(), after: self.timer.ticks(cycles), waiting_for };
        let is_interrupted = limits.interrupted.load(Ordering::Relaxed);
        match stamps.ending {
            Ending::Stopped(_) | Ending::Failed(Errno::CANCELED) if is_interrupted => {
                Err(MachineError::Interrupted { machine: machine() })
            }
            Ending::Failed(Errno::TIMEDOUT) => Err(late("a message from the other core".to_owned())),
            Ending::Failed(error) => Err(self.os(doing, error)),
            Ending::Stopped(done) => Err(late(format!("pass {} of {passes}", done + 1))),
            Ending::Done if cycles > limits.timeout_cycles => Err(late(format!("the last of {passes} passes"))),
            Ending::Done => Ok(()),
        }
    }

    fn os(&self, doing: &'static str, error: Errno) -> MachineError {
        MachineError::Os { machine: self.machine.to_owned(), doing, source: error.into() }
    }
}
