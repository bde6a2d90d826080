//! `doctor`: what is plugged in, what is wrong with it, and a slot as a platform file.

use crate::args::{AtLeast, DoctorArgs};
use crate::failure::Failure;
use crate::output::{self, terminal_width};
use crate::progress::spinner;
use lanemark_advise::doctor::{Ask, RoundTrip, as_platform, diagnose};
use lanemark_inventory::{Inventory, InventoryError};
use lanemark_record::diagnosis::{Diagnosis, Severity};
use lanemark_record::file;
use std::io::Write;
use std::path::Path;

/// `lanemark doctor`
pub fn doctor(args: &DoctorArgs) -> Result<(), Failure> {
    let inputs: Vec<&Path> = [&args.from, &args.earlier].into_iter().flatten().map(AsRef::as_ref).collect();
    if let Some(output) = &args.output {
        output::check(&[output], &inputs)?;
    }
    let bar = spinner(args.from.as_ref().map_or_else(|| "this machine".to_owned(), |path| path.display().to_string()));
    let inventory = read(args.from.as_deref());
    bar.finish_and_clear();
    let inventory = inventory?;
    if let Some(address) = args.as_platform {
        let text = as_platform(&inventory, address).map_err(|error| Failure::Usage(error.to_string()))?;
        return output::text(&text, args.output.as_deref());
    }
    let earlier = args.earlier.as_deref().map(|path| read(Some(path))).transpose()?;
    let mut ask = Ask { cpus: args.cpus.clone(), earlier: earlier.as_ref(), fields: args.json, ..Ask::default() };
    if let Some(ns) = args.round_trip {
        ask.round_trip = RoundTrip { ns, origin: "given with --round-trip".to_owned() };
    }
    let diagnosis = diagnose(&inventory, &ask);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&diagnosis))?;
    } else {
        out.write_all(lanemark_report::diagnosis(&diagnosis, terminal_width()).as_bytes())?;
    }
    drop(out);
    args.fail_on_finding.map_or(Ok(()), |least| check(&diagnosis, least))
}

/// A machine that has no PCI is absent; a file that holds none is a mistake.
pub fn read(from: Option<&Path>) -> Result<Inventory, Failure> {
    match from {
        Some(path) => Inventory::from_path(path).map_err(|error| Failure::Usage(error.to_string())),
        None => Inventory::of_this_machine().map_err(|error: InventoryError| Failure::Absent(error.to_string())),
    }
}

/// Whether the machine is as good as somebody wants it.
fn check(diagnosis: &Diagnosis, least: AtLeast) -> Result<(), Failure> {
    let least = match least {
        AtLeast::Broken => Severity::Broken,
        AtLeast::Costly => Severity::Costly,
        AtLeast::Minor => Severity::Minor,
        AtLeast::Hint => Severity::Hint,
    };
    let bad = diagnosis.findings.iter().filter(|finding| finding.severity <= least);
    let bad: Vec<&str> = bad.map(|finding| finding.check.as_str()).collect();
    if bad.is_empty() { Ok(()) } else { Err(Failure::Check(format!("found: {}", bad.join(", ")))) }
}
