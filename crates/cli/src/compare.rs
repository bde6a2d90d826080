//! `compare`: changes from base records to new records, and the check against a threshold.

use crate::args::CompareArgs;
use crate::baseline::baselines;
use crate::corpus;
use crate::failure::{Failure, say};
use crate::input;
use crate::output::terminal_width;
use crate::progress::spinner;
use lanemark_advise::Named;
use lanemark_record::{Comparison, Criteria, Record, file, gate::judge, records_in};
use std::io::Write;
use std::path::PathBuf;

/// `lanemark compare`
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    if args.to_corpus {
        return corpus::compare(args);
    }
    let [base, new] = sides(args)?;
    let bar = spinner(format!("{} to {}", base.title, new.title));
    let comparison = lanemark_advise::compare(&base.named(), &new.named(), &criteria(args));
    bar.finish_and_clear();
    let comparison = comparison
        .map_err(|error| Failure::Usage(format!("{} and {} cannot be compared: {error}", base.title, new.title)))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&comparison))?;
    } else {
        let table = lanemark_report::comparison_table(&comparison, [&base.title, &new.title], terminal_width());
        out.write_all(table.as_bytes())?;
    }
    let mut impossible = Vec::new();
    for (name, record) in base.records.iter().chain(&new.records) {
        let found = judge(record);
        found.others.iter().for_each(|text| say(&format!("{name}: {text}")));
        impossible.extend(found.impossible.into_iter().map(|text| format!("{name}: {text}")));
    }
    if !impossible.is_empty() {
        return Err(Failure::impossible(&impossible));
    }
    match args.fail_above {
        Some(percent) => check(args, percent, &comparison, [&base.title, &new.title]),
        None => Ok(()),
    }
}

/// Records of one side, with their names.
struct Records {
    /// Name of the side: its only file, its folder, or the first file and the number of the others.
    title: String,
    records: Vec<(String, Record)>,
}

impl Records {
    /// Reads files; a folder stands for the records in it.
    fn read(paths: &[PathBuf]) -> Result<Records, Failure> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                files.extend(records_in(path).map_err(|error| Failure::Usage(error.to_string()))?);
            } else {
                files.push(path.clone());
            }
        }
        let name = |path: &PathBuf| path.display().to_string();
        let title = match paths {
            [path] => name(path),
            [first, others @ ..] => format!("{} and {} more", name(first), others.len()),
            [] => String::new(),
        };
        Records::of_files(title, &files)
    }

    fn of_files(title: String, files: &[PathBuf]) -> Result<Records, Failure> {
        let read = |path: &PathBuf| Ok((path.display().to_string(), input::record(path)?));
        Ok(Records { title, records: files.iter().map(read).collect::<Result<_, Failure>>()? })
    }

    fn named(&self) -> Vec<Named<'_>> {
        self.records.iter().map(|(name, record)| Named { name, record }).collect()
    }
}

/// The records of both sides of the command line.
fn sides(args: &CompareArgs) -> Result<[Records; 2], Failure> {
    if let Some(name) = &args.baseline {
        let new = if args.records.is_empty() { &args.new } else { &args.records };
        if new.is_empty() {
            let message = format!("no new record is given: use `compare --baseline {name} NEW...`");
            return Err(Failure::Usage(message));
        }
        let files = baselines(&args.baselines).files(name)?;
        return Ok([Records::of_files(format!("baseline {name}"), &files)?, Records::read(new)?]);
    }
    match args.records.as_slice() {
        [base, new] => Ok([Records::read(std::slice::from_ref(base))?, Records::read(std::slice::from_ref(new))?]),
        [] if !args.base.is_empty() => Ok([Records::read(&args.base)?, Records::read(&args.new)?]),
        given => {
            let count = match given.len() {
                0 => "no record is".to_owned(),
                1 => "1 record is".to_owned(),
                count => format!("{count} records are"),
            };
            let forms = "use `compare BASE NEW`, `compare --base BASE... --new NEW...` for several of a side, or \
                         `compare --baseline NAME NEW...`";
            Err(Failure::Usage(format!("{count} given: {forms}")))
        }
    }
}

fn criteria(args: &CompareArgs) -> Criteria {
    let usual = Criteria::default();
    Criteria {
        min_effect_percent: args.min_effect,
        fail_above_percent: args.fail_above,
        between_runs_percent: args.between_runs.unwrap_or(usual.between_runs_percent),
    }
}

/// Fails if an answer is slower than allowed; with `--strict`, also if one has no verdict.
fn check(args: &CompareArgs, percent: f64, comparison: &Comparison, names: [&str; 2]) -> Result<(), Failure> {
    let answers = |count| if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") };
    let mut failed = Vec::new();
    let slower = comparison.above_limit().count();
    if slower > 0 {
        failed.push(format!("{} became slower by more than {percent} %", answers(slower)));
    }
    let mut unjudged = Vec::new();
    let undecided = comparison.undecided().count();
    if undecided > 0 {
        let why = "cannot be judged: too few samples, or times that are not positive";
        unjudged.push(format!("{} {why}", answers(undecided)));
    }
    let lost = comparison.lost().count();
    if lost > 0 {
        let is = if lost == 1 { "is" } else { "are" };
        unjudged.push(format!("{} of {} {is} missing in {}", answers(lost), names[0], names[1]));
    }
    if args.strict {
        failed.extend(unjudged);
    } else {
        for text in unjudged {
            say(&format!("{text}; --strict makes this an error"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Check(failed.join("; "))) }
}
