//! A PCI function: identity, driver and IOMMU group.

use super::DriverError;
use crate::linux_sysfs::{Address, Identity, System, text};
use std::io;
use std::path::{Path, PathBuf};

/// Base class of bridges. Source: PCI Code and ID Assignment Specification.
const BRIDGE: &str = "06";

/// PCI function of this machine. Reading its files does not access the device.
#[derive(Clone, Debug)]
pub struct PciFunction {
    address: Address,
    system: System,
    folder: PathBuf,
}

impl PciFunction {
    /// Finds the function at `address`.
    ///
    /// # Errors
    /// [`DriverError::NotThere`].
    pub fn find(system: &System, address: Address) -> Result<PciFunction, DriverError> {
        let folder = system.device(address);
        if !folder.is_dir() {
            return Err(DriverError::NotThere { function: address, path: folder });
        }
        Ok(PciFunction { address, system: system.clone(), folder })
    }

    /// PCI address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    pub(crate) const fn system(&self) -> &System {
        &self.system
    }

    /// Path of a file in its folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Identity: IDs and revision as the kernel read them when it found the device, and the serial number as it is now.
    ///
    /// # Errors
    /// [`DriverError::Os`] if the kernel does not report it.
    pub fn identity(&self) -> Result<Identity, DriverError> {
        Identity::read(&self.folder).map_err(|(path, source)| self.os("reading", path, source))
    }

    /// Vendor, device, subsystem vendor, subsystem device and revision.
    ///
    /// # Errors
    /// [`DriverError::Os`] if the kernel does not report one of them.
    pub fn identifiers(&self) -> Result<[u32; 5], DriverError> {
        let mut found = [0; 5];
        let names = ["vendor", "device", "subsystem_vendor", "subsystem_device", "revision"];
        for (number, name) in found.iter_mut().zip(names) {
            let text = self.text(name)?;
            let parsed = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
            *number = parsed.map_err(|error| self.os("reading", self.path(name), io::Error::other(error)))?;
        }
        Ok(found)
    }

    /// Bound driver, if there is one.
    ///
    /// # Errors
    /// [`DriverError::Os`] if the link cannot be read.
    pub fn driver(&self) -> Result<Option<String>, DriverError> {
        self.link("driver")
    }

    /// Number of its IOMMU group, if it is behind an IOMMU.
    ///
    /// # Errors
    /// [`DriverError::Os`] if the link cannot be read.
    pub fn iommu_group(&self) -> Result<Option<String>, DriverError> {
        self.link("iommu_group")
    }

    /// Driver that alone may be bound to it, if one is set.
    pub(super) fn driver_override(&self) -> Result<Option<String>, DriverError> {
        let text = self.text("driver_override")?;
        Ok(Some(text.trim().to_owned()).filter(|name| !name.is_empty() && name != "(null)"))
    }

    /// Class code: base class, sub-class and programming interface, as six hexadecimal digits.
    ///
    /// # Errors
    /// [`DriverError::Os`] if the kernel does not report it.
    pub fn class(&self) -> Result<String, DriverError> {
        Ok(self.text("class")?.trim().trim_start_matches("0x").to_owned())
    }

    /// Fails if the function is a bridge.
    pub(super) fn check_endpoint(&self) -> Result<(), DriverError> {
        let class = self.class()?;
        if class.starts_with(BRIDGE) {
            return Err(DriverError::Bridge { function: self.address, class });
        }
        Ok(())
    }

    /// Other functions of its IOMMU group.
    pub(super) fn group_members(&self) -> Result<Vec<PciFunction>, DriverError> {
        let path = self.path("iommu_group/devices");
        let names = names_in(&path).map_err(|source| self.os("listing", path, source))?;
        let others = names.iter().filter_map(|name| name.parse().ok()).filter(|other| *other != self.address);
        others.map(|address| PciFunction::find(&self.system, address)).collect()
    }

    /// The last part of the target of a link, if the link exists.
    fn link(&self, name: &str) -> Result<Option<String>, DriverError> {
        let path = self.path(name);
        match std::fs::read_link(&path) {
            Ok(target) => Ok(Some(target.file_name().unwrap_or(target.as_os_str()).to_string_lossy().into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.os("reading", path, source)),
        }
    }

    fn text(&self, name: &str) -> Result<String, DriverError> {
        let path = self.path(name);
        text(&path).map_err(|source| self.os("reading", path, source))
    }

    pub(super) fn os(&self, doing: &'static str, path: PathBuf, source: io::Error) -> DriverError {
        DriverError::Os { function: self.address, doing, path, source }
    }
}

/// Names in a folder, sorted; none if the folder does not exist.
pub(super) fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}
