//! Errors of VFIO.

use crate::linux_sysfs::{Address, CardError};
use std::path::PathBuf;

/// Error of opening a device through VFIO.
///
/// Each message names the device and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum VfioError {
    /// A BAR or a range of it that cannot be used.
    #[error(transparent)]
    Range(CardError),
    /// The kernel module is not loaded.
    #[error(
        "{device}: no {}: load VFIO with: modprobe vfio-pci; the kernel needs CONFIG_VFIO_CONTAINER, or else CONFIG_IOMMUFD and CONFIG_VFIO_DEVICE_CDEV",
        path.display()
    )]
    NoVfio {
        /// Device.
        device: Address,
        /// Missing file.
        path: PathBuf,
    },
    /// iommufd was chosen, and the kernel or its module has not this file.
    #[error(
        "{device}: no {}: iommufd needs Linux 6.6 or newer with CONFIG_IOMMUFD and CONFIG_VFIO_DEVICE_CDEV, and the device bound to vfio-pci: load it with: modprobe iommufd; or use groups with: --vfio container",
        path.display()
    )]
    NoIommufd {
        /// Device.
        device: Address,
        /// Missing file.
        path: PathBuf,
    },
    /// Memory of another device can be mapped in a container only. Source: Linux, `pfn_reader_user_pin`, whose
    /// `pin_user_pages` refuses pages of a BAR.
    #[error(
        "{device}: iommufd maps no memory of another card, so transfers between cards need a container: use --vfio container, on a kernel with CONFIG_VFIO_GROUP and CONFIG_VFIO_CONTAINER"
    )]
    NoPeerByIommufd {
        /// Device.
        device: Address,
    },
    /// Memory of another device is mapped by the IOMMU.
    #[error("{device}: transfers between cards need an IOMMU here: remove --peer or --vfio no-iommu")]
    NoPeerWithoutIommu {
        /// Device.
        device: Address,
    },
    /// The device is behind no IOMMU, and the user has not said that it may be used so. Source: Linux, `vfio_noiommu_group_alloc`.
    #[error(
        "{device} is behind no IOMMU, so its DMA reaches all memory of this machine: turn the IOMMU on in the firmware setup, or accept that with: --vfio no-iommu"
    )]
    Untranslated {
        /// Device.
        device: Address,
    },
    /// The device is behind no IOMMU, and its DMA cannot be ended for certain.
    #[error(
        "{device} is behind no IOMMU and cannot be reset, so a transfer that was left from an earlier run could overwrite other memory: use a card that can be reset, or an IOMMU"
    )]
    NotResettable {
        /// Device.
        device: Address,
    },
    /// The device is behind an IOMMU, or the kernel does not permit VFIO without one.
    #[error(
        "{device}: no {}: --vfio no-iommu is for a device without an IOMMU, bound to vfio-pci after: echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode; the kernel needs CONFIG_VFIO_NOIOMMU; with an IOMMU, remove --vfio no-iommu",
        path.display()
    )]
    NotUntranslated {
        /// Device.
        device: Address,
        /// Missing file.
        path: PathBuf,
    },
    /// The platform does not remap interrupts, so the kernel does not permit VFIO. Source: Linux,
    /// `vfio_iommu_type1_attach_group` and `iommufd_group_setup_msi`.
    #[error(
        "{device}: this platform does not remap interrupts, so the device could send any interrupt to the processors, and the kernel refuses VFIO: turn interrupt remapping on in the firmware setup; if you trust the device, or in a virtual machine without remapping, permit it with: echo 1 > /sys/module/{module}/parameters/allow_unsafe_interrupts"
    )]
    NoInterruptRemapping {
        /// Device.
        device: Address,
        /// Kernel module with the setting that permits it.
        module: &'static str,
    },
    /// The device is not bound to `vfio-pci`.
    #[error("{device} is not bound to vfio-pci (no {}): bind it with: lanemark bind {device}", path.display())]
    NotBound {
        /// Device.
        device: Address,
        /// Missing file.
        path: PathBuf,
    },
    /// The kernel speaks another version of VFIO, or has no type 1 IOMMU.
    #[error("{device}: the VFIO of this kernel {what}; needed: {needed}")]
    Kernel {
        /// Device.
        device: Address,
        /// Version found, or missing capability.
        what: String,
        /// Required version or module.
        needed: &'static str,
    },
    /// This machine cannot do it.
    #[error("{device}: {because}")]
    Unsupported {
        /// Device.
        device: Address,
        /// The reason.
        because: String,
    },
    /// Another driver uses a device of the group.
    #[error(
        "{device}: its IOMMU group {group} also has a device with another driver: see 'ls {}/devices', and bind or unbind those devices",
        path.display()
    )]
    NotViable {
        /// Device.
        device: Address,
        /// Group.
        group: String,
        /// Folder of the group.
        path: PathBuf,
    },
    /// The slot has another device than at opening, or another driver.
    #[error(
        "{device} was {was} when it was opened and is {is} now: it was replaced or bound to another driver; open it again"
    )]
    Changed {
        /// Device.
        device: Address,
        /// Identity and driver at opening.
        was: String,
        /// Identity and driver now.
        is: String,
    },
    /// The device does not respond, or the kernel requests it back.
    #[error("{device} is gone ({seen}): it was removed or reset, or its link is down; see 'dmesg | grep {device}'")]
    Gone {
        /// Device.
        device: Address,
        /// Observation that shows it.
        seen: String,
    },
    /// Memory decoding was turned off after opening.
    #[error(
        "{device}: memory decoding is off (bit 1 of its Command register), so loads from its BARs return all ones: something has turned it off during the run; end other programs that access its configuration space, such as setpci, and run again, which turns it on"
    )]
    NotDecoding {
        /// Device.
        device: Address,
    },
    /// Another process has its group, or another driver a device of the group.
    #[error(
        "{device}: its IOMMU group is in use: end the program that uses it by groups, or see 'ls /sys/bus/pci/devices/{device}/iommu_group/devices', and bind or unbind devices with other drivers"
    )]
    InUse {
        /// Device.
        device: Address,
        /// File of the device.
        path: PathBuf,
    },
    /// Another process has the group or the device.
    #[error("{device}: another process uses it or its IOMMU group ({}): end it first", path.display())]
    Busy {
        /// Device.
        device: Address,
        /// File of the group or of the device.
        path: PathBuf,
    },
    /// Permission denied.
    #[error("{device}: no permission to open {}: run as root, or give this user the file", path.display())]
    Permission {
        /// Device.
        device: Address,
        /// File.
        path: PathBuf,
    },
    /// The drive was being identified when the run was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The operating system refused.
    #[error("{device}: {doing} {}: {source}", path.display())]
    Os {
        /// Device.
        device: Address,
        /// The operation.
        doing: &'static str,
        /// File.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
}
