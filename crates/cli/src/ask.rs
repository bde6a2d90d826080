//! `bench`, `predict` and `report`: questions to targets, answers to a record, a record to what people read.

use crate::args::{BenchArgs, ReportArgs};
use crate::failure::{Failure, say};
use crate::input;
use crate::output;
use crate::target::Target;
use crate::work::{Task, work};
use indicatif::{ProgressBar, ProgressStyle};
use lanemark_bench::{Axes, BenchError, CATALOGUE, Case, Effort, Question, measured_ceiling, question};
use lanemark_machine::{Clockwork, Fence, MachineError, Verb};
use lanemark_record::{Answer, Ceiling, CeilingKind, Formula, Quantity, Record, Skipped, file};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `lanemark bench`
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    // The second time, nobody wants to wait for the plan that is under way.
    let end = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(Failure::Interrupted.exit_code().into())
        }
    };
    ctrlc::set_handler(end).map_err(|error| Failure::Check(format!("Ctrl-C cannot be caught: {error}")))?;
    let mut run = Run::new(args, &["card-gen5-x16", "host"], &interrupted)?;
    run.ask_all(&interrupted, Run::measure);
    run.finish(args, false)
}

/// `lanemark predict`
pub fn predict(args: &BenchArgs) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    if args.on.iter().any(|name| name == "host") {
        let message = "'host' has no formula: there is no platform file of it; name a platform";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut run = Run::new(args, &["card-gen5-x16"], &interrupted)?;
    run.ask_all(&interrupted, Run::predict);
    run.finish(args, true)
}

/// `lanemark report`
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let record = input::record(&args.record)?;
    output::check(&[&args.html], &[&args.record])?;
    write_html(&record, &args.html)?;
    say(&format!("wrote {}", args.html.display()));
    Ok(())
}

/// One run: whom, what, and what came out so far.
struct Run {
    targets: Vec<Target>,
    tasks: Vec<Task>,
    effort: Effort,
    record: Record,
    /// Measured ceilings of real targets, for loads and for stores.
    stand_ins: Vec<Option<[Ceiling; 2]>>,
}

impl Run {
    fn new(args: &BenchArgs, usual: &[&str], interrupted: &Arc<AtomicBool>) -> Result<Run, Failure> {
        let questions = questions(&args.questions)?;
        let axes = axes(args);
        let names: Vec<&str> =
            if args.on.is_empty() { usual.to_vec() } else { args.on.iter().map(String::as_str).collect() };
        let mut targets: Vec<Target> = Vec::new();
        let mut skipped = Vec::new();
        for name in names {
            match Target::open(name, interrupted) {
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
        let work = work(&questions, &targets, &axes)?;
        skipped.extend(work.skipped);
        let inputs: Vec<&Path> = args.on.iter().map(Path::new).collect();
        output::check(&[args.record.as_deref(), page(args)].into_iter().flatten().collect::<Vec<_>>(), &inputs)?;
        let record = Record { skipped, ..Record::new(command_line()) };
        let stand_ins = targets.iter().map(|_| None).collect();
        Ok(Run { targets, tasks: work.tasks, effort: Effort::default(), record, stand_ins })
    }

    /// Asks every case of every question of every target, by `ask`.
    fn ask_all(
        &mut self,
        interrupted: &AtomicBool,
        ask: fn(&mut Run, usize, &Question, &Case) -> Result<Answer, BenchError>,
    ) {
        let tasks = std::mem::take(&mut self.tasks);
        let bar = progress(tasks.len() as u64);
        for Task { question, place, case } in tasks {
            if interrupted.load(Ordering::Relaxed) {
                self.record.interrupted = true;
                break;
            }
            bar.set_message(format!("{} on {}", question.name, self.targets[place].facts().name));
            match ask(self, place, question, &case) {
                Ok(answer) => self.record.answers.push(answer),
                Err(BenchError::Machine(MachineError::Unsupported(unsupported))) => self.record.skipped.push(Skipped {
                    question: question.name.to_owned(),
                    target: self.targets[place].facts().name.clone(),
                    what: unsupported.what,
                    because: unsupported.because,
                }),
                Err(BenchError::Machine(MachineError::Interrupted { .. })) => {
                    self.record.interrupted = true;
                    break;
                }
                Err(error) => {
                    let target = &self.targets[place].facts().name;
                    self.record.warnings.push(format!("{} on {target}, {}: {error}", question.name, case.way()));
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
    }

    fn measure(&mut self, place: usize, question: &Question, case: &Case) -> Result<Answer, BenchError> {
        let target = &mut self.targets[place];
        let mut answer = lanemark_bench::ask(question, target.machine.as_mut(), case, &self.effort)?;
        answer.formula = self.formula(place, question, case);
        if question.quantity == Quantity::Bandwidth {
            let ceiling = self.ceiling(place, case)?;
            answer.hold_against(ceiling);
        }
        Ok(answer)
    }

    fn predict(&mut self, place: usize, question: &Question, case: &Case) -> Result<Answer, BenchError> {
        let target = &mut self.targets[place];
        let Some(formula) = &mut target.formula else { unreachable!("predict opens platforms only") };
        let mut answer = lanemark_bench::ask(question, formula, case, &self.effort)?;
        answer.formula = self.formula(place, question, case);
        if question.quantity == Quantity::Bandwidth {
            let ceiling = self.ceiling(place, case)?;
            answer.hold_against(ceiling);
        }
        (answer.latency_ns, answer.issue_rate_bytes_per_s, answer.delivered_rate_bytes_per_s) = (None, None, None);
        answer.samples_ns.clear();
        Ok(answer)
    }

    /// What the target's formula says to the same case; `None` where it has none.
    fn formula(&mut self, place: usize, question: &Question, case: &Case) -> Option<Formula> {
        let machine = self.targets[place].formula.as_mut()?;
        let said = lanemark_bench::ask(question, machine, case, &self.effort).ok()?;
        let last = machine.last()?;
        Some(Formula {
            latency_ns: said.latency_ns.map(|summary| summary.median),
            delivered_rate_bytes_per_s: said.delivered_rate_bytes_per_s.map(|summary| summary.median),
            bound: last.bound.name().to_owned(),
            holds_for: last.holds_for.to_owned(),
        })
    }

    fn ceiling(&mut self, place: usize, case: &Case) -> Result<Ceiling, BenchError> {
        let target = &mut self.targets[place];
        if let Some(platform) = &target.platform {
            let span = case.span();
            let region = platform.region_at(span.at.bar, span.at.offset, span.len);
            let computed =
                region.and_then(|region| lanemark_model::ceiling(platform, &region.name, case.verb, case.size));
            return Ok(match computed {
                Some(limit) => Ceiling {
                    kind: CeilingKind::Computed,
                    rate_bytes_per_s: Some(limit.rate.bytes_per_s()),
                    because: limit.because,
                },
                None => Ceiling {
                    kind: CeilingKind::Unknown,
                    rate_bytes_per_s: None,
                    because: "no region of the platform holds the span".to_owned(),
                },
            });
        }
        if self.stand_ins[place].is_none() {
            let mut stand_in = |verb| measured_ceiling(target.machine.as_mut(), verb, &self.effort);
            self.stand_ins[place] = Some([stand_in(Verb::Load)?, stand_in(Verb::Store)?]);
        }
        let [load, store] = self.stand_ins[place].clone().unwrap_or_else(|| unreachable!("measured just above"));
        Ok(if case.verb == Verb::Load { load } else { store })
    }

    /// Advice, files, output, and whether what was found can be true.
    fn finish(mut self, args: &BenchArgs, formula_only: bool) -> Result<(), Failure> {
        self.record.targets = self.targets.iter().map(|target| target.to_record(formula_only)).collect();
        if self.targets.iter().any(|target| target.facts().clockwork == Clockwork::Real) {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            self.record.written_unix_s = now.ok().map(|since| since.as_secs());
        }
        self.record.advice = lanemark_advise::best_ways(&self.record);
        self.record.findings = lanemark_advise::cliffs(&self.record);
        self.record.findings.extend(lanemark_advise::buffers(&self.record));
        let impossible: Vec<String> = self.record.answers.iter().filter_map(Answer::impossible).collect();
        self.record.warnings.extend(impossible.iter().cloned());
        // What cannot be kept in a file can still be read on the screen.
        let written = self.write(args);
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", file::to_json(&self.record))?;
        } else {
            out.write_all(lanemark_report::tables(&self.record, terminal_width()).as_bytes())?;
        }
        for path in written? {
            say(&format!("wrote {}", path.display()));
        }
        if !impossible.is_empty() {
            return Err(Failure::Check(format!(
                "{} answers cannot be true:\n{}",
                impossible.len(),
                impossible.join("\n")
            )));
        }
        if self.record.interrupted {
            return Err(Failure::Interrupted);
        }
        if !self.record.answers.is_empty() {
            return Ok(());
        }
        match (self.record.skipped.first(), self.record.warnings.first()) {
            (Some(skipped), _) => Err(Failure::Absent(skipped.because.clone())),
            (None, Some(warning)) => Err(Failure::Check(format!("there is no answer: {warning}"))),
            (None, None) => Err(Failure::Absent("nothing was asked".to_owned())),
        }
    }

    /// Writes the files that were asked for, and says which; a page that nobody named needs something to show.
    fn write<'a>(&self, args: &'a BenchArgs) -> Result<Vec<&'a Path>, Failure> {
        let html = page(args).filter(|_| args.html.is_some() || !self.record.answers.is_empty());
        if let Some(path) = &args.record {
            file::write(&self.record, path).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        if let Some(path) = html {
            write_html(&self.record, path)?;
        }
        Ok([args.record.as_deref(), html].into_iter().flatten().collect())
    }
}

/// Where the page goes, if there is one.
fn page(args: &BenchArgs) -> Option<&Path> {
    args.html.as_deref().or_else(|| (!args.json).then_some(Path::new("report.html")))
}

fn questions(names: &[String]) -> Result<Vec<&'static Question>, Failure> {
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

fn axes(args: &BenchArgs) -> Axes {
    let fences: Vec<Option<Fence>> = args.fence.iter().map(|fence| fence.0).collect();
    Axes {
        sizes: args.sizes.as_ref().map(|sizes| sizes.bytes().to_vec()),
        memory_types: each_once(&args.memory_type),
        accesses: each_once(&args.access),
        fences: each_once(&fences),
        alignments: each_once(&args.align),
        region: args.region.clone(),
    }
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

fn write_html(record: &Record, path: &Path) -> Result<(), Failure> {
    let page = lanemark_report::html(record, &[]).map_err(|error| Failure::Check(error.to_string()))?;
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

/// A progress bar on standard error, if that is a terminal.
pub fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    // The template is ours and known to be right; the plain bar would do as well.
    if let Ok(style) = ProgressStyle::with_template("{bar:32} {pos}/{len} {eta} left  {msg}") {
        bar.set_style(style);
    }
    bar
}

/// The command line without the path of the program.
fn command_line() -> Vec<String> {
    std::iter::once("lanemark".to_owned()).chain(std::env::args().skip(1)).collect()
}

/// Something that moves on standard error while the end cannot be told.
pub fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_message(what);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}
