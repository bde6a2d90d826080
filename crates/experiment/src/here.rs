//! The figures of a paper that the machine this runs on, or a runtime on it, can be asked about too.
//!
//! It is another machine than the paper's: what it says stands beside the published figure, and counts as nothing.

use crate::ask_here::{AskHere, Asking, How, Whom};
use crate::asked::{figure_of, spread_of};
use crate::expression::evaluate;
use crate::figure::{Experiment, ExperimentError, Published};
use crate::paper::Paper;
use lanemark_bench::{Axes, BenchError, Caller, Case, Effort, ask_together};
use lanemark_machine::{Facts, Machine};
use lanemark_record::{Answer, Here};
use lanemark_runner::question;
use std::collections::BTreeMap;

/// How names of devices behind SYCL begin.
const SYCL: &str = "sycl:";
/// How names of devices behind OpenCL begin, and what `derive` calls what one of them said.
const OPENCL: &str = "opencl:";

/// What the machines that were asked before answered to a paper: figures of one device are held against those of another.
#[derive(Debug, Default)]
pub struct Before(Vec<Said>);

/// The answers of one machine.
#[derive(Debug)]
struct Said {
    machine: String,
    /// What its runtime calls the device, and what it is.
    device: String,
    /// By the names that `derive` has for them.
    values: BTreeMap<String, f64>,
}

impl Said {
    fn nothing(facts: &Facts) -> Said {
        // Whatever stands behind it differs from runtime to runtime: "a device (CPU), its platform, ...".
        let (device, _) = facts.summary.split_once("), ").unwrap_or((&facts.summary, ""));
        Said { machine: facts.name.clone(), device: device.to_owned(), values: BTreeMap::new() }
    }
}

/// Asks `machine` what `paper` says can be asked here, and adds it to `before`; `watch` receives how many figures are done, and of how many,
/// before each of them.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is wrong; a machine that does not answer is no error but a row
/// that says so.
pub fn here(
    paper: &Paper,
    machine: &mut dyn Machine,
    before: &mut Before,
    watch: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Here>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let all = experiment.figures.iter().flat_map(|figure| figure.here.iter().map(move |wanted| (figure, wanted)));
    let all: Vec<_> = all.filter(|(_, wanted)| is_one(machine.facts(), wanted.of)).collect();
    let (mut found, mut said) = (Vec::new(), Said::nothing(machine.facts()));
    let mut answers = Answers { machine, all: Vec::new() };
    for (done, (figure, wanted)) in all.iter().enumerate() {
        watch(done, all.len());
        let published = experiment.published.get(&figure.id);
        let row = match &wanted.how {
            How::Ask(asking) => answers.found(asking).map_err(|message| ExperimentError::Figure {
                paper: paper.name.to_owned(),
                id: figure.id.clone(),
                message,
            })?,
            How::Derive { expression, unit } => {
                let unit = unit.as_ref().or(published.map(|row| &row.unit));
                derived(expression, unit.cloned().unwrap_or_default(), &said, before)
            }
        };
        let name = wanted.name.as_ref().unwrap_or(&figure.id);
        // A figure may have several rows; the first is the one it is known by.
        if let Some(value) = row.value
            && !said.values.contains_key(name)
        {
            said.values.insert(name.clone(), value);
        }
        found.push(row.beside(&figure.id, wanted, published, asked(answers.machine.facts())));
    }
    before.0.push(said);
    Ok(found)
}

/// Whether `paper` has something to ask of runtimes.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is wrong.
pub fn asks_runtimes(paper: &Paper) -> Result<bool, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let mut wanted = experiment.figures.iter().flat_map(|figure| &figure.here);
    Ok(wanted.any(|wanted| wanted.of != Whom::Host))
}

fn is_one(facts: &Facts, whom: Whom) -> bool {
    match whom {
        Whom::Host => facts.runtime.is_none(),
        Whom::Runtimes => facts.runtime.is_some(),
        Whom::Sycl => facts.runtime.is_some() && facts.name.starts_with(SYCL),
    }
}

/// Who was asked: what a runtime's device is belongs to its name, or its figures would be read as those of something else.
fn asked(facts: &Facts) -> String {
    match &facts.runtime {
        None => facts.name.clone(),
        Some(runtime) if runtime.is_emulated => format!("{} (emulated {})", facts.name, runtime.kind),
        Some(runtime) => format!("{} ({})", facts.name, runtime.kind),
    }
}

/// The answers that belong to one figure.
struct Found {
    method: String,
    value: Option<f64>,
    ends: Option<[f64; 2]>,
    unit: String,
    because: String,
}

impl Found {
    fn beside(self, id: &str, wanted: &AskHere, published: Option<&Published>, asked: String) -> Here {
        let published = published.filter(|row| row.unit == self.unit).and_then(Published::target);
        let [from, to] = self.ends.map_or([None, None], |ends| ends.map(Some));
        Here {
            id: id.to_owned(),
            what: wanted.what.clone(),
            asked,
            method: self.method,
            published: wanted.published.or(published),
            here: self.value,
            from,
            to,
            unit: self.unit,
            because: self.because,
        }
    }
}

/// What follows from what `said` has, and a device of its name that was asked before behind OpenCL.
fn derived(expression: &str, unit: String, said: &Said, before: &Before) -> Found {
    let is_same = |other: &&Said| other.machine.starts_with(OPENCL) && other.device == said.device;
    let other = before.0.iter().find(is_same).filter(|_| expression.contains(OPENCL));
    let value = |name: &str| match name.strip_prefix(OPENCL) {
        Some(name) => other?.values.get(name).copied(),
        None => said.values.get(name).copied(),
    };
    let result = evaluate(expression, &value);
    let method = match other {
        Some(other) => format!("{expression}, the other being {}", other.machine),
        None => expression.to_owned(),
    };
    let (value, because) = match result {
        Ok(value) => (Some(value), String::new()),
        Err(because) => (None, because),
    };
    Found { method, value, ends: None, unit, because }
}

/// What was said from one core, or without one, or why nothing was.
type Answered = (Caller, Result<Answer, String>);

/// The questions for a machine, each once.
struct Answers<'a> {
    machine: &'a mut dyn Machine,
    all: Vec<(Asking, Vec<Answered>)>,
}

impl Answers<'_> {
    /// The best of the cases that are of this method.
    fn found(&mut self, asking: &Asking) -> Result<Found, String> {
        let mut found = Found {
            method: format!("{}: {}", asking.question, asking.method),
            value: None,
            ends: None,
            unit: asking.figure.unit().to_owned(),
            because: String::new(),
        };
        let answers = self.to(asking)?;
        if answers.is_empty() {
            "this machine has nothing to ask it of".clone_into(&mut found.because);
        }
        let mut best = None;
        for (caller, answer) in answers {
            match answer {
                Ok(answer) => {
                    let value = figure_of(answer, asking.figure);
                    if value.is_some_and(|value| found.value.is_none_or(|than| asking.figure.is_better(value, than))) {
                        (found.value, found.ends) = (value, spread_of(answer, asking.figure));
                        best = Some(caller);
                    }
                }
                Err(because) if found.because.is_empty() => found.because.clone_from(because),
                Err(_) => {}
            }
        }
        if let Some(Caller::Core(core)) = best {
            found.method = format!("{}, core {core}", found.method);
        }
        if found.value.is_some() {
            found.because.clear();
        } else if found.because.is_empty() {
            "too few samples to tell".clone_into(&mut found.because);
        }
        Ok(found)
    }

    fn to(&mut self, asking: &Asking) -> Result<&[Answered], String> {
        let is_same =
            |one: &Asking| (&one.question, &one.method, one.size) == (&asking.question, &asking.method, asking.size);
        let known = self.all.iter().position(|(one, _)| is_same(one));
        let place = if let Some(place) = known {
            place
        } else {
            let answers = self.ask(asking)?;
            self.all.push((asking.clone(), answers));
            self.all.len() - 1
        };
        Ok(&self.all[place].1)
    }

    fn ask(&mut self, asking: &Asking) -> Result<Vec<Answered>, String> {
        let Asking { question: name, method, size, .. } = asking;
        let question = question(name).map_err(|error| error.to_string())?;
        let axes = Axes { sizes: size.map(|size| vec![size]), ..Axes::default() };
        let cases = (question.cases)(self.machine.facts(), &axes);
        let cases: Vec<Case> = cases.into_iter().filter(|case| case.method == *method).collect();
        let answers = ask_together(question, self.machine, &cases, &Effort::default(), &mut |_| true);
        let answered = |(case, answer): (&Case, Result<Answer, BenchError>)| {
            let answer = answer.map_err(|error| error.to_string());
            (case.caller, answer.and_then(|answer| lost_bytes(&answer).map_or(Ok(answer), Err)))
        };
        Ok(cases.iter().zip(answers).map(answered).collect())
    }
}

/// What a time means nothing without: that the bytes are there, or the results right.
fn lost_bytes(answer: &Answer) -> Option<String> {
    let bytes = answer.bytes.filter(|bytes| bytes.claimed_bytes != bytes.confirmed_bytes)?;
    Some(format!("{} of {} bytes are there; the figure means nothing", bytes.confirmed_bytes, bytes.claimed_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::PAPERS;
    use lanemark_machine::{
        Allocation, Confirmed, DeviceKind, MachineError, Plan, QueueRequest, RuntimeFacts, Sample, Samples, TimeBase,
        Unsupported,
    };
    use lanemark_sim::SimulatedMachine;
    use lanemark_units::Ticks;
    use std::cell::RefCell;

    fn ask(paper: &Paper, machine: &mut dyn Machine, before: &mut Before) -> Vec<Here> {
        here(paper, machine, before, &mut |_, _| {}).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_question_to_this_machine_is_one_and_who_cannot_answer_says_so() {
        // A simulated machine has none of the ways, which are those of ordinary memory, or refuses them.
        let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let mut rows = 0;
        for paper in PAPERS {
            let mut heard = Vec::new();
            let mut watch = |done, of| heard.push((done, of));
            let all = here(paper, &mut machine, &mut Before::default(), &mut watch);
            let all = all.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(heard, (0..all.len()).map(|done| (done, all.len())).collect::<Vec<_>>());
            for row in &all {
                assert!(row.here.is_none() && !row.because.is_empty(), "{row:?}");
            }
            rows += all.len();
        }
        assert!(rows > 0);
    }

    #[test]
    fn what_is_derived_rests_on_names_that_stand_before_it() {
        for paper in PAPERS {
            let experiment = Experiment::read(paper.name, paper.experiment, paper.published).unwrap();
            let mut names: Vec<&String> = Vec::new();
            for (figure, wanted) in
                experiment.figures.iter().flat_map(|one| one.here.iter().map(move |here| (one, here)))
            {
                if let How::Derive { expression, .. } = &wanted.how {
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
                names.push(wanted.name.as_ref().unwrap_or(&figure.id));
            }
        }
    }

    /// A runtime on two cores: from core 0 a launch takes 5 us, from core 1 mostly 4 us and every fourth time 9 us. Runs of copies
    /// take so many us, one more each time.
    struct Runtime {
        facts: Facts,
        samples: u64,
        plans: usize,
        /// Whether its copies bring their bytes.
        brings: bool,
    }

    fn runtime(name: &str, summary: &str) -> Runtime {
        let runtime = RuntimeFacts {
            kind: DeviceKind::Cpu,
            is_emulated: false,
            allocations: vec![Allocation::Buffer],
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
            disciplines: vec![],
            line_sources: vec![],
            runtime: Some(runtime),
        };
        Runtime { facts, samples: 0, plans: 0, brings: true }
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
            let confirmed_bytes = if self.brings { 80_000 } else { 79_999 };
            samples.confirmed = Some(Confirmed { claimed_bytes: 80_000, confirmed_bytes });
            Ok(())
        }
    }

    const LAUNCH: &str = "of = \"runtimes\", question = \"launch_latency\", method = { kind = \"launch\", kernels = 1, wait = \"finish\" }";
    const COPIES: &str = "of = \"runtimes\", question = \"many_small_few_large\", method = { kind = \"runtime_copy\", direction = \"to_device\", wait = \"event\", allocation = \"buffer\" }, size = 80000";

    /// What the last machine says to these rows of a figure, the others having been asked before.
    fn said(lines: &[String], machines: &mut [Runtime]) -> Vec<Here> {
        let tables: Vec<String> = lines.iter().map(|line| format!("{{ what = \"w\", {line} }}")).collect();
        let experiment = format!(
            "title = \"t\"\nplatform = \"p\"\n[[figure]]\nid = \"A\"\nclass = \"given\"\ngiven = true\nhere = [{}]\n",
            tables.join(", ")
        );
        let paper = Paper {
            name: "x",
            experiment: experiment.leak(),
            published: "id,what,published,corrected,unit\nA,a,31.6,,-\n",
        };
        let mut before = Before::default();
        machines.iter_mut().map(|machine| ask(&paper, machine, &mut before)).last().unwrap()
    }

    #[test]
    fn the_quickest_core_and_the_quietest_are_named_and_asked_once() {
        let mut machines = [runtime("opencl:0", "")];
        let alone = said(&[LAUNCH.to_owned()], &mut machines);
        let plans = std::mem::take(&mut machines[0].plans);
        let rows = said(&[LAUNCH.to_owned(), format!("{LAUNCH}, figure = \"spread_ns\"")], &mut machines);
        assert_eq!(machines[0].plans, plans);
        assert_eq!((&*rows[0].method, rows[0].here), ("launch_latency: launch, wait by finish, core 1", alone[0].here));
        assert_eq!((&*rows[1].method, rows[1].here), ("launch_latency: launch, wait by finish, core 0", Some(0.0)));
        assert_eq!((rows[0].published, &*rows[0].asked), (None, "opencl:0 (CPU)"));
    }

    #[test]
    fn the_worst_run_is_the_longest_of_those_whose_median_is_the_usual_one() {
        let lines = ["whole_run_s", "worst_run_s"].map(|figure| format!("{COPIES}, figure = \"{figure}\""));
        let rows = said(&lines, &mut [runtime("opencl:0", "")]);
        // Runs of 1 to 8 us, a hundredth of whole ones.
        assert!((rows[0].here.unwrap() - 450e-6).abs() < 1e-9 && (rows[1].here.unwrap() - 800e-6).abs() < 1e-9);
        assert!((rows[0].to, rows[1].to) == (rows[1].here, None) && rows[1].unit == "s");
    }

    #[test]
    fn a_ratio_is_there_where_both_parts_were_answered() {
        let lines = [
            format!("{COPIES}, figure = \"whole_run_s\", name = \"B\""),
            format!("{COPIES}, figure = \"worst_run_s\", name = \"C\""),
            "of = \"runtimes\", question = \"stream_copy\", method = { kind = \"wake\", by = \"eventfd\" }, name = \"D\"".to_owned(),
            "of = \"runtimes\", derive = \"C/B\"".to_owned(),
            "of = \"runtimes\", derive = \"D/B\", unit = \"%\"".to_owned(),
        ];
        let rows = said(&lines, &mut [runtime("opencl:0", "")]);
        assert!((rows[3].here.unwrap() - 8.0 / 4.5).abs() < 1e-9 && rows[3].because.is_empty());
        assert_eq!((rows[3].published, &*rows[3].unit, &*rows[3].method), (Some(31.6), "-", "C/B"));
        assert_eq!((rows[4].here, rows[4].published, &*rows[4].because), (None, None, "D has no value in 'D/B'"));
        assert_eq!((rows[2].here, &*rows[2].because), (None, "this machine has nothing to ask it of"));
    }

    #[test]
    fn a_time_in_which_not_all_bytes_arrived_is_no_answer_and_what_is_derived_of_it_neither() {
        let lines = [
            format!("{COPIES}, figure = \"whole_run_s\", name = \"B\""),
            "of = \"runtimes\", derive = \"B\", unit = \"s\"".to_owned(),
        ];
        let rows = said(&lines, &mut [Runtime { brings: false, ..runtime("opencl:0", "") }]);
        let because = "79999 of 80000 bytes are there; the figure means nothing";
        assert_eq!((rows[0].here, &*rows[0].because), (None, because));
        assert_eq!((rows[1].here, &*rows[1].because), (None, "B has no value in 'B'"));
    }

    #[test]
    fn a_device_behind_sycl_is_held_against_the_one_of_its_name_behind_opencl() {
        let lines =
            [format!("{COPIES}, figure = \"worst_run_s\""), "of = \"sycl\", derive = \"opencl:A/A\"".to_owned()];
        let all = || [("opencl:0", "a (CPU), x"), ("opencl:1", "b (CPU), x"), ("sycl:0", "b (CPU), S on x")];
        let mut machines = all().map(|(name, summary)| runtime(name, summary));
        // The second OpenCL device takes longer than the others.
        machines[1].samples = 8;
        assert_eq!(said(&lines, &mut machines[..2]).len(), 1, "OpenCL is held against nothing");
        let mut machines = all().map(|(name, summary)| runtime(name, summary));
        machines[1].samples = 8;
        let rows = said(&lines, &mut machines);
        assert_eq!((rows[1].here, &*rows[1].method), (Some(2.0), "opencl:A/A, the other being opencl:1"));
        let mut strangers = [runtime("opencl:0", "a (CPU), x"), runtime("sycl:0", "b (CPU), S on x")];
        let rows = said(&lines, &mut strangers);
        assert_eq!((rows[1].here, &*rows[1].because), (None, "opencl:A has no value in 'opencl:A/A'"));
    }

    #[test]
    fn the_best_of_several_is_the_shortest_time_and_the_highest_rate() {
        use crate::figure::Wanted;
        assert!(Wanted::LatencyUs.is_better(1.0, 2.0) && !Wanted::LatencyUs.is_better(2.0, 1.0));
        assert!(Wanted::DeliveredGbPerS.is_better(2.0, 1.0) && !Wanted::DeliveredGbPerS.is_better(1.0, 2.0));
        assert!(!Wanted::LatencyNs.is_better(1.0, 1.0) && !Wanted::FlowMibPerS.is_better(1.0, 1.0));
    }
}
