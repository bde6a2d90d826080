//! `doctor`: PCIe devices, their problems, and a platform file for a slot.

use crate::args::{AtLeast, DoctorArgs, FitFigures};
use crate::driver::report_left;
use crate::failure::Failure;
use crate::output::{self, terminal_width};
use crate::progress::spinner;
use lanemark_advise::doctor::{DiagnosisRequest, Figures, RoundTrip, as_platform, diagnose};
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
    if args.from.is_none() {
        report_left(None, None);
    }
    let bar = spinner(args.from.as_ref().map_or_else(|| "this machine".to_owned(), |path| path.display().to_string()));
    let inventory = read(args.from.as_deref());
    bar.finish_and_clear();
    let inventory = inventory?;
    if let Some(address) = args.as_platform {
        let figures = match args.unknown {
            FitFigures::Dma => Figures::Dma,
            FitFigures::Mmio => Figures::Mmio,
        };
        let text = as_platform(&inventory, address, figures).map_err(|error| Failure::Usage(error.to_string()))?;
        return output::text(&text, args.output.as_deref());
    }
    let earlier = args.earlier.as_deref().map(|path| read(Some(path))).transpose()?;
    let mut ask = DiagnosisRequest {
        cpus: args.cpus.clone(),
        earlier: earlier.as_ref(),
        fields: args.json,
        ..DiagnosisRequest::default()
    };
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

/// Reads an inventory. An absent PCI bus of this machine is [`Failure::Absent`]; a file without one is a usage error.
pub fn read(from: Option<&Path>) -> Result<Inventory, Failure> {
    match from {
        Some(path) => Inventory::from_path(path).map_err(|error| Failure::Usage(error.to_string())),
        None => Inventory::of_this_machine().map_err(|error: InventoryError| Failure::Absent(error.to_string())),
    }
}

/// Returns an error if a finding has severity `least` or worse.
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
