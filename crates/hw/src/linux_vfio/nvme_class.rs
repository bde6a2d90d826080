//! The class of NVMe drives.

use crate::linux_sysfs::{Address, System};
use crate::pci_driver::PciFunction;

/// Class code of an NVMe I/O controller. Source: PCI Code and ID Assignment Specification 1.11, 1.9.
const NVME: &str = "010802";

/// Whether the device is an NVMe I/O controller, by its class.
pub(super) fn is_nvme(system: &System, device: Address) -> bool {
    let class = PciFunction::find(system, device).and_then(|function| function.class());
    class.is_ok_and(|class| class == NVME)
}
