//! iommufd: an I/O address space of `/dev/iommu`, in which the device of a file below `/dev/vfio/devices` is.

#![allow(unsafe_code)]

use super::device::open_file;
use super::properties::{IommuProperties, IovaSpan};
use super::{VfioDevice, VfioError, iommufd_ioctl as ioctl};
use crate::linux_sysfs::{Address, System};
use crate::pci_driver::PciFunction;
use lanemark_units::{HostVirt, Iova};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

/// The file of I/O address spaces.
pub(super) const FILE: &str = "dev/iommu";

/// An open I/O address space.
#[derive(Debug)]
pub(super) struct Iommufd {
    file: OwnedFd,
    /// Number of the address space within the file.
    ioas: u32,
}

/// File of a function that is bound to `vfio-pci`; `None` if the kernel has none for it.
pub(super) fn device_file(system: &System, device: Address) -> Option<PathBuf> {
    let mut names = std::fs::read_dir(system.device(device).join("vfio-dev")).ok()?;
    let name = names.find_map(|entry| Some(entry.ok()?.file_name()).filter(|name| !name.is_empty()))?;
    Some(system.path("dev/vfio/devices").join(name)).filter(|path| path.exists())
}

impl Iommufd {
    /// Opens an address space and the device of a function that is bound to `vfio-pci`. The kernel resets the device if it
    /// can.
    ///
    /// # Errors
    /// [`VfioError`].
    pub(super) fn open(system: &System, function: PciFunction) -> Result<(Iommufd, VfioDevice), VfioError> {
        let device = function.address();
        let missing = |path| VfioError::NoIommufd { device, path };
        let path = system.path(FILE);
        let os = |doing, path: &PathBuf, source| VfioError::Os { device, doing, path: path.clone(), source };
        let at = device_file(system, device).ok_or_else(|| missing(system.path("dev/vfio/devices")))?;
        let file = open_file(device, path.clone(), missing)?;
        let ioas = ioctl::allocate(file.as_fd()).map_err(|error| os("allocating an address space of", &path, error))?;
        let opened = open_file(device, at.clone(), missing)?;
        ioctl::bind(opened.as_fd(), file.as_fd()).map_err(|error| bind_error(device, &at, error))?;
        ioctl::attach(opened.as_fd(), ioas)
            .map_err(|error| os("attaching to an address space of iommufd the device of", &at, error))?;
        Ok((Iommufd { file, ioas }, VfioDevice::new(function, &at, opened)?))
    }

    /// As [`AddressSpace::map`](super::AddressSpace).
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn map(&self, iova: Iova, memory: HostVirt, len: u64, may: [bool; 2]) -> io::Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { ioctl::map(self.file.as_fd(), self.ioas, [iova.0, memory.0, len], may) }
    }

    /// As [`AddressSpace::unmap`](super::AddressSpace): nothing there to unmap is 0 B.
    pub(super) fn unmap(&self, iova: Iova, len: u64) -> io::Result<u64> {
        match ioctl::unmap(self.file.as_fd(), self.ioas, iova.0, len) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOENT) => Ok(0),
            other => other,
        }
    }

    /// Properties of the IOMMU of the device.
    pub(super) fn properties(&self) -> io::Result<IommuProperties> {
        let (ranges, alignment) = ioctl::ranges(self.file.as_fd(), self.ioas)?;
        let spans = ranges.iter().map(|range| IovaSpan { first: Iova(range.start), last: Iova(range.last) });
        let granule = alignment.next_power_of_two().clamp(4096, 1 << 31);
        Ok(IommuProperties { granule, page_sizes: None, spans: spans.collect(), mappings_left: None })
    }
}

impl Drop for Iommufd {
    fn drop(&mut self) {
        // Fails while the device is attached. Closing the last file does the same.
        let _ = ioctl::destroy(self.file.as_fd(), self.ioas);
    }
}

/// The error of binding a device file to an iommufd. Source: Linux, `vfio_df_ioctl_bind_iommufd`, `iommufd_device_bind`.
fn bind_error(device: Address, path: &std::path::Path, source: io::Error) -> VfioError {
    let path = path.to_owned();
    match Errno::from_io_error(&source) {
        Some(Errno::PERM) => VfioError::NoInterruptRemapping { device, module: "iommufd" },
        // Its group is open, or a device of the group has another driver.
        Some(Errno::BUSY) => VfioError::InUse { device, path },
        // A device file that another process has bound. The other reason, an IOMMU whose requests are not coherent with the
        // caches, does not exist on x86.
        Some(Errno::INVAL) => VfioError::Busy { device, path },
        _ => VfioError::Os { device, doing: "binding to iommufd the device of", path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_binding_names_the_device_and_a_remedy() {
        let device: Address = "0000:01:00.0".parse().unwrap();
        let said = |errno: Errno| bind_error(device, "/dev/vfio/devices/vfio0".as_ref(), errno.into()).to_string();
        for (errno, words) in [
            (Errno::PERM, "/sys/module/iommufd/parameters/allow_unsafe_interrupts"),
            (Errno::BUSY, "/sys/bus/pci/devices/0000:01:00.0/iommu_group/devices"),
            (Errno::INVAL, "another process uses"),
            (Errno::NODEV, "binding to iommufd the device of /dev/vfio/devices/vfio0"),
        ] {
            let said = said(errno);
            assert!(said.starts_with("0000:01:00.0") && said.contains(words), "{errno:?}: {said}");
        }
    }
}
