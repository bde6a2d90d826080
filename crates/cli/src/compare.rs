//! `compare`: differences of two records, and the check against a threshold.

use crate::args::CompareArgs;
use crate::failure::{Failure, say};
use crate::input;
use crate::output::terminal_width;
use crate::progress::spinner;
use lanemark_record::{file, gate::judge};
use std::io::Write;

/// `lanemark compare`
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (first, second) = (input::record(&args.first)?, input::record(&args.second)?);
    let (before, after) = (args.first.display().to_string(), args.second.display().to_string());
    let bar = spinner(format!("{before} to {after}"));
    let comparison = lanemark_advise::compare(&first, &second);
    bar.finish_and_clear();
    let comparison =
        comparison.map_err(|error| Failure::Usage(format!("{before} and {after} cannot be compared: {error}")))?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&comparison))?;
    } else {
        out.write_all(lanemark_report::comparison_table(&comparison, [&before, &after], terminal_width()).as_bytes())?;
    }
    let mut impossible = Vec::new();
    for (record, name) in [(&first, &before), (&second, &after)] {
        let found = judge(record);
        found.others.iter().for_each(|text| say(&format!("{name}: {text}")));
        impossible.extend(found.impossible.into_iter().map(|text| format!("{name}: {text}")));
    }
    if !impossible.is_empty() {
        return Err(Failure::impossible(&impossible));
    }
    let Some(percent) = args.fail_above else { return Ok(()) };
    let answers = |count| if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") };
    let mut failed = Vec::new();
    let slower = comparison.slower_by_more_than(percent).count();
    if slower > 0 {
        let by = format!("became slower by more than {percent} %: the whole interval lies above");
        failed.push(format!("{} {by}", answers(slower)));
    }
    let undecided = comparison.undecided().count();
    if undecided > 0 {
        let why = "cannot be judged: too few samples, or times that are not positive";
        let text = format!("{} {why}", answers(undecided));
        if args.strict { failed.push(text) } else { say(&format!("{text}; --strict makes this an error")) }
    }
    let lost = comparison.lost().count();
    if lost > 0 {
        let is = if lost == 1 { "is" } else { "are" };
        failed.push(format!("{} of {before} {is} missing in {after}", answers(lost)));
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::Check(failed.join("; "))) }
}
