//! `fuzz-rtl`: tests of a DMA engine in a shared library.

use crate::args::FuzzRtlArgs;
use crate::failure::{Failure, say};
use crate::input;
use crate::interrupt;
use lanemark_adversary::{
    CaseFile, Direction, Failure as Broken, Request, Rule, SITUATIONS, Situation, SituationRow, Step, Summary, Target,
    campaign, run,
};
use lanemark_dut::Dut;
use lanemark_hw::dut_library::{DutLibrary, Hang, Watchdog};
use lanemark_hw::end_at_once;
use lanemark_record::file;
use lanemark_runner::{device_file, read_file};
use std::io::Write;
use std::num::NonZero;
use std::path::Path;
use std::time::Duration;

/// `lanemark fuzz-rtl`
pub fn fuzz_rtl(args: &FuzzRtlArgs) -> Result<(), Failure> {
    let device = device_file(&args.device)?;
    let mut target = Target::new(&device, args.timeout_clocks).map_err(|error| usage(&error))?;
    let replayed = match &args.replay {
        Some(path) => Some(case_file(path, &target)?),
        None => None,
    };
    if let Some(file) = &replayed {
        target.timeout_clocks = file.timeout_clocks;
    }
    if let Some(folder) = args.output.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::Usage(format!("--output {}: not a directory; create it first", folder.display())));
    }
    let limit = Duration::from_secs(args.hang_after_s.get().into());
    let watchdog =
        Watchdog::start(limit, end_of).map_err(|error| Failure::Check(format!("starting a thread failed: {error}")))?;
    let library = DutLibrary::load(&args.library, &watchdog).map_err(|error| usage(&error))?;
    match replayed {
        Some(file) => replay(args, &library, &target, &file),
        None => seeds(args, &library, &target),
    }
}

fn usage(error: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}

/// Reports a design that does not return, and ends the program: its thread cannot be ended.
fn end_of(hang: &Hang) {
    let row = Rule::Hang.row();
    // Nothing can be done about a failed write here.
    let _ = writeln!(std::io::stdout(), "FINDING {} (rule of {}: {})\n  {hang}", row.name, row.source, row.statement);
    let failure = Failure::Check("1 rule is broken; the run ends here, because the design does not return".to_owned());
    say(&format!("lanemark: {failure}"));
    end_at_once(failure.exit_code());
}

fn case_file(path: &Path, target: &Target) -> Result<CaseFile, Failure> {
    let name = path.display().to_string();
    let bytes = read_file(path, input::CASE).map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{name}: not UTF-8 text")))?;
    CaseFile::parse(&name, &text, target).map_err(|error| usage(&error))
}

/// Runs the case of a file once.
fn replay(args: &FuzzRtlArgs, library: &DutLibrary, target: &Target, file: &CaseFile) -> Result<(), Failure> {
    let mut dut = library.open("the case of --replay").map_err(|error| usage(&error))?;
    let outcome = run(&mut dut, target, &file.case, true);
    let mut out = std::io::stdout().lock();
    let Some((finding, _)) = outcome.finding else {
        writeln!(out, "no rule is broken; the file was written for {}", file.rule.row().name)?;
        return Ok(());
    };
    let is_same = finding.rule == file.rule;
    let name = finding.rule.row().name;
    let broken = Broken { seed: file.case.seed, seeds: 1, finding, case: file.case.clone(), kept: outcome.kept };
    write!(out, "{}", described(args, &broken))?;
    if !is_same {
        writeln!(out, "another rule than in the file: {name} instead of {}", file.rule.row().name)?;
    }
    keep(args, target, &broken)?;
    Err(Failure::Check("1 rule is broken".to_owned()))
}

/// Writes the capture and the case of a finding, if asked.
fn keep(args: &FuzzRtlArgs, target: &Target, broken: &Broken) -> Result<(), Failure> {
    let Some(folder) = &args.output else { return Ok(()) };
    let path = folder.join(broken.file_name());
    let case = CaseFile { rule: broken.finding.rule, timeout_clocks: target.timeout_clocks, case: broken.case.clone() };
    let comment = format!("{}\n{}", again(args, &path), broken.finding);
    file::write_whole(&path, case.to_toml(&comment).as_bytes()).map_err(|error| usage(&error))?;
    let path = path.with_extension("pcapng");
    file::write_whole(&path, &broken.capture().to_pcapng()).map_err(|error| usage(&error))
}

/// Runs seeds.
fn seeds(args: &FuzzRtlArgs, library: &DutLibrary, target: &Target) -> Result<(), Failure> {
    let cancel = interrupt::cancel()?;
    let threads = args.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, NonZero::get),
        |threads| usize::from(threads.get()),
    );
    let request = Request { seeds: args.seeds.clone(), is_illegal: args.illegal, threads };
    let open = |seed: u64| library.open(&format!("seed {seed}")).map_err(|error| error.to_string());
    let design = About::of(args, library)?;
    let summary = campaign(&request, target, open, || cancel.is_cancelled()).map_err(Failure::Check)?;
    print(args, &summary, &design)?;
    for broken in &summary.failures {
        keep(args, target, broken)?;
    }
    if cancel.is_cancelled() {
        return Err(Failure::Interrupted);
    }
    match summary.failures.len() {
        0 => Ok(()),
        1 => Err(Failure::Check("1 rule is broken".to_owned())),
        count => Err(Failure::Check(format!("{count} rules are broken"))),
    }
}

/// The interface of a design, for the output.
struct About {
    interface: String,
    has_function_level_reset: bool,
}

impl About {
    /// Opens a device, and warns of inputs that the model does not have.
    fn of(args: &FuzzRtlArgs, library: &DutLibrary) -> Result<About, Failure> {
        let dut = library.open("").map_err(|error| usage(&error))?;
        let undriven = dut.undriven();
        if !undriven.is_empty() {
            let (path, names) = (args.library.display(), undriven.join(", "));
            say(&format!("lanemark: {path}: inputs that the model of the interface does not have are 0: {names}"));
        }
        Ok(About { interface: dut.interface(), has_function_level_reset: dut.has_function_level_reset() })
    }
}

fn print(args: &FuzzRtlArgs, summary: &Summary, design: &About) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for broken in &summary.failures {
        write!(out, "{}", described(args, broken))?;
    }
    let is_possible =
        |row: &&SituationRow| row.situation != Situation::FunctionLevelReset || design.has_function_level_reset;
    let (tried, never): (Vec<&SituationRow>, Vec<&SituationRow>) = SITUATIONS
        .iter()
        .filter(|row| row.is_legal || args.illegal)
        .filter(is_possible)
        .partition(|row| summary.coverage.of(row.situation) > 0);
    writeln!(out, "interface: {}", design.interface)?;
    writeln!(out, "{:24} {:>9}  section", "situation", "times")?;
    for row in tried {
        let times = summary.coverage.of(row.situation);
        let legal = if row.is_legal { "" } else { "illegal: " };
        writeln!(out, "{:24} {times:>9}  {:14} {legal}{}", row.name, row.section, row.about)?;
    }
    if !never.is_empty() {
        let names: Vec<&str> = never.iter().map(|row| row.name).collect();
        writeln!(out, "never tried: {}", names.join(", "))?;
    }
    if args.illegal && !design.has_function_level_reset {
        let name = Situation::FunctionLevelReset.row().name;
        writeln!(out, "not tested: {name}, which the model of this interface does not have")?;
    }
    if !args.illegal {
        writeln!(out, "faults were not injected; add --illegal")?;
    }
    let Summary { seeds, tlps, clocks, failures, .. } = summary;
    writeln!(out, "{seeds} seeds, {tlps} TLPs, {clocks} clocks, {} rules broken", failures.len())?;
    Ok(())
}

/// A finding in words: the rule, the shortest run, and the command that repeats it.
fn described(args: &FuzzRtlArgs, broken: &Broken) -> String {
    let row = broken.finding.rule.row();
    let seeds = if broken.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", broken.seeds) };
    let then = if broken.case.steps.is_empty() { ", and fills the device's memory only" } else { ", and then:" };
    let seed = broken.seed;
    let mut lines = vec![
        format!("FINDING {} (rule of {}: {})", row.name, row.source, row.statement),
        format!("  {} at clock {}", broken.finding.what, broken.finding.clock),
        format!("  found by {seeds}; the shortest run of seed {seed} has {} TLPs{then}", broken.kept.len()),
    ];
    lines.extend(broken.case.steps.iter().map(|step| format!("    {}", step_in_words(step))));
    let kept = args.output.as_ref().map(|folder| folder.join(broken.file_name()));
    let again = match kept.as_deref().or(args.replay.as_deref()) {
        Some(path) => again(args, path),
        None => format!(
            "lanemark fuzz-rtl {} --device {} --timeout-clocks {} --seeds {seed}..{}{}",
            args.library.display(),
            args.device,
            args.timeout_clocks,
            seed.saturating_add(1),
            if args.illegal { " --illegal" } else { "" }
        ),
    };
    lines.push(format!("  to repeat: {again}\n\n"));
    lines.join("\n")
}

/// The command that runs the case of a file.
fn again(args: &FuzzRtlArgs, case: &Path) -> String {
    format!("lanemark fuzz-rtl {} --device {} --replay {}", args.library.display(), args.device, case.display())
}

fn step_in_words(step: &Step) -> String {
    let direction = match step.direction {
        Direction::ToDevice => "to the device",
        Direction::ToHost => "to the host",
    };
    let mut parts = vec![
        format!("{} B {direction}", step.bytes),
        format!("host offset {:#x}, device offset {:#x}", step.host, step.device),
        format!("MPS {}, MRRS {}", step.mps, step.mrrs),
    ];
    parts.extend(step.has_interrupt.then(|| "with an interrupt".to_owned()));
    parts.extend(step.legal.iter().map(|situation| situation.row().name.to_owned()));
    let illegal = step.illegal.map(|(situation, requests)| format!("{} at request {requests}", situation.row().name));
    parts.extend(illegal);
    parts.join(", ")
}
