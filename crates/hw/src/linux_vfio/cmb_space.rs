//! The controller memory buffer of an NVMe drive as memory for loads and stores, or for another device.

use super::nvme_class::is_nvme;
use super::registers::Registers;
use super::{VfioDevice, VfioError, drive};
use crate::linux_sysfs::{Address, Attachment, Device, Kind, Range, System};
use crate::nvme::{Cmb, EnabledSpace, NvmeError, has_cmb_control};
use lanemark_machine::MachineError;
use std::fmt;
use std::sync::Arc;

/// A controller memory buffer that has a named range, and that is accessible only while the controller memory space is enabled
/// (CMBMSC, since NVMe 1.4).
#[derive(Debug)]
pub(super) struct CmbSpace {
    device: Address,
    registers: Registers,
    cmb: Cmb,
    /// Address of its first byte on the bus.
    address: u64,
}

impl CmbSpace {
    /// Finds the buffer; `None` if the device is no NVMe drive, if no range is in its buffer, and before NVMe 1.4.
    ///
    /// # Errors
    /// [`VfioError`] of a controller that does not respond, and of its registers.
    pub(super) fn find(
        system: &System,
        device: &Arc<VfioDevice>,
        sysfs: &Device,
        ranges: &[Range],
    ) -> Result<Option<CmbSpace>, VfioError> {
        /// End of the registers up to CMBSTS.
        const END: u64 = 0x5c;
        let address = device.address();
        if ranges.is_empty() || !is_nvme(system, address) {
            return Ok(None);
        }
        let unsupported = |error: NvmeError| VfioError::Unsupported { device: address, because: error.to_string() };
        let registers = Registers::open(device, sysfs, drive::BAR, 0, END).map_err(VfioError::Range)?;
        if !has_cmb_control(&registers).map_err(unsupported)? {
            return Ok(None);
        }
        let Some(cmb) = Cmb::look(&registers).map_err(unsupported)? else { return Ok(None) };
        let (from, to) = (cmb.offset, cmb.offset.saturating_add(cmb.len));
        if !ranges.iter().any(|range| range.bar == cmb.bar && range.from < to && from < range.to) {
            return Ok(None);
        }
        let kind = Some(Kind::Storage);
        let place = Attachment::place(sysfs, Range { bar: cmb.bar, from, to, kind }).map_err(VfioError::Range)?;
        let start = place.bar.start.0.saturating_add(from);
        Ok(Some(CmbSpace { device: address, registers, cmb, address: start }))
    }

    /// Enables the controller memory space until the result is dropped.
    ///
    /// # Errors
    /// [`MachineError`] of a controller that refuses the address, and of its registers.
    pub(super) fn enable(&self, machine: &str) -> Result<EnabledSpace<'_, Registers>, MachineError> {
        EnabledSpace::enable(&self.registers, self.address).map_err(|error| {
            let what = format!("{}: {error}", self.device);
            MachineError::Device { machine: machine.to_owned(), what }
        })
    }
}

impl fmt::Display for CmbSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (CmbSpace { device, .. }, Cmb { bar, offset, .. }) = (self, self.cmb);
        write!(f, "controller memory buffer of {device} at BAR{bar}+{offset:#x}, enabled by CMBMSC while a run uses it")
    }
}
