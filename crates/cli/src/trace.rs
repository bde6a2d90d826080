//! `trace`: what crosses which link and who waits for what, in one case; and captures read back.

use crate::args::TraceArgs;
use crate::ask::{axes, questions};
use crate::failure::{Failure, say};
use crate::input;
use crate::interrupt;
use crate::output;
use crate::progress::spinner;
use crate::target::{Changes, Target, is_real};
use crate::work::{Work, work};
use lanemark_bench::{Case, plan_to_trace};
use lanemark_machine::{Machine, MachineError, Plan, Samples, Trace};
use lanemark_platform::Platform;
use lanemark_record::{Capture, file};
use lanemark_report::{Traced, capture_table, probe, viewer_trace, waterfall};
use lanemark_sim::SimulatedMachine;
use std::io::Write;
use std::path::Path;

/// How a trace is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// The TLPs of one link, in `NetTLP`'s encapsulation.
    Pcapng,
    /// For the viewers of Perfetto and Chrome.
    Viewer,
    /// For a person.
    Text,
}

/// `lanemark trace`
pub fn trace(args: &TraceArgs) -> Result<(), Failure> {
    match &args.read {
        Some(path) => read(path),
        None => record(args),
    }
}

fn read(path: &Path) -> Result<(), Failure> {
    let bytes =
        input::read(path, input::CAPTURE).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let capture = Capture::from_pcapng(&bytes, path).map_err(|error| Failure::Usage(error.to_string()))?;
    let text = capture_table(&path.display().to_string(), &capture);
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

fn record(args: &TraceArgs) -> Result<(), Failure> {
    let format = format(args.output.as_deref())?;
    if args.dllps && format == Format::Pcapng {
        let message = "--dllps: .pcapng has TLPs only; write .json or .txt, or leave --dllps out";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (Some(on), Some(asked)) = (&args.on, &args.question) else {
        return Err(Failure::Usage("--on and --question say what to trace; --read reads a capture".to_owned()));
    };
    if is_real(on) {
        let message = format!("'{on}' is real and keeps no trace: name a platform, built-in or a file");
        return Err(Failure::Usage(message));
    }
    let questions = questions(std::slice::from_ref(asked))?;
    let question = questions[0];
    let (platform, changed) =
        Changes { with: args.with.clone(), faults: args.fault.clone(), ..Changes::default() }.of(on)?;
    for change in &changed {
        say(change);
    }
    if let Some(path) = &args.output {
        output::check(&[path], &[Path::new(on)])?;
    }
    let machine = || SimulatedMachine::new(&platform).map_err(|error| Failure::Usage(error.to_string()));
    let target = Target { platform: Some(platform.clone()), changed, ..Target::of(Box::new(machine()?)) };
    let Work { tasks, skipped } = work(&questions, std::slice::from_ref(&target), &axes(&args.axes)?)?;
    let Some(case) = tasks.first().map(|task| &task.case) else {
        let because = skipped.first().map_or("nothing was asked", |skipped| &skipped.because);
        return Err(Failure::Absent(because.to_owned()));
    };
    let interrupted = interrupt::flag()?;
    let mut machine = machine()?.interrupted_by(interrupted).with_dllps(args.dllps);
    let plan = plan_to_trace(question, case, args.iterations);
    let bar = spinner(format!("{} on {}", question.name, platform.name));
    let ran = run(&mut machine, &plan);
    bar.finish_and_clear();
    let (samples, trace, error) = ran?;
    for mishap in machine.injected_faults() {
        say(&format!("{}: {mishap}", platform.name));
    }
    let link = match &args.link {
        Some(name) => Some(link(&trace, name, on)?),
        None => None,
    };
    let shown = match link {
        Some(link) if format != Format::Pcapng => trace.of_link(link),
        _ => trace,
    };
    let traced = Traced {
        target: &platform.name,
        question: question.name,
        method: &case.method,
        size_bytes: case.size,
        passes: plan.passes,
        case: (1, tasks.len()),
        sample: samples.taken.last().copied().unwrap_or_default(),
        trace: &shown,
        error: error.as_deref(),
    };
    let bytes = match format {
        Format::Text => waterfall(&traced).into_bytes(),
        Format::Viewer => viewer_trace(&traced).into_bytes(),
        Format::Pcapng => {
            let link = link.map_or_else(|| self::link(&shown, card_of(&platform, case), on), Ok)?;
            probe(&traced, link).map_err(|error| Failure::Check(error.to_string()))?.to_pcapng()
        }
    };
    if let Some(path) = &args.output {
        file::write_whole(path, &bytes).map_err(|error| Failure::Usage(error.to_string()))?;
        let up_to = if error.is_some() { ", up to the error" } else { "" };
        say(&format!("{}\nwrote {}{up_to}", traced.about(), path.display()));
        // The error is what the command ends with.
        Traced { error: None, ..traced }.gaps().iter().for_each(|gap| say(gap));
    } else {
        std::io::stdout().lock().write_all(&bytes)?;
    }
    error.map_or(Ok(()), |error| Err(Failure::Check(format!("{}: {error}", question.name))))
}

/// The sample and its trace; where the run failed, the trace up to that, and why.
fn run(machine: &mut SimulatedMachine, plan: &Plan) -> Result<(Samples, Trace, Option<String>), Failure> {
    let mut samples = Samples::wanted(1);
    let (trace, done) = machine.trace_to_the_end(plan, &mut samples, Trace::MOST);
    match done {
        Ok(()) => Ok((samples, trace, None)),
        Err(MachineError::Unsupported(unsupported)) => Err(Failure::Absent(unsupported.to_string())),
        Err(MachineError::Interrupted { .. }) => Err(Failure::Interrupted),
        Err(error) => Ok((samples, trace, Some(error.to_string()))),
    }
}

fn format(path: Option<&Path>) -> Result<Format, Failure> {
    let Some(path) = path else { return Ok(Format::Text) };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("pcapng") => Ok(Format::Pcapng),
        Some("json") => Ok(Format::Viewer),
        Some("txt") => Ok(Format::Text),
        _ => Err(Failure::Usage(format!(
            "{}: its name must end in .pcapng (TLPs of one link), .json (Perfetto, Chrome) or .txt",
            path.display()
        ))),
    }
}

fn link(trace: &Trace, name: &str, on: &str) -> Result<usize, Failure> {
    let known = || trace.links.join(", ");
    let found = trace.links.iter().position(|link| link == name);
    found.ok_or_else(|| Failure::Usage(format!("--link {name}: {on} has no such link; it has {}", known())))
}

/// The link of the card that a case is about.
fn card_of<'a>(platform: &'a Platform, case: &Case) -> &'a str {
    let card = case.first_card();
    platform.slots.get(card as usize).map_or("card", |slot| &slot.name)
}
