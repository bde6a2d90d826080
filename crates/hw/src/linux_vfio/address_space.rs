//! An I/O address space with a device in it, by one of the two interfaces of the kernel.

#![allow(unsafe_code)]

use super::container::{Container, Group};
use super::interface::CONTAINERS;
use super::iommufd::{self, Iommufd};
use super::physical::Pagemap;
use super::{IommuProperties, VfioDevice, VfioError, VfioInterface, ioctl};
use crate::host_page_size::HostPageSize;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::host_pages::HostPages;
use crate::linux_sysfs::{Address, System};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use lanemark_units::format_size;
use lanemark_units::{HostVirt, Iova};
use std::io;
use std::sync::Arc;

/// An open I/O address space, in which a device is.
///
/// Closing it removes all mappings.
#[derive(Debug)]
pub struct AddressSpace {
    /// Closed before its interface.
    device: Arc<VfioDevice>,
    by: By,
    properties: IommuProperties,
    /// Pages of host memory, if the user has chosen.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pages: Option<HostPageSize>,
}

/// The interface, open.
#[derive(Debug)]
enum By {
    Container(Container),
    Iommufd(Iommufd),
    NoIommu { _container: Container, pagemap: Pagemap },
}

/// Another device in an address space, see [`AddressSpace::join`].
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

impl AddressSpace {
    /// Opens a device that is bound to `vfio-pci` by an interface. The device is reset by the kernel if it can be; bus
    /// mastering is off. `pages` is the size of the pages of host memory for it, if that is chosen.
    ///
    /// # Errors
    /// [`VfioError`].
    pub fn open(
        system: &System,
        device: Address,
        by: VfioInterface,
        pages: Option<HostPageSize>,
    ) -> Result<AddressSpace, VfioError> {
        let function = VfioDevice::of_system(system, device)?;
        let path = system.path(if by == VfioInterface::Iommufd { iommufd::FILE } else { CONTAINERS });
        let (opened, by) = match by {
            VfioInterface::Container => {
                let (container, opened) = Container::open(system, function, by)?;
                (opened, By::Container(container))
            }
            VfioInterface::NoIommu => {
                let pagemap = Pagemap::open().map_err(|source| {
                    let path = "/proc/self/pagemap".into();
                    VfioError::Os { device, doing: "opening", path, source }
                })?;
                let (container, opened) = Container::open(system, function, by)?;
                if !opened.can_reset() {
                    return Err(VfioError::NotResettable { device });
                }
                (opened, By::NoIommu { _container: container, pagemap })
            }
            VfioInterface::Iommufd => {
                let (iommufd, opened) = Iommufd::open(system, function)?;
                (opened, By::Iommufd(iommufd))
            }
        };
        let properties = by.properties().map_err(|source| {
            let doing = "reading the properties of the IOMMU of";
            VfioError::Os { device, doing, path, source }
        })?;
        Ok(AddressSpace { device: Arc::new(opened), by, properties, pages })
    }

    /// Opens another device that is bound to `vfio-pci`, in the same I/O address space: what is mapped here, both can access.
    /// Close the other device before this one.
    ///
    /// # Errors
    /// [`VfioError`]; [`VfioError::NoPeerByIommufd`] unless this is a container.
    pub fn join(&mut self, system: &System, device: Address) -> Result<Joined, VfioError> {
        let By::Container(container) = &self.by else {
            return Err(VfioError::NoPeerByIommufd { device: self.device.address() });
        };
        let (opened, group) = container.join(system, VfioDevice::of_system(system, device)?)?;
        // The IOMMU of another group may have other page sizes, and other reserved addresses.
        self.properties = container.properties().map_err(|source| VfioError::Os {
            device,
            doing: "reading the properties of the IOMMU of",
            path: opened.path().clone(),
            source,
        })?;
        Ok(Joined { device: Arc::new(opened), _group: group })
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Arc<VfioDevice> {
        &self.device
    }

    /// The interface by which it is open.
    #[must_use]
    pub const fn interface(&self) -> VfioInterface {
        match self.by {
            By::Container(_) => VfioInterface::Container,
            By::Iommufd(_) => VfioInterface::Iommufd,
            By::NoIommu { .. } => VfioInterface::NoIommu,
        }
    }

    /// The address at which the device reaches memory without an IOMMU: the physical one; `None` with an IOMMU.
    ///
    /// # Errors
    /// The physical address cannot be read.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) fn untranslated(&self, memory: HostVirt) -> io::Result<Option<Iova>> {
        let By::NoIommu { pagemap, .. } = &self.by else { return Ok(None) };
        pagemap.physical(memory).map(|physical| Some(Iova(physical)))
    }

    /// Properties of the IOMMU, with all devices that have been opened.
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
        match &self.by {
            // SAFETY: guaranteed by the caller.
            By::Container(container) => unsafe { ioctl::map(container.file(), iova.0, memory.0, len, may) },
            // SAFETY: guaranteed by the caller.
            By::Iommufd(iommufd) => unsafe { iommufd.map(iova, memory, len, may) },
            By::NoIommu { pagemap, .. } => {
                // Nothing is entered anywhere. Each page must be where the device will look for it.
                let is_there = |at: u64| Ok(pagemap.physical(HostVirt(memory.0 + at))? == iova.0 + at);
                let there = (0..len).step_by(PAGE).map(is_there).collect::<io::Result<Vec<bool>>>()?;
                if there.into_iter().all(|is_there| is_there) {
                    return Ok(());
                }
                Err(io::Error::other("the kernel has moved a page since its allocation: run again"))
            }
        }
    }

    /// Unmaps whole mappings; returns the number of unmapped bytes.
    pub(super) fn unmap(&self, iova: Iova, len: u64) -> io::Result<u64> {
        match &self.by {
            By::Container(container) => ioctl::unmap(container.file(), iova.0, len),
            By::Iommufd(iommufd) => iommufd.unmap(iova, len),
            By::NoIommu { .. } => Ok(len),
        }
    }
}

/// Bytes of a page.
const PAGE: usize = 4096;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl AddressSpace {
    /// Allocates host memory for the device. Without an IOMMU, its pages are huge and one range of physical addresses, and it is
    /// shorter than `len` if no longer one is to be had.
    ///
    /// # Errors
    /// Too few pages of the chosen size, or none without an IOMMU, are reserved; the physical addresses cannot be read.
    pub(crate) fn allocate(&self, len: u64) -> io::Result<HostPages> {
        let By::NoIommu { pagemap, .. } = &self.by else { return HostPages::sized(len, self.pages) };
        let size = match self.pages {
            None => HostPageSize::Mib2,
            // The kernel may move small pages at any time.
            Some(HostPageSize::Kib4) => {
                let because = "without an IOMMU, pages of 4 KiB cannot be used, because the kernel may move them: use --host-pages 2MiB or 1GiB";
                return Err(io::Error::other(because));
            }
            Some(size) => size,
        };
        HostPages::contiguous(len, size, |at| pagemap.physical(at))
    }

    /// As [`allocate`](AddressSpace::allocate), of no less than `len`.
    ///
    /// # Errors
    /// As there, and if there is less.
    pub(super) fn allocate_whole(&self, len: u64) -> io::Result<HostPages> {
        let pages = self.allocate(len)?;
        if pages.len() < len {
            let [wanted, found] = [len, pages.len()].map(format_size);
            return Err(io::Error::other(format!(
                "{wanted} are needed at one range of physical addresses, and the reserved huge pages have {found} at most: reserve more, \
                 or use --host-pages 1GiB, or smaller --sizes and --window"
            )));
        }
        Ok(pages)
    }
}

impl By {
    fn properties(&self) -> io::Result<IommuProperties> {
        match self {
            By::Container(container) => container.properties(),
            By::Iommufd(iommufd) => iommufd.properties(),
            By::NoIommu { .. } => Ok(IommuProperties::untranslated()),
        }
    }
}
