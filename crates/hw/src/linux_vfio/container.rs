//! A container of VFIO: a type 1 IOMMU, or none, in which the devices of IOMMU groups are.

#![allow(unsafe_code)]

use super::capability::{chain, long, word};
use super::device::open_file;
use super::interface::CONTAINERS;
use super::properties::{IommuProperties, IovaSpan};
use super::{VfioDevice, VfioError, VfioInterface, ioctl};
use crate::linux_sysfs::System;
use crate::pci_driver::PciFunction;
use lanemark_units::Iova;
use rustix::io::Errno;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use vfio_bindings::bindings::vfio::{
    VFIO_API_VERSION, VFIO_GROUP_FLAGS_VIABLE, VFIO_IOMMU_INFO_CAPS, VFIO_IOMMU_INFO_PGSIZES,
    VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE, VFIO_IOMMU_TYPE1_INFO_DMA_AVAIL, VFIO_NOIOMMU_IOMMU, VFIO_TYPE1v2_IOMMU,
};

/// An open container with the group of a device.
#[derive(Debug)]
pub(super) struct Container {
    /// Closed before the container.
    group: Group,
    file: OwnedFd,
}

/// An open IOMMU group. The kernel opens each only once.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    file: OwnedFd,
}

impl Group {
    /// Opens the group of a function, all of whose devices must be bound to `vfio-pci` or have no driver.
    fn open(system: &System, function: &PciFunction, by: VfioInterface) -> Result<Group, VfioError> {
        let device = function.address();
        let (name, path) = Group::of(system, function, by)?;
        let os = |doing, source| VfioError::Os { device, doing, path: path.clone(), source };
        let other = Group::of(system, function, VfioInterface::NoIommu)?.1;
        let missing = |path| match by {
            VfioInterface::NoIommu => VfioError::NotUntranslated { device, path },
            _ if other.exists() => VfioError::Untranslated { device },
            _ => VfioError::NotBound { device, path },
        };
        let file = open_file(device, path.clone(), missing)?;
        let flags = ioctl::group_flags(file.as_fd()).map_err(|error| os("reading the state of", error))?;
        if flags & VFIO_GROUP_FLAGS_VIABLE == 0 {
            return Err(VfioError::NotViable { device, group: name, path: system.device(device).join("iommu_group") });
        }
        Ok(Group { path, file })
    }

    /// Number and path of the group of a function.
    pub(super) fn of(
        system: &System,
        function: &PciFunction,
        by: VfioInterface,
    ) -> Result<(String, PathBuf), VfioError> {
        let device = function.address();
        let group = function.iommu_group().ok().flatten();
        let missing = || VfioError::NotBound { device, path: system.device(device).join("iommu_group") };
        let group = group.ok_or_else(missing)?;
        let path = system.path("dev/vfio").join(Group::file_name(&group, by));
        Ok((group, path))
    }

    /// Name of the file of a group.
    pub(super) fn file_name(group: &str, by: VfioInterface) -> String {
        if by.is_translated() { group.to_owned() } else { format!("noiommu-{group}") }
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
    /// Opens a container, the group of a function that is bound to `vfio-pci`, and the device. The kernel resets the device if
    /// it can.
    ///
    /// # Errors
    /// [`VfioError`].
    pub(super) fn open(
        system: &System,
        function: PciFunction,
        by: VfioInterface,
    ) -> Result<(Container, VfioDevice), VfioError> {
        let device = function.address();
        Group::of(system, &function, by)?;
        let path = system.path(CONTAINERS);
        let file = open_file(device, path.clone(), |path| VfioError::NoVfio { device, path })?;
        let os = |doing, path: &PathBuf, source| VfioError::Os { device, doing, path: path.clone(), source };
        let version = ioctl::api_version(file.as_fd()).map_err(|error| os("reading the version of", &path, error))?;
        if version != VFIO_API_VERSION.cast_signed() {
            let what = format!("has version {version}");
            return Err(VfioError::Kernel { device, what, needed: "version 0" });
        }
        let (kind, what, needed) = if by.is_translated() {
            (VFIO_TYPE1v2_IOMMU, "has no type 1 IOMMU", "the module vfio_iommu_type1")
        } else {
            let needed = "echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode, and CONFIG_VFIO_NOIOMMU";
            (VFIO_NOIOMMU_IOMMU, "permits no device without an IOMMU", needed)
        };
        let extension = ioctl::has_extension(file.as_fd(), kind);
        if !extension.map_err(|error| os("reading the kinds of IOMMU of", &path, error))? {
            return Err(VfioError::Kernel { device, what: what.to_owned(), needed });
        }
        let group = Group::open(system, &function, by)?;
        ioctl::set_container(group.file.as_fd(), file.as_fd())
            .map_err(|error| os("adding to a container", &group.path, error))?;
        ioctl::set_iommu(file.as_fd(), kind).map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::PERM) if by.is_translated() => {
                VfioError::NoInterruptRemapping { device, module: "vfio_iommu_type1" }
            }
            _ => os("choosing the kind of IOMMU of", &path, error),
        })?;
        let opened = group.device(function)?;
        Ok((Container { group, file }, opened))
    }

    /// Opens another device in this container, and its group if that is another one.
    ///
    /// # Errors
    /// [`VfioError`].
    pub(super) fn join(
        &self,
        system: &System,
        function: PciFunction,
    ) -> Result<(VfioDevice, Option<Group>), VfioError> {
        let by = VfioInterface::Container;
        if Group::of(system, &function, by)?.1 == self.group.path {
            return Ok((self.group.device(function)?, None));
        }
        let group = Group::open(system, &function, by)?;
        ioctl::set_container(group.file.as_fd(), self.file.as_fd()).map_err(|source| VfioError::Os {
            device: function.address(),
            doing: "adding to a container",
            path: group.path.clone(),
            source,
        })?;
        Ok((group.device(function)?, Some(group)))
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Properties of the IOMMU of all groups in it.
    pub(super) fn properties(&self) -> io::Result<IommuProperties> {
        let mut room = [0_u64; ROOM];
        let info = ioctl::iommu_info(self.file(), &mut room)?;
        let page_sizes = (info.flags & VFIO_IOMMU_INFO_PGSIZES != 0).then_some(info.iova_pgsizes);
        let bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let start = if info.flags & VFIO_IOMMU_INFO_CAPS == 0 { 0 } else { info.cap_offset };
        let (spans, mappings_left) = capabilities(&bytes, start);
        let granule = 1 << page_sizes.unwrap_or(4096).trailing_zeros().clamp(12, 31);
        Ok(IommuProperties { granule, page_sizes, spans, mappings_left })
    }
}

/// Words for the properties with all capabilities.
const ROOM: usize = 512;

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
