//! `sweep`: runs the points of a space, and writes tables and pictures of its log.

use crate::args::SweepArgs;
use crate::failure::{Failure, say};
use crate::interrupt;
use crate::output;
use crate::progress::progress;
use lanemark_record::{RecordError, SweepLog, SweepTable, SweepTableBuilder, file, read_sweep_log};
use lanemark_report::{
    Selection, SweepPictureError, sweep_heat_map, sweep_lines, sweep_pareto, sweep_sensitivities, tornado,
};
use lanemark_runner::read_file;
use lanemark_sweep::{Point, Points, Progress, Space, run};
use std::collections::HashSet;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Largest file of a space, in bytes.
const SPACE: u64 = 4 << 20;

/// Number of points that a dry run prints.
const SHOWN: u64 = 10;

/// `lanemark sweep`
pub fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    let outputs: Vec<&Path> = outputs(args).collect();
    let Some(file) = &args.space else {
        // clap requires one of both.
        let log = args.log.as_deref().unwrap_or(Path::new(""));
        if outputs.is_empty() {
            let message = "without a space, sweep writes tables and pictures of a log: name one, such as --csv FILE";
            return Err(Failure::Usage(message.to_owned()));
        }
        output::check(&outputs, &[log])?;
        return write(args, &table(log, None)?);
    };
    let points = points(file)?;
    if args.dry_run {
        return print_points(&points);
    }
    let log = args.log.clone().unwrap_or_else(|| file.with_extension("jsonl"));
    output::check(&[&outputs[..], &[log.as_path()]].concat(), &[file])?;
    let cancel = interrupt::cancel()?;
    let mut opened = SweepLog::open(&log).map_err(usage)?;
    let threads = args.threads.map_or_else(cores, usize::from);
    let bar = progress(points.len());
    let mut counted_from = None;
    let done = run(
        &points,
        &mut opened,
        threads,
        &mut |state| {
            // The remaining time is computed from points that are run, not from those in the log.
            if counted_from != Some(state.before) {
                counted_from = Some(state.before);
                bar.set_position(state.done());
                bar.reset_eta();
            }
            bar.set_position(state.done());
        },
        &cancel,
    );
    bar.finish_and_clear();
    let done = done.map_err(|error| Failure::Check(error.to_string()))?;
    drop(opened);
    say(&said(&done, &log));
    if !outputs.is_empty() {
        let keys: HashSet<u128> = (0..points.len()).filter_map(|index| points.key(index)).collect();
        write(args, &table(&log, Some(&keys))?)?;
    }
    if done.done() < done.points {
        return Err(Failure::Interrupted);
    }
    if done.has_no_figure() {
        let because = match done.because {
            Some(because) => Some(because),
            None => first_reason(&log, &points)?,
        };
        let because = because.map(|because| format!("; the first reason: {because}"));
        let message = format!("no point has a figure{}", because.unwrap_or_default());
        return Err(Failure::Check(format!("{message}. The column `because` of the log has the reason of each point")));
    }
    Ok(())
}

/// The first reason in the log why one of these points has no figure.
fn first_reason(log: &Path, points: &Points) -> Result<Option<String>, Failure> {
    let keys: HashSet<u128> = (0..points.len()).filter_map(|index| points.key(index)).collect();
    let mut because = None;
    let read = read_sweep_log(log, |row| {
        let is_point = u128::from_str_radix(&row.key, 16).is_ok_and(|key| keys.contains(&key));
        if because.is_none() && is_point {
            because = row.because;
        }
    });
    read.map_err(usage)?;
    Ok(because)
}

#[allow(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn usage(error: RecordError) -> Failure {
    Failure::Usage(error.to_string())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

fn points(path: &Path) -> Result<Points, Failure> {
    let reading = |why: String| Failure::Usage(format!("reading {}: {why}", path.display()));
    let bytes = read_file(path, SPACE).map_err(|error| reading(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| reading("it is not valid UTF-8".to_owned()))?;
    let space = Space::parse(&path.to_string_lossy(), &text).map_err(|error| Failure::Usage(error.to_string()))?;
    Points::of(&space).map_err(|error| Failure::Usage(error.to_string()))
}

/// The counts of a run, in one line.
fn said(done: &Progress, log: &Path) -> String {
    let before = if done.before > 0 { format!(", {} were in the log", done.before) } else { String::new() };
    let without = match done.without_figure {
        0 => String::new(),
        some => format!(", {some} of them without a figure, with the reason"),
    };
    format!("{}: {} of {} points run{without}{before}", log.display(), done.run, done.points)
}

fn print_points(points: &Points) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} points", points.len())?;
    for index in 0..points.len().min(SHOWN) {
        let Some(Point { platform, with, question, options, method, size_bytes, .. }) = points.point(index) else {
            break;
        };
        let with = with.iter().map(|(key, value)| format!("{key}={value}"));
        let options = options.iter().map(|(name, value)| format!("{name}={value}"));
        let size = size_bytes.map(|size| format!("size_bytes={size}"));
        let varied: Vec<String> = with.chain(options).chain(size).collect();
        writeln!(out, "{index}: {platform}, {question}, {method}, {}", varied.join(" "))?;
    }
    if points.len() > SHOWN {
        writeln!(out, "... and {} more", points.len() - SHOWN)?;
    }
    Ok(())
}

/// The points of a log; those with these keys, if any are given.
pub fn table(log: &Path, keys: Option<&HashSet<u128>>) -> Result<SweepTable, Failure> {
    let mut table = SweepTableBuilder::default();
    let is_wanted = |key: &str| {
        let key = u128::from_str_radix(key, 16);
        keys.is_none_or(|keys| key.is_ok_and(|key| keys.contains(&key)))
    };
    let read = read_sweep_log(log, |row| {
        if is_wanted(&row.key) {
            table.push(&row);
        }
    });
    read.map_err(usage)?;
    Ok(table.finish())
}

/// Output files of the command line, in the order in which they are written.
fn outputs(args: &SweepArgs) -> impl Iterator<Item = &Path> {
    let pictures = &args.pictures;
    let files = [&args.csv, &args.json_lines, &args.parquet];
    let pictures = [&pictures.lines, &pictures.heat_map, &pictures.pareto, &pictures.tornado];
    files.into_iter().chain(pictures).filter_map(|path: &Option<PathBuf>| path.as_deref())
}

fn write(args: &SweepArgs, table: &SweepTable) -> Result<(), Failure> {
    let save = |path: &Path, bytes: &[u8]| {
        file::write_whole(path, bytes).map_err(usage)?;
        say(&format!("wrote {}", path.display()));
        Ok::<(), Failure>(())
    };
    let broken = |error: &dyn std::fmt::Display| Failure::Check(error.to_string());
    if let Some(path) = &args.csv {
        save(path, &table.table().csv().map_err(|error| broken(&error))?)?;
    }
    if let Some(path) = &args.json_lines {
        save(path, &table.table().json_lines().map_err(|error| broken(&error))?)?;
    }
    if let Some(path) = &args.parquet {
        save(path, &table.table().parquet("sweep").map_err(|error| broken(&error))?)?;
    }
    let pictures = &args.pictures;
    let selection = Selection {
        x: pictures.x.clone(),
        y: pictures.y.clone(),
        figure: pictures.figure.clone(),
        only: pictures.only.clone(),
    };
    let draw = |option: &str, path: &Path, picture: Result<String, SweepPictureError>| {
        let picture = picture.map_err(|error| Failure::Usage(format!("--{option}: {error}")))?;
        save(path, picture.as_bytes())
    };
    if let Some(path) = &pictures.lines {
        draw("lines", path, sweep_lines(table, &selection))?;
    }
    if let Some(path) = &pictures.heat_map {
        draw("heat-map", path, sweep_heat_map(table, &selection))?;
    }
    if let Some(path) = &pictures.pareto {
        draw("pareto", path, sweep_pareto(table, &selection))?;
    }
    if let Some(path) = &pictures.tornado {
        let effects = sweep_sensitivities(table, &selection);
        draw("tornado", path, effects.map(|(title, effects)| tornado(&title, &effects)))?;
    }
    Ok(())
}
