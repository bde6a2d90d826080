//! `compare --to-corpus` and `check` of records: reference records and their rules.

use crate::args::{CheckArgs, CompareArgs};
use crate::failure::{Failure, say};
use crate::input;
use crate::output::terminal_width;
use lanemark_advise::{Named, built_in_corpus, neighbours};
use lanemark_record::corpus::Corpus;
use lanemark_record::reference::breaches;
use lanemark_record::{Record, file, records_in};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Machines in the table of the nearest.
const NEAREST: u32 = 5;

/// The compact form of a folder of records, which is no record.
const COMPACT: &str = "corpus.json";

/// `lanemark compare --to-corpus`
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let [path] = args.records.as_slice() else {
        let count = args.records.len();
        let message = format!("{count} records are given, and one is compared: use `compare RECORD --to-corpus`");
        return Err(Failure::Usage(message));
    };
    let record = input::record(path)?;
    let corpus = match &args.corpus {
        None => built_in_corpus().map_err(|error| Failure::Check(format!("the built-in corpus: {error}")))?,
        Some(folder) => of_folder(folder)?,
    };
    let name = path.display().to_string();
    let found = neighbours(&Named { name: &name, record: &record }, &corpus)
        .map_err(|error| Failure::Usage(format!("{name} cannot be compared with the corpus: {error}")))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&found))?;
    } else {
        let most = args.nearest.unwrap_or(NEAREST) as usize;
        out.write_all(lanemark_report::neighbours_table(&found, &name, most, terminal_width()).as_bytes())?;
    }
    Ok(())
}

/// The compact form of the records in a folder.
fn of_folder(folder: &Path) -> Result<Corpus, Failure> {
    let read = |path: PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((name, input::record(&path)?))
    };
    let records: Vec<(String, Record)> = files(folder)?.into_iter().map(read).collect::<Result<_, Failure>>()?;
    Ok(Corpus::of_records(records.iter().map(|(name, record)| (name.as_str(), record))))
}

/// The records in a folder, without their compact form.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = records_in(folder).map_err(|error| Failure::Usage(error.to_string()))?;
    files.retain(|path| path.file_name().is_none_or(|name| name != COMPACT));
    Ok(files)
}

/// Whether `check` is about records: a folder, or a file with the extension `.json`.
pub fn is_of_records(args: &CheckArgs) -> bool {
    let path = Path::new(&args.platform);
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) || path.is_dir()
}

/// `lanemark check RECORD`
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    let path = Path::new(&args.platform);
    let files = if path.is_dir() { files(path)? } else { vec![path.to_owned()] };
    let (mut broken, mut rows) = (0, Vec::new());
    let mut out = std::io::stdout().lock();
    for path in &files {
        // Impossible figures are breaches.
        let record = input::any_record(path)?;
        let found = breaches(&record);
        broken += usize::from(!found.is_empty());
        if args.json {
            rows.extend(found.iter().map(|breach| {
                json!({"file": path, "answer": breach.answer, "rule": breach.rule.name(), "problem": breach.text})
            }));
            continue;
        }
        if found.is_empty() {
            let count = record.answers.len();
            writeln!(out, "{}: {count} answers, every rule of reference records is kept", path.display())?;
        }
        for breach in &found {
            say(&format!("{}: {breach}", path.display()));
        }
    }
    if args.json {
        writeln!(out, "{}", file::to_json(&json!({"breaches": rows})))?;
    }
    if broken == 0 {
        return Ok(());
    }
    let count = if broken == 1 { "1 record breaks".to_owned() } else { format!("{broken} records break") };
    Err(Failure::Check(format!("{count} the rules of reference records; CONTRIBUTING.md explains them")))
}
