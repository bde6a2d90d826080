//! The formulas as a machine: the same questions can be asked of them.

use crate::predict::{Prediction, predict};
use lanemark_machine::{Facts, Machine, MachineError, Plan, Sample, Samples, Unsupported};
use lanemark_platform::Platform;
use lanemark_units::Ticks;

/// A platform's formulas, which answer a plan with one sample.
#[derive(Clone, Debug)]
pub struct FormulaMachine {
    platform: Platform,
    facts: Facts,
    last: Option<Prediction>,
}

impl FormulaMachine {
    /// The formulas of `platform`; `facts` say what may be asked, as its simulation knows it.
    #[must_use]
    pub fn new(platform: &Platform, facts: &Facts) -> FormulaMachine {
        FormulaMachine { platform: platform.clone(), facts: facts.clone(), last: None }
    }

    /// What the last plan's formula said, with its bound.
    #[must_use]
    pub fn last(&self) -> Option<&Prediction> {
        self.last.as_ref()
    }

    fn ask(&self, plan: &Plan) -> Result<Prediction, Unsupported> {
        predict(&self.platform, plan).ok_or_else(|| Unsupported {
            what: "this plan".to_owned(),
            machine: format!("the formula for {}", self.facts.name),
            because: "there is no closed form for it".to_owned(),
        })
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
        self.last = Some(said);
        Ok(())
    }
}
