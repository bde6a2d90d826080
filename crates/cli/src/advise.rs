//! `advise`: the method for a workload, changes of the machine, and whether goals are met.

use crate::args::{AdviceOn, AdviseArgs, Toward};
use crate::copies::advise_copy;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{command_line, terminal_width};
use crate::progress::spinner;
use lanemark_advise::{WorkloadRequest, advise as advice};
use lanemark_method::CopyDirection;
use lanemark_record::file;
use lanemark_record::guidance::{Guidance, Workload};
use lanemark_runner::{RunError, platform};
use lanemark_units::Rate;
use std::io::Write;

/// `lanemark advise`
pub fn advise(args: &AdviseArgs) -> Result<(), Failure> {
    if let Some(AdviceOn::Copy(copy)) = &args.topic {
        return advise_copy(copy);
    }
    let on = args.on.clone().unwrap_or_default();
    let directions = match args.direction {
        None => vec![CopyDirection::ToDevice, CopyDirection::FromDevice],
        Some(Toward::ToDevice) => vec![CopyDirection::ToDevice],
        Some(Toward::FromDevice) => vec![CopyDirection::FromDevice],
    };
    let workload = Workload {
        directions,
        sizes_bytes: args.sizes.as_ref().map_or_else(|| SIZES.to_vec(), |sizes| sizes.bytes().to_vec()),
        rate_bytes_per_s: args.rate.map(Rate::bytes_per_s),
        latency_below_ns: args.latency_below.map(lanemark_units::Ticks::as_ns),
    };
    let request =
        WorkloadRequest { platform: platform(&on)?, with: args.with.clone(), workload, command: command_line() };
    let cancel = interrupt::cancel()?;
    let bar = spinner(on);
    let guidance = advice(&request, &cancel);
    bar.finish_and_clear();
    let guidance = guidance.map_err(|error| match error {
        // The workload does not fit the platform: the user can change either.
        RunError::NothingToAsk { because } => Failure::Usage(because),
        other => other.into(),
    })?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&guidance))?;
    } else {
        out.write_all(lanemark_report::guidance(&guidance, terminal_width()).as_bytes())?;
    }
    drop(out);
    check(&guidance)
}

/// Sizes without `--sizes`: a line, a page, and a long transfer.
const SIZES: [u64; 3] = [64, 4096, 1 << 20];

/// Returns an error if a goal is not met.
fn check(guidance: &Guidance) -> Result<(), Failure> {
    match lanemark_report::unmet_goals(guidance) {
        None => Ok(()),
        Some(text) => Err(Failure::Check(text)),
    }
}
