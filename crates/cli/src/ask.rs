//! `bench`, `predict` and `report`: questions to targets, answers to a record, a record to what people read.

use crate::args::{BenchArgs, ReportArgs};
use crate::failure::Failure;
use crate::target::Target;
use indicatif::{ProgressBar, ProgressStyle};
use lanemark_bench::{Axes, BenchError, CATALOGUE, Case, Effort, Question, measured_ceiling, question};
use lanemark_machine::{Clockwork, MachineError, Verb};
use lanemark_record::{Answer, Ceiling, CeilingKind, Formula, Quantity, Record, SCHEMA, Skipped, Tool, file};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// `lanemark bench`
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Check(format!("Ctrl-C cannot be caught: {error}")))?;
    let mut run = Run::new(args, &["card-gen5-x16", "host"], &interrupted)?;
    run.ask_all(&interrupted, Run::measure)?;
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
    run.ask_all(&interrupted, Run::predict)?;
    run.finish(args, true)
}

/// `lanemark report`
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let record = file::read(&args.record).map_err(|error| Failure::Usage(error.to_string()))?;
    write_html(&record, &args.html)
}

/// One run: whom, what, and what came out so far.
struct Run {
    targets: Vec<Target>,
    questions: Vec<&'static Question>,
    axes: Axes,
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
        for target in &targets {
            check_axes(&axes, target)?;
        }
        for path in [&args.record, &args.html].into_iter().flatten() {
            check_writable(path)?;
        }
        let record = Record {
            schema: SCHEMA,
            tool: Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            command: command_line(),
            written_unix_s: None,
            targets: Vec::new(),
            answers: Vec::new(),
            skipped,
            warnings: Vec::new(),
            advice: Vec::new(),
            findings: Vec::new(),
            interrupted: false,
        };
        let stand_ins = targets.iter().map(|_| None).collect();
        Ok(Run { targets, questions, axes, effort: Effort::default(), record, stand_ins })
    }

    /// Asks every case of every question of every target, by `ask`.
    fn ask_all(
        &mut self,
        interrupted: &AtomicBool,
        ask: fn(&mut Run, usize, &Question, &Case) -> Result<Answer, BenchError>,
    ) -> Result<(), Failure> {
        let mut work = Vec::new();
        for &question in &self.questions {
            for (place, target) in self.targets.iter().enumerate() {
                let cases = (question.cases)(target.facts(), &self.axes);
                if cases.is_empty() {
                    self.record.skipped.push(Skipped {
                        question: question.name.to_owned(),
                        target: target.facts().name.clone(),
                        what: "the question".to_owned(),
                        because: "the target has nothing to ask it of (region, driver or instruction)".to_owned(),
                    });
                }
                work.extend(cases.into_iter().map(|case| (question, place, case)));
            }
        }
        let bar = progress(work.len() as u64);
        for (question, place, case) in work {
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
                Err(BenchError::Machine(error @ MachineError::OutOfRange { .. })) => {
                    return Err(Failure::Usage(error.to_string()));
                }
                Err(error) => {
                    let target = &self.targets[place].facts().name;
                    self.record.warnings.push(format!("{} on {target}, {}: {error}", question.name, case.way()));
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
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
        let impossible: Vec<String> = self.record.answers.iter().filter_map(Answer::impossible).collect();
        self.record.warnings.extend(impossible.iter().cloned());
        if let Some(path) = &args.record {
            file::write(&self.record, path).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let html = args.html.clone().or_else(|| (!args.json).then(|| PathBuf::from("report.html")));
        if let Some(path) = &html {
            write_html(&self.record, path)?;
        }
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", file::to_json(&self.record))?;
        } else {
            out.write_all(lanemark_report::tables(&self.record, terminal_width()).as_bytes())?;
        }
        for path in [&args.record, &html].into_iter().flatten() {
            eprintln!("wrote {}", path.display());
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
        if self.record.answers.is_empty() {
            let because = self.record.skipped.first().map_or("nothing was asked", |skipped| skipped.because.as_str());
            return Err(Failure::Absent(because.to_owned()));
        }
        Ok(())
    }
}

fn questions(names: &[String]) -> Result<Vec<&'static Question>, Failure> {
    if names.is_empty() {
        return Ok(CATALOGUE.iter().collect());
    }
    let known = || CATALOGUE.iter().map(|question| question.name).collect::<Vec<_>>().join(", ");
    names
        .iter()
        .map(|name| {
            question(name).ok_or_else(|| Failure::Usage(format!("'{name}' is no question: use one of {}", known())))
        })
        .collect()
}

fn axes(args: &BenchArgs) -> Axes {
    let some = |list: Vec<_>| if list.is_empty() { None } else { Some(list) };
    Axes {
        sizes: args.sizes.as_ref().map(|sizes| sizes.bytes().to_vec()),
        memory_types: (!args.memory_type.is_empty()).then(|| args.memory_type.clone()),
        accesses: (!args.access.is_empty()).then(|| args.access.clone()),
        fences: (!args.fence.is_empty()).then(|| args.fence.iter().map(|fence| fence.0).collect()),
        alignments: some(args.align.clone()),
        region: args.region.clone(),
    }
}

/// What is asked for must fit the target, before anything runs.
fn check_axes(axes: &Axes, target: &Target) -> Result<(), Failure> {
    let facts = target.facts();
    let region = match &axes.region {
        Some(name) => Some(facts.region(name).ok_or_else(|| {
            let known = facts.regions.iter().map(|region| region.name.as_str()).collect::<Vec<_>>().join(", ");
            Failure::Usage(format!("--region {name}: {} has no such region; it has {known}", facts.name))
        })?),
        None => facts.storage(),
    };
    let (Some(region), Some(sizes)) = (region, &axes.sizes) else { return Ok(()) };
    let furthest = axes.alignments.iter().flatten().max().copied().unwrap_or(0);
    match sizes.iter().find(|size| size.saturating_add(furthest) > region.len) {
        Some(size) => Err(Failure::Usage(format!(
            "--sizes: {size} B reach beyond region {region} of {}; ask for at most {}",
            facts.name,
            region.len - furthest
        ))),
        None => Ok(()),
    }
}

/// A folder that is not there is better known before the measurement than after it.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() && !path.is_dir() {
        Ok(())
    } else {
        Err(Failure::Usage(format!("{} cannot be written: its folder is missing or it is a folder", path.display())))
    }
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
