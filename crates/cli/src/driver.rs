//! `bind` and `unbind`: the driver of a PCI function.

use crate::args::{BindArgs, CardArgs, UnbindArgs};
use crate::failure::{Failure, say};
use crate::output;
use lanemark_hw::linux_sysfs::{Address, System};
use lanemark_hw::pci_driver::{Binding, DriverError, Journal, Restoration, RunMark, Step};
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

/// `lanemark bind`
pub fn bind(args: &BindArgs) -> Result<(), Failure> {
    let system = system(args.system_root.as_deref());
    report_left(args.system_root.as_deref(), Some(args.function));
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

/// A card that is bound to another driver for a run: its former driver is restored at the end, also after an error.
///
/// After a signal that cannot be handled, the journal of the binding remains, for `lanemark unbind`.
pub struct BoundForRun {
    system: System,
    function: Address,
    /// Whether standard output is for a document, so that steps go to standard error.
    has_document: bool,
    is_restored: bool,
    /// Marks the binding as in use.
    _mark: RunMark,
}

impl BoundForRun {
    /// Prints the steps of the binding and carries them out.
    pub fn new(args: &CardArgs, function: Address, to: &str, has_document: bool) -> Result<BoundForRun, Failure> {
        let (system, binding) = planned(args, function, to)?;
        show(&listed_steps(&format!("{function}: bound to {to} for this run"), binding.steps()), has_document)?;
        for note in binding.notes() {
            say(&format!("note: {note}"));
        }
        let mark = RunMark::new(&system, function).map_err(|error| refused(&error))?;
        binding.carry_out().map_err(|error| failed(&error))?;
        Ok(BoundForRun { system, function, has_document, is_restored: false, _mark: mark })
    }

    /// Prints the steps of the restoration and carries them out.
    pub fn restore(mut self) -> Result<(), Failure> {
        self.is_restored = true;
        let restoration = Restoration::new(&self.system, self.function).map_err(|error| failed(&error))?;
        let driver = named(restoration.journal().driver.as_deref()).to_owned();
        let steps = listed_steps(&format!("{}: its driver is restored", self.function), restoration.steps());
        restoration.carry_out().map_err(|error| failed(&error))?;
        show(&format!("{steps}\nrestored; driver now: {driver}"), self.has_document)
    }
}

impl Drop for BoundForRun {
    fn drop(&mut self) {
        if self.is_restored {
            return;
        }
        // A panic is being reported.
        let restored = Restoration::new(&self.system, self.function).and_then(Restoration::carry_out);
        if let Err(error) = restored {
            say(&format!("{error}; restore its driver with: lanemark unbind {}", self.function));
        }
    }
}

/// Prints a text; on standard error if standard output has a document.
fn show(text: &str, has_document: bool) -> Result<(), Failure> {
    if has_document {
        say(text);
        return Ok(());
    }
    output::text(&format!("{text}\n"), None)
}

/// Prints the steps of the binding for a run, and carries none out.
pub fn print_binding(args: &CardArgs, function: Address, to: &str) -> Result<(), Failure> {
    let (_, binding) = planned(args, function, to)?;
    print(&format!("{function}: would be bound to {to} for the run, and restored after it"), binding.steps())?;
    for note in binding.notes() {
        say(&format!("note: {note}"));
    }
    Ok(())
}

/// The checked binding of a card for a run.
fn planned(args: &CardArgs, function: Address, to: &str) -> Result<(System, Binding), Failure> {
    let system = system(args.system_root.as_deref());
    let binding = Binding::new(&system, function, to, args.i_own_this_device).map_err(|error| refused(&error))?;
    Ok((system, binding))
}

/// `lanemark unbind`
pub fn unbind(args: &UnbindArgs) -> Result<(), Failure> {
    let system = system(args.system_root.as_deref());
    let Some(function) = args.function else { return output::text(&listed(&system)?, None) };
    report_left(args.system_root.as_deref(), Some(function));
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

/// Names functions that killed runs left bound, except one that the command is about.
pub fn report_left(system_root: Option<&Path>, except: Option<Address>) {
    let left = RunMark::left(&system(system_root));
    for Journal { function, driver, to, .. } in left.into_iter().filter(|left| Some(left.function) != except) {
        let driver = named(driver.as_deref());
        say(&format!(
            "note: a run that was killed left {function} bound to {to}, driver before: {driver}; restore it with: lanemark unbind {function}"
        ));
    }
}

fn system(root: Option<&Path>) -> System {
    root.map_or_else(System::this, System::at)
}

/// Prints the state of the function, and the steps as shell commands.
fn print(state: &str, steps: &[Step]) -> Result<(), Failure> {
    output::text(&format!("{}\n", listed_steps(state, steps)), None)
}

/// The state of a function, and steps as shell commands.
fn listed_steps(state: &str, steps: &[Step]) -> String {
    steps.iter().fold(format!("{state}:"), |text, step| format!("{text}\n  {step}"))
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

/// An error before anything was changed. A missing permission is none of the request: its exit code is that of a step.
fn refused(error: &DriverError) -> Failure {
    match error {
        DriverError::Os { source, .. } if source.kind() == ErrorKind::PermissionDenied => failed(error),
        _ => Failure::Usage(error.to_string()),
    }
}

/// An error of a step.
fn failed(error: &DriverError) -> Failure {
    Failure::Check(error.to_string())
}
