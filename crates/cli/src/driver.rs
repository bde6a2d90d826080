//! `bind` and `unbind`: the driver of a PCI function.

use crate::args::{BindArgs, UnbindArgs};
use crate::failure::Failure;
use crate::output;
use lanemark_hw::linux_sysfs::System;
use lanemark_hw::pci_driver::{Binding, DriverError, Journal, Restoration, Step};
use std::fmt::Write as _;
use std::path::Path;

/// `lanemark bind`
pub fn bind(args: &BindArgs) -> Result<(), Failure> {
    let system = system(args.system_root.as_deref());
    let binding =
        Binding::new(&system, args.function, &args.to, args.i_own_this_device).map_err(|error| refused(&error))?;
    let Journal { identity, driver, .. } = binding.journal();
    let now = format!("{} ({identity}), {}", args.function, of(driver.as_deref()));
    print(&format!("{now}, to be bound to {}", args.to), binding.steps())?;
    if args.dry_run {
        return output::text("dry run, nothing was changed: remove --dry-run to bind it\n", None);
    }
    binding.carry_out().map_err(|error| failed(&error))?;
    output::text(&format!("bound to {}; to restore it: lanemark unbind {}\n", args.to, args.function), None)
}

/// `lanemark unbind`
pub fn unbind(args: &UnbindArgs) -> Result<(), Failure> {
    let system = system(args.system_root.as_deref());
    let Some(function) = args.function else { return output::text(&listed(&system)?, None) };
    let restoration = Restoration::new(&system, function).map_err(|error| refused(&error))?;
    let Journal { identity, driver, to, .. } = restoration.journal();
    print(
        &format!("{function} ({identity}), which lanemark bound to {to}, was {}", of(driver.as_deref())),
        restoration.steps(),
    )?;
    if args.dry_run {
        return output::text("dry run, nothing was changed: remove --dry-run to restore it\n", None);
    }
    let driver = restoration.journal().driver.clone();
    restoration.carry_out().map_err(|error| failed(&error))?;
    output::text(&format!("restored: {}\n", of(driver.as_deref())), None)
}

fn system(root: Option<&Path>) -> System {
    root.map_or_else(System::this, System::at)
}

/// Prints the state of the function, and the steps as shell commands.
fn print(state: &str, steps: &[Step]) -> Result<(), Failure> {
    let mut text = format!("{state}:\n");
    for step in steps {
        let _ = writeln!(text, "  {step}");
    }
    output::text(&text, None)
}

/// A binding in words.
fn of(driver: Option<&str>) -> String {
    driver.map_or_else(|| "without a driver".to_owned(), |driver| format!("bound to {driver}"))
}

/// Functions that were not restored.
fn listed(system: &System) -> Result<String, Failure> {
    let mut text = String::new();
    for function in Journal::all(system)? {
        let Some(journal) = Journal::read(system, function).map_err(|error| refused(&error))? else { continue };
        let former = of(journal.driver.as_deref());
        let _ = writeln!(text, "{function} is bound to {}, before {former}: lanemark unbind {function}", journal.to);
    }
    if text.is_empty() { Ok("every function has its former driver\n".to_owned()) } else { Ok(text) }
}

/// An error before anything was changed.
fn refused(error: &DriverError) -> Failure {
    Failure::Usage(error.to_string())
}

/// An error of a step.
fn failed(error: &DriverError) -> Failure {
    Failure::Check(error.to_string())
}
