//! `report`: the HTML page of a record, of several records, or of the log of a sweep.

use crate::args::ReportArgs;
use crate::corpus;
use crate::failure::{Failure, say};
use crate::input;
use crate::output::{self, write_html, write_svg};
use lanemark_advise::{Named, neighbours};
use lanemark_record::corpus::{Corpus, Neighbourhood};
use lanemark_record::gate::judge;
use lanemark_record::{Record, is_sweep_log};
use lanemark_report::{ComparedRecord, machines_html, sweep_map_html};
use std::path::{Path, PathBuf};

/// `lanemark report`
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let files = files(&args.records)?;
    let outputs: Vec<&Path> = std::iter::once(&args.html).chain(&args.svg).map(PathBuf::as_path).collect();
    let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    output::check(&outputs, &inputs)?;
    match files.as_slice() {
        [file] if is_log(file) => map(args, file),
        [file] => single(args, file, &outputs),
        _ => compared(args, &files),
    }
}

/// The records of the command line; a folder stands for the records in it.
fn files(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        if path.is_dir() { files.extend(corpus::files(path)?) } else { files.push(path.clone()) }
    }
    if files.is_empty() {
        let names = given.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(Failure::Usage(format!(
            "{names}: there is no record in it; name records, files that end in .json"
        )));
    }
    Ok(files)
}

fn single(args: &ReportArgs, file: &Path, outputs: &[&Path]) -> Result<(), Failure> {
    let record = input::record(file)?;
    let judged = judge(&record);
    let news = judged.impossible.iter().chain(&judged.others).filter(|text| !record.warnings.contains(text));
    let news: Vec<String> = news.cloned().collect();
    let mut shown = record.clone();
    shown.warnings.extend(news);
    write_html(&shown, &[], &args.html)?;
    if let Some(path) = &args.svg {
        write_svg(&record, path)?;
    }
    for path in outputs {
        say(&format!("wrote {}", path.display()));
    }
    judged.others.iter().for_each(|text| say(text));
    if judged.impossible.is_empty() { Ok(()) } else { Err(Failure::impossible(&judged.impossible)) }
}

/// Whether a file is the log of a sweep, by its content or, for an empty one, by its extension.
fn is_log(path: &Path) -> bool {
    is_sweep_log(path) || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jsonl"))
}

/// The map of a sweep.
fn map(args: &ReportArgs, log: &Path) -> Result<(), Failure> {
    if let Some(svg) = &args.svg {
        let message = format!(
            "--svg {}: the plot is that of a record, and {} is the log of a sweep; use `lanemark sweep --log {} --heat-map FILE`",
            svg.display(),
            log.display(),
            log.display()
        );
        return Err(Failure::Usage(message));
    }
    let table = crate::sweep::table(log, None)?;
    if table.table().rows() == 0 {
        let log = log.display();
        return Err(Failure::Usage(format!(
            "{log}: the log has no points: run `lanemark sweep SPACE --log {log}` first"
        )));
    }
    let name = log.file_name().unwrap_or(log.as_os_str()).to_string_lossy();
    let page = sweep_map_html(&table, &name).map_err(|error| Failure::Check(error.to_string()))?;
    output::text(&page, Some(&args.html))
}

/// The page that compares the machines of several records.
fn compared(args: &ReportArgs, files: &[PathBuf]) -> Result<(), Failure> {
    if let Some(svg) = &args.svg {
        let message = format!("--svg {}: the plot is that of one record, and {} are given", svg.display(), files.len());
        return Err(Failure::Usage(message));
    }
    if let Some(log) = files.iter().find(|file| is_log(file)) {
        let message =
            format!("{} is the log of a sweep, whose map has a page of its own: name it alone", log.display());
        return Err(Failure::Usage(message));
    }
    let records: Vec<Record> = files.iter().map(|file| input::record(file)).collect::<Result<_, Failure>>()?;
    let found: Vec<Option<Neighbourhood>> = (0..files.len()).map(|place| nearest(files, &records, place)).collect();
    let parts: Vec<ComparedRecord> = (files.iter().zip(&records).zip(&found))
        .map(|((file, record), found)| ComparedRecord { file, record, neighbours: found.as_ref() })
        .collect();
    let page = machines_html(&parts).map_err(|error| Failure::Check(error.to_string()))?;
    output::text(&page, Some(&args.html))?;
    let mut impossible = Vec::new();
    for (file, record) in files.iter().zip(&records) {
        let judged = judge(record);
        judged.others.iter().for_each(|text| say(&format!("{}: {text}", file.display())));
        impossible.extend(judged.impossible.iter().map(|text| format!("{}: {text}", file.display())));
    }
    if impossible.is_empty() { Ok(()) } else { Err(Failure::impossible(&impossible)) }
}

/// The distances of one record from the others; `None` for records without times of a machine.
fn nearest(files: &[PathBuf], records: &[Record], place: usize) -> Option<Neighbourhood> {
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let others = (0..files.len()).filter(|other| *other != place).map(|other| (names[other].as_str(), &records[other]));
    neighbours(&Named { name: &names[place], record: &records[place] }, &Corpus::of_records(others)).ok()
}
