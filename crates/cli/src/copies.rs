//! `tune` and `advise copy`: a table of methods for many small copies, and its choices.

use crate::args::{AdviseCopyArgs, Toward, TuneArgs};
use crate::failure::{Failure, say};
use crate::progress::Cases;
use crate::{interrupt, options, output};
use lanemark_advise::copy_table;
use lanemark_copy_plan::{CopyPlan, CopyTable};
use lanemark_method::CopyDirection;
use lanemark_record::file;
use lanemark_runner::{Answerer, Outcome, run};
use lanemark_units::format_size;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// `lanemark tune`
pub fn tune(args: &TuneArgs) -> Result<(), Failure> {
    let target = args.on.parse()?;
    output::check(&[&args.output], &[Path::new(&args.on)])?;
    let mut words = vec!["--question".to_owned(), "small_copies".to_owned()];
    for (key, value) in &args.with {
        words.extend(["--with".to_owned(), format!("{key}={value}")]);
    }
    let budget_s = args.budget.map_or(BUDGET_S, |budget| budget.as_ns() / 1e9);
    words.extend(["--budget".to_owned(), budget_s.to_string()]);
    let request = options::request(&words, vec![target], Answerer::Machines)?;
    let bar = Cases::new();
    let outcome = run(&request, &mut |event| bar.show(event), &interrupt::cancel()?);
    bar.end();
    let Outcome { mut record, problem } = outcome?;
    lanemark_advise::interpret(&mut record);
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    let table = copy_table(&record).map_err(|error| Failure::Usage(format!("{}: {error}", args.on)))?;
    for left in &record.skipped {
        say(&format!("not in the table: {}: {}", left.what, left.because));
    }
    output::text(&(file::to_json(&table) + "\n"), Some(&args.output))
}

/// Default time budget of a real target in seconds: enough samples of the 152 times of a table.
const BUDGET_S: f64 = 30.0;

/// `lanemark advise copy`
pub fn advise_copy(args: &AdviseCopyArgs) -> Result<(), Failure> {
    let refused = |message: &dyn std::fmt::Display| Failure::Usage(format!("{}: {message}", args.table.display()));
    let text = std::fs::read_to_string(&args.table).map_err(|error| refused(&error))?;
    let table = CopyTable::from_json(&text).map_err(|error| refused(&error))?;
    let plan = CopyPlan::new(&table);
    let directions = match args.direction {
        None => vec![CopyDirection::ToDevice, CopyDirection::FromDevice],
        Some(Toward::ToDevice) => vec![CopyDirection::ToDevice],
        Some(Toward::FromDevice) => vec![CopyDirection::FromDevice],
    };
    let mut rows = Vec::new();
    for direction in directions {
        for copies in &args.count {
            for size in args.sizes.bytes() {
                rows.extend(Row::of(&table, &plan, direction, *copies, *size));
            }
        }
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let rows: Vec<Value> = rows.iter().map(Row::as_json).collect();
        let document = json!({ "schema": lanemark_copy_plan::SCHEMA, "machine": table.machine, "choices": rows });
        writeln!(out, "{}", file::to_json(&document))?;
        return Ok(());
    }
    writeln!(out, "{}", table.machine)?;
    for row in &rows {
        writeln!(out, "{}", row.in_words())?;
    }
    Ok(())
}

/// A choice, with the estimates of all methods.
struct Row {
    direction: CopyDirection,
    copies: u32,
    size_bytes: u64,
    chosen: lanemark_method::CopyBy,
    /// Every method with its nanoseconds, the fastest first.
    estimates: Vec<(lanemark_method::CopyBy, f64)>,
}

impl Row {
    fn of(table: &CopyTable, plan: &CopyPlan, direction: CopyDirection, copies: u32, size_bytes: u64) -> Option<Row> {
        let chosen = plan.choose(size_bytes, copies, direction)?;
        let timed = |by| Some((by, table.estimate(direction, by, copies, size_bytes)?));
        let mut estimates: Vec<_> = table.methods(direction).into_iter().filter_map(timed).collect();
        estimates.sort_by(|one, other| one.1.total_cmp(&other.1));
        Some(Row { direction, copies, size_bytes, chosen, estimates })
    }

    fn in_words(&self) -> String {
        let direction = self.direction.name().replace('_', " ");
        let time = |(by, ns): &(lanemark_method::CopyBy, f64)| format!("{by} {:.1} us", ns / 1e3);
        let times: Vec<String> = self.estimates.iter().map(time).collect();
        format!(
            "{direction}, {} of {}: {} (estimates: {})",
            self.copies,
            format_size(self.size_bytes),
            self.chosen.in_words(),
            times.join(", ")
        )
    }

    fn as_json(&self) -> Value {
        let estimates: Vec<Value> = self.estimates.iter().map(|(by, ns)| json!({ "by": by, "ns": ns })).collect();
        json!({
            "direction": self.direction,
            "copies": self.copies,
            "size_bytes": self.size_bytes,
            "by": self.chosen,
            "estimates": estimates,
        })
    }
}
