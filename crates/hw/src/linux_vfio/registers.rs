//! Registers of a device, by loads and stores to a mapped BAR, or by system calls where it cannot be mapped.

#![allow(unsafe_code)]

use super::VfioDevice;
use super::bars::DeviceBars;
use crate::linux_sysfs::{Attachment, CardError, Device, Kind, Place, Range, Window, access};
use lanemark_units::MemoryType;
use rustix::io::{Errno, pread, pwrite};
use std::marker::PhantomData;
use std::sync::Arc;

/// Registers of one BAR.
#[derive(Debug)]
pub(super) struct Registers {
    device: Arc<VfioDevice>,
    way: Way,
}

/// Access path of the registers.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // A machine has one value.
enum Way {
    Mapped(Window),
    /// Offset of the BAR in the device file.
    Called(u64),
}

/// A register of 4 B that is stored to many times.
#[derive(Debug)]
pub(super) struct RegisterDoorbell<'a>(DoorbellWay<'a>);

#[derive(Debug)]
enum DoorbellWay<'a> {
    /// An aligned register in the mapped range.
    Mapped(*mut u32, PhantomData<&'a Window>),
    /// By system calls, at this offset.
    Called(&'a Registers, u64),
}

impl RegisterDoorbell<'_> {
    /// Stores the register.
    #[inline]
    pub(super) fn store(&self, value: u32) -> Result<(), Errno> {
        match &self.0 {
            DoorbellWay::Mapped(to, _) => {
                // SAFETY: `doorbell` has checked the address; the range is mapped for stores.
                unsafe { to.write_volatile(value) };
                Ok(())
            }
            DoorbellWay::Called(registers, offset) => registers.store(*offset, 4, value.into()),
        }
    }
}

impl Registers {
    /// Maps the registers from `from` to `to` of a BAR, if VFIO maps their pages.
    ///
    /// # Errors
    /// [`CardError`] of the BAR.
    pub(super) fn open(
        device: &Arc<VfioDevice>,
        sysfs: &Device,
        bar: u8,
        from: u64,
        to: u64,
    ) -> Result<Registers, CardError> {
        let kind = Kind::Registers { may_load: true, may_store: true };
        let range = Range { bar, from, to, kind: Some(kind) };
        let place: Place = Attachment::place(sysfs, range)?;
        let way = match Window::open(sysfs, &DeviceBars(Arc::clone(device)), &place, MemoryType::Uc) {
            Ok(window) => Way::Mapped(window),
            Err(CardError::NotMappable { .. }) => {
                let region =
                    device.bar(bar).map_err(|error| sysfs.os("finding a BAR in", device.path().clone(), error))?;
                Way::Called(region.start)
            }
            Err(other) => return Err(other),
        };
        Ok(Registers { device: Arc::clone(device), way })
    }

    /// Whether an access is a system call.
    pub(super) const fn is_called(&self) -> bool {
        matches!(self.way, Way::Called(_))
    }

    /// Loads a register of `width` (4 or 8) bytes.
    #[inline]
    pub(super) fn load(&self, offset: u64, width: u8) -> Result<u64, Errno> {
        match &self.way {
            Way::Mapped(window) => {
                let at = window.at(offset, u64::from(width)).map_err(|_| Errno::FAULT)?;
                // SAFETY: the register is within the mapped range; the reader of device files checks its alignment.
                Ok(unsafe { access::load(at, width.into()) })
            }
            Way::Called(start) => {
                let mut bytes = [0; 8];
                match pread(self.device.file(), &mut bytes[..width.into()], start + offset)? {
                    len if len == usize::from(width) => Ok(u64::from_le_bytes(bytes)),
                    _ => Err(Errno::IO),
                }
            }
        }
    }

    /// Stores to a register of `width` (4 or 8) bytes.
    #[inline]
    pub(super) fn store(&self, offset: u64, width: u8, value: u64) -> Result<(), Errno> {
        match &self.way {
            Way::Mapped(window) => {
                let at = window.at(offset, u64::from(width)).map_err(|_| Errno::FAULT)?;
                // SAFETY: as for `load`; the range is mapped for stores.
                unsafe { access::store(at, width.into(), value) };
                Ok(())
            }
            Way::Called(start) => {
                match pwrite(self.device.file(), &value.to_le_bytes()[..width.into()], start + offset)? {
                    len if len == usize::from(width) => Ok(()),
                    _ => Err(Errno::IO),
                }
            }
        }
    }

    /// A register of 4 B that is stored to many times.
    ///
    /// # Errors
    /// `EFAULT` outside of mapped registers, and `EINVAL` at an offset that is no multiple of 4.
    pub(super) fn doorbell(&self, offset: u64) -> Result<RegisterDoorbell<'_>, Errno> {
        if !offset.is_multiple_of(4) {
            return Err(Errno::INVAL);
        }
        Ok(RegisterDoorbell(match &self.way {
            Way::Mapped(window) => {
                let to = window.at(offset, 4).map_err(|_| Errno::FAULT)?;
                DoorbellWay::Mapped(to.cast(), PhantomData)
            }
            Way::Called(_) => DoorbellWay::Called(self, offset),
        }))
    }

    /// Fails if the BAR has vanished under its mapping.
    pub(super) fn check(&self) -> Result<(), CardError> {
        match &self.way {
            Way::Mapped(window) => window.check(),
            Way::Called(_) => Ok(()),
        }
    }
}
