//! `bench --repeat`: several independent runs.
//!
//! Each run is a process of its own. So it opens its targets again, gets other memory, and varies
//! like the next call of the program would.

use crate::args::BenchArgs;
use crate::baseline;
use crate::failure::{Failure, say};
use crate::input;
use crate::interrupt;
use crate::invocation;
use crate::output::terminal_width;
use lanemark_advise::{Named, repeated};
use lanemark_record::gate::judge;
use lanemark_record::{Record, RecordError, check_folder, file, write_folder};
use lanemark_runner::Cancel;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Interval between looks at a run.
const LOOK: Duration = Duration::from_millis(20);
/// Time that an interrupted run gets to end by itself: Ctrl-C in a terminal reaches it too.
const PATIENCE: Duration = Duration::from_secs(5);

/// `lanemark bench --repeat COUNT`
pub fn repeat(args: &BenchArgs, count: u32) -> Result<(), Failure> {
    let one_record = [
        ("--html", args.html.is_some()),
        ("--csv", args.csv.is_some()),
        ("--svg", args.svg.is_some()),
        ("--samples", args.sampling.samples.is_some()),
    ];
    if let Some((option, _)) = one_record.iter().find(|(_, is_given)| *is_given) {
        let message = "is about one record, and --repeat makes several: write them with --record FOLDER";
        return Err(Failure::Usage(format!("{option} {message}")));
    }
    let refused = |error: RecordError| Failure::Usage(error.to_string());
    if let Some(folder) = &args.record {
        check_folder(folder).map_err(refused)?;
    }
    baseline::check(&args.baselines, args.save_baseline.as_deref())?;
    let cancel = interrupt::cancel()?;
    let (records, problem) = runs(count, &cancel)?;
    if records.is_empty() {
        return problem.map_or(Ok(()), Err);
    }
    show(args, &records)?;
    if let Some(folder) = &args.record {
        write_folder(&records, folder).map_err(refused)?;
        say(&format!("wrote {} records to {}", records.len(), folder.display()));
    }
    let mut impossible = Vec::new();
    for (place, record) in records.iter().enumerate() {
        let found = judge(record).impossible.into_iter();
        impossible.extend(found.map(|text| format!("run {}: {text}", place + 1)));
    }
    if !impossible.is_empty() {
        return Err(Failure::impossible(&impossible));
    }
    match (problem, &args.save_baseline) {
        (Some(problem), Some(name)) => {
            say(&format!("baseline '{name}' is not saved, because the measurement is incomplete"));
            Err(problem)
        }
        (Some(problem), None) => Err(problem),
        (None, Some(name)) => baseline::save(&args.baselines, name, &records),
        (None, None) => Ok(()),
    }
}

/// The records of the complete runs, and the reason why there are not more.
fn runs(count: u32, cancel: &Cancel) -> Result<(Vec<Record>, Option<Failure>), Failure> {
    let failed = |doing: &str, error: &std::io::Error| Failure::Check(format!("{doing}: {error}"));
    let folder = tempfile::tempdir().map_err(|error| failed("creating a temporary folder", &error))?;
    let [program, words @ ..] = invocation::program() else {
        return Err(Failure::Check("the path of this program is unknown, so it cannot be started again".to_owned()));
    };
    let mut records = Vec::new();
    for run in 1..=count {
        let path = folder.path().join(format!("{run}.json"));
        say(&format!("run {run} of {count}"));
        let child = Command::new(program)
            .args(words)
            .args(invocation::arguments())
            .arg("--run-of-repeat")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| failed("starting a run", &error))?;
        let status = wait(child, cancel).map_err(|error| failed("waiting for a run", &error))?;
        if cancel.is_cancelled() {
            return Ok((records, Some(Failure::Interrupted)));
        }
        if !status.success() {
            let text = format!("run {run} of {count} failed for the reason above");
            let problem = match status.code() {
                Some(2) => Failure::Usage(text),
                Some(77) => Failure::Absent(text),
                Some(130) => Failure::Interrupted,
                _ => Failure::Check(text),
            };
            return Ok((records, Some(problem)));
        }
        records.push(input::record(&path)?);
    }
    Ok((records, None))
}

/// Waits until a run ends. If the measurement is cancelled, the run is interrupted too.
fn wait(mut child: Child, cancel: &Cancel) -> std::io::Result<ExitStatus> {
    let mut cancelled: Option<Instant> = None;
    let mut is_interrupted = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if cancel.is_cancelled() {
            let since = cancelled.get_or_insert_with(Instant::now).elapsed();
            if since > 2 * PATIENCE {
                child.kill()?;
            } else if since > PATIENCE && !is_interrupted {
                is_interrupted = true;
                kill_process(Pid::from_child(&child), Signal::INT)?;
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Prints the variation between the runs, or all records as one JSON document.
fn show(args: &BenchArgs, records: &[Record]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&records))?;
        return Ok(());
    }
    let named: Vec<Named<'_>> = records.iter().map(|record| Named { name: "", record }).collect();
    let table = lanemark_report::repeated_table(&repeated(&named), records.len(), terminal_width());
    Ok(out.write_all(table.as_bytes())?)
}

/// Writes the record of one run, in the process of that run.
pub fn write_run(record: &Record, path: &Path) -> Result<(), Failure> {
    file::write(record, path).map_err(|error| Failure::Usage(error.to_string()))
}
