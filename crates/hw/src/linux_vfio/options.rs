//! Options with which a device is opened through VFIO.

use super::nvme_class::is_nvme;
use super::{DRIVER, PeerRange, VfioError, VfioInterface};
use crate::drive_options::DriveOptions;
use crate::host_page_size::HostPageSize;
use crate::linux_sysfs::{Address, Attachment, Consent, Device, Range, System};
use crate::pci_driver::PciFunction;
use lanemark_devices::{DeviceFile, Identifiers};
use std::sync::atomic::AtomicBool;

/// Options with which a device is opened through VFIO.
#[derive(Clone, Copy, Debug, Default)]
pub struct VfioOptions<'a> {
    /// Ranges of BARs that may be accessed by plans with loads and stores.
    pub ranges: &'a [Range],
    /// The description of the device, for its DMA engine.
    pub file: Option<&'a DeviceFile>,
    /// Memory of another device, for transfers between both.
    pub peer: Option<PeerRange>,
    /// Interface of the kernel; `None` for [the best one](VfioInterface::choose).
    pub interface: Option<VfioInterface>,
    /// Size of the pages of host memory for DMA; `None` for 2 MiB if enough are reserved, else 4 KiB; with `no-iommu` 2 MiB.
    pub pages: Option<HostPageSize>,
    /// Options of an NVMe drive.
    pub drive: DriveOptions,
    /// Whether timings are not meaningful.
    pub is_emulated: bool,
    /// Flag that ends the identification of an NVMe drive.
    pub interrupted: Option<&'a AtomicBool>,
}

impl VfioOptions<'_> {
    /// Checks the device against these options, without accessing it: its driver, its identity, its BARs and the ranges.
    ///
    /// # Errors
    /// [`VfioError`] of the first failed check.
    pub fn attachment(&self, system: &System, device: Address) -> Result<Attachment, VfioError> {
        self.attachment_with(system, device, false)
    }

    /// Whether the device is driven as an NVMe drive: by its class, and if no device file describes it.
    #[must_use]
    pub fn is_drive(&self, system: &System, device: Address) -> bool {
        self.file.is_none() && is_nvme(system, device)
    }

    /// As [`attachment`](VfioOptions::attachment); with `is_bound`, the driver may be another one, because the device will be
    /// bound before it is opened.
    pub(super) fn attachment_with(
        &self,
        system: &System,
        device: Address,
        is_bound: bool,
    ) -> Result<Attachment, VfioError> {
        let unsupported = |because: String| VfioError::Unsupported { device, because };
        let not_bound = || VfioError::NotBound { device, path: system.device(device).join("driver") };
        let found = Device::find(system, device).map_err(|error| unsupported(error.to_string()))?;
        let driver = found.driver().map_err(|error| unsupported(error.to_string()))?;
        if !is_bound && driver.as_deref() != Some(DRIVER) {
            return Err(not_bound());
        }
        if let Some(field) = self.drive.given().filter(|_| !self.is_drive(system, device)) {
            let because = "applies to NVMe drives only (class 01:08:02, without a device file): remove it";
            return Err(unsupported(format!("{field}: {because}")));
        }
        if let Some(why) = self.drive.contradiction() {
            return Err(unsupported(why));
        }
        let mut attachment = Attachment::of(found, driver);
        if let Some(file) = self.file {
            check_identity(system, device, file)?;
            let bars = attachment.device.bars().map_err(|error| unsupported(error.to_string()))?;
            for wanted in &file.bars {
                let found = bars.iter().find(|bar| bar.number == wanted.number).map_or(0, |bar| bar.len);
                if found < wanted.len_bytes {
                    let (number, len) = (wanted.number, wanted.len_bytes);
                    let because =
                        format!("BAR{number} has {found:#x} B, and the device file of '{}' needs {len:#x}", file.name);
                    return Err(unsupported(because));
                }
            }
        }
        if !self.ranges.is_empty() {
            let consent = Consent { owns_device: true, enable: false };
            let named = Attachment::rehearsed(system, device, self.ranges, consent);
            attachment.places = named.map_err(|error| unsupported(error.to_string()))?.0.places;
        }
        Ok(attachment)
    }
}

/// Fails if the device has another identity than the file.
fn check_identity(system: &System, device: Address, file: &DeviceFile) -> Result<(), VfioError> {
    let unsupported = |because: String| VfioError::Unsupported { device, because };
    let function = PciFunction::find(system, device).map_err(|error| unsupported(error.to_string()))?;
    let found = function.identifiers().map_err(|error| unsupported(error.to_string()))?;
    let Identifiers { vendor, device: id, subsystem_vendor, subsystem_device, revision } = file.id;
    let wanted = [
        ("vendor", Some(u32::from(vendor)), found[0]),
        ("device", Some(u32::from(id)), found[1]),
        ("subsystem_vendor", subsystem_vendor.map(u32::from), found[2]),
        ("subsystem_device", subsystem_device.map(u32::from), found[3]),
        ("revision", revision.map(u32::from), found[4]),
    ];
    match wanted.iter().find(|(_, wanted, found)| wanted.is_some_and(|wanted| wanted != *found)) {
        None => Ok(()),
        Some((key, wanted, found)) => Err(unsupported(format!(
            "it is not the device '{}': its {key} is {found:#x}, and the device file has id.{key} = {:#x}; use the file of this device",
            file.name,
            wanted.unwrap_or(0)
        ))),
    }
}
