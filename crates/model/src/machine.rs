//! Formulas as a [`Machine`](lanemark_machine::Machine), to run the same questions with them.

use crate::loaded;
use crate::predict::predict;
use crate::prediction::Prediction;
use lanemark_machine::{
    Facts, Lane, Machine, MachineError, Operation, Placement, Plan, Sample, Samples, Step, Task, Unsupported, Verb,
};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// The formulas of a platform, which answer a plan with one sample.
#[derive(Clone, Debug)]
pub struct FormulaMachine {
    platform: Platform,
    facts: Facts,
    last: Option<Prediction>,
}

impl FormulaMachine {
    /// The formulas of `platform`; `facts` are those of its simulation.
    #[must_use]
    pub fn new(platform: &Platform, facts: &Facts) -> FormulaMachine {
        FormulaMachine { platform: platform.clone(), facts: facts.clone(), last: None }
    }

    /// Prediction for the last plan, with its bound.
    #[must_use]
    pub fn last(&self) -> Option<&Prediction> {
        self.last.as_ref()
    }

    fn ask(&self, plan: &Plan) -> Result<Prediction, Unsupported> {
        plan.check().map_err(|impossible| self.unsupported(impossible.what, impossible.because))?;
        let cores = plan.work.check_cores(self.facts.cores);
        cores.map_err(|impossible| self.unsupported(impossible.what, impossible.because))?;
        if let Some(dma) = &self.platform.dma {
            let channels = plan.work.check_channels(dma.channels.value, dma.full_duplex.value);
            channels.map_err(|impossible| self.unsupported(impossible.what, impossible.because))?;
        }
        if plan.work.placement() == Placement::Unpinned {
            let because = "formulas do not model thread migration".to_owned();
            return Err(self.unsupported("a thread that is not pinned".to_owned(), because));
        }
        for step in plan.work.steps() {
            let Step::Stream(stream) = step else { continue };
            if !self.facts.memory_types.contains(&stream.span.memory_type) {
                let because = "device memory is not cache coherent".to_owned();
                return Err(self.unsupported(format!("a BAR mapped {}", stream.span.memory_type), because));
            }
            if !self.facts.accesses(stream.verb).contains(&stream.access) {
                let because = format!("{} has no such instruction", self.platform.core.name);
                return Err(self.unsupported(stream.access.to_string(), because));
            }
        }
        if let [Lane { task: Task::Operation(Operation::Handshake(request)), .. }] = plan.work.lanes() {
            let lacks = |verb| !self.facts.accesses(verb).contains(&request.access);
            if [Verb::Store, Verb::Load].into_iter().any(lacks) {
                let because = format!("{} has no such instruction", self.platform.core.name);
                return Err(self.unsupported(request.access.to_string(), because));
            }
        }
        let said = predict(&self.platform, plan)
            .ok_or_else(|| self.unsupported("this plan".to_owned(), "no closed form exists".to_owned()))?;
        // A shorter time in its place would be a higher rate than the formula's.
        if Ticks::from_ns(said.delivered_ns.max(0.0)).is_err() {
            let days = said.delivered_ns / 86_400e9;
            let because = format!(
                "it takes {days:.0} days, and times of 52 days or more are not represented: use fewer iterations"
            );
            return Err(self.unsupported("this plan".to_owned(), because));
        }
        Ok(said)
    }

    fn unsupported(&self, what: String, because: String) -> Unsupported {
        Unsupported { what, machine: format!("the formula for {}", self.facts.name), because }
    }
}

impl Machine for FormulaMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.ask(plan).map(|_| ())
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let said = self.ask(plan)?;
        samples.clear();
        let ticks = |ns: f64| Ticks::from_ns(ns.max(0.0)).unwrap_or(Ticks::NEVER);
        samples.taken.push(Sample { issue: ticks(said.issue_ns), delivered: ticks(said.delivered_ns) });
        samples.latencies.extend(loaded::latency_ns(&self.platform, plan, &said).map(ticks));
        self.last = Some(said);
        Ok(())
    }
}
