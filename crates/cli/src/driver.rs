//! `bind` and `unbind`: the driver of a PCI function.

use crate::args::{BindArgs, UnbindArgs};
use crate::failure::{Failure, say};
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
    let now = format!("{} ({identity}), driver now: {}", args.function, named(driver.as_deref()));
    print(&format!("{now}; new driver: {}", args.to), binding.steps())?;
    for note in binding.notes() {
        say(&format!("note: {note}"));
    }
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
    let before = format!("{function} ({identity}), driver before: {}", named(driver.as_deref()));
    print(&format!("{before}; 'lanemark bind' bound it to {to}"), restoration.steps())?;
    if args.dry_run {
        return output::text("dry run, nothing was changed: remove --dry-run to restore it\n", None);
    }
    let driver = restoration.journal().driver.clone();
    restoration.carry_out().map_err(|error| failed(&error))?;
    output::text(&format!("restored; driver now: {}\n", named(driver.as_deref())), None)
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

/// The name of a driver, or none.
fn named(driver: Option<&str>) -> &str {
    driver.unwrap_or("none")
}

/// Functions that were not restored.
fn listed(system: &System) -> Result<String, Failure> {
    let mut text = String::new();
    for function in Journal::all(system)? {
        let _ = match Journal::read(system, function) {
            Ok(None) => continue,
            Ok(Some(Journal { driver, to, .. })) => {
                let driver = named(driver.as_deref());
                writeln!(
                    text,
                    "{function} was bound to {to}, driver before: {driver}; restore it with: lanemark unbind {function}"
                )
            }
            // A damaged journal does not hide the others.
            Err(error) => writeln!(text, "{error}"),
        };
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
