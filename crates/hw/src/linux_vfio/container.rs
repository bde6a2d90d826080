//! A container of VFIO: an I/O address space with one device in it.

#![allow(unsafe_code)]

use super::capability::{chain, long, word};
use super::{VfioDevice, VfioError, ioctl};
use crate::linux_sysfs::{Address, System};
use crate::pci_driver::PciFunction;
use lanemark_units::{HostVirt, Iova};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use vfio_bindings::bindings::vfio::{
    VFIO_API_VERSION, VFIO_GROUP_FLAGS_VIABLE, VFIO_IOMMU_INFO_CAPS, VFIO_IOMMU_INFO_PGSIZES,
    VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, VFIO_TYPE1v2_IOMMU,
};

/// IOVAs that the IOMMU translates, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IovaSpan {
    /// First byte.
    pub first: Iova,
    /// Last byte.
    pub last: Iova,
}

/// Properties of the IOMMU, as the kernel reports them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IommuProperties {
    /// Page sizes, one bit each: bit 12 is 4 KiB.
    pub page_sizes: u64,
    /// IOVAs that can be mapped, ascending, without the reserved regions; empty if the kernel does not report them.
    pub spans: Vec<IovaSpan>,
    /// Number of further mappings that this container can have, if the kernel reports it.
    pub mappings_left: Option<u32>,
}

/// An open container: an I/O address space, in which a device is.
///
/// Closing it removes all mappings.
#[derive(Debug)]
pub struct Container {
    /// Closed in this order: the device before its group, the group before the container.
    device: Arc<VfioDevice>,
    group: Group,
    file: OwnedFd,
    properties: IommuProperties,
}

/// Another device in a container, see [`Container::join`].
#[derive(Debug)]
pub struct Joined {
    /// Closed before its group.
    device: Arc<VfioDevice>,
    /// `None` if it is in the group of the first device.
    _group: Option<Group>,
}

impl Joined {
    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Arc<VfioDevice> {
        &self.device
    }
}

/// An open IOMMU group. The kernel opens each only once.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    file: OwnedFd,
}

impl Group {
    /// Opens the group of a function, all of whose devices must be bound to `vfio-pci` or have no driver.
    fn open(system: &System, function: &PciFunction) -> Result<Group, VfioError> {
        let device = function.address();
        let (name, path) = Group::of(system, function)?;
        let os = |doing, source| VfioError::Os { device, doing, path: path.clone(), source };
        let file = open_file(device, path.clone(), |path| VfioError::NotBound { device, path })?;
        let flags = ioctl::group_flags(file.as_fd()).map_err(|error| os("reading the state of", error))?;
        if flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
            return Err(VfioError::NotViable { device, group: name, path: system.device(device).join("iommu_group") });
        }
        Ok(Group { path, file })
    }

    /// Number and path of the group of a function.
    fn of(system: &System, function: &PciFunction) -> Result<(String, PathBuf), VfioError> {
        let device = function.address();
        let group = function.iommu_group().ok().flatten();
        let missing = || VfioError::NotBound { device, path: system.device(device).join("iommu_group") };
        let group = group.ok_or_else(missing)?;
        let path = system.path("dev/vfio").join(&group);
        Ok((group, path))
    }

    /// Opens a device of the group, which must be in a container. The kernel resets the device if it can.
    fn device(&self, function: PciFunction) -> Result<VfioDevice, VfioError> {
        let device = function.address();
        let os = |doing, error| VfioError::Os { device, doing, path: self.path.clone(), source: error };
        let name = CString::new(device.to_string()).map_err(|error| os("naming", error.into()))?;
        let file = ioctl::device(self.file.as_fd(), &name).map_err(|error| os("opening the device of", error))?;
        VfioDevice::new(function, &self.path, file)
    }
}

impl Container {
    /// Opens the IOMMU group of a device that is bound to `vfio-pci`, and the device. The device is reset by the kernel if
    /// it can be; bus mastering is off.
    ///
    /// # Errors
    /// [`VfioError`].
    pub fn open(system: &System, device: Address) -> Result<Container, VfioError> {
        let function = VfioDevice::of_system(system, device)?;
        Group::of(system, &function)?;
        let path = system.path("dev/vfio/vfio");
        let file = open_file(device, path.clone(), |path| VfioError::NoVfio { device, path })?;
        let os = |doing, path: &PathBuf, source| VfioError::Os { device, doing, path: path.clone(), source };
        let version = ioctl::api_version(file.as_fd()).map_err(|error| os("reading the version of", &path, error))?;
        if version != VFIO_API_VERSION.cast_signed() {
            let what = format!("has version {version}");
            return Err(VfioError::Kernel { device, what, needed: "version 0" });
        }
        let extension = ioctl::has_extension(file.as_fd(), VFIO_TYPE1v2_IOMMU);
        if !extension.map_err(|error| os("reading the kinds of IOMMU of", &path, error))? {
            let what = "has no type 1 IOMMU".to_owned();
            return Err(VfioError::Kernel { device, what, needed: "the module vfio_iommu_type1" });
        }
        let group = Group::open(system, &function)?;
        ioctl::set_container(group.file.as_fd(), file.as_fd())
            .map_err(|error| os("adding to a container", &group.path, error))?;
        ioctl::set_iommu(file.as_fd(), VFIO_TYPE1v2_IOMMU).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::PERM) => VfioError::NoInterruptRemapping { device },
            _ => os("choosing the type 1 IOMMU of", &path, error),
        })?;
        let opened = group.device(function)?;
        let properties =
            properties(&file).map_err(|error| os("reading the properties of the IOMMU of", &path, error))?;
        Ok(Container { device: Arc::new(opened), group, file, properties })
    }

    /// Opens another device that is bound to `vfio-pci`, in the same I/O address space: what is mapped here, both can access.
    /// Close the other device before this container.
    ///
    /// # Errors
    /// [`VfioError`].
    pub fn join(&mut self, system: &System, device: Address) -> Result<Joined, VfioError> {
        let function = VfioDevice::of_system(system, device)?;
        if Group::of(system, &function)?.1 == self.group.path {
            return Ok(Joined { device: Arc::new(self.group.device(function)?), _group: None });
        }
        let group = Group::open(system, &function)?;
        ioctl::set_container(group.file.as_fd(), self.file.as_fd()).map_err(|source| VfioError::Os {
            device,
            doing: "adding to a container",
            path: group.path.clone(),
            source,
        })?;
        // The IOMMU of another group may have other page sizes, and other reserved addresses.
        self.properties = properties(&self.file).map_err(|source| VfioError::Os {
            device,
            doing: "reading the properties of the IOMMU of",
            path: group.path.clone(),
            source,
        })?;
        Ok(Joined { device: Arc::new(group.device(function)?), _group: Some(group) })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<VfioDevice> {
        &self.device
    }

    /// Properties of the IOMMU at opening.
    #[must_use]
    pub const fn properties(&self) -> &IommuProperties {
        &self.properties
    }

    /// Maps memory of this process for the device.
    ///
    /// # Safety
    /// The memory must stay mapped in this process until it is unmapped here, and nothing in the process may rely on bytes
    /// that the device may write.
    pub(super) unsafe fn map(&self, iova: Iova, memory: HostVirt, len: u64, may: [bool; 2]) -> io::Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { ioctl::map(self.file.as_fd(), iova.0, memory.0, len, may) }
    }

    /// Unmaps whole mappings; returns the number of unmapped bytes.
    pub(super) fn unmap(&self, iova: Iova, len: u64) -> io::Result<u64> {
        ioctl::unmap(self.file.as_fd(), iova.0, len)
    }
}

/// Opens a file of VFIO; `missing` is the error if it does not exist.
fn open_file(device: Address, path: PathBuf, missing: impl FnOnce(PathBuf) -> VfioError) -> Result<OwnedFd, VfioError> {
    open(&path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
        // Without its module, the file exists and opening it fails.
        Errno::NOENT | Errno::NODEV => missing(path),
        Errno::ACCESS | Errno::PERM => VfioError::Permission { device, path },
        Errno::BUSY => VfioError::Busy { device, path },
        other => VfioError::Os { device, doing: "opening", path, source: other.into() },
    })
}

/// Words for the properties with all capabilities.
const ROOM: usize = 512;

fn properties(container: &OwnedFd) -> io::Result<IommuProperties> {
    let mut room = [0_u64; ROOM];
    let info = ioctl::iommu_info(container.as_fd(), &mut room)?;
    let page_sizes = if info.flags & VFIO_IOMMU_INFO_PGSIZES == 0 { 4096 } else { info.iova_pgsizes };
    let bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let start = if info.flags & VFIO_IOMMU_INFO_CAPS == 0 { 0 } else { info.cap_offset };
    let (spans, mappings_left) = capabilities(&bytes, start);
    Ok(IommuProperties { page_sizes, spans, mappings_left })
}

/// Parses the chain of capabilities from `start` on; 0 ends it.
fn capabilities(bytes: &[u8], start: u32) -> (Vec<IovaSpan>, Option<u32>) {
    let (mut spans, mut mappings_left) = (Vec::new(), None);
    for (id, at) in chain(bytes, start) {
        match id {
            VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE => {
                let count = word(bytes, at + 8).unwrap_or(0) as usize;
                let span = |nth: usize| {
                    let (first, last) = (long(bytes, at + 16 + 16 * nth)?, long(bytes, at + 24 + 16 * nth)?);
                    Some(IovaSpan { first: Iova(first), last: Iova(last) })
                };
                spans.extend((0..count).map_while(span));
            }
            VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL => mappings_left = word(bytes, at + 8),
            _ => {}
        }
    }
    (spans, mappings_left)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capability: identity, version 1, offset of the next one, and its content.
    fn capability(id: u16, next: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = [id.to_ne_bytes(), 1_u16.to_ne_bytes()].concat();
        bytes.extend(next.to_ne_bytes());
        bytes.extend(content);
        bytes
    }

    fn ranges() -> Vec<u8> {
        let mut content = [2_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].concat();
        for address in [0_u64, 0xfedf_ffff, 0xfef0_0000, 0xff_ffff_ffff] {
            content.extend(address.to_ne_bytes());
        }
        content
    }

    #[test]
    fn iova_ranges_and_the_number_of_mappings_are_read_from_the_chain() {
        let mut bytes = vec![0; 24];
        bytes.extend(capability(1, 80, &ranges()));
        bytes.resize(80, 0);
        bytes.extend(capability(7, 88, &[]));
        bytes.extend(capability(3, 0, &65535_u32.to_ne_bytes()));
        let (spans, left) = capabilities(&bytes, 24);
        let span = |first, last| IovaSpan { first: Iova(first), last: Iova(last) };
        assert_eq!(spans, [span(0, 0xfedf_ffff), span(0xfef0_0000, 0xff_ffff_ffff)]);
        assert_eq!(left, Some(65535));
        assert_eq!(capabilities(&bytes, 0), (vec![], None), "no capabilities");
    }

    #[test]
    fn a_damaged_chain_ends() {
        let mut bytes = vec![0; 24];
        // It points to itself, and has fewer ranges than it says.
        bytes.extend(capability(1, 24, &[9_u32.to_ne_bytes(), [0; 4]].concat()));
        assert_eq!(capabilities(&bytes, 24), (vec![], None));
        assert_eq!(capabilities(&bytes, 4000), (vec![], None));
    }
}
