//! Figures of a paper that this machine, or a runtime on it, can measure too.
//!
//! This machine is not the paper's: its values are shown beside the published ones, and have no verdict.

use crate::error::ExperimentError;
use crate::experiment::{Experiment, Published};
use crate::expression::evaluate;
use crate::local_question::{LocalQuestion, LocalSource, LocalTarget, Measurement};
use crate::paper::Paper;
use lanemark_bench::{Axes, BenchError, Caller, Case, Effort, measure_all};
use lanemark_machine::{Facts, Machine};
use lanemark_record::{Answer, Here};
use lanemark_runner::question;
use std::collections::BTreeMap;

/// Prefix of the names of SYCL targets.
const SYCL: &str = "sycl:";
/// Prefix of the names of OpenCL targets, and of their values in `derive`.
const OPENCL: &str = "opencl:";

/// Values of the targets that were measured for a paper. An expression may combine values of two targets.
#[derive(Debug, Default)]
pub struct LocalValues(Vec<TargetValues>);

/// Values of one target.
#[derive(Debug)]
struct TargetValues {
    /// Name of the target.
    target: String,
    /// Name and kind of its device.
    device: String,
    /// Values by their name in `derive`.
    values: BTreeMap<String, f64>,
}

impl TargetValues {
    fn new(facts: &Facts) -> TargetValues {
        // A summary is "NAME (KIND), PLATFORM, ..."; the rest depends on the runtime.
        let (device, _) = facts.summary.split_once("), ").unwrap_or((&facts.summary, ""));
        TargetValues { target: facts.name.clone(), device: device.to_owned(), values: BTreeMap::new() }
    }
}

/// Measures on `machine` the figures of `paper` that it supports, and adds their values to `earlier`.
///
/// `watch` is called before each figure with the numbers of finished and of all figures.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is invalid. A measurement that fails is not an error; its row has the
/// reason.
pub fn measure_locally(
    paper: &Paper,
    machine: &mut dyn Machine,
    earlier: &mut LocalValues,
    watch: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Here>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let all = experiment.figures.iter().flat_map(|figure| figure.local.iter().map(move |asked| (figure, asked)));
    let all: Vec<_> = all.filter(|(_, asked)| is_target(machine.facts(), asked.of)).collect();
    let (mut rows, mut own) = (Vec::new(), TargetValues::new(machine.facts()));
    let mut measurements = Measurements { machine, all: Vec::new() };
    for (done, (figure, asked)) in all.iter().enumerate() {
        watch(done, all.len());
        let published = experiment.published.get(&figure.id);
        let result = match &asked.source {
            LocalSource::Measure(measurement) => measurements.best(measurement).map_err(|message| {
                ExperimentError::Figure { paper: paper.name.to_owned(), id: figure.id.clone(), message }
            })?,
            LocalSource::Derive { expression, unit } => {
                let unit = unit.as_ref().or(published.map(|row| &row.unit));
                derived(expression, unit.cloned().unwrap_or_default(), &own, earlier)
            }
        };
        let name = asked.name.as_ref().unwrap_or(&figure.id);
        // If a figure has several rows, its ID names the first.
        if let Some(value) = result.value
            && !own.values.contains_key(name)
        {
            own.values.insert(name.clone(), value);
        }
        rows.push(result.row(&figure.id, asked, published, target(measurements.machine.facts())));
    }
    earlier.0.push(own);
    Ok(rows)
}

/// Whether `paper` has figures for devices of runtimes.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is invalid.
pub fn measures_runtimes(paper: &Paper) -> Result<bool, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let mut all = experiment.figures.iter().flat_map(|figure| &figure.local);
    Ok(all.any(|asked| asked.of != LocalTarget::Host))
}

fn is_target(facts: &Facts, target: LocalTarget) -> bool {
    match target {
        LocalTarget::Host => facts.runtime.is_none(),
        LocalTarget::Runtimes => facts.runtime.is_some(),
        LocalTarget::Sycl => facts.runtime.is_some() && facts.name.starts_with(SYCL),
    }
}

/// Name of the target, with the kind of a runtime's device: its figures have no meaning without it.
fn target(facts: &Facts) -> String {
    match &facts.runtime {
        None => facts.name.clone(),
        Some(runtime) if runtime.is_emulated => format!("{} (emulated {})", facts.name, runtime.kind),
        Some(runtime) => format!("{} ({})", facts.name, runtime.kind),
    }
}

/// Result of one question to this machine.
struct LocalResult {
    method: String,
    value: Option<f64>,
    range: Option<[f64; 2]>,
    unit: String,
    because: String,
}

impl LocalResult {
    /// The row of the result beside the published value.
    fn row(self, id: &str, asked: &LocalQuestion, published: Option<&Published>, target: String) -> Here {
        let published = published.filter(|row| row.unit == self.unit).and_then(Published::target);
        let [from, to] = self.range.map_or([None, None], |ends| ends.map(Some));
        Here {
            id: id.to_owned(),
            what: asked.what.clone(),
            asked: target,
            method: self.method,
            published: asked.published.or(published),
            here: self.value,
            from,
            to,
            unit: self.unit,
            because: self.because,
        }
    }
}

/// Evaluates `expression` over the values of a target and of the OpenCL device with the same name.
fn derived(expression: &str, unit: String, own: &TargetValues, earlier: &LocalValues) -> LocalResult {
    let is_same = |other: &&TargetValues| other.target.starts_with(OPENCL) && other.device == own.device;
    let other = earlier.0.iter().find(is_same).filter(|_| expression.contains(OPENCL));
    let value = |name: &str| match name.strip_prefix(OPENCL) {
        Some(name) => other?.values.get(name).copied(),
        None => own.values.get(name).copied(),
    };
    let result = evaluate(expression, &value);
    let method = match other {
        Some(other) => format!("{expression}, compared with {}", other.target),
        None => expression.to_owned(),
    };
    let (value, because) = match result {
        Ok(value) => (Some(value), String::new()),
        Err(because) => (None, because),
    };
    LocalResult { method, value, range: None, unit, because }
}

/// The answer from one caller, or the reason why there is none.
type CallerAnswer = (Caller, Result<Answer, String>);

/// Answers of one machine; each question is measured once.
struct Measurements<'a> {
    machine: &'a mut dyn Machine,
    all: Vec<(Measurement, Vec<CallerAnswer>)>,
}

impl Measurements<'_> {
    /// The best value of a measurement over all callers.
    fn best(&mut self, measurement: &Measurement) -> Result<LocalResult, String> {
        let metric = measurement.metric;
        let mut result = LocalResult {
            method: format!("{}: {}", measurement.question, measurement.method),
            value: None,
            range: None,
            unit: metric.unit().to_owned(),
            because: String::new(),
        };
        let answers = self.answers(measurement)?;
        if answers.is_empty() {
            "this machine does not support the method".clone_into(&mut result.because);
        }
        let mut best = None;
        for (caller, answer) in answers {
            match answer {
                Ok(answer) => {
                    let value = metric.value(answer);
                    if value.is_some_and(|value| result.value.is_none_or(|other| metric.is_better(value, other))) {
                        (result.value, result.range) = (value, metric.range(answer));
                        best = Some(caller);
                    }
                }
                Err(because) if result.because.is_empty() => result.because.clone_from(because),
                Err(_) => {}
            }
        }
        if let Some(Caller::Core(core)) = best {
            result.method = format!("{}, core {core}", result.method);
        }
        if result.value.is_some() {
            result.because.clear();
        } else if result.because.is_empty() {
            "too few samples".clone_into(&mut result.because);
        }
        Ok(result)
    }

    /// Answers to a measurement; a second call with the same question, method and size measures nothing.
    fn answers(&mut self, measurement: &Measurement) -> Result<&[CallerAnswer], String> {
        let is_same = |other: &Measurement| {
            (&other.question, &other.method, other.size)
                == (&measurement.question, &measurement.method, measurement.size)
        };
        let known = self.all.iter().position(|(other, _)| is_same(other));
        let place = if let Some(place) = known {
            place
        } else {
            let answers = self.measure(measurement)?;
            self.all.push((measurement.clone(), answers));
            self.all.len() - 1
        };
        Ok(&self.all[place].1)
    }

    /// Measures all cases of a question with the method and size of `measurement`.
    fn measure(&mut self, measurement: &Measurement) -> Result<Vec<CallerAnswer>, String> {
        let Measurement { question: name, method, size, .. } = measurement;
        let question = question(name).map_err(|error| error.to_string())?;
        let axes = Axes { sizes: size.map(|size| vec![size]), ..Axes::default() };
        let cases = (question.cases)(self.machine.facts(), &axes);
        let cases: Vec<Case> = cases.into_iter().filter(|case| case.method == *method).collect();
        let answers = measure_all(question, self.machine, &cases, &Effort::default(), &mut |_| true);
        let answered = |(case, answer): (&Case, Result<Answer, BenchError>)| {
            let answer = answer.map_err(|error| error.to_string());
            (case.caller, answer.and_then(|answer| missing_bytes(&answer).map_or(Ok(answer), Err)))
        };
        Ok(cases.iter().zip(answers).map(answered).collect())
    }
}

/// The reason to discard a time: bytes or results that were not confirmed.
fn missing_bytes(answer: &Answer) -> Option<String> {
    let bytes = answer.bytes.filter(|bytes| bytes.claimed_bytes != bytes.confirmed_bytes)?;
    let (confirmed, claimed) = (bytes.confirmed_bytes, bytes.claimed_bytes);
    Some(format!("only {confirmed} of {claimed} bytes are confirmed; the time is discarded"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::PAPERS;
    use lanemark_machine::{
        Allocation, Confirmed, DeviceKind, LaunchBy, MachineError, Plan, QueueRequest, RuntimeFacts, Sample, Samples,
        TimeBase, Unsupported,
    };
    use lanemark_sim::SimulatedMachine;
    use lanemark_units::Ticks;
    use std::cell::RefCell;

    fn measure(paper: &Paper, machine: &mut dyn Machine, earlier: &mut LocalValues) -> Vec<Here> {
        measure_locally(paper, machine, earlier, &mut |_, _| {}).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn an_unsupported_figure_has_a_reason_instead_of_a_value() {
        // A simulated machine lacks or refuses all methods, which are those of ordinary memory.
        let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let mut rows = 0;
        for paper in PAPERS {
            let mut calls = Vec::new();
            let mut watch = |done, of| calls.push((done, of));
            let all = measure_locally(paper, &mut machine, &mut LocalValues::default(), &mut watch);
            let all = all.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(calls, (0..all.len()).map(|done| (done, all.len())).collect::<Vec<_>>());
            for row in &all {
                assert!(row.here.is_none() && !row.because.is_empty(), "{row:?}");
            }
            rows += all.len();
        }
        assert!(rows > 0);
    }

    #[test]
    fn an_expression_uses_names_of_earlier_rows_only() {
        for paper in PAPERS {
            let experiment = Experiment::read(paper.name, paper.experiment, paper.published).unwrap();
            let mut names: Vec<&String> = Vec::new();
            for (figure, asked) in
                experiment.figures.iter().flat_map(|figure| figure.local.iter().map(move |asked| (figure, asked)))
            {
                if let LocalSource::Derive { expression, .. } = &asked.source {
                    let missing = RefCell::new(Vec::new());
                    let value = |name: &str| {
                        let name = name.strip_prefix(OPENCL).unwrap_or(name);
                        if !names.iter().any(|known| *known == name) {
                            missing.borrow_mut().push(name.to_owned());
                        }
                        Some(2.0)
                    };
                    evaluate(expression, &value).unwrap();
                    assert!(missing.borrow().is_empty(), "{}: {}: {missing:?}", paper.name, figure.id);
                }
                names.push(asked.name.as_ref().unwrap_or(&figure.id));
            }
        }
    }

    /// A runtime on two cores. A launch takes 5 us from core 0; from core 1 it takes 4 us, and 9 us every fourth time. The n-th
    /// run of copies takes n us.
    struct Runtime {
        facts: Facts,
        samples: u64,
        plans: usize,
        /// Whether copies deliver all bytes.
        is_complete: bool,
    }

    fn runtime(name: &str, summary: &str) -> Runtime {
        let runtime = RuntimeFacts {
            kind: DeviceKind::Cpu,
            is_emulated: false,
            allocations: vec![Allocation::Buffer],
            launches: vec![LaunchBy::Calls],
            small_copies: Vec::new(),
            memory_ports: 1,
            computes: false,
        };
        let facts = Facts {
            name: name.to_owned(),
            summary: summary.to_owned(),
            time_base: TimeBase::Real,
            cores: 2,
            regions: vec![],
            memory_types: vec![],
            stores: vec![],
            loads: vec![],
            memcpy: String::new(),
            dma: None,
            driver_width: None,
            tables: vec![],
            disciplines: vec![],
            line_sources: vec![],
            runtime: Some(runtime),
        };
        Runtime { facts, samples: 0, plans: 0, is_complete: true }
    }

    impl Machine for Runtime {
        fn facts(&self) -> &Facts {
            &self.facts
        }

        fn supports(&self, _: &Plan) -> Result<(), Unsupported> {
            Ok(())
        }

        fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
            samples.clear();
            self.plans += 1;
            while samples.wants_more() {
                self.samples += 1;
                let us = match plan.work.request() {
                    Some(QueueRequest::Copy(_)) => self.samples,
                    _ if plan.work.cores() == [0] => 5 * plan.passes,
                    _ => (if self.samples.is_multiple_of(4) { 9 } else { 4 }) * plan.passes,
                };
                let time = Ticks::whole_ns(1000 * us);
                samples.keep(Sample { issue: time, delivered: time }, None);
            }
            let confirmed_bytes = if self.is_complete { 80_000 } else { 79_999 };
            samples.confirmed = Some(Confirmed { claimed_bytes: 80_000, confirmed_bytes });
            Ok(())
        }
    }

    const LAUNCH: &str = "of = \"runtimes\", question = \"launch_latency\", method = { kind = \"launch\", kernels = 1, wait = \"finish\" }";
    const COPIES: &str = "of = \"runtimes\", question = \"many_small_few_large\", method = { kind = \"runtime_copy\", direction = \"to_device\", wait = \"event\", allocation = \"buffer\" }, size = 80000";

    /// Rows of the last machine for a figure with these tables, after measuring the other machines.
    fn rows_of(lines: &[String], machines: &mut [Runtime]) -> Vec<Here> {
        let tables: Vec<String> = lines.iter().map(|line| format!("{{ what = \"w\", {line} }}")).collect();
        let experiment = format!(
            "title = \"t\"\nplatform = \"p\"\n[[figure]]\nid = \"A\"\ngiven = true\nhere = [{}]\n",
            tables.join(", ")
        );
        let paper = Paper {
            name: "x",
            experiment: experiment.leak(),
            published: "id,what,published,corrected,unit\nA,a,31.6,,-\n",
            dependencies: "",
        };
        let mut earlier = LocalValues::default();
        machines.iter_mut().map(|machine| measure(&paper, machine, &mut earlier)).last().unwrap()
    }

    #[test]
    fn the_core_with_the_best_metric_is_named_and_measured_once() {
        let mut machines = [runtime("opencl:0", "")];
        let alone = rows_of(&[LAUNCH.to_owned()], &mut machines);
        let plans = std::mem::take(&mut machines[0].plans);
        let rows = rows_of(&[LAUNCH.to_owned(), format!("{LAUNCH}, figure = \"spread_ns\"")], &mut machines);
        assert_eq!(machines[0].plans, plans);
        assert_eq!((&*rows[0].method, rows[0].here), ("launch_latency: launch, wait by finish, core 1", alone[0].here));
        assert_eq!((&*rows[1].method, rows[1].here), ("launch_latency: launch, wait by finish, core 0", Some(0.0)));
        assert_eq!((rows[0].published, &*rows[0].asked), (None, "opencl:0 (CPU)"));
    }

    #[test]
    fn the_whole_run_is_the_median_and_the_worst_run_the_longest() {
        let lines = ["whole_run_s", "worst_run_s"].map(|figure| format!("{COPIES}, figure = \"{figure}\""));
        let rows = rows_of(&lines, &mut [runtime("opencl:0", "")]);
        // Runs of 1 to 8 us, each a hundredth of a whole run.
        assert!((rows[0].here.unwrap() - 450e-6).abs() < 1e-9 && (rows[1].here.unwrap() - 800e-6).abs() < 1e-9);
        assert!((rows[0].to, rows[1].to) == (rows[1].here, None) && rows[1].unit == "s");
    }

    #[test]
    fn a_ratio_needs_both_of_its_values() {
        let lines = [
            format!("{COPIES}, figure = \"whole_run_s\", name = \"B\""),
            format!("{COPIES}, figure = \"worst_run_s\", name = \"C\""),
            "of = \"runtimes\", question = \"stream_copy\", method = { kind = \"wake\", by = \"eventfd\" }, name = \"D\"".to_owned(),
            "of = \"runtimes\", derive = \"C/B\"".to_owned(),
            "of = \"runtimes\", derive = \"D/B\", unit = \"%\"".to_owned(),
        ];
        let rows = rows_of(&lines, &mut [runtime("opencl:0", "")]);
        assert!((rows[3].here.unwrap() - 8.0 / 4.5).abs() < 1e-9 && rows[3].because.is_empty());
        assert_eq!((rows[3].published, &*rows[3].unit, &*rows[3].method), (Some(31.6), "-", "C/B"));
        assert_eq!((rows[4].here, rows[4].published, &*rows[4].because), (None, None, "D has no value in 'D/B'"));
        assert_eq!((rows[2].here, &*rows[2].because), (None, "this machine does not support the method"));
    }

    #[test]
    fn a_time_with_missing_bytes_is_discarded_and_so_is_a_value_derived_from_it() {
        let lines = [
            format!("{COPIES}, figure = \"whole_run_s\", name = \"B\""),
            "of = \"runtimes\", derive = \"B\", unit = \"s\"".to_owned(),
        ];
        let rows = rows_of(&lines, &mut [Runtime { is_complete: false, ..runtime("opencl:0", "") }]);
        let because = "only 79999 of 80000 bytes are confirmed; the time is discarded";
        assert_eq!((rows[0].here, &*rows[0].because), (None, because));
        assert_eq!((rows[1].here, &*rows[1].because), (None, "B has no value in 'B'"));
    }

    #[test]
    fn a_sycl_device_is_compared_with_the_opencl_device_of_the_same_name() {
        let lines =
            [format!("{COPIES}, figure = \"worst_run_s\""), "of = \"sycl\", derive = \"opencl:A/A\"".to_owned()];
        let all = || [("opencl:0", "a (CPU), x"), ("opencl:1", "b (CPU), x"), ("sycl:0", "b (CPU), S on x")];
        let mut machines = all().map(|(name, summary)| runtime(name, summary));
        // Copies of the second OpenCL device take longer than those of the others.
        machines[1].samples = 8;
        assert_eq!(rows_of(&lines, &mut machines[..2]).len(), 1, "a row of SYCL is not measured on OpenCL");
        let mut machines = all().map(|(name, summary)| runtime(name, summary));
        machines[1].samples = 8;
        let rows = rows_of(&lines, &mut machines);
        assert_eq!((rows[1].here, &*rows[1].method), (Some(2.0), "opencl:A/A, compared with opencl:1"));
        let mut different = [runtime("opencl:0", "a (CPU), x"), runtime("sycl:0", "b (CPU), S on x")];
        let rows = rows_of(&lines, &mut different);
        assert_eq!((rows[1].here, &*rows[1].because), (None, "opencl:A has no value in 'opencl:A/A'"));
    }
}
