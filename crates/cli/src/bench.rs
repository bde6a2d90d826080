//! `bench` and `predict`: builds the request, shows progress, prints and writes the record.

use crate::args::BenchArgs;
use crate::baseline;
use crate::driver::{BoundForRun, print_binding, report_left};
use crate::failure::{Failure, say};
use crate::hang::end_of;
use crate::interrupt;
use crate::output::{self, command_line, terminal_width, write_html, write_svg};
use crate::overview;
use crate::progress::Cases;
use crate::repeat::{repeat, write_run};
use crate::request::{axes, request, targets};
use lanemark_bench::Axes;
use lanemark_hw::linux_sysfs::Address;
use lanemark_record::gate::Judged;
use lanemark_record::{Record, RecordError, file};
use lanemark_runner::{Answerer, Cancel, DryRun, OnHang, Outcome, RangeCheck, Request, RunError, Target, dry_run, run};
use std::io::Write;
use std::path::Path;

/// `lanemark bench`
pub fn bench(args: &BenchArgs) -> Result<(), Failure> {
    if is_bare(args) {
        return first_screen(args);
    }
    let mut request = request(args, targets(args, &["host", "card-gen5-x16"])?, Answerer::Machines)?;
    request.setup.on_hang = Some(OnHang(end_of));
    if request.targets.iter().any(is_real) {
        let bound = bound(args, &request)?.map(|(card, _)| card);
        report_left(args.card.system_root.as_deref(), bound);
    }
    if args.card.dry_run {
        if let Some((card, driver)) = bound(args, &request)? {
            print_binding(&args.card, card, driver)?;
        }
        return print_dry_run(&dry_run(&request)?);
    }
    if let Some((card, driver)) = bound(args, &request)? {
        // The handler of signals first: from the first step on, a signal ends the run and not the program.
        let cancel = interrupt::cancel()?;
        let bound = BoundForRun::new(&args.card, card, driver, args.json)?;
        let (measured, restored) = (ask(args, &request, &cancel), bound.restore());
        if let (Err(_), Err(error)) = (&measured, &restored) {
            say(&error.to_string());
        }
        return measured.and(restored);
    }
    if let Some(path) = &args.run_of_repeat {
        return one_run(&request, path, &interrupt::cancel()?);
    }
    if let Some(count) = args.repeat {
        return repeat(args, count);
    }
    ask(args, &request, &interrupt::cancel()?)
}

/// Whether a target is a machine or a device of this machine.
const fn is_real(target: &Target) -> bool {
    !matches!(target, Target::Rtl(_) | Target::Named(_) | Target::Platform(_) | Target::Changed { .. })
}

/// The card that is bound to another driver for the run, and the driver.
fn bound<'a>(args: &'a BenchArgs, request: &Request) -> Result<Option<(Address, &'a str)>, Failure> {
    let Some(driver) = args.card.bind.as_deref() else { return Ok(None) };
    match request.targets.as_slice() {
        [Target::Card(card)] => Ok(Some((*card, driver))),
        _ => {
            Err(Failure::Usage("--bind: applies to one card: name one with --on, such as --on 0000:01:00.0".to_owned()))
        }
    }
}

/// `lanemark predict`
pub fn predict(args: &BenchArgs) -> Result<(), Failure> {
    let request = request(args, targets(args, &["card-gen5-x16"])?, Answerer::Formulas)?;
    check_formulas(args)?;
    if args.card.dry_run {
        return Err(RunError::NoCard { field: "dry_run" }.into());
    }
    if args.card.bind.is_some() {
        return Err(RunError::NoCard { field: "bind" }.into());
    }
    ask(args, &request, &Cancel::new())
}

/// Returns an error for an option about samples: formulas have none.
pub fn check_formulas(args: &BenchArgs) -> Result<(), Failure> {
    let sampling = &args.sampling;
    let given = [
        ("--budget", sampling.budget.is_some()),
        ("--interval", sampling.interval.is_some()),
        ("--samples", sampling.samples.is_some()),
        ("--repeat", args.repeat.is_some()),
        ("--save-baseline", args.save_baseline.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Failure::Usage(format!("{flag}: formulas take no samples; use `lanemark bench`"))),
        None => Ok(()),
    }
}

/// Whether the command line selects nothing, so that the one-screen summary is printed.
fn is_bare(args: &BenchArgs) -> bool {
    let names_nothing = args.on.is_empty() && args.questions.is_empty() && !args.full;
    let changes_nothing = args.with.is_empty() && args.setpci.is_empty() && args.fault.is_empty();
    let is_explained = args.what_if || args.twin.is_some();
    let is_usual = args.iterations.is_none() && !args.no_fast_forward && args.kernels.is_none() && !is_explained;
    let sampling = &args.sampling;
    let samples_as_usual = sampling.interval.is_none() && !sampling.all_copies && sampling.samples.is_none();
    let is_once = args.repeat.is_none() && args.save_baseline.is_none();
    let has_usual_axes = axes(&args.axes).is_ok_and(|axes| axes == Axes::default());
    names_nothing
        && changes_nothing
        && is_usual
        && is_once
        && samples_as_usual
        && has_usual_axes
        && args.card.is_usual()
}

/// Measures and prints the one-screen summary.
fn first_screen(args: &BenchArgs) -> Result<(), Failure> {
    output::check(&outputs(args).collect::<Vec<_>>(), &[])?;
    let cancel = interrupt::cancel()?;
    let (mut record, problem) = overview::measure(&command_line(), args.sampling.budget, &cancel)?;
    let judged = lanemark_advise::interpret(&mut record);
    let written = write(&record, args);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&record))?;
    } else {
        let pci = overview::pci();
        let pci = pci.as_ref().map_err(String::as_str);
        out.write_all(lanemark_report::first_screen(&record, pci).as_bytes())?;
    }
    finish(args, written, &judged, problem)
}

/// Prints the names of the written files, and returns the most severe problem.
fn finish(
    args: &BenchArgs,
    written: Result<(), Failure>,
    judged: &Judged,
    problem: Option<RunError>,
) -> Result<(), Failure> {
    written?;
    for path in outputs(args) {
        say(&format!("wrote {}", path.display()));
    }
    if !judged.impossible.is_empty() {
        return Err(Failure::impossible(&judged.impossible));
    }
    problem.map_or(Ok(()), |problem| Err(problem.into()))
}

/// Measures in one of several runs and writes the record for the process that started it.
fn one_run(request: &Request, path: &Path, cancel: &Cancel) -> Result<(), Failure> {
    let bar = Cases::new();
    let outcome = run(request, &mut |event| bar.show(event), cancel);
    bar.end();
    let Outcome { mut record, problem } = outcome?;
    lanemark_advise::interpret(&mut record);
    write_run(&record, path)?;
    problem.map_or(Ok(()), |problem| Err(problem.into()))
}

/// Runs the request, adds findings and advice, prints and writes the record.
fn ask(args: &BenchArgs, request: &Request, cancel: &Cancel) -> Result<(), Failure> {
    if args.svg.is_some() && request.axes.sizes.as_ref().is_some_and(|sizes| sizes.len() < 2) {
        let message = "--svg: a plot of bandwidths against size has one point only: give at least two sizes";
        return Err(Failure::Usage(message.to_owned()));
    }
    let inputs: Vec<&Path> = args.on.iter().map(Path::new).collect();
    output::check(&outputs(args).collect::<Vec<_>>(), &inputs)?;
    baseline::check(&args.baselines, args.save_baseline.as_deref())?;
    let bar = Cases::new();
    let outcome = run(request, &mut |event| bar.show(event), cancel);
    bar.end();
    let Outcome { mut record, problem } = outcome.map_err(|error| refused(args, error))?;
    let judged = lanemark_advise::interpret(&mut record);
    // A failure to write files must not prevent the output on the screen.
    let written = write(&record, args);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&record))?;
    } else {
        let shown = on_screen(&record, problem.as_ref());
        out.write_all(lanemark_report::tables(&shown, terminal_width()).as_bytes())?;
    }
    let is_complete = problem.is_none() && judged.impossible.is_empty();
    finish(args, written, &judged, problem)?;
    match &args.save_baseline {
        Some(name) if is_complete => baseline::save(&args.baselines, name, &[record]),
        _ => Ok(()),
    }
}

/// Converts an error of the request; without `--on`, adds a hint how to name a target.
fn refused(args: &BenchArgs, error: RunError) -> Failure {
    let is_unnamed = args.on.is_empty() && matches!(error, RunError::RealTarget { .. });
    match error.into() {
        Failure::Usage(text) if is_unnamed => {
            let hint = "it is a default target: add --on PLATFORM, such as --on card-gen5-x16";
            Failure::Usage(format!("{text}; {hint}"))
        }
        failure => failure,
    }
}

/// The record as printed on the screen, without the text of `problem`, which is the last line of the output.
fn on_screen(record: &Record, problem: Option<&RunError>) -> Record {
    let mut shown = record.clone();
    if let Some(RunError::RuntimeFailed { because, has_answers: false, .. }) = problem {
        shown.warnings.retain(|warning| !warning.ends_with(because));
        shown.skipped.retain(|skipped| skipped.because != *because);
    }
    shown
}

/// Output files of the command line, in the order in which they are written.
fn outputs(args: &BenchArgs) -> impl Iterator<Item = &Path> {
    let BenchArgs { record, html, csv, svg, sampling, .. } = args;
    [record, html, csv, svg, &sampling.samples].into_iter().filter_map(|path| path.as_deref())
}

/// Writes the output files of the command line.
fn write(record: &Record, args: &BenchArgs) -> Result<(), Failure> {
    let refused = |error: RecordError| Failure::Usage(error.to_string());
    let no_table = |path: &Path, error: &dyn std::fmt::Display| Failure::Check(format!("{}: {error}", path.display()));
    if let Some(path) = &args.record {
        file::write(record, path).map_err(refused)?;
    }
    if let Some(path) = &args.html {
        write_html(record, &[], path)?;
    }
    if let Some(path) = &args.csv {
        let table = lanemark_record::answers_table(record).csv().map_err(|error| no_table(path, &error))?;
        file::write_whole(path, &table).map_err(refused)?;
    }
    if let Some(path) = &args.svg {
        write_svg(record, path)?;
    }
    if let Some(path) = &args.sampling.samples {
        let table =
            lanemark_record::samples_table(record).parquet("samples").map_err(|error| no_table(path, &error))?;
        file::write_whole(path, &table).map_err(refused)?;
    }
    Ok(())
}

fn print_dry_run(found: &DryRun) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} ({})", found.device, found.id)?;
    for refusal in &found.refusals {
        writeln!(out, "a run would be refused: {refusal}")?;
    }
    for line in &found.steps {
        writeln!(out, "{line}")?;
    }
    for RangeCheck { range, kind, is_kind_assumed, bar, mappings } in &found.ranges {
        let assumed = if *is_kind_assumed { " (assumed from the BAR)" } else { "" };
        writeln!(out, "range {range}: {kind}{assumed}; {bar}")?;
        for (memory_type, file) in mappings {
            match file {
                Ok(file) => writeln!(out, "  mapped as {memory_type} for each run: {file}")?,
                Err(because) => writeln!(out, "  not mapped as {memory_type}: {because}")?,
            }
        }
    }
    let mut last = "";
    for case in &found.cases {
        if !case.touched.is_empty() && last != case.question {
            last = case.question;
            writeln!(out, "\n{last}: at most {} iterations per sample", case.most_passes)?;
        }
        for touched in &case.touched {
            writeln!(out, "  {touched}")?;
        }
        if let Some(problem) = &case.problem {
            writeln!(out, "  {problem}")?;
        }
    }
    writeln!(out, "\ndry run, nothing was accessed: remove --dry-run to measure")?;
    Ok(())
}
