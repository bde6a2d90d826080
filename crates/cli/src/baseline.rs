//! Baselines: the option that saves one, and `baselines`, which lists them.

use crate::args::{BaselineArgs, BaselinesArgs};
use crate::failure::{Failure, say};
use crate::input;
use lanemark_record::{BaselineError, Baselines, Record, file};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

/// The baselines that the command line names.
pub fn baselines(args: &BaselineArgs) -> Baselines {
    let usual = || PathBuf::from(Baselines::USUAL_FOLDER);
    Baselines::in_folder(args.baseline_folder.clone().unwrap_or_else(usual))
}

impl From<BaselineError> for Failure {
    fn from(error: BaselineError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

/// Checks before a measurement that its baseline can be saved.
pub fn check(args: &BaselineArgs, name: Option<&str>) -> Result<(), Failure> {
    match name {
        Some(name) => Ok(baselines(args).check(name)?),
        None => Ok(()),
    }
}

/// Saves the records of a complete measurement as a baseline.
pub fn save(args: &BaselineArgs, name: &str, records: &[Record]) -> Result<(), Failure> {
    let path = baselines(args).save(name, records)?;
    let records = if records.len() == 1 { "1 record".to_owned() } else { format!("{} records", records.len()) };
    say(&format!("saved baseline '{name}': {records} in {}", path.display()));
    Ok(())
}

/// `lanemark baselines`
pub fn list(args: &BaselinesArgs) -> Result<(), Failure> {
    let baselines = baselines(&args.baselines);
    let mut rows = Vec::new();
    for name in baselines.names()? {
        let files = baselines.files(&name)?;
        let Some(first) = files.first() else { continue };
        let record = input::record(first)?;
        let targets: BTreeSet<String> = record.answers.iter().map(|answer| answer.target.clone()).collect();
        rows.push((name, files.len(), targets.into_iter().collect::<Vec<_>>(), record));
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let rows = rows.iter().map(|(name, records, targets, record)| {
            json!({
                "name": name,
                "records": records,
                "targets": targets,
                "answers": record.answers.len(),
                "written_unix_s": record.written_unix_s,
            })
        });
        writeln!(out, "{}", file::to_json(&json!({"baselines": rows.collect::<Vec<_>>()})))?;
        return Ok(());
    }
    if rows.is_empty() {
        say("there is no baseline; `lanemark bench --save-baseline NAME` saves one");
    }
    for (name, records, targets, record) in rows {
        let records = if records == 1 { "1 record".to_owned() } else { format!("{records} records") };
        let answers = match record.answers.len() {
            1 => "1 answer".to_owned(),
            count => format!("{count} answers"),
        };
        writeln!(out, "{name:<24} {records}, {answers}, {}", targets.join(", "))?;
    }
    Ok(())
}
