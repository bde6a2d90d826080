//! `fuzz-rtl`: tests of a DMA engine in a shared library.

use crate::args::FuzzRtlArgs;
use crate::failure::Failure;
use crate::interrupt;
use lanemark_adversary::{
    Direction, Failure as Broken, Request, SITUATIONS, SituationRow, Step, Summary, Target, campaign,
};
use lanemark_hw::dut_library::DutLibrary;
use lanemark_record::file;
use lanemark_runner::device_file;
use std::io::Write;
use std::num::NonZero;

/// `lanemark fuzz-rtl`
pub fn fuzz_rtl(args: &FuzzRtlArgs) -> Result<(), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let device = device_file(&args.device)?;
    let target = Target::new(&device, args.timeout_clocks).map_err(|error| usage(&error))?;
    if let Some(folder) = args.output.as_deref().filter(|folder| !folder.is_dir()) {
        return Err(Failure::Usage(format!("--output {} is no folder; make it first", folder.display())));
    }
    let library = DutLibrary::load(&args.library).map_err(|error| usage(&error))?;
    let cancel = interrupt::cancel()?;
    let threads = args.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, NonZero::get),
        |threads| usize::from(threads.get()),
    );
    let request = Request { seeds: args.seeds.clone(), is_illegal: args.illegal, threads };
    let open = || library.open().map_err(|error| error.to_string());
    let summary = campaign(&request, &target, open, || cancel.is_cancelled()).map_err(Failure::Check)?;
    print(args, &summary)?;
    for broken in &summary.failures {
        if let Some(folder) = &args.output {
            let path = folder.join(format!("seed-{}-{}.pcapng", broken.seed, broken.finding.rule.row().name));
            file::write_whole(&path, &broken.capture().to_pcapng()).map_err(|error| usage(&error))?;
        }
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

fn print(args: &FuzzRtlArgs, summary: &Summary) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for broken in &summary.failures {
        write!(out, "{}", described(args, broken))?;
    }
    let (tried, never): (Vec<&SituationRow>, Vec<&SituationRow>) = SITUATIONS
        .iter()
        .filter(|row| row.is_legal || args.illegal)
        .partition(|row| summary.coverage.of(row.situation) > 0);
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
    if !args.illegal {
        writeln!(out, "not asked: illegal situations (--illegal)")?;
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
    let illegal = if args.illegal { " --illegal" } else { "" };
    let (library, seed) = (args.library.display(), broken.seed);
    let next = seed.saturating_add(1);
    let mut lines = vec![
        format!("FINDING {} (rule of {}: {})", row.name, row.source, row.statement),
        format!("  {} at clock {}", broken.finding.what, broken.finding.clock),
        format!("  found by {seeds}; the shortest run of seed {seed} has {} TLPs{then}", broken.kept.len()),
    ];
    lines.extend(broken.case.steps.iter().map(|step| format!("    {}", step_in_words(step))));
    lines.push(format!(
        "  again: lanemark fuzz-rtl {library} --device {} --timeout-clocks {} --seeds {seed}..{next}{illegal}\n\n",
        args.device, args.timeout_clocks
    ));
    lines.join("\n")
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
