//! Traces of a simulated machine: link traffic and stalls.

use super::SimulatedMachine;
use lanemark_machine::{Machine, MachineError, Plan, Samples, Trace, Unsupported};

impl SimulatedMachine {
    /// Runs `plan` like [`Machine::run`], and returns the link traffic and stalls of the last sample, from its first
    /// timestamp to its completion: the last `most` frames and as many stalls.
    ///
    /// ```
    /// use lanemark_machine::{Access, Plan, Samples, Span, Step, Stream, Verb, Width};
    /// use lanemark_sim::SimulatedMachine;
    /// use lanemark_units::{BarOffset, MemoryType};
    /// let preset = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    /// let mut machine = SimulatedMachine::new(&preset).unwrap();
    /// let at = BarOffset { bar: 0, offset: 0 };
    /// let load = Stream::over(Verb::Load, Access::Plain(Width::B4), Span { at, len: 4, memory_type: MemoryType::Uc });
    /// let plan = Plan::new(Step::Stream(load), 1);
    /// let trace = machine.trace(&plan, &mut Samples::wanted(1), 100).unwrap();
    /// assert_eq!(trace.frames.len(), 2); // MRd and CplD
    /// assert_eq!(trace.links, ["card"]);
    /// ```
    ///
    /// # Errors
    /// As for `run`.
    pub fn trace(&mut self, plan: &Plan, samples: &mut Samples, most: usize) -> Result<Trace, MachineError> {
        let (trace, done) = self.trace_to_the_end(plan, samples, most);
        done.map(|()| trace)
    }

    /// Runs `plan` like [`SimulatedMachine::trace`], and also returns a trace if the run fails: of the failing
    /// sample, or of the steps before it.
    pub fn trace_to_the_end(
        &mut self,
        plan: &Plan,
        samples: &mut Samples,
        most: usize,
    ) -> (Trace, Result<(), MachineError>) {
        self.tracing = Some(most);
        let done = self.run(plan, samples);
        self.tracing = None;
        let trace = self.trace_to_failure.take().unwrap_or_else(|| self.board.take_trace());
        (trace, done)
    }

    /// Starts a trace, if one is wanted.
    pub(super) fn observe(&mut self) -> Result<(), Unsupported> {
        let Some(most) = self.tracing else { return Ok(()) };
        self.board.observe(&self.platform, most).map_err(|error| self.unsupported("a trace", error.because))?;
        if self.traces_dllps {
            self.board.observe_dllps(most);
        }
        Ok(())
    }

    /// Keeps the trace before a reset.
    pub(super) fn keep_trace(&mut self) {
        if self.tracing.is_some() {
            self.trace_to_failure = Some(self.board.take_trace());
        }
    }
}
