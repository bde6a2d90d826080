//! The samples of one run: pins the thread, numbers the iterations, observes and judges each sample.

use super::disturbance::{Company, Watch};
use super::pin::Pin;
use super::sample::{Delivery, Ending, Limits, Stamps};
use super::timer::{EmptySample, Timer};
use lanemark_machine::{MachineError, Placement, Plan, Samples};
use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

/// Parameters that a backend passes to a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    /// Machine name, for messages.
    pub(crate) machine: &'a str,
    /// Time-stamp counter.
    pub(crate) timer: Timer,
    /// Plan to run.
    pub(crate) plan: &'a Plan,
    /// System number of the core, if the plan pins its thread.
    pub(crate) cpu: usize,
    /// Threads that may preempt a sample without disturbing it.
    pub(crate) company: Company,
    /// See [`Limits`].
    pub(crate) passes_per_check: u64,
    /// Method that shows when stores are delivered.
    pub(crate) delivery: Delivery,
    /// Interrupt flag.
    pub(crate) interrupted: &'a AtomicBool,
    /// Numbering of the iterations.
    pub(crate) numbering: Numbering,
}

/// Numbering of the iterations of a run, from which the stored values follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Numbering {
    /// The last number is the one before this, the number of runs of the machine: it differs from the last numbers of the
    /// 31 runs before.
    EndingWith(u64),
    /// Ascending from 0 without repetition: for messages, which must differ from the 0 in their lines.
    Messages,
}

/// Clock of the times that a job returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Clock {
    /// The timestamps of the program, whose cost is subtracted.
    Program,
    /// Another one, in cycles. Its times contain no timestamps of the program, so nothing is subtracted.
    Other,
}

/// State after a run, for verification.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunState {
    /// Number of the last iteration, whose values are in memory.
    pub(crate) last: u64,
    /// Duration of an empty sample.
    pub(crate) empty: EmptySample,
}

impl Run<'_> {
    /// Fills `samples` with the results of `job`, which is called with the number of the first iteration and their count.
    /// `before` runs before each sample; `doing` describes the job in messages.
    ///
    /// # Errors
    /// Errors of `job` and of system calls, [`MachineError::Timeout`] and [`MachineError::Interrupted`].
    pub(crate) fn take(
        &self,
        samples: &mut Samples,
        doing: &'static str,
        before: impl Fn(),
        job: impl FnMut(&Limits<'_>, u64, u64) -> Result<Stamps, MachineError>,
    ) -> Result<RunState, MachineError> {
        self.take_by(Clock::Program, samples, doing, before, job)
    }

    /// As [`take`](Run::take), with the times of this clock.
    ///
    /// # Errors
    /// As for [`take`](Run::take).
    pub(crate) fn take_by(
        &self,
        clock: Clock,
        samples: &mut Samples,
        doing: &'static str,
        before: impl Fn(),
        mut job: impl FnMut(&Limits<'_>, u64, u64) -> Result<Stamps, MachineError>,
    ) -> Result<RunState, MachineError> {
        let Run { timer, plan, passes_per_check, interrupted, .. } = *self;
        let _pin = match plan.work.placement() {
            Placement::Pinned => {
                Some(Pin::to(self.cpu).map_err(|error| self.os("pinning the thread to its core", error))?)
            }
            Placement::Unpinned => None,
        };
        let timeout_cycles = timer.cycles(plan.timeout);
        let limits = Limits { timeout_cycles, passes_per_check, interrupted, delivery: self.delivery };
        let empty = match clock {
            // An empty sample stores nothing to read back, so a round trip remains in `delivered`.
            Clock::Program => EmptySample::measured(&Limits { delivery: Delivery::Drained, ..limits }),
            Clock::Other => EmptySample::default(),
        };
        samples.timer_cost = timer.cost(empty);

        let wanted = samples.count_wanted() as u64;
        let passes_in_all = plan.passes.wrapping_add(plan.warmup_passes).wrapping_mul(wanted);
        let mut next = match self.numbering {
            Numbering::EndingWith(end) => end.wrapping_sub(passes_in_all),
            Numbering::Messages => 0,
        };
        let mut last = next;
        let counting = |error| self.os("reading the number of context switches", error);
        let mut watch = Watch::new(timer, plan.work.placement(), self.company).map_err(counting)?;
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
            // A core is recorded only where the plan does not determine it.
            if self.company == Company::OwnThreads {
                samples.cpus.push(cpu);
            }
            // A sample that replaces a dropped one reuses its numbers, so that the last number is the intended one.
            if disturbance.is_none() || self.numbering == Numbering::Messages {
                next = next.wrapping_add(plan.warmup_passes).wrapping_add(plan.passes);
            }
        }
        Ok(RunState { last, empty })
    }

    /// Checks whether a sample of `passes` iterations is complete and in time.
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
            Ending::Stopped(done) => Err(late(format!("iteration {} of {passes}", done + 1))),
            Ending::Done if cycles > limits.timeout_cycles => Err(late(format!("the last of {passes} iterations"))),
            Ending::Done => Ok(()),
        }
    }

    fn os(&self, doing: &'static str, error: Errno) -> MachineError {
        MachineError::Os { machine: self.machine.to_owned(), doing, source: error.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pin::allowed_cpus;
    use super::*;
    use lanemark_units::Ticks;

    /// Times that samples of 5 us have by a clock, and the cost that was subtracted.
    fn taken(clock: Clock) -> (Vec<Ticks>, Ticks) {
        let (timer, plan, interrupted) = (Timer::checked(None), Plan::empty(), AtomicBool::new(false));
        let run = Run {
            machine: "a test",
            timer,
            plan: &plan,
            cpu: allowed_cpus().unwrap()[0],
            company: Company::None,
            passes_per_check: 1,
            delivery: Delivery::Drained,
            interrupted: &interrupted,
            numbering: Numbering::Messages,
        };
        let end = timer.cycles(Ticks::whole_ns(5000));
        let stamps = Stamps { start: 0, issued: end, delivered: end, ending: Ending::Done };
        let mut samples = Samples::wanted(3);
        run.take_by(clock, &mut samples, "testing", || {}, |_, _, _| Ok(stamps)).unwrap();
        let disturbed = samples.disturbed.iter().map(|(_, sample, _)| sample);
        (samples.taken.iter().chain(disturbed).map(|sample| sample.issue).collect(), samples.timer_cost)
    }

    #[test]
    fn times_of_another_clock_are_kept_whole_and_those_of_the_program_lose_the_cost_of_its_timestamps() {
        let (whole, nothing) = taken(Clock::Other);
        let (less, cost) = taken(Clock::Program);
        assert!(nothing == Ticks::ZERO && cost > Ticks::ZERO);
        assert!(whole.iter().all(|time| *time >= Ticks::whole_ns(5000)), "{whole:?}");
        assert!(less.iter().all(|time| *time < whole[0]), "{less:?} of {whole:?}");
    }
}
