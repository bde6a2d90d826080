//! The device file of VFIO: configuration space, regions, reset, interrupts, bus mastering.

// Other targets open no devices.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::region::VfioRegion;
use super::{VfioError, ioctl};
use crate::linux_sysfs::{Address, Identity, System};
use crate::pci_driver::PciFunction;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread, pwrite};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vfio_bindings::bindings::vfio::VFIO_PCI_CONFIG_REGION_INDEX;

/// Driver through which VFIO opens a function.
pub const DRIVER: &str = "vfio-pci";

/// Offset of the Command register and its bits. Source: PCI Express Base Specification, "Command Register".
mod command {
    pub(super) const AT: u64 = 4;
    pub(super) const MEMORY_SPACE: u16 = 1 << 1;
    pub(super) const BUS_MASTER: u16 = 1 << 2;
}

/// An open device.
#[derive(Debug)]
pub struct VfioDevice {
    function: PciFunction,
    identity: Identity,
    /// Path of its group, for messages.
    path: PathBuf,
    file: OwnedFd,
    config: VfioRegion,
    can_reset: bool,
    /// Whether memory decoding was off before a reset, which turned it on again.
    was_off: AtomicBool,
}

impl VfioDevice {
    /// The device of an open file. Bus mastering is off, and memory decoding on.
    pub(super) fn new(function: PciFunction, path: &Path, file: OwnedFd) -> Result<VfioDevice, VfioError> {
        let address = function.address();
        let os = |doing, source| VfioError::Os { device: address, doing, path: path.to_owned(), source };
        let identity = function.identity().map_err(|error| os("reading the identity of", io::Error::other(error)))?;
        let config = ioctl::region(file.as_fd(), VFIO_PCI_CONFIG_REGION_INDEX)
            .map_err(|error| os("finding the configuration space of", error))?;
        let can_reset = ioctl::can_reset(file.as_fd()).map_err(|error| os("reading the properties of", error))?;
        let device = VfioDevice {
            function,
            identity,
            path: path.to_owned(),
            file,
            config,
            can_reset,
            was_off: AtomicBool::new(false),
        };
        device.change_command(command::MEMORY_SPACE, command::BUS_MASTER).map_err(|error| os("setting up", error))?;
        Ok(device)
    }

    /// PCI address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.function.address()
    }

    /// The system it is in.
    pub(super) const fn system(&self) -> &System {
        self.function.system()
    }

    /// Identity at opening.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// File of the device.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Path of its group.
    pub(super) const fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Fails if the slot has another device than at opening, if it has another driver, or if it does not respond.
    ///
    /// # Errors
    /// [`VfioError::Changed`] and [`VfioError::Gone`].
    pub fn check(&self) -> Result<(), VfioError> {
        let device = self.address();
        let gone = |seen: String| VfioError::Gone { device, seen };
        let vendor = self.config_word(0).map_err(|error| gone(error.to_string()))?;
        if vendor == u16::MAX {
            return Err(gone("its configuration space reads all ones".to_owned()));
        }
        let identity = self.function.identity().map_err(|error| gone(error.to_string()))?;
        let driver = self.function.driver().map_err(|error| gone(error.to_string()))?;
        if !identity.is_same(&self.identity) || driver.as_deref() != Some(DRIVER) {
            let driver = driver.unwrap_or_else(|| "no driver".to_owned());
            let (was, is) = (format!("{} with {DRIVER}", self.identity), format!("{identity} with {driver}"));
            return Err(VfioError::Changed { device, was, is });
        }
        Ok(())
    }

    /// Fails if configuration space shows why loads from BARs return all ones: memory decoding is off, or was before a reset
    /// since the last call; or nothing responds.
    ///
    /// # Errors
    /// [`VfioError::NotDecoding`] and [`VfioError::Gone`].
    pub(super) fn check_decoding(&self) -> Result<(), VfioError> {
        let device = self.address();
        if self.was_off.swap(false, Ordering::Relaxed) {
            return Err(VfioError::NotDecoding { device });
        }
        match self.config_word(command::AT) {
            Ok(u16::MAX) => Err(VfioError::Gone { device, seen: "its configuration space reads all ones".to_owned() }),
            Ok(command) if command & command::MEMORY_SPACE == 0 => Err(VfioError::NotDecoding { device }),
            Ok(_) => Ok(()),
            Err(error) => Err(VfioError::Gone { device, seen: error.to_string() }),
        }
    }

    /// The error of a device that the kernel requests back.
    pub(super) fn requested(&self) -> VfioError {
        let seen = "the kernel requests it back: it is being removed, or its driver unbound".to_owned();
        VfioError::Gone { device: self.address(), seen }
    }

    /// The region of a BAR.
    pub(super) fn bar(&self, bar: u8) -> io::Result<VfioRegion> {
        ioctl::region(self.file(), u32::from(bar))
    }

    /// Reads 2 B of configuration space.
    fn config_word(&self, at: u64) -> io::Result<u16> {
        let mut bytes = [0; 2];
        match pread(&self.file, &mut bytes, self.config.start + at)? {
            2 => Ok(u16::from_le_bytes(bytes)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sets and clears bits of the Command register.
    fn change_command(&self, set: u16, clear: u16) -> io::Result<()> {
        let now = self.config_word(command::AT)?;
        let bytes = (now & !clear | set).to_le_bytes();
        match pwrite(&self.file, &bytes, self.config.start + command::AT)? {
            2 => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Whether the function can be reset.
    #[must_use]
    pub const fn can_reset(&self) -> bool {
        self.can_reset
    }

    /// Resets the function: all its state is lost. Memory decoding is on again afterwards, and bus mastering off.
    ///
    /// # Errors
    /// [`VfioError::Os`].
    pub fn reset(&self) -> Result<(), VfioError> {
        if matches!(self.check_decoding(), Err(VfioError::NotDecoding { .. })) {
            self.was_off.store(true, Ordering::Relaxed);
        }
        let done =
            ioctl::reset(self.file()).and_then(|()| self.change_command(command::MEMORY_SPACE, command::BUS_MASTER));
        let (device, path) = (self.address(), self.path.clone());
        done.map_err(|source| VfioError::Os { device, doing: "resetting the device of", path, source })
    }

    /// Connects a vector to an event.
    pub(super) fn set_interrupts(&self, index: u32, first: u32, events: &[OwnedFd]) -> io::Result<()> {
        ioctl::set_interrupts(self.file(), index, first, events)
    }

    /// Number of vectors of a kind.
    pub(super) fn vectors(&self, index: u32) -> io::Result<u32> {
        ioctl::vectors(self.file(), index)
    }

    /// Disables all vectors of a kind.
    pub(super) fn disable_interrupts(&self, index: u32) -> io::Result<()> {
        ioctl::disable_interrupts(self.file(), index)
    }
}

/// The device's permission to make DMA and to send interrupts, until dropped: Bus Master Enable.
///
/// If the process ends without dropping it, the kernel clears the bit when it closes the device.
#[derive(Debug)]
pub(super) struct BusMaster(Arc<VfioDevice>);

impl BusMaster {
    pub(super) fn enable(device: Arc<VfioDevice>) -> io::Result<BusMaster> {
        let master = BusMaster(device);
        master.0.change_command(command::BUS_MASTER, 0)?;
        Ok(master)
    }
}

impl Drop for BusMaster {
    fn drop(&mut self) {
        // A device that does not respond makes no DMA either.
        let _ = self.0.change_command(0, command::BUS_MASTER);
    }
}

impl VfioDevice {
    /// The function of an open device, for messages and checks.
    pub(super) fn of_system(system: &System, device: Address) -> Result<PciFunction, VfioError> {
        PciFunction::find(system, device).map_err(|_| VfioError::NotBound { device, path: system.device(device) })
    }
}

/// Opens a file of VFIO; `missing` is the error if it does not exist.
pub(super) fn open_file(
    device: Address,
    path: PathBuf,
    missing: impl FnOnce(PathBuf) -> VfioError,
) -> Result<OwnedFd, VfioError> {
    open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
        // Without its module, the file exists and opening it fails.
        Errno::NOENT | Errno::NODEV => missing(path),
        Errno::ACCESS | Errno::PERM => VfioError::Permission { device, path },
        Errno::BUSY => VfioError::Busy { device, path },
        other => VfioError::Os { device, doing: "opening", path, source: other.into() },
    })
}
