//! What crosses which link and who waits for what, of a simulated machine.

use super::SimulatedMachine;
use lanemark_machine::{Machine, MachineError, Plan, Samples, Trace, Unsupported};

impl SimulatedMachine {
    /// Runs `plan` as [`Machine::run`] does, and says what crossed which link and who waited for what in the last sample,
    /// from its first timestamp until all was delivered: at most `most` frames and as many waits, the last ones.
    ///
    /// ```
    /// use lanemark_machine::{Access, Op, Plan, Samples, Span, Stream, Verb, Width};
    /// use lanemark_sim::SimulatedMachine;
    /// use lanemark_units::{BarOffset, MemoryType};
    /// let preset = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    /// let mut machine = SimulatedMachine::new(&preset).unwrap();
    /// let at = BarOffset { bar: 0, offset: 0 };
    /// let load = Stream::over(Verb::Load, Access::Plain(Width::B4), Span { at, len: 4, memory_type: MemoryType::Uc });
    /// let plan = Plan::on_one_core(vec![Op::Stream(load)], 1);
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

    /// The same, with a trace where the run fails too: of what it failed in, up to its end. That is the sample, or what a plan
    /// does before it.
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

    /// Begins a trace, if one is wanted.
    pub(super) fn observe(&mut self) -> Result<(), Unsupported> {
        let Some(most) = self.tracing else { return Ok(()) };
        self.board.observe(&self.platform, most).map_err(|error| self.unsupported("a trace", error.because))?;
        if self.traces_dllps {
            self.board.observe_dllps(most);
        }
        Ok(())
    }

    /// Keeps the trace before everything is reset.
    pub(super) fn keep_trace(&mut self) {
        if self.tracing.is_some() {
            self.trace_to_failure = Some(self.board.take_trace());
        }
    }
}
