//! Files through which the BARs of a device are mapped.

use super::attachment::Place;
use super::effective::{MappedType, mapped_type};
use super::{CardError, Device};
use crate::map_unmap::{LibraryError, Mapper};
use crate::x86::timer::Timer;
use lanemark_machine::{MapUnmap, Table, Width};
use lanemark_units::MemoryType;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Files through which the BARs of a device are mapped: one of sysfs for each, or the one of VFIO or of
/// our module for all.
pub(crate) trait BarFiles: fmt::Debug + Send + Sync {
    /// The memory types that mappings can have, in words.
    fn types(&self) -> &'static str;

    /// Path of the file for mapping a BAR as `memory_type`; `None` for other types.
    fn path(&self, device: &Device, bar: u8, memory_type: MemoryType) -> Option<PathBuf>;

    /// Whether the file exists, as far as a dry run can tell.
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    /// Opens the file for mapping the range of `place`, of which [`path`](BarFiles::path) is `path`.
    fn open(&self, device: &Device, place: &Place, memory_type: MemoryType, path: &Path) -> Result<BarFile, CardError>;

    /// Width of the loads and stores of `pread` and `pwrite` at an offset of the BAR; `None` if the file has none.
    fn driver_width(&self) -> Option<Width> {
        None
    }

    /// Tables that [`mapper`](BarFiles::mapper) updates.
    fn tables(&self) -> &'static [Table] {
        &[]
    }

    /// Maps host memory for the device through an opened file, as `asked`; the times of the kernel are in cycles of `timer`.
    ///
    /// # Errors
    /// A file without mappings; no memory.
    fn mapper(&self, _: BarFile, _: MapUnmap, _: Timer) -> Result<Box<dyn Mapper>, LibraryError> {
        Err("this file maps no host memory for the device".into())
    }

    /// Effective memory type of the range of `place`, mapped from `file` at these addresses: first and last page.
    ///
    /// # Errors
    /// Pages of different or unknown types.
    fn mapped_type(&self, _: &BarFile, device: &Device, place: &Place, _: [usize; 2]) -> Result<MappedType, String> {
        mapped_type(device, &place.range, place.bar.start)
    }
}

/// An open file in which a BAR can be mapped.
#[derive(Debug)]
pub(crate) struct BarFile {
    pub(crate) file: OwnedFd,
    /// Offset of the BAR in it.
    pub(crate) start: u64,
}

/// `resourceN` maps BAR N as UC, `resourceN_wc` as WC.
#[derive(Debug)]
pub(super) struct Resources;

impl BarFiles for Resources {
    fn types(&self) -> &'static str {
        "sysfs maps a BAR as UC or WC, the latter if it is prefetchable"
    }

    fn path(&self, device: &Device, bar: u8, memory_type: MemoryType) -> Option<PathBuf> {
        match memory_type {
            MemoryType::Uc => Some(device.path(&format!("resource{bar}"))),
            MemoryType::Wc => Some(device.path(&format!("resource{bar}_wc"))),
            MemoryType::Wt | MemoryType::Wp | MemoryType::Wb => None,
        }
    }

    fn open(&self, device: &Device, place: &Place, memory_type: MemoryType, path: &Path) -> Result<BarFile, CardError> {
        let (address, bar) = (device.address(), place.bar.number);
        let access = if place.kind.may_store() { OFlags::RDWR } else { OFlags::RDONLY };
        let file = open(path, access | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
            Errno::NOENT if !device.path("config").exists() => device.gone(format!("{} has vanished", path.display())),
            Errno::NOENT if memory_type == MemoryType::Wc => {
                CardError::NoWriteCombining { device: address, bar, path: path.to_owned() }
            }
            Errno::NOENT => CardError::NoResourceFile { device: address, path: path.to_owned() },
            Errno::ACCESS => CardError::Permission { device: address, path: path.to_owned() },
            Errno::PERM => CardError::LockedDown { device: address, bar },
            other => device.os("opening", path.to_owned(), other.into()),
        })?;
        Ok(BarFile { file, start: 0 })
    }
}
