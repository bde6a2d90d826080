//! Binding of a function to another driver, and its restoration.

use super::journal::Turn;
use super::users::{users_of, vfio_user};
use super::{DriverError, Journal, PciFunction, run_mark};
use crate::linux_sysfs::{Address, System};
use std::fmt;
use std::path::PathBuf;

/// Drivers that may be bound to other functions of an IOMMU group that user space uses.
/// Source: Linux, `driver_managed_dma` of PCI drivers, and `iommu_group_claim_dma_owner`.
const GROUP_DRIVERS: [&str; 3] = ["vfio-pci", "pci-stub", "pcieport"];

/// Driver that needs an IOMMU group of its own.
const VFIO: &str = "vfio-pci";

/// A write to a file of sysfs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// File.
    pub path: PathBuf,
    /// Text.
    pub text: String,
}

impl fmt::Display for Step {
    /// The step as a shell command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.text.is_empty() { String::new() } else { format!("{} ", self.text) };
        write!(f, "echo {text}> {}", self.path.display())
    }
}

impl Step {
    fn carry_out(&self, function: &PciFunction) -> Result<(), DriverError> {
        let text = format!("{}\n", self.text);
        std::fs::write(&self.path, text).map_err(|source| function.os("writing to", self.path.clone(), source))
    }
}

/// A binding of a function to another driver, checked and not carried out yet.
#[derive(Clone, Debug)]
pub struct Binding {
    function: PciFunction,
    owns_device: bool,
    journal: Journal,
    notes: Vec<String>,
    steps: Vec<Step>,
}

impl Binding {
    /// Checks that `address` can be bound to the driver `to`. With `owns_device`, users of the function that yield may
    /// lose it.
    ///
    /// # Errors
    /// [`DriverError`] of the first failed check.
    pub fn new(system: &System, address: Address, to: &str, owns_device: bool) -> Result<Binding, DriverError> {
        let is_name = !to.is_empty() && to.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !is_name {
            return Err(DriverError::NotADriver { driver: to.to_owned() });
        }
        let function = PciFunction::find(system, address)?;
        function.check_endpoint()?;
        if let Some(Journal { to, .. }) = Journal::read(system, address)? {
            return Err(DriverError::NotRestored { function: address, to, journal: Journal::path(system, address) });
        }
        let loaded = driver_folder(&function, to)?;
        let notes = if to == VFIO { check_group(&function)? } else { Vec::new() };
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if crate::linux_sysfs::is_locked(system, address) {
            return Err(DriverError::InUse { function: address, user: super::User::Lanemark });
        }
        let user = users_of(&function)?.into_iter().find(|user| !(owns_device && user.yields()));
        if let Some(user) = user {
            return Err(DriverError::InUse { function: address, user });
        }
        let journal = Journal {
            function: address,
            identity: function.identity()?,
            driver: function.driver()?,
            driver_override: function.driver_override()?,
            to: to.to_owned(),
        };
        let mut steps = vec![step(function.path("driver_override"), to)];
        match &journal.driver {
            // Only the override is new.
            Some(driver) if driver == to => {}
            driver => {
                if let Some(driver) = driver {
                    steps.push(step(loaded.with_file_name(driver).join("unbind"), &address.to_string()));
                }
                steps.push(step(system.path("sys/bus/pci/drivers_probe"), &address.to_string()));
            }
        }
        Ok(Binding { function, owns_device, journal, notes, steps })
    }

    /// Steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Notes on other functions of the IOMMU group, which no step shows.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// State before the binding, as it will be in the journal.
    #[must_use]
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Checks again, writes the journal, carries out the steps and checks the driver. If a step fails, the former state is
    /// restored.
    ///
    /// # Errors
    /// [`DriverError`]; the journal stays if the former state could not be restored.
    pub fn carry_out(self) -> Result<(), DriverError> {
        let function = &self.function;
        let _turn = Turn::take(function)?;
        let now = Binding::new(function.system(), function.address(), &self.journal.to, self.owns_device)?;
        if (&now.steps, &now.journal) != (&self.steps, &self.journal) {
            return Err(DriverError::Changed { function: function.address() });
        }
        // A mark of a run that was killed, whose journal was removed by hand, says nothing about this binding.
        run_mark::remove_stale(function.system(), function.address());
        self.journal.write(function)?;
        let bound = self.steps.iter().try_for_each(|step| step.carry_out(function));
        let bound = bound.and_then(|()| check_driver(function, Some(&self.journal.to)));
        bound.map_err(|first| match restored(function, &self.journal) {
            Ok(()) => first,
            Err(second) => DriverError::NotRolledBack {
                function: function.address(),
                first: Box::new(first),
                second: Box::new(second),
            },
        })
    }
}

/// The restoration of a function's former driver, checked and not carried out yet.
#[derive(Clone, Debug)]
pub struct Restoration {
    function: PciFunction,
    journal: Journal,
    steps: Vec<Step>,
}

impl Restoration {
    /// Reads the journal of `address`, and checks that the same device is in the slot, that no program uses it through
    /// VFIO, and that its former driver is loaded.
    ///
    /// # Errors
    /// [`DriverError`] of the first failed check.
    pub fn new(system: &System, address: Address) -> Result<Restoration, DriverError> {
        let path = Journal::path(system, address);
        let Some(journal) = Journal::read(system, address)? else {
            return Err(DriverError::NoJournal { function: address, journal: path });
        };
        let function = PciFunction::find(system, address)
            .map_err(|_| DriverError::Removed { function: address, journal: path.clone() })?;
        let found = function.identity()?;
        if !found.is_same(&journal.identity) {
            return Err(DriverError::OtherDevice {
                function: address,
                journalled: journal.identity.to_string(),
                found: found.to_string(),
                journal: path,
            });
        }
        let driver = function.driver()?;
        let expected = [Some(&journal.to), journal.driver.as_ref(), None];
        if !expected.contains(&driver.as_ref()) {
            return Err(DriverError::OtherDriver {
                function: address,
                found: driver.unwrap_or_default(),
                expected: journal.to,
                remedy: format!("if that is right, remove {}", path.display()),
            });
        }
        if let Some(driver) = &journal.driver {
            driver_folder(&function, driver)?;
        }
        if let Some(user) = vfio_user(&function)? {
            return Err(DriverError::InUse { function: address, user });
        }
        let steps = restoring_steps(&function, &journal)?;
        Ok(Restoration { function, journal, steps })
    }

    /// Steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// State that is restored.
    #[must_use]
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Checks again, carries out the steps, checks the driver and removes the journal.
    ///
    /// # Errors
    /// [`DriverError`]; the journal stays.
    pub fn carry_out(self) -> Result<(), DriverError> {
        let Restoration { function, journal, steps } = self;
        let _turn = Turn::take(&function)?;
        let now = Restoration::new(function.system(), function.address())?;
        if (&now.steps, &now.journal) != (&steps, &journal) {
            return Err(DriverError::Changed { function: function.address() });
        }
        restored(&function, &journal)
    }
}

/// Restores the state of the journal and removes it.
fn restored(function: &PciFunction, journal: &Journal) -> Result<(), DriverError> {
    restoring_steps(function, journal)?.iter().try_for_each(|step| step.carry_out(function))?;
    check_driver(function, journal.driver.as_deref())?;
    journal.remove(function)?;
    run_mark::remove(function.system(), function.address());
    Ok(())
}

/// Folder of a loaded driver.
fn driver_folder(function: &PciFunction, driver: &str) -> Result<PathBuf, DriverError> {
    let path = function.system().path("sys/bus/pci/drivers").join(driver);
    if path.is_dir() { Ok(path) } else { Err(DriverError::NoDriver { driver: driver.to_owned(), path }) }
}

fn step(path: PathBuf, text: &str) -> Step {
    Step { path, text: text.to_owned() }
}

/// The steps from the present driver to that of the journal.
fn restoring_steps(function: &PciFunction, journal: &Journal) -> Result<Vec<Step>, DriverError> {
    let address = function.address().to_string();
    let mut steps = vec![step(function.path("driver_override"), journal.driver_override.as_deref().unwrap_or(""))];
    let present = function.driver()?;
    if present == journal.driver {
        return Ok(steps);
    }
    let drivers = function.system().path("sys/bus/pci/drivers");
    // By the name of the driver: the kernel refuses if another one is bound meanwhile.
    steps.extend(present.map(|driver| step(drivers.join(driver).join("unbind"), &address)));
    steps.extend(journal.driver.as_ref().map(|driver| step(drivers.join(driver).join("bind"), &address)));
    Ok(steps)
}

/// Fails if the function has another driver than `expected`.
fn check_driver(function: &PciFunction, expected: Option<&str>) -> Result<(), DriverError> {
    let found = function.driver()?;
    if found.as_deref() == expected {
        return Ok(());
    }
    let or_none = |name: Option<String>| name.map_or_else(|| "no driver".to_owned(), |name| format!("'{name}'"));
    let expected = expected.unwrap_or("no driver").to_owned();
    Err(DriverError::NotBound { function: function.address(), found: or_none(found), expected })
}

/// Whether the user has told the kernel to permit VFIO without an IOMMU.
fn permits_untranslated(system: &System) -> bool {
    let parameter = system.path("sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
    std::fs::read_to_string(parameter).is_ok_and(|value| value.trim() == "Y")
}

/// Fails if the function is behind no IOMMU and the kernel does not permit that; returns a note for each other function that keeps its group from user space.
fn check_group(function: &PciFunction) -> Result<Vec<String>, DriverError> {
    let address = function.address();
    let Some(group) = function.iommu_group()? else {
        if !permits_untranslated(function.system()) {
            return Err(DriverError::NoIommu { function: address, path: function.path("iommu_group") });
        }
        let note = "is behind no IOMMU, which this kernel permits (enable_unsafe_noiommu_mode): a program that opens it \
                    through VFIO can reach all memory of this machine";
        return Ok(vec![format!("{address} {note}")]);
    };
    let mut notes = Vec::new();
    for other in function.group_members()? {
        let driver = other.driver()?.filter(|driver| !GROUP_DRIVERS.contains(&driver.as_str()));
        notes.extend(driver.map(|driver| {
            let other = other.address();
            format!(
                "{other} is in the same IOMMU group ({group}) and has the driver '{driver}': VFIO opens {address} only when {other} is \
                 bound to vfio-pci too, or has no driver"
            )
        }));
    }
    Ok(notes)
}
