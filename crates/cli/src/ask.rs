//! `bench`, `predict` and `report`: questions to targets, answers to a record, a record to what people read.

use crate::args::{AxisArgs, BenchArgs, ReportArgs};
use crate::card::{self, Card};
use crate::failure::{Failure, say};
use crate::input;
use crate::interrupt;
use crate::matrix::matrix;
use crate::output;
use crate::progress::{Cases, by_time};
use crate::target::{Changes, Target, has_no_platform};
use crate::work::{Task, work};
use lanemark_advise::Verdict;
use lanemark_bench::{
    Axes, BenchError, CATALOGUE, Case, Effort, Question, Watch, ask_together, has_formula, measured_ceiling, question,
};
use lanemark_inventory::{Load, Processors, Seen};
use lanemark_machine::{Fence, Machine as _, MachineError, TimeBase, Unsupported, Verb};
use lanemark_method::Method;
use lanemark_record::{Answer, Ceiling, CeilingKind, Formula, Quantity, Reach, Record, Reproduction, Skipped, file};
use lanemark_units::format_size;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// `lanemark bench`
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    if args.card.dry_run {
        return card::rehearse(args);
    }
    let interrupted = interrupt::flag()?;
    let mut run = Run::new(args, &["card-gen5-x16", "host"], &interrupted)?;
    run.ask_all(&interrupted, Run::measure);
    run.finish(args, false)
}

/// `lanemark predict`
pub fn predict(args: &BenchArgs) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    if let Some(name) = args.on.iter().find(|name| has_no_platform(name)) {
        let message = format!("'{name}' has no formula: there is no platform file of it; name a platform");
        return Err(Failure::Usage(message));
    }
    let sampling = &args.sampling;
    let given = [
        ("--budget", sampling.budget.is_some()),
        ("--interval", sampling.interval.is_some()),
        ("--samples", sampling.samples.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::Usage(format!("{flag}: a formula takes no samples; ask with `lanemark bench`")));
    }
    if let Some(fault) = args.fault.first() {
        let message = format!("--fault {fault}: a formula knows nothing that goes wrong; ask with `lanemark bench`");
        return Err(Failure::Usage(message));
    }
    if let Some(name) = args.on.iter().find(|name| card::address(name).is_some()) {
        let message = format!("'{name}' is a real card and has no formula: name a platform");
        return Err(Failure::Usage(message));
    }
    let mut run = Run::new(args, &["card-gen5-x16"], &interrupted)?;
    run.ask_all(&interrupted, Run::predict);
    run.finish(args, true)
}

/// `lanemark report`
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let record = input::record(&args.record)?;
    output::check(&[&args.html], &[&args.record])?;
    let judged = judged(&record);
    let news = judged.impossible.iter().chain(&judged.others).filter(|text| !record.warnings.contains(text));
    let news: Vec<String> = news.cloned().collect();
    let mut shown = record.clone();
    shown.warnings.extend(news.iter().cloned());
    write_html(&shown, &[], &args.html)?;
    say(&format!("wrote {}", args.html.display()));
    judged.others.iter().for_each(|text| say(text));
    if judged.impossible.is_empty() { Ok(()) } else { Err(Failure::impossible(&judged.impossible)) }
}

/// What the limit gate says of a record.
pub struct Judged {
    /// What cannot be true.
    pub impossible: Vec<String>,
    /// What is only said.
    pub others: Vec<String>,
}

/// Holds a record against the limit gate.
pub fn judged(record: &Record) -> Judged {
    let (impossible, others): (Vec<_>, Vec<_>) =
        lanemark_advise::judgements(record).into_iter().partition(|judgement| judgement.verdict == Verdict::Impossible);
    let texts = |judgements: Vec<lanemark_advise::Judgement>| judgements.into_iter().map(|found| found.text).collect();
    Judged { impossible: texts(impossible), others: texts(others) }
}

/// An answer, or why there is none.
type Answered = Result<Answer, BenchError>;
/// Asks cases that belong together of the target at a place; fewer answers than cases where it is to end.
type Ask = fn(&mut Run, usize, &Question, &[Case], Watch) -> Vec<Answered>;

/// One run: whom, what, and what came out so far.
struct Run {
    targets: Vec<Target>,
    tasks: Vec<Task>,
    effort: Effort,
    record: Record,
    /// Measured ceilings of real targets, for loads and for stores.
    stand_ins: Vec<Option<[Ceiling; 2]>>,
    /// Who failed first.
    failed: Option<Failed>,
    /// Which device behind a runtime was first not to answer what it was asked.
    unanswered: Option<Failed>,
    /// Targets that do not answer any more.
    gone: Vec<usize>,
    /// What this machine had to do before anything was asked.
    load_before: Seen<Load>,
}

impl Run {
    fn new(args: &BenchArgs, usual: &[&str], interrupted: &Arc<AtomicBool>) -> Result<Run, Failure> {
        card::check(args)?;
        let mut questions = questions(&args.questions)?;
        let axes = axes(&args.axes)?;
        let names: Vec<&str> =
            if args.on.is_empty() { usual.to_vec() } else { args.on.iter().map(String::as_str).collect() };
        let changes = Changes::wanted(args);
        changes.check(&names)?;
        let mut targets: Vec<Target> = Vec::new();
        let mut skipped = Vec::new();
        for name in names {
            match Target::open(name, &args.card, &changes, interrupted) {
                Ok(target) if targets.iter().any(|other| other.facts().name == target.facts().name) => {
                    return Err(Failure::Usage(format!("two targets are called '{}'", target.facts().name)));
                }
                Ok(target) => targets.push(target),
                // A machine that cannot be measured does not keep the others from answering.
                Err(Failure::Absent(because)) if args.on.len() != 1 => skipped.push(Skipped {
                    question: "every question".to_owned(),
                    target: name.to_owned(),
                    what: "everything".to_owned(),
                    because,
                }),
                Err(failure) => return Err(failure),
            }
        }
        if args.questions.is_empty() {
            add_those_of_runtimes(&mut questions, &targets);
        }
        let work = work(&questions, &targets, &axes)?;
        skipped.extend(work.skipped);
        let inputs: Vec<&Path> = args.on.iter().map(Path::new).collect();
        let outputs = [args.record.as_deref(), page(args), args.csv.as_deref(), args.sampling.samples.as_deref()];
        output::check(&outputs.into_iter().flatten().collect::<Vec<_>>(), &inputs)?;
        let record = Record { skipped, ..Record::new(command_line()) };
        let stand_ins = targets.iter().map(|_| None).collect();
        let load_before = Load::of_this_machine();
        Ok(Run {
            targets,
            tasks: work.tasks,
            effort: effort(args),
            record,
            stand_ins,
            failed: None,
            unanswered: None,
            gone: Vec::new(),
            load_before,
        })
    }

    /// Asks every case of every question of every target, by `ask`, which is given those that belong together.
    fn ask_all(&mut self, interrupted: &AtomicBool, ask: Ask) {
        let tasks = std::mem::take(&mut self.tasks);
        let bar = Cases::of(tasks.len());
        let mut before = 0;
        for together in tasks.chunk_by(|a, b| (a.question.name, a.place) == (b.question.name, b.place)) {
            let (question, place) = (together[0].question, together[0].place);
            let done = f64::from(before);
            before += together.len() as u32;
            // Whoever does not answer any more is not asked again.
            if self.gone.contains(&place) {
                self.leave_out(question, place, "all of it".to_owned());
                continue;
            }
            let target = self.targets[place].facts().name.clone();
            bar.say(format!("{} on {target}", question.name));
            let cases: Vec<Case> = together.iter().map(|task| task.case.clone()).collect();
            let is_real = self.targets[place].facts().time_base != TimeBase::Simulated;
            let is_in_rounds = is_real && question.ask.is_none();
            let (begun, budget) = (Instant::now(), self.effort.budget);
            let mut watch = |cases: f64| {
                let by_time = if is_in_rounds { by_time(begun, budget, together.len()) } else { 0.0 };
                bar.done(done + cases.max(by_time));
                !interrupted.load(Ordering::Relaxed)
            };
            let answers = ask(self, place, question, &cases, &mut watch);
            let (mut not_asked, all) = (Vec::new(), cases.len());
            for (answer, case) in answers.into_iter().zip(&cases) {
                match answer {
                    Err(BenchError::NotAsked) => not_asked.push(format!("{}, {}", case.method, format_size(case.size))),
                    answer => self.keep(answer, question, place, case),
                }
            }
            if !not_asked.is_empty() {
                self.leave_out(question, place, format!("{} of {all}: {}", not_asked.len(), not_asked.join("; ")));
            }
            bar.done(f64::from(before));
            if self.record.interrupted || interrupted.load(Ordering::Relaxed) {
                self.record.interrupted = true;
                break;
            }
        }
        bar.end();
    }

    /// Notes what is not asked of a target that has failed.
    fn leave_out(&mut self, question: &Question, place: usize, what: String) {
        let target = self.targets[place].facts().name.clone();
        let because = format!("{target} has failed, and is asked no more");
        self.record.skipped.push(Skipped { question: question.name.to_owned(), target, what, because });
    }

    fn keep(&mut self, answer: Result<Answer, BenchError>, question: &Question, place: usize, case: &Case) {
        let facts = self.targets[place].facts();
        let target = &facts.name;
        let is_behind_runtime = facts.runtime.is_some() && facts.time_base != TimeBase::Simulated;
        let failed = |why: String| Failed { target: target.clone(), why, is_behind_runtime };
        match answer {
            Ok(answer) => self.record.answers.push(answer),
            Err(BenchError::Machine(MachineError::Unsupported(Unsupported { what, because, .. }))) => {
                if is_behind_runtime {
                    self.unanswered.get_or_insert_with(|| failed(because.clone()));
                }
                let question = question.name.to_owned();
                self.record.skipped.push(Skipped { question, target: target.clone(), what, because });
            }
            Err(BenchError::Machine(MachineError::Interrupted { .. })) => self.record.interrupted = true,
            Err(error) => {
                let why = error.to_string();
                self.record.warnings.push(format!("{} on {target}, {}: {why}", question.name, case.method));
                if is_behind_runtime {
                    self.unanswered.get_or_insert_with(|| failed(why.clone()));
                }
                // What comes after it often only follows from it.
                let is_failure = error.is_for_good() || matches!(error, BenchError::Machine(MachineError::Bus(_)));
                // A failed check is not hidden by a device that is absent.
                let counts = |before: &Failed| before.is_behind_runtime && !is_behind_runtime;
                if is_failure && self.failed.as_ref().is_none_or(counts) {
                    self.failed = Some(failed(why));
                }
                if error.is_for_good() {
                    self.gone.push(place);
                }
            }
        }
    }

    fn measure(&mut self, place: usize, question: &Question, cases: &[Case], watch: Watch) -> Vec<Answered> {
        // A stand-in is measured first, for after Ctrl-C there would be none.
        if question.quantity == Quantity::Bandwidth
            && let Some(case) = cases.first()
            && let Err(error) = self.ceiling(place, case)
        {
            return vec![Err(error)];
        }
        let answers = ask_together(question, self.targets[place].machine.as_mut(), cases, &self.effort, watch);
        let with_limit = answers.into_iter().zip(cases).map(|(answer, case)| {
            let mut answer = answer?;
            answer.formula = self.formula(place, question, case);
            if question.quantity == Quantity::Bandwidth || answer.delivered_rate_bytes_per_s.is_some() {
                answer.hold_against(self.ceiling(place, case)?);
            }
            Ok(answer)
        });
        with_limit.collect()
    }

    fn predict(&mut self, place: usize, question: &Question, cases: &[Case], watch: Watch) -> Vec<Answered> {
        let each = cases.iter().enumerate().take_while(|(done, _)| watch(*done as f64));
        each.map(|(_, case)| self.predict_one(place, question, case)).collect()
    }

    fn predict_one(&mut self, place: usize, question: &Question, case: &Case) -> Answered {
        let target = &mut self.targets[place];
        let Some(formula) = &mut target.formula else { unreachable!("predict opens platforms only") };
        if !has_formula(question, case) {
            let because = "for several threads formulas are lower bounds, whose difference is none".to_owned();
            let machine = format!("the formula for {}", formula.facts().name);
            return Err(MachineError::from(Unsupported { what: question.name.to_owned(), machine, because }).into());
        }
        let mut answer = lanemark_bench::ask(question, formula, case, &self.effort)?;
        answer.formula = self.formula(place, question, case);
        if question.quantity == Quantity::Bandwidth {
            let ceiling = self.ceiling(place, case)?;
            answer.hold_against(ceiling);
        }
        (answer.latency_ns, answer.issue_rate_bytes_per_s, answer.delivered_rate_bytes_per_s) = (None, None, None);
        (answer.samples_ns, answer.raw, answer.dropped) = (Vec::new(), Vec::new(), None);
        Ok(answer)
    }

    /// What the target's formula says to the same case; `None` where it has none.
    fn formula(&mut self, place: usize, question: &Question, case: &Case) -> Option<Formula> {
        let machine = self.targets[place].formula.as_mut().filter(|_| has_formula(question, case))?;
        let said = lanemark_bench::ask(question, machine, case, &self.effort).ok()?;
        let last = machine.last()?;
        Some(Formula {
            latency_ns: said.latency_ns.map(|summary| summary.median),
            delivered_rate_bytes_per_s: said.delivered_rate_bytes_per_s.map(|summary| summary.median),
            bound: last.bound.name().to_owned(),
            cause: last.bound.cause().name().to_owned(),
            holds_for: last.holds_for.to_owned(),
        })
    }

    fn ceiling(&mut self, place: usize, case: &Case) -> Result<Ceiling, BenchError> {
        let target = &mut self.targets[place];
        if target.facts().time_base == TimeBase::Emulated {
            return Ok(unknown_ceiling("it is emulated: its times say nothing about speed".to_owned()));
        }
        if let (Some(runtime), None) = (target.runtime(), &target.platform) {
            let because = "a runtime does not say what lies between a program and its device";
            return Ok(unknown_ceiling(runtime.no_card_because().unwrap_or(because).to_owned()));
        }
        if let Some(platform) = &target.platform {
            let transfers = case.counted_transfers();
            let relay = case.relay(1);
            let computed = match transfers.as_slice() {
                _ if case.computation.is_some() => {
                    let work = case.computation.as_ref().map(|asked| &asked.work);
                    work.and_then(|work| lanemark_model::compute_ceiling(platform, work))
                }
                _ if matches!(case.method, Method::RuntimeCopy { .. }) => {
                    lanemark_model::copy_ceiling(platform, case.verb(), case.size)
                }
                _ if relay.is_some() => relay.and_then(|relay| lanemark_model::relay_ceiling(platform, &relay)),
                [transfer] => lanemark_model::transfer_ceiling(platform, transfer),
                [_, ..] => lanemark_model::shared_ceiling(platform, &transfers),
                [] => {
                    let span = case.span();
                    let region = platform.region_at(span.at.bar, span.at.offset, span.len);
                    region.and_then(|region| lanemark_model::ceiling(platform, &region.name, case.verb(), case.size))
                }
            };
            return Ok(match computed {
                Some(limit) => Ceiling {
                    kind: CeilingKind::Computed,
                    rate_bytes_per_s: Some(limit.rate.bytes_per_s()),
                    because: limit.because,
                },
                None => unknown_ceiling("nothing of the platform holds what is touched".to_owned()),
            });
        }
        if let Some(card) = &target.card {
            return Ok(card.ceiling(case));
        }
        if self.stand_ins[place].is_none() {
            let mut stand_in = |verb| match measured_ceiling(target.machine.as_mut(), verb, &self.effort) {
                Err(BenchError::Machine(error @ MachineError::Interrupted { .. })) => Err(error.into()),
                Err(error) => Ok(unknown_ceiling(format!("its stand-in was not measured: {error}"))),
                Ok(ceiling) => Ok::<_, BenchError>(ceiling),
            };
            self.stand_ins[place] = Some([stand_in(Verb::Load)?, stand_in(Verb::Store)?]);
        }
        let [load, store] = self.stand_ins[place].clone().unwrap_or_else(|| unreachable!("measured just above"));
        Ok(if case.verb() == Verb::Load { load } else { store })
    }

    /// Advice, files, output, and whether what was found can be true.
    fn finish(mut self, args: &BenchArgs, formula_only: bool) -> Result<(), Failure> {
        self.record.targets = self.targets.iter().map(|target| target.to_record(formula_only)).collect();
        self.note_varied(args);
        let cards = self.targets.iter().filter_map(|target| target.card.as_ref());
        self.record.warnings.extend(cards.flat_map(Card::changes));
        for changed in self.targets.iter().flat_map(|target| &target.changed) {
            // What is said of runtimes is true of every device behind one.
            if !self.record.warnings.contains(changed) {
                self.record.warnings.push(changed.clone());
            }
        }
        self.record.warnings.extend(self.targets.iter().flat_map(|target| target.injected_faults(formula_only)));
        if self.targets.iter().any(|target| target.facts().time_base != TimeBase::Simulated) {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            self.record.written_unix_s = now.ok().map(|since| since.as_secs());
            let (processors, load_after) = (Processors::of_this_machine(), Load::of_this_machine());
            self.record.host = Some(lanemark_advise::host(&processors, &self.load_before, &load_after));
        }
        self.record.advice = lanemark_advise::best_methods(&self.record);
        self.record.findings = lanemark_advise::cliffs(&self.record);
        self.record.findings.extend(lanemark_advise::buffers(&self.record));
        self.record.findings.extend(lanemark_advise::crossovers(&self.record));
        self.record.findings.extend(lanemark_advise::reaches(&self.record));
        self.record.findings.extend(lanemark_advise::accessors(&self.record));
        self.record.findings.extend(lanemark_advise::runs(&self.record));
        self.record.findings.extend(lanemark_advise::launches(&self.record));
        let Judged { impossible, others } = judged(&self.record);
        self.record.warnings.extend(impossible.iter().chain(&others).cloned());
        // What cannot be kept in a file can still be read on the screen.
        let written = self.write(args);
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", file::to_json(&self.record))?;
        } else {
            out.write_all(lanemark_report::tables(&self.on_screen(), terminal_width()).as_bytes())?;
        }
        for path in written? {
            say(&format!("wrote {}", path.display()));
        }
        if !impossible.is_empty() {
            return Err(Failure::impossible(&impossible));
        }
        if self.record.interrupted {
            return Err(Failure::Interrupted);
        }
        let has_answers = !self.record.answers.is_empty();
        if let Some(failed) = self.failed {
            return Err(failed.ended(has_answers));
        }
        if has_answers {
            return Ok(());
        }
        match (self.unanswered, self.record.skipped.first(), self.record.warnings.first()) {
            (Some(unanswered), ..) => Err(unanswered.ended(false)),
            (None, Some(skipped), _) => Err(Failure::Absent(skipped.because.clone())),
            (None, None, Some(warning)) => Err(Failure::Check(format!("there is no answer: {warning}"))),
            (None, None, None) => Err(Failure::Absent("nothing was asked".to_owned())),
        }
    }

    /// Notes at each answer of a simulated target what the command line changed of it.
    fn note_varied(&mut self, args: &BenchArgs) {
        for target in &self.targets {
            let Some(platform) = &target.platform else { continue };
            let value = |key: &str| platform.value_text(key).unwrap_or_default();
            let mut varied: BTreeMap<String, String> =
                args.with.iter().map(|(key, _)| (key.clone(), value(key))).collect();
            let joined = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join(" "));
            let setpci = joined(args.setpci.iter().map(ToString::to_string).collect());
            let fault = joined(args.fault.iter().map(ToString::to_string).collect());
            varied.extend(setpci.map(|writes| ("setpci".to_owned(), writes)));
            varied.extend(fault.map(|faults| ("fault".to_owned(), faults)));
            let name = &target.facts().name;
            for answer in self.record.answers.iter_mut().filter(|answer| answer.target == *name) {
                answer.varied.clone_from(&varied);
            }
        }
    }

    /// The record as the screen shows it: what will be its last line does not stand above it too.
    fn on_screen(&self) -> Record {
        let mut shown = self.record.clone();
        let last = self.failed.as_ref().or(self.unanswered.as_ref());
        if let Some(Failed { why, .. }) = last.filter(|last| last.is_behind_runtime && shown.answers.is_empty()) {
            shown.warnings.retain(|warning| !warning.ends_with(why));
            shown.skipped.retain(|skipped| skipped.because != *why);
        }
        shown
    }

    /// Writes the files that were asked for, and says which; a page that nobody named needs something to show.
    fn write<'a>(&self, args: &'a BenchArgs) -> Result<Vec<&'a Path>, Failure> {
        let html = page(args).filter(|_| args.html.is_some() || !self.record.answers.is_empty());
        if let Some(path) = &args.record {
            file::write(&self.record, path).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        if let Some(path) = html {
            write_html(&self.record, &[], path)?;
        }
        if let Some(path) = &args.sampling.samples {
            let table = lanemark_record::samples_table(&self.record)
                .map_err(|error| Failure::Check(format!("{}: {error}", path.display())))?;
            file::write_whole(path, &table).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        if let Some(path) = &args.csv {
            let table = lanemark_record::answers_table(&self.record)
                .map_err(|error| Failure::Check(format!("{}: {error}", path.display())))?;
            file::write_whole(path, table.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let samples = args.sampling.samples.as_deref();
        Ok([args.record.as_deref(), html, args.csv.as_deref(), samples].into_iter().flatten().collect())
    }
}

/// Somebody who did not answer, or not to the end.
struct Failed {
    /// Who.
    target: String,
    /// What it said.
    why: String,
    /// Whether it is a device behind a runtime of this machine: without it there is nothing to check.
    is_behind_runtime: bool,
}

impl Failed {
    /// What ends the command. Where the record has answers, it has a warning too, which says why.
    fn ended(self, has_answers: bool) -> Failure {
        let Failed { target, why, is_behind_runtime } = self;
        match (is_behind_runtime, has_answers) {
            (false, _) => Failure::Check(why),
            (true, false) => Failure::Absent(why),
            (true, true) => Failure::Absent(format!(
                "{target} failed before it was asked all: its warning says why, and what it answered is kept"
            )),
        }
    }
}

fn unknown_ceiling(because: String) -> Ceiling {
    Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because }
}

/// Where the page goes, if there is one.
fn page(args: &BenchArgs) -> Option<&Path> {
    args.html.as_deref().or_else(|| (!args.json).then_some(Path::new("report.html")))
}

/// Where no question is named, a runtime is asked what it can be asked, which is usual of nothing else.
fn add_those_of_runtimes(questions: &mut Vec<&'static Question>, targets: &[Target]) {
    for facts in targets.iter().map(Target::facts).filter(|facts| facts.runtime.is_some()) {
        for question in CATALOGUE {
            let is_asked = questions.iter().any(|other| other.name == question.name);
            if !is_asked && !(question.cases)(facts, &Axes::default()).is_empty() {
                questions.push(question);
            }
        }
    }
}

pub fn questions(names: &[String]) -> Result<Vec<&'static Question>, Failure> {
    if names.is_empty() {
        return Ok(CATALOGUE.iter().filter(|question| question.is_usual).collect());
    }
    let known = || CATALOGUE.iter().map(|question| question.name).collect::<Vec<_>>().join(", ");
    let found = names.iter().map(|name| {
        question(name).ok_or_else(|| Failure::Usage(format!("'{name}' is no question: use one of {}", known())))
    });
    let mut questions: Vec<&'static Question> = Vec::new();
    for question in found {
        let question = question?;
        if questions.iter().all(|other| other.name != question.name) {
            questions.push(question);
        }
    }
    Ok(questions)
}

fn effort(args: &BenchArgs) -> Effort {
    let usual = Effort::default();
    Effort {
        budget: args.sampling.budget.unwrap_or(usual.budget),
        interval_percent: args.sampling.interval.unwrap_or(usual.interval_percent),
        simulated_passes: args.iterations,
        is_whole: args.sampling.full,
        ..usual
    }
}

pub fn axes(args: &AxisArgs) -> Result<Axes, Failure> {
    let matrices = args.matrix.iter().map(|name| matrix(name)).collect::<Result<Vec<_>, _>>()?;
    let fences: Vec<Option<Fence>> = args.fence.iter().map(|fence| fence.0).collect();
    Ok(Axes {
        sizes: args.sizes.as_ref().map(|sizes| sizes.bytes().to_vec()),
        memory_types: each_once(&args.memory_type),
        accesses: each_once(&args.access),
        fences: each_once(&fences),
        alignments: each_once(&args.align),
        region: args.region.clone(),
        flows: each_once(&args.flows),
        reach: Reach {
            window_bytes: args.window,
            is_random: args.random,
            stride_bytes: args.stride,
            outstanding: args.outstanding,
            cache_state: args.cache_state,
            socket: args.socket,
            channels: args.channels,
        },
        matrices: (!matrices.is_empty()).then_some(matrices),
        cores: args.cores.clone(),
    })
}

/// What was said twice is meant once; what was not said is left to the question.
fn each_once<T: Copy + PartialEq>(list: &[T]) -> Option<Vec<T>> {
    let mut once: Vec<T> = Vec::new();
    for item in list {
        if !once.contains(item) {
            once.push(*item);
        }
    }
    (!once.is_empty()).then_some(once)
}

/// The page of a record, and of papers reproduced.
pub fn write_html(record: &Record, reproductions: &[Reproduction], path: &Path) -> Result<(), Failure> {
    let page = lanemark_report::html(record, reproductions).map_err(|error| Failure::Check(error.to_string()))?;
    file::write_whole(path, page.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))
}

/// Columns of the terminal; none where the output is no terminal.
pub fn terminal_width() -> Option<u16> {
    let out = std::io::stdout();
    if out.is_terminal() {
        rustix::termios::tcgetwinsize(&out).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
    } else {
        None
    }
}

/// The command line without the path of the program.
pub fn command_line() -> Vec<String> {
    std::iter::once("lanemark".to_owned()).chain(std::env::args().skip(1)).collect()
}
