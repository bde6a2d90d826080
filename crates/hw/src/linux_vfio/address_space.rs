//! An I/O address space with a device in it, by one of the two interfaces of the kernel.

#![allow(unsafe_code)]

use super::container::{Container, FILE, Group};
use super::iommufd::{self, Iommufd};
use super::{IommuProperties, VfioDevice, VfioError, VfioInterface, ioctl};
use crate::linux_sysfs::{Address, System};
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
}

/// The interface, open.
#[derive(Debug)]
enum By {
    Container(Container),
    Iommufd(Iommufd),
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
    /// mastering is off.
    ///
    /// # Errors
    /// [`VfioError`].
    pub fn open(system: &System, device: Address, by: VfioInterface) -> Result<AddressSpace, VfioError> {
        let function = VfioDevice::of_system(system, device)?;
        let path = system.path(if by == VfioInterface::Container { FILE } else { iommufd::FILE });
        let (opened, by) = match by {
            VfioInterface::Container => {
                let (container, opened) = Container::open(system, function)?;
                (opened, By::Container(container))
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
        Ok(AddressSpace { device: Arc::new(opened), by, properties })
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
        }
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
        }
    }

    /// Unmaps whole mappings; returns the number of unmapped bytes.
    pub(super) fn unmap(&self, iova: Iova, len: u64) -> io::Result<u64> {
        match &self.by {
            By::Container(container) => ioctl::unmap(container.file(), iova.0, len),
            By::Iommufd(iommufd) => iommufd.unmap(iova, len),
        }
    }
}

impl By {
    fn properties(&self) -> io::Result<IommuProperties> {
        match self {
            By::Container(container) => container.properties(),
            By::Iommufd(iommufd) => iommufd.properties(),
        }
    }
}
