//! Execution of a request.

use crate::cancel::Cancel;
use crate::error::{Class, RunError};
use crate::event::{Event, by_time};
use crate::host::{Activity, host};
use crate::open_target::{Answerer, Kind, OpenTarget};
use crate::request::{Request, WhatIf};
use crate::target::Target;
use crate::tasks::{Task, work};
use crate::twin::Twin;
use crate::what_if::{figure, sensitivities};
use lanemark_bench::{Axes, BenchError, CATALOGUE, Case, Effort, Question};
use lanemark_inventory::Processors;
use lanemark_machine::{MachineError, TimeBase, Unsupported};
use lanemark_record::{Answer, Ceiling, CeilingKind, Doubt, DoubtKind, Host, Record, Skipped};
use lanemark_units::format_size;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The result of a run: a record, and the problem that makes it incomplete.
#[derive(Debug)]
pub struct Outcome {
    /// The record, without findings and advice.
    pub record: Record,
    /// Reason why the record is incomplete: the run was cancelled, a target failed, or there is no answer.
    pub problem: Option<RunError>,
}

impl Outcome {
    /// The record of a run without problems.
    ///
    /// # Errors
    /// The problem of the run.
    pub fn into_result(self) -> Result<Record, RunError> {
        match self.problem {
            None => Ok(self.record),
            Some(problem) => Err(problem),
        }
    }
}

/// Opens the targets of `request` and measures every case of every question, until `cancel` is set. `progress` receives
/// an [`Event`] for each step.
///
/// An absent target is skipped if the request has other targets. After a failure of a target its remaining cases are
/// skipped, and its answers so far are kept.
///
/// # Errors
/// [`RunError`] if nothing was measured, because the request is invalid or its only target is absent.
pub fn run(request: &Request, progress: &mut dyn FnMut(Event<'_>), cancel: &Cancel) -> Result<Outcome, RunError> {
    let twin = request.setup.twin.as_ref().map(|twin| Twin::open(twin, &request.targets, cancel)).transpose()?;
    let Prepared { targets, tasks, skipped } = prepare(request, cancel)?;
    let record = Record { skipped, ..Record::new(request.command.clone()) };
    let before = Activity::now();
    let mut run = Run { request, targets, twin, record, failed: None, unanswered: None, gone: Vec::new(), before };
    run.measure_all(&tasks, progress, cancel);
    Ok(run.finish())
}

/// Raises each measured ceiling to the fastest answer compared with it: an exceeded ceiling is too low.
fn raise_stand_ins(answers: &mut [Answer]) {
    let mut fastest: BTreeMap<(String, String), f64> = BTreeMap::new();
    let key = |answer: &Answer| (answer.target.clone(), answer.ceiling.because.clone());
    for answer in answers.iter().filter(|answer| answer.ceiling.kind == CeilingKind::Measured) {
        let rate = answer.delivered_rate_bytes_per_s.map_or(0.0, |rate| rate.median);
        let known = fastest.entry(key(answer)).or_default();
        *known = known.max(rate);
    }
    for answer in answers {
        let limit = answer.ceiling.rate_bytes_per_s.filter(|_| answer.ceiling.kind == CeilingKind::Measured);
        let Some(rate) =
            fastest.get(&key(answer)).copied().filter(|fastest| limit.is_some_and(|limit| *fastest > limit))
        else {
            continue;
        };
        let because = format!("{}, raised to the fastest answer of this run", answer.ceiling.because);
        answer.set_ceiling(Ceiling { rate_bytes_per_s: Some(rate), because, ..answer.ceiling.clone() });
    }
}

/// Open targets and planned cases.
struct Prepared {
    targets: Vec<OpenTarget>,
    tasks: Vec<Task>,
    skipped: Vec<Skipped>,
}

fn prepare(request: &Request, cancel: &Cancel) -> Result<Prepared, RunError> {
    check(request)?;
    let mut targets: Vec<OpenTarget> = Vec::new();
    let mut skipped = Vec::new();
    for target in &request.targets {
        match target.open(&request.setup, cancel) {
            Ok(target) if targets.iter().any(|other| other.facts().name == target.facts().name) => {
                return Err(RunError::SameName { name: target.facts().name.clone() });
            }
            Ok(target) => targets.push(target),
            // An absent machine does not prevent measurements of the others.
            Err(error) if error.class() == Class::Absent && request.targets.len() != 1 => skipped.push(Skipped {
                question: "every question".to_owned(),
                target: target.to_string(),
                what: "everything".to_owned(),
                because: error.to_string(),
            }),
            Err(error) => return Err(error),
        }
    }
    let mut questions = request.named_or_usual();
    if request.questions.is_empty() {
        add_those_of_runtimes(&mut questions, &targets);
    }
    let work = work(&questions, &targets, &request.axes)?;
    skipped.extend(work.skipped);
    Ok(Prepared { targets, tasks: work.tasks, skipped })
}

/// Checks the combinations in a request that no target supports, before any is opened.
fn check(request: &Request) -> Result<(), RunError> {
    let (setup, targets) = (&request.setup, &request.targets);
    if request.answerer == Answerer::Formulas {
        if let Some(target) = targets.iter().find(|target| target.is_real()) {
            return Err(RunError::NoFormula { target: target.to_string() });
        }
        if let Some(fault) = setup.changes.faults.first() {
            return Err(RunError::FaultInFormula { fault: fault.to_string() });
        }
    }
    targets.iter().try_for_each(|target| setup.changes.check(target))?;
    setup.card.check(targets)?;
    if setup.kernels.is_some() && !targets.iter().any(Target::is_runtime) {
        return Err(RunError::NoRuntimeForKernels);
    }
    Ok(())
}

/// Adds the questions that apply to runtime devices. They are not among the defaults of other targets.
fn add_those_of_runtimes(questions: &mut Vec<&'static Question>, targets: &[OpenTarget]) {
    for facts in targets.iter().map(OpenTarget::facts).filter(|facts| facts.runtime.is_some()) {
        for question in CATALOGUE {
            let is_asked = questions.iter().any(|other| other.name == question.name);
            if !is_asked && !(question.cases)(facts, &Axes::default()).is_empty() {
                questions.push(question);
            }
        }
    }
}

/// The positions of the best and of the worst answer at the largest size.
fn best_and_worst(answers: &[Result<Answer, BenchError>]) -> Vec<usize> {
    let good = || answers.iter().enumerate().filter_map(|(place, answer)| Some((place, answer.as_ref().ok()?)));
    let largest = good().map(|(_, answer)| answer.size_bytes).max();
    let mut at_largest: Vec<(usize, f64)> = good()
        .filter(|(_, answer)| Some(answer.size_bytes) == largest)
        .filter_map(|(place, answer)| Some((place, figure(answer)?)))
        .collect();
    at_largest.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut ends: Vec<usize> =
        at_largest.first().into_iter().chain(at_largest.last()).map(|(place, _)| *place).collect();
    ends.dedup();
    ends
}

/// State of a run: targets and results so far.
struct Run<'a> {
    request: &'a Request,
    targets: Vec<OpenTarget>,
    /// The twin of the real ones.
    twin: Option<Twin>,
    record: Record,
    /// The first target that failed.
    failed: Option<Failed>,
    /// The first runtime device without an answer to a planned case.
    unanswered: Option<Failed>,
    /// Targets that failed permanently, by index.
    gone: Vec<usize>,
    /// Load of this machine before the first measurement.
    before: Activity,
}

impl Run<'_> {
    /// Measures every case of every question and target; cases of one question and target form one series.
    fn measure_all(&mut self, tasks: &[Task], progress: &mut dyn FnMut(Event<'_>), cancel: &Cancel) {
        let (answerer, requested) = (self.request.answerer, &self.request.effort);
        let has_default_sizes = requested.has_default_sizes || self.request.axes.sizes.is_none();
        let effort = &Effort { has_default_sizes, ..*requested };
        progress(Event::Begun { cases: tasks.len() });
        let mut before = 0;
        for together in tasks.chunk_by(|a, b| (a.question.name, a.place) == (b.question.name, b.place)) {
            let (question, place) = (together[0].question, together[0].place);
            let done = f64::from(before);
            before += together.len() as u32;
            // A target that failed permanently is skipped.
            if self.gone.contains(&place) {
                self.leave_out(question, place, "all of it".to_owned());
                continue;
            }
            progress(Event::Asking { question: question.name, target: &self.targets[place].facts().name });
            let cases: Vec<Case> = together.iter().map(|task| task.case.clone()).collect();
            let is_real = self.targets[place].facts().time_base != TimeBase::Simulated;
            let is_in_rounds = is_real && question.ask.is_none();
            let (begun, budget) = (Instant::now(), effort.budget);
            let mut watch = |cases: f64| {
                let by_time = if is_in_rounds { by_time(begun, budget, together.len()) } else { 0.0 };
                progress(Event::Done { cases: done + cases.max(by_time) });
                !cancel.is_cancelled()
            };
            let mut answers = self.targets[place].answers(answerer, question, &cases, effort, &mut watch);
            self.add_twin(question, place, &cases, &mut answers, effort, cancel);
            self.add_sensitivities(question, place, &cases, &mut answers, effort, cancel);
            let (mut not_asked, mut left_out, all) = (Vec::new(), Vec::new(), cases.len());
            for (answer, case) in answers.into_iter().zip(&cases) {
                match answer {
                    Err(BenchError::NotAsked) => not_asked.push(format!("{}, {}", case.method, format_size(case.size))),
                    Err(BenchError::LeftOut) => left_out.push(case.size),
                    answer => self.keep(answer, question, place, case),
                }
            }
            if !left_out.is_empty() {
                self.note_sizes_left_out(question, place, &left_out, all);
            }
            if !not_asked.is_empty() {
                self.leave_out(question, place, format!("{} of {all}: {}", not_asked.len(), not_asked.join("; ")));
            }
            progress(Event::Done { cases: f64::from(before) });
            if self.record.interrupted || cancel.is_cancelled() {
                self.record.interrupted = true;
                break;
            }
        }
    }

    /// The positions of the answers for which sensitivities are asked.
    fn wanted(&self, answers: &[Result<Answer, BenchError>]) -> Vec<usize> {
        match self.request.what_if {
            WhatIf::Nothing => Vec::new(),
            WhatIf::Every => (0..answers.len()).collect(),
            WhatIf::BestAndWorst => best_and_worst(answers),
        }
    }

    /// Completes the answers of a real card or runtime device with what its twin shows, and with the sensitivities of the
    /// twin where they are asked.
    fn add_twin(
        &mut self,
        question: &Question,
        place: usize,
        cases: &[Case],
        answers: &mut [Result<Answer, BenchError>],
        effort: &Effort,
        cancel: &Cancel,
    ) {
        if matches!(self.targets[place].kind, Kind::Platform(_) | Kind::Memory(_)) {
            return;
        }
        let wanted = self.wanted(answers);
        let Some(twin) = &mut self.twin else { return };
        for (nth, (answer, case)) in answers.iter_mut().zip(cases).enumerate() {
            let Ok(answer) = answer else { continue };
            if cancel.is_cancelled() {
                return;
            }
            let simulated = match twin.complete(question, case, effort, answer) {
                Ok(simulated) => simulated,
                Err(error) => {
                    let what = format!("the twin of {}, {}", case.method, format_size(case.size));
                    let (question, target) = (question.name.to_owned(), answer.target.clone());
                    self.record.skipped.push(Skipped { question, target, what, because: error.to_string() });
                    continue;
                }
            };
            if let Some(platform) = twin.platform().filter(|_| wanted.contains(&nth)) {
                answer.sensitivities = sensitivities(platform, question, case, &simulated, effort, cancel);
            }
        }
    }

    /// Adds the sensitivities to the answers for which they are asked.
    fn add_sensitivities(
        &self,
        question: &Question,
        place: usize,
        cases: &[Case],
        answers: &mut [Result<Answer, BenchError>],
        effort: &Effort,
        cancel: &Cancel,
    ) {
        let Some(platform) = self.targets[place].platform().filter(|_| self.request.answerer == Answerer::Machines)
        else {
            return;
        };
        for place in self.wanted(answers) {
            let (Some(Ok(answer)), Some(case)) = (answers.get_mut(place), cases.get(place)) else { continue };
            answer.sensitivities = sensitivities(platform, question, case, answer, effort, cancel);
        }
    }

    /// Records the cases skipped because their target has failed.
    fn leave_out(&mut self, question: &Question, place: usize, what: String) {
        let target = self.targets[place].facts().name.clone();
        let because = format!("{target} has failed; its remaining cases are skipped");
        self.record.skipped.push(Skipped { question: question.name.to_owned(), target, what, because });
    }

    /// Notes the sizes of the cases for which the budget did not suffice.
    fn note_sizes_left_out(&mut self, question: &Question, place: usize, left_out: &[u64], all: usize) {
        let sizes: BTreeSet<u64> = left_out.iter().copied().collect();
        let sizes: Vec<String> = sizes.into_iter().map(format_size).collect();
        let what = format!("{} of {all} cases (sizes {})", left_out.len(), sizes.join(", "));
        let because = format!(
            "the time budget of {} s does not suffice for the samples that an interval needs at every default size: \
             use a longer --budget, or choose --sizes",
            self.request.effort.budget.as_ns() / 1e9
        );
        let target = self.targets[place].facts().name.clone();
        self.record.skipped.push(Skipped { question: question.name.to_owned(), target, what, because });
    }

    fn keep(&mut self, answer: Result<Answer, BenchError>, question: &Question, place: usize, case: &Case) {
        let facts = self.targets[place].facts();
        let target = &facts.name;
        let uses_runtime = facts.runtime.is_some() && facts.time_base != TimeBase::Simulated;
        let failed = |why: String| Failed { target: target.clone(), why, uses_runtime };
        match answer {
            Ok(answer) => self.record.answers.push(answer),
            Err(BenchError::Machine(MachineError::Unsupported(Unsupported { what, because, .. }))) => {
                if uses_runtime {
                    self.unanswered.get_or_insert_with(|| failed(because.clone()));
                }
                let question = question.name.to_owned();
                self.record.skipped.push(Skipped { question, target: target.clone(), what, because });
            }
            Err(BenchError::Machine(MachineError::Interrupted { .. })) => self.record.interrupted = true,
            Err(error) => {
                let why = error.to_string();
                self.record.warnings.push(format!("{} on {target}, {}: {why}", question.name, case.method));
                if uses_runtime {
                    self.unanswered.get_or_insert_with(|| failed(why.clone()));
                }
                // Later errors are often consequences of the first.
                let is_failure = error.is_for_good() || matches!(error, BenchError::Machine(MachineError::Bus(_)));
                // A failed check takes precedence over an absent device.
                let counts = |before: &Failed| before.uses_runtime && !uses_runtime;
                if is_failure && self.failed.as_ref().is_none_or(counts) {
                    self.failed = Some(failed(why));
                }
                if error.is_for_good() {
                    self.gone.push(place);
                }
            }
        }
    }

    /// Completes the record: targets, warnings and a description of this machine.
    fn finish(mut self) -> Outcome {
        let answerer = self.request.answerer;
        self.record.targets = self.targets.iter().map(|target| target.to_record(answerer)).collect();
        for target in &self.targets {
            match &target.kind {
                Kind::Card(card) => self.record.warnings.extend(card.changes()),
                Kind::Gpu(gpu) => self.record.warnings.extend(gpu.changes()),
                Kind::Platform(_) | Kind::Compiled(_) | Kind::Runtime(_) | Kind::Memory(_) => {}
            }
        }
        for note in self.targets.iter().flat_map(OpenTarget::notes) {
            // A note about runtimes applies to every runtime device and is added once.
            if !self.record.warnings.contains(note) {
                self.record.warnings.push(note.clone());
            }
        }
        self.record.warnings.extend(self.targets.iter().flat_map(|target| target.injected_faults(answerer)));
        if self.targets.iter().any(|target| target.facts().time_base != TimeBase::Simulated) {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            self.record.written_unix_s = now.ok().map(|since| since.as_secs());
            self.record.host = Some(host(&Processors::of_this_machine(), &self.before, &Activity::now()));
            self.note_disturbance();
        }
        raise_stand_ins(&mut self.record.answers);
        self.note_changes();
        let problem = self.problem();
        Outcome { record: self.record, problem }
    }

    /// Adds a warning about other work on this machine to the record, and a doubt to each measured answer.
    fn note_disturbance(&mut self) {
        let Some(text) = self.record.host.as_ref().and_then(Host::disturbance) else { return };
        let measured: Vec<&str> = self
            .targets
            .iter()
            .map(OpenTarget::facts)
            .filter(|facts| facts.time_base != TimeBase::Simulated)
            .map(|facts| facts.name.as_str())
            .collect();
        for answer in self.record.answers.iter_mut().filter(|answer| measured.contains(&answer.target.as_str())) {
            answer.doubts.push(Doubt { kind: DoubtKind::BusyMachine, text: text.clone() });
        }
        self.record.warnings.insert(0, text);
    }

    /// Adds the changes of each platform to the answers of its target.
    fn note_changes(&mut self) {
        for target in &self.targets {
            let Some(platform) = target.platform() else { continue };
            let mut changes = self.request.setup.changes.clone();
            changes.with.extend(target.with.iter().cloned());
            let varied = changes.varied(platform);
            let name = &target.facts().name;
            for answer in self.record.answers.iter_mut().filter(|answer| answer.target == *name) {
                answer.varied.clone_from(&varied);
            }
        }
    }

    /// The problem of the run, if the record is incomplete.
    fn problem(&mut self) -> Option<RunError> {
        let record = &self.record;
        let has_answers = !record.answers.is_empty();
        if record.interrupted {
            Some(RunError::Interrupted)
        } else if let Some(failed) = self.failed.take() {
            Some(failed.into_error(has_answers))
        } else if has_answers {
            None
        } else if let Some(unanswered) = self.unanswered.take() {
            Some(unanswered.into_error(false))
        } else if let Some(skipped) = record.skipped.first() {
            Some(RunError::NothingToAsk { because: skipped.because.clone() })
        } else if let Some(warning) = record.warnings.first() {
            Some(RunError::NoAnswer { warning: warning.clone() })
        } else {
            Some(RunError::NothingToAsk { because: "the request selects no case".to_owned() })
        }
    }
}

/// A target with missing answers.
struct Failed {
    target: String,
    /// The error reported by the target.
    why: String,
    /// Whether the target is a runtime device of this machine. Its absence counts as missing, not as a failed check.
    uses_runtime: bool,
}

impl Failed {
    /// Converts to the problem of the run. In a record with answers, a warning gives the reason.
    fn into_error(self, has_answers: bool) -> RunError {
        let Failed { target, why: because, uses_runtime } = self;
        if uses_runtime {
            RunError::RuntimeFailed { target, because, has_answers }
        } else {
            RunError::TargetFailed { target, because }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_bench::question;
    use lanemark_machine::{Access, Facts, Machine, Plan, Region, RegionKind, Sample, Samples, Width};
    use lanemark_units::{BarOffset, MemoryType, Ticks};

    /// A real machine on which every sample takes 2 ms.
    struct Slow(Facts);

    impl Slow {
        fn new() -> Slow {
            let at = BarOffset { bar: 0, offset: 0 };
            Slow(Facts {
                name: "slow".to_owned(),
                summary: "takes 2 ms a sample".to_owned(),
                time_base: TimeBase::Real,
                cores: 1,
                regions: vec![Region { name: "memory".to_owned(), at, len: 64 << 20, kind: RegionKind::Storage }],
                memory_types: vec![MemoryType::Wb],
                stores: vec![Access::Plain(Width::B8)],
                loads: vec![Access::Plain(Width::B8)],
                memcpy: "none".to_owned(),
                dma: None,
                driver_width: None,
                tables: vec![],
                disciplines: vec![],
                line_sources: vec![],
                runtime: None,
            })
        }
    }

    impl Machine for Slow {
        fn facts(&self) -> &Facts {
            &self.0
        }

        fn supports(&self, _: &Plan) -> Result<(), Unsupported> {
            Ok(())
        }

        fn run(&mut self, _: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
            samples.clear();
            let time = Ticks::whole_ns(2_000_000);
            while samples.wants_more() {
                samples.keep(Sample { issue: time, delivered: time }, None);
            }
            Ok(())
        }
    }

    /// The record of one question of a slow machine, which gets a tenth of a second.
    fn asked(axes: Axes) -> Record {
        let effort = Effort { budget: Ticks::whole_ns(100_000_000), ..Effort::default() };
        let request = Request { axes, effort, ..Request::default() };
        let targets = vec![OpenTarget::of_memory(Box::new(Slow::new()))];
        let tasks = work(&[question("mmio_write_bandwidth").unwrap()], &targets, &request.axes).unwrap().tasks;
        let (record, before) = (Record::new(Vec::new()), Activity::now());
        let mut run = Run {
            request: &request,
            targets,
            twin: None,
            record,
            failed: None,
            unanswered: None,
            gone: Vec::new(),
            before,
        };
        run.measure_all(&tasks, &mut |_| {}, &Cancel::new());
        run.record
    }

    #[test]
    fn default_sizes_for_which_the_budget_does_not_suffice_are_listed() {
        let record = asked(Axes::default());
        let sizes: Vec<u64> = record.answers.iter().map(|answer| answer.size_bytes).collect();
        assert_eq!(sizes, [64, 1 << 22]);
        assert!(record.answers.iter().all(|answer| answer.doubts.is_empty()), "{:?}", record.answers);
        let [skipped] = &*record.skipped else { panic!("{:?}", record.skipped) };
        assert_eq!((skipped.question.as_str(), skipped.target.as_str()), ("mmio_write_bandwidth", "slow"));
        let sizes = "256B, 1KiB, 4KiB, 16KiB, 64KiB, 256KiB, 1MiB";
        assert_eq!(skipped.what, format!("7 of 9 cases (sizes {sizes})"));
        assert!(skipped.because.starts_with("the time budget of 0.1 s does not suffice"), "{}", skipped.because);
    }

    #[test]
    fn named_sizes_are_all_measured() {
        let sizes = vec![64, 256, 1024, 4096];
        let record = asked(Axes { sizes: Some(sizes.clone()), ..Axes::default() });
        assert_eq!(record.answers.iter().map(|answer| answer.size_bytes).collect::<Vec<_>>(), sizes);
        assert!(record.skipped.is_empty());
    }

    /// A simulated card that is taken for a real one: nothing of it can be traced.
    struct Seen(lanemark_sim::SimulatedMachine, Facts);

    impl Machine for Seen {
        fn facts(&self) -> &Facts {
            &self.1
        }

        fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
            self.0.supports(plan)
        }

        fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
            self.0.run(plan, samples)?;
            (samples.path, samples.links, samples.resources) = (Vec::new(), Vec::new(), Vec::new());
            Ok(())
        }
    }

    /// An answer of such a card with this twin.
    fn with_twin(twin: Option<&str>, what_if: WhatIf) -> Answer {
        let platform = crate::platform("card-gen5-x16").unwrap();
        let machine = lanemark_sim::SimulatedMachine::new(&platform).unwrap();
        let facts = Facts { name: "0000:01:00.0".to_owned(), time_base: TimeBase::Real, ..machine.facts().clone() };
        let axes = Axes {
            sizes: Some(vec![4096]),
            accesses: Some(vec![Access::Plain(Width::B8)]),
            memory_types: Some(vec![MemoryType::Uc]),
            ..Axes::default()
        };
        let (real, cancel) = (Target::Card("0000:01:00.0".parse().unwrap()), Cancel::new());
        let twin = twin.map(|twin| Twin::open(&twin.parse().unwrap(), &[real], &cancel).unwrap());
        let effort = Effort { budget: Ticks::whole_ns(1_000_000), ..Effort::default() };
        let request = Request { axes, effort, what_if, ..Request::default() };
        let machine: Box<dyn Machine> = Box::new(Seen(machine, facts));
        let targets = vec![OpenTarget { machine, kind: Kind::Runtime(None), notes: Vec::new(), with: Vec::new() }];
        let tasks = work(&[question("mmio_write_bandwidth").unwrap()], &targets, &request.axes).unwrap().tasks;
        let (record, before) = (Record::new(Vec::new()), Activity::now());
        let (failed, unanswered) = (None, None);
        let mut run = Run { request: &request, targets, twin, record, failed, unanswered, gone: Vec::new(), before };
        run.measure_all(&tasks, &mut |_| {}, &Cancel::new());
        run.record.answers.remove(0)
    }

    #[test]
    fn the_twin_of_a_real_target_shows_its_bottleneck_and_formula_and_its_own_figure() {
        let alone = with_twin(None, WhatIf::Every);
        assert!(alone.waits.is_empty() && alone.formula.is_none() && alone.twin.is_none());
        assert!(alone.sensitivities.is_empty(), "a real card has no parameters");
        let answer = with_twin(Some("card-gen5-x16"), WhatIf::Every);
        assert_eq!(
            (answer.waits[0].cause.as_str(), answer.twin.as_ref().unwrap().platform.as_str()),
            ("strong_ordering", "card-gen5-x16")
        );
        assert_eq!(answer.formula.as_ref().unwrap().cause.as_deref(), Some("strong_ordering"));
        assert!(!answer.resources.is_empty() && !answer.sensitivities.is_empty());
        let rate = |answer: &Answer| answer.delivered_rate_bytes_per_s.unwrap().median;
        assert_eq!(rate(&answer), rate(&alone), "the figure is that of the real target");
        let own = |answer: &Answer| answer.twin.as_ref().unwrap().delivered_rate_bytes_per_s.unwrap();
        // The real one runs more iterations in a sample.
        assert!((own(&answer) / rate(&answer) - 1.0).abs() < 0.05);
        let other = with_twin(Some("tacc-stratix4"), WhatIf::Nothing);
        assert!(own(&other) < 0.9 * rate(&other) || own(&other) > 1.1 * rate(&other));
        assert_eq!(rate(&other), rate(&alone));
    }

    #[test]
    fn a_twin_is_a_platform_and_needs_a_real_card_or_a_runtime_device() {
        let open = |twin: &str, of: &str| {
            Twin::open(&twin.parse().unwrap(), &[of.parse().unwrap()], &Cancel::new())
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        assert!(open("host", "0000:01:00.0").unwrap_err().starts_with("twin: host is no simulated platform"));
        for of in ["aws-f1", "host"] {
            assert!(open("aws-f1", of).unwrap_err().starts_with("twin applies to a real card"), "{of}");
        }
        assert_eq!(open("aws-f1", "opencl:0"), Ok(()));
        assert!(open("no-such-platform", "opencl:0").unwrap_err().contains("no-such-platform"));
    }
}
