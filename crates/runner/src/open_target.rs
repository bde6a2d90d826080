//! Open targets: cases, measured answers and predictions.

use crate::cancel::Cancel;
use crate::card::Card;
use crate::error::RunError;
use crate::gpu::Gpu;
use crate::platform::origins_of;
use lanemark_bench::{Axes, BenchError, Case, Effort, Question, Watch, has_formula, measure_all};
use lanemark_machine::{DeviceKind as SeenKind, Facts, Machine, MachineError, TimeBase, Unsupported};
use lanemark_model::FormulaMachine;
use lanemark_platform::{LinkEnds, Platform};
use lanemark_record::{
    Answer, Ceiling, Design, DeviceKind, Formula, Link, Quantity, Runtime, Software, Target as TargetRecord, TargetKind,
};
use lanemark_sim::SimulatedMachine;

/// The source of answers to a request: machines or formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answerer {
    /// Machines: simulated platforms and real machines.
    #[default]
    Machines,
    /// Formulas of simulated platforms. Their answers have a formula and a ceiling, and no samples.
    Formulas,
}

/// A target that is open for measurement.
pub struct OpenTarget {
    pub(crate) machine: Box<dyn Machine>,
    pub(crate) kind: Kind,
    /// Sentences for the record's warnings: differences from the platform's file, and skipped runtimes.
    pub(crate) notes: Vec<String>,
    /// Changed keys that are a part of the target's name.
    pub(crate) with: Vec<(String, String)>,
}

/// A compiled card, and the platform whose host it has.
pub(crate) struct Compiled {
    pub(crate) host: Platform,
    pub(crate) design: Design,
}

/// Kind of a target, with the facts that its machine does not hold.
pub(crate) enum Kind {
    /// A simulated platform.
    Platform(Box<Formulas>),
    /// A compiled card on the host of a platform.
    Compiled(Box<Compiled>),
    /// A real card.
    Card(Box<Card>),
    /// A GPU behind the CUDA driver.
    Gpu(Box<Gpu>),
    /// A runtime device, with the software between it and the program.
    Runtime(Option<Software>),
    /// Ordinary memory, with the measured ceilings of loads and of stores after their first use.
    Memory(Option<[Ceiling; 2]>),
}

/// A platform and its formulas.
pub(crate) struct Formulas {
    pub(crate) platform: Platform,
    machine: FormulaMachine,
}

impl OpenTarget {
    /// Opens the simulation of `platform` and its formulas.
    ///
    /// # Errors
    /// [`RunError::Board`] if the platform cannot be simulated.
    ///
    /// ```
    /// use lanemark_bench::{Axes, Effort};
    /// use lanemark_runner::{OpenTarget, platform, question};
    ///
    /// let mut target = OpenTarget::of_platform(&platform("card-gen5-x16")?)?;
    /// let question = question("dma_read_latency")?;
    /// let case = target.cases(question, &Axes { sizes: Some(vec![64]), ..Axes::default() }).remove(0);
    /// let simulated = target.ask(question, &case, &Effort::default()).unwrap().latency_ns.unwrap().median;
    /// let formula = target.ask_formulas(question, &case, &Effort::default()).unwrap().latency_ns.unwrap().median;
    /// assert!((simulated / formula - 1.0).abs() < 0.05);
    /// # Ok::<(), lanemark_runner::RunError>(())
    /// ```
    pub fn of_platform(platform: &Platform) -> Result<OpenTarget, RunError> {
        Ok(OpenTarget::of_simulation(platform.clone(), SimulatedMachine::new(platform)?))
    }

    /// As [`OpenTarget::of_platform`]; setting `cancel` ends a simulation early.
    ///
    /// # Errors
    /// As [`OpenTarget::of_platform`].
    pub fn cancelled_by(platform: &Platform, cancel: &Cancel) -> Result<OpenTarget, RunError> {
        let machine = SimulatedMachine::new(platform)?.interrupted_by(cancel.flag());
        Ok(OpenTarget::of_simulation(platform.clone(), machine))
    }

    /// As [`OpenTarget::cancelled_by`]; simulates every transfer, which takes less time for some thousands of them than the
    /// search for a steady state.
    ///
    /// # Errors
    /// As [`OpenTarget::of_platform`].
    pub fn in_detail(platform: &Platform, cancel: &Cancel) -> Result<OpenTarget, RunError> {
        let machine = SimulatedMachine::new(platform)?.interrupted_by(cancel.flag());
        Ok(OpenTarget::of_simulation(platform.clone(), machine.in_detail()))
    }

    pub(crate) fn of_simulation(platform: Platform, machine: SimulatedMachine) -> OpenTarget {
        let formulas = FormulaMachine::new(&platform, machine.facts());
        let kind = Kind::Platform(Box::new(Formulas { platform, machine: formulas }));
        OpenTarget { machine: Box::new(machine), kind, notes: Vec::new(), with: Vec::new() }
    }

    /// Wraps a machine without further facts, such as ordinary memory.
    pub(crate) fn of_memory(machine: Box<dyn Machine>) -> OpenTarget {
        OpenTarget { machine, kind: Kind::Memory(None), notes: Vec::new(), with: Vec::new() }
    }

    pub(crate) fn of_runtime(machine: Box<dyn Machine>, software: Option<Software>, notes: Vec<String>) -> OpenTarget {
        OpenTarget { machine, kind: Kind::Runtime(software), notes, with: Vec::new() }
    }

    /// Facts reported by the target.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        self.machine.facts()
    }

    /// The machine, for custom plans.
    pub fn machine(&mut self) -> &mut dyn Machine {
        self.machine.as_mut()
    }

    /// The platform of a simulated target, with all changes applied.
    #[must_use]
    pub fn platform(&self) -> Option<&Platform> {
        match &self.kind {
            Kind::Platform(formulas) => Some(&formulas.platform),
            _ => None,
        }
    }

    /// Notes for the reader: changed keys and skipped runtimes.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The cases of `question` on this target.
    #[must_use]
    pub fn cases(&self, question: &Question, axes: &Axes) -> Vec<Case> {
        (question.cases)(self.facts(), axes)
    }

    /// The single case of `question` for which `is_wanted` returns true.
    ///
    /// # Errors
    /// [`RunError::NotOneCase`] if no case or several cases match.
    pub fn one_case(
        &self,
        question: &Question,
        axes: &Axes,
        is_wanted: impl Fn(&Case) -> bool,
    ) -> Result<Case, RunError> {
        let mut cases = self.cases(question, axes).into_iter().filter(|case| is_wanted(case));
        match (cases.next(), cases.next()) {
            (Some(case), None) => Ok(case),
            (first, _) => Err(RunError::NotOneCase {
                question: question.name,
                target: self.facts().name.clone(),
                several: first.is_some(),
            }),
        }
    }

    /// Measures one case; the answer has no ceiling and no formula.
    ///
    /// # Errors
    /// As for [`lanemark_bench::ask`].
    pub fn ask(&mut self, question: &Question, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
        lanemark_bench::ask(question, self.machine.as_mut(), case, effort)
    }

    /// Predicts one case by formulas; the answer has no ceiling.
    ///
    /// # Errors
    /// As for [`lanemark_bench::ask`]; [`Unsupported`] for targets without a platform or a closed form.
    pub fn ask_formulas(&mut self, question: &Question, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
        match &mut self.kind {
            Kind::Platform(formulas) => lanemark_bench::ask(question, &mut formulas.machine, case, effort),
            _ => Err(self.without_formula(question, "it has no platform file, and therefore no formula")),
        }
    }

    /// Answers one case, with its ceiling and its formula, as a run does.
    ///
    /// # Errors
    /// As for [`lanemark_bench::ask`]; with [`Answerer::Formulas`] as for [`OpenTarget::ask_formulas`].
    pub fn answer(
        &mut self,
        answerer: Answerer,
        question: &Question,
        case: &Case,
        effort: &Effort,
    ) -> Result<Answer, BenchError> {
        let answers = self.answers(answerer, question, std::slice::from_ref(case), effort, &mut |_| true);
        answers.into_iter().next().unwrap_or(Err(BenchError::NotAsked))
    }

    fn without_formula(&self, question: &Question, because: &str) -> BenchError {
        let machine = format!("the formula for {}", self.facts().name);
        let (what, because) = (question.name.to_owned(), because.to_owned());
        MachineError::from(Unsupported { what, machine, because }).into()
    }

    /// Answers to related cases, with ceilings and formulas. There are fewer answers than cases if `watch` ends the
    /// series.
    pub(crate) fn answers(
        &mut self,
        answerer: Answerer,
        question: &Question,
        cases: &[Case],
        effort: &Effort,
        watch: Watch<'_>,
    ) -> Vec<Result<Answer, BenchError>> {
        match answerer {
            Answerer::Machines => self.measure(question, cases, effort, watch),
            Answerer::Formulas => {
                let each = cases.iter().enumerate().take_while(|(done, _)| watch(*done as f64));
                each.map(|(_, case)| self.predict(question, case, effort)).collect()
            }
        }
    }

    fn measure(
        &mut self,
        question: &Question,
        cases: &[Case],
        effort: &Effort,
        watch: Watch<'_>,
    ) -> Vec<Result<Answer, BenchError>> {
        // The stand-in is measured first: after a cancellation it could not be measured.
        if question.quantity == Quantity::Bandwidth
            && let Some(case) = cases.first()
            && let Err(error) = self.ceiling(case, effort)
        {
            return vec![Err(error)];
        }
        let answers = measure_all(question, self.machine.as_mut(), cases, effort, watch);
        let with_limit = answers.into_iter().zip(cases).map(|(answer, case)| {
            let mut answer = answer?;
            answer.formula = self.formula(question, case, effort);
            if question.quantity == Quantity::Bandwidth || answer.delivered_rate_bytes_per_s.is_some() {
                answer.set_ceiling(self.ceiling(case, effort)?);
            }
            Ok(answer)
        });
        with_limit.collect()
    }

    fn predict(&mut self, question: &Question, case: &Case, effort: &Effort) -> Result<Answer, BenchError> {
        if !has_formula(question, case) {
            let because =
                "for several threads a formula is a lower bound, and a difference of bounds is not a prediction";
            return Err(self.without_formula(question, because));
        }
        let mut answer = self.ask_formulas(question, case, effort)?;
        answer.formula = self.last_formula(&answer);
        if question.quantity == Quantity::Bandwidth {
            answer.set_ceiling(self.ceiling(case, effort)?);
        }
        (answer.latency_ns, answer.issue_rate_bytes_per_s, answer.delivered_rate_bytes_per_s) = (None, None, None);
        (answer.samples_ns, answer.raw, answer.dropped) = (Vec::new(), Vec::new(), None);
        Ok(answer)
    }

    /// The figures of the target's formula for a case; `None` without a formula.
    pub(crate) fn formula(&mut self, question: &Question, case: &Case, effort: &Effort) -> Option<Formula> {
        if !has_formula(question, case) {
            return None;
        }
        let answer = self.ask_formulas(question, case, effort).ok()?;
        self.last_formula(&answer)
    }

    /// The figures of the formula that gave `answer`, the last one.
    fn last_formula(&self, answer: &Answer) -> Option<Formula> {
        let Kind::Platform(formulas) = &self.kind else { return None };
        let last = formulas.machine.last()?;
        let bound = (!answer.is_difference()).then_some(last.bound);
        Some(Formula {
            latency_ns: answer.latency_ns.map(|summary| summary.median),
            delivered_rate_bytes_per_s: answer.delivered_rate_bytes_per_s.map(|summary| summary.median),
            bound: bound.map(|bound| bound.name().to_owned()),
            cause: bound.map(|bound| bound.cause().name().to_owned()),
            holds_for: last.holds_for.to_owned(),
        })
    }

    /// Injected faults and their effects, in words. For formulas: the faults that they do not model.
    pub(crate) fn injected_faults(&self, answerer: Answerer) -> Vec<String> {
        let name = &self.facts().name;
        match answerer {
            Answerer::Machines => {
                self.machine.injected_faults().into_iter().map(|fault| format!("{name}: {fault}")).collect()
            }
            Answerer::Formulas => {
                let faults = self.platform().into_iter().flat_map(|platform| &platform.faults);
                faults
                    .map(|fault| format!("{name}: {fault} by {} is not modelled by formulas", fault.origin()))
                    .collect()
            }
        }
    }

    /// The record's description of a runtime device.
    pub(crate) fn runtime(&self) -> Option<Runtime> {
        let facts = self.facts().runtime.as_ref()?;
        let device_kind = match facts.kind {
            SeenKind::Cpu => DeviceKind::Cpu,
            SeenKind::Gpu => DeviceKind::Gpu,
            SeenKind::Accelerator => DeviceKind::Accelerator,
            SeenKind::Other => DeviceKind::Other,
        };
        let software = match &self.kind {
            Kind::Runtime(software) => software.clone(),
            Kind::Gpu(gpu) => Some(gpu.software.clone()),
            _ => None,
        };
        Some(Runtime { device_kind, is_emulated: facts.is_emulated, software })
    }

    /// The record's description of the target.
    pub(crate) fn to_record(&self, answerer: Answerer) -> TargetRecord {
        let facts = self.facts();
        let platform = self.platform();
        let host = match &self.kind {
            Kind::Compiled(compiled) => Some(&compiled.host),
            _ => platform,
        };
        TargetRecord {
            name: facts.name.clone(),
            summary: facts.summary.clone(),
            kind: match facts.time_base {
                _ if answerer == Answerer::Formulas => TargetKind::Formula,
                TimeBase::Simulated => TargetKind::Simulated,
                TimeBase::Real if facts.runtime.as_ref().is_some_and(|runtime| runtime.is_emulated) => {
                    TargetKind::Emulated
                }
                TimeBase::Real => TargetKind::Real,
                TimeBase::Emulated => TargetKind::Emulated,
            },
            memcpy: facts.memcpy.clone(),
            platform: platform.map(Platform::to_json),
            origins: host.map(|platform| origins_of(&platform.origins())),
            card: match &self.kind {
                Kind::Card(card) => Some(card.to_record(facts)),
                _ => None,
            },
            links: host.map(links).unwrap_or_default(),
            runtime: self.runtime(),
            design: match &self.kind {
                Kind::Compiled(compiled) => Some(compiled.design.clone()),
                _ => None,
            },
        }
    }
}

/// The links of a platform, with their trained speed and width.
fn links(platform: &Platform) -> Vec<Link> {
    let link = |link: LinkEnds| {
        let (generation, width_lanes) = platform.trained_at(link);
        Link { name: link.below.to_owned(), above: link.above.to_owned(), generation, width_lanes }
    };
    platform.links().into_iter().map(link).collect()
}
