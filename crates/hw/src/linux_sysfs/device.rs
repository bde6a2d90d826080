//! PCI function as the kernel describes it: identity, driver, presence.

use super::bar::{self, Bar};
use super::system::{System, text};
use super::{Address, CardError, Identity};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// PCI device of this machine. Creating a value does not access the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    address: Address,
    system: System,
    folder: PathBuf,
}

/// Start of configuration space. Source: PCI Express Base Specification, "Type 0 Configuration Space Header".
struct Header {
    vendor: u16,
    command: u16,
}

impl Header {
    const MEMORY_SPACE: u16 = 1 << 1;

    /// Whether the read returned all ones, as it does when no device responds.
    fn is_absent(&self) -> bool {
        self.vendor == 0xffff
    }
}

impl Device {
    /// Finds the device at `address`.
    ///
    /// # Errors
    /// [`CardError::NotThere`].
    pub fn find(system: &System, address: Address) -> Result<Device, CardError> {
        let folder = system.device(address);
        if !folder.is_dir() {
            return Err(CardError::NotThere { device: address, path: folder });
        }
        Ok(Device { address, system: system.clone(), folder })
    }

    /// PCI address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// System that contains the device.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) const fn system(&self) -> &System {
        &self.system
    }

    /// Path of a file in the device's sysfs folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Vendor and device ID, as `1af4:1110`.
    ///
    /// # Errors
    /// [`CardError`] if the kernel does not report them.
    pub fn id(&self) -> Result<String, CardError> {
        let part = |name| Ok(self.text(name)?.trim().trim_start_matches("0x").to_owned());
        Ok(format!("{}:{}", part("vendor")?, part("device")?))
    }

    /// Identity of the device.
    ///
    /// # Errors
    /// [`CardError`] if it cannot be read.
    pub fn identity(&self) -> Result<Identity, CardError> {
        Identity::read(&self.folder).map_err(|(path, source)| match source.kind() {
            io::ErrorKind::NotFound => self.gone(format!("{} has vanished", path.display())),
            _ => self.os("reading", path, source),
        })
    }

    /// BARs with a nonzero length.
    ///
    /// # Errors
    /// [`CardError`] if the kernel does not report them.
    pub fn bars(&self) -> Result<Vec<Bar>, CardError> {
        let text = self.text("resource")?;
        bar::parse(&text).ok_or_else(|| self.not_understood("resource", &text))
    }

    /// Driver bound to the device, if any.
    ///
    /// # Errors
    /// [`CardError`] if the link cannot be read.
    pub fn driver(&self) -> Result<Option<String>, CardError> {
        let link = self.path("driver");
        match std::fs::read_link(&link) {
            Ok(target) => Ok(Some(target.file_name().unwrap_or(target.as_os_str()).to_string_lossy().into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(self.os("reading", link, source)),
        }
    }

    /// Fails if the kernel reports a low-power state; does not access the device.
    pub(super) fn check_awake(&self) -> Result<(), CardError> {
        let state = match text(&self.path("power_state")) {
            Ok(state) => state.trim().to_owned(),
            // Kernels before 5.11 have no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(self.os("reading", self.path("power_state"), source)),
        };
        if matches!(state.as_str(), "D0" | "unknown") {
            return Ok(());
        }
        Err(CardError::Asleep { device: self.address, state, path: self.path("power/control") })
    }

    /// Fails if the device is gone or its memory decoding is off.
    pub(super) fn check_decoding(&self) -> Result<(), CardError> {
        if self.header()?.command & Header::MEMORY_SPACE != 0 {
            return Ok(());
        }
        Err(CardError::DecodingOff { device: self.address, path: self.path("enable") })
    }

    /// Enables memory decoding if it is off; returns whether it was off.
    pub(super) fn enable(&self) -> Result<bool, CardError> {
        if self.header()?.command & Header::MEMORY_SPACE != 0 {
            return Ok(false);
        }
        let path = self.path("enable");
        std::fs::write(&path, "1").map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => CardError::Permission { device: self.address, path: path.clone() },
            _ => self.os("enabling memory decoding through", path.clone(), source),
        })?;
        Ok(true)
    }

    /// Fails if the device no longer responds.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn check_present(&self) -> Result<(), CardError> {
        self.header().map(drop)
    }

    fn header(&self) -> Result<Header, CardError> {
        let path = self.path("config");
        let mut bytes = [0; 6];
        let read = File::open(&path).and_then(|mut file| file.read_exact(&mut bytes));
        match read {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.gone(format!("{} has vanished", path.display())));
            }
            Err(source) => return Err(self.os("reading", path, source)),
        }
        let header = Header {
            vendor: u16::from_le_bytes([bytes[0], bytes[1]]),
            command: u16::from_le_bytes([bytes[4], bytes[5]]),
        };
        if header.is_absent() {
            return Err(self.gone("its configuration space reads all ones".to_owned()));
        }
        Ok(header)
    }

    pub(crate) fn gone(&self, seen: String) -> CardError {
        CardError::Gone { device: self.address, seen }
    }

    pub(crate) fn os(&self, doing: &'static str, path: PathBuf, source: io::Error) -> CardError {
        CardError::Os { device: self.address, doing, path, source }
    }

    pub(super) fn not_understood(&self, file: &str, text: &str) -> CardError {
        let text = text.lines().next().unwrap_or_default().chars().take(80).collect();
        CardError::NotUnderstood { device: self.address, path: self.path(file), text }
    }

    /// Reads a text file of the device; a missing file means that the device is gone.
    fn text(&self, name: &str) -> Result<String, CardError> {
        let path = self.path(name);
        match text(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.gone(format!("{} has vanished", path.display())))
            }
            Err(source) => Err(self.os("reading", path, source)),
        }
    }

    /// Sysfs folders of the device and of the bridges above it, from the device up.
    pub(super) fn and_above(&self) -> Vec<(Address, PathBuf)> {
        let Ok(folder) = std::fs::canonicalize(&self.folder) else { return vec![(self.address, self.folder.clone())] };
        let function =
            |folder: &std::path::Path| Some((folder.file_name()?.to_str()?.parse().ok()?, folder.to_owned()));
        folder.ancestors().map_while(function).collect()
    }
}
