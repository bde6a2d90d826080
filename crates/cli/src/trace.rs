//! `trace`: TLPs and stalls of one case, link by link; and captures read from files.

use crate::args::TraceArgs;
use crate::failure::{Failure, say};
use crate::input;
use crate::interrupt;
use crate::output;
use crate::progress::spinner;
use crate::request::axes;
use lanemark_bench::Question;
use lanemark_machine::Trace;
use lanemark_record::{Capture, file};
use lanemark_report::{Traced, capture_table, probe, viewer_trace, waterfall, waterfall_html};
use lanemark_runner::{Changes, Target, TraceRequest, TracedCase, question, read_file, trace as run};
use std::io::Write;
use std::path::Path;

/// Output format of a trace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// TLPs of one link, in `NetTLP` encapsulation.
    Pcapng,
    /// JSON for the viewers of Perfetto and Chrome.
    Viewer,
    /// A page with a waterfall to zoom.
    Html,
    /// Text for the screen.
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
        read_file(path, input::CAPTURE).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let capture = Capture::from_bytes(&bytes, path).map_err(|error| Failure::Usage(error.to_string()))?;
    let text = capture_table(&path.display().to_string(), &capture);
    std::io::stdout().lock().write_all(text.as_bytes())?;
    match &capture.unread.ends_early {
        Some(why) => Err(Failure::Check(format!("{} is incomplete: {why}", path.display()))),
        None => Ok(()),
    }
}

fn record(args: &TraceArgs) -> Result<(), Failure> {
    let format = format(args.output.as_deref())?;
    if args.dllps && matches!(format, Format::Pcapng | Format::Html) {
        let message = "--dllps: .pcapng and .html have TLPs only; write .json or .txt, or remove --dllps";
        return Err(Failure::Usage(message.to_owned()));
    }
    let (Some(on), Some(asked)) = (&args.on, &args.question) else {
        return Err(Failure::Usage("use --on and --question to trace a case, or --read to read a capture".to_owned()));
    };
    if let Some(path) = &args.output {
        output::check(&[path], &[Path::new(on)])?;
    }
    let request = request(args, on.parse()?, question(asked)?)?;
    let cancel = interrupt::cancel()?;
    let bar = spinner(format!("{asked} on {on}"));
    let traced = run(&request, &cancel);
    bar.finish_and_clear();
    let TracedCase { target, case, cases, nth, passes, sample, trace, faults, card_link, error, differences } = traced?;
    differences.iter().chain(&faults).for_each(|text| say(text));
    let link = match &args.link {
        Some(name) => Some(link(&trace, name, on)?),
        None => None,
    };
    let shown = match link {
        Some(link) if format != Format::Pcapng => trace.of_link(link),
        _ => trace,
    };
    let traced = Traced {
        target: &target,
        question: request.question.name,
        method: &case.method,
        size_bytes: case.size,
        passes,
        case: (nth, cases),
        sample,
        trace: &shown,
        error: error.as_deref(),
    };
    let bytes = match format {
        Format::Text => waterfall(&traced).into_bytes(),
        Format::Html => waterfall_html(&traced).map_err(|error| Failure::Check(error.to_string()))?.into_bytes(),
        Format::Viewer => viewer_trace(&traced).into_bytes(),
        Format::Pcapng => {
            let link = link.map_or_else(|| self::link(&shown, &card_link, on), Ok)?;
            probe(&traced, link).map_err(|error| Failure::Check(error.to_string()))?.to_pcapng()
        }
    };
    if let Some(path) = &args.output {
        file::write_whole(path, &bytes).map_err(|error| Failure::Usage(error.to_string()))?;
        let up_to = if error.is_some() { ", up to the error" } else { "" };
        say(&format!("{}\nwrote {}{up_to}", traced.about(), path.display()));
        // The command ends with the error, after the gaps.
        Traced { error: None, ..traced }.gaps().iter().for_each(|gap| say(gap));
    } else {
        std::io::stdout().lock().write_all(&bytes)?;
    }
    error.map_or(Ok(()), |error| Err(Failure::Check(format!("{}: {error}", request.question.name))))
}

/// Builds the request of `trace`.
pub fn request(args: &TraceArgs, target: Target, question: &'static Question) -> Result<TraceRequest, Failure> {
    Ok(TraceRequest {
        target,
        question,
        axes: axes(&args.axes)?,
        changes: Changes { with: args.with.clone(), faults: args.fault.clone(), ..Changes::default() },
        passes: args.iterations,
        dllps: args.dllps,
    })
}

fn format(path: Option<&Path>) -> Result<Format, Failure> {
    let Some(path) = path else { return Ok(Format::Text) };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("pcapng") => Ok(Format::Pcapng),
        Some("json") => Ok(Format::Viewer),
        Some("html") => Ok(Format::Html),
        Some("txt") => Ok(Format::Text),
        _ => Err(Failure::Usage(format!(
            "{}: its name must end in .pcapng (TLPs of one link), .json (Perfetto, Chrome), .html or .txt",
            path.display()
        ))),
    }
}

fn link(trace: &Trace, name: &str, on: &str) -> Result<usize, Failure> {
    let known = || trace.links.join(", ");
    let found = trace.links.iter().position(|link| link == name);
    found.ok_or_else(|| Failure::Usage(format!("--link {name}: {on} has no such link; it has {}", known())))
}
