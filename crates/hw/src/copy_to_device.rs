//! Memory copy for programs, with the instruction chosen by measurement.
//!
//! The fastest copy routine depends on the processor, the length and the device behind the destination; CPUID reports
//! none of this. [`DeviceCopy::calibrate`] therefore measures every routine this processor supports, within a time
//! limit, and keeps a table. A copy looks its routine up by its length.

#![allow(unsafe_code)]

use crate::destination::Destination;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::x86::copy_table::CopyTable;
use lanemark_machine::{Access, MachineError};
use std::time::Duration;

/// Memory copy that uses the fastest measured instruction for each length.
///
/// ```
/// use lanemark_hw::{Destination, DeviceCopy};
/// use std::time::Duration;
///
/// let Ok(copy) = DeviceCopy::calibrate(Destination::Cold, Duration::from_millis(50)) else { return };
/// let (message, mut ring) = ([7_u8; 256], vec![0_u8; 4096]);
/// copy.copy_to_device(&mut ring[1024..1280], &message);
/// assert_eq!(ring[1024..1280], message);
/// println!("256 B are copied by {}", copy.choice(256));
/// ```
#[derive(Clone, Debug)]
pub struct DeviceCopy {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    table: CopyTable,
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    never: std::convert::Infallible,
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl DeviceCopy {
    /// Measures every routine on copies of 64 B to 4 MiB between ordinary memory, for about `limit`; 0.3 s is enough.
    /// Each routine runs three times even if the limit has passed, which takes about 50 ms.
    ///
    /// # Errors
    /// [`MachineError::Os`] if the memory to measure on cannot be allocated; [`MachineError::Unsupported`] on another
    /// operating system or architecture.
    pub fn calibrate(destination: Destination, limit: Duration) -> Result<DeviceCopy, MachineError> {
        let table = CopyTable::measured(destination, limit).map_err(|source| MachineError::Os {
            machine: "host".to_owned(),
            doing: "allocating memory for the copy calibration",
            source: source.into(),
        })?;
        Ok(DeviceCopy { table })
    }

    /// Copies all of `from` to `to`. Stores may still be in the core's buffers on return: execute a fence before
    /// notifying a device.
    ///
    /// # Panics
    /// If the slices differ in length.
    #[inline]
    pub fn copy_to_device(&self, to: &mut [u8], from: &[u8]) {
        assert!(to.len() == from.len(), "cannot copy {} B into {} B: the lengths must be equal", from.len(), to.len());
        // SAFETY: both slices are valid for their common length, and an exclusive one overlaps no other.
        unsafe { self.table.copy(to.as_mut_ptr(), from.as_ptr(), from.len()) }
    }

    /// Instruction that copies of `len` bytes use.
    #[must_use]
    pub fn choice(&self, len: usize) -> Access {
        self.table.choice(len)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
impl DeviceCopy {
    /// Always fails: the routines exist for x86-64 Linux only.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`], always.
    pub fn calibrate(_: Destination, _: Duration) -> Result<DeviceCopy, MachineError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(MachineError::Unsupported(lanemark_machine::Unsupported {
            what: "calibrating a copy".to_owned(),
            machine: "host".to_owned(),
            because: format!("its routines exist for x86-64 Linux only; this is {arch} {os}"),
        }))
    }

    /// Copies all of `from` to `to`; cannot be called, because `calibrate` always fails here.
    pub fn copy_to_device(&self, _to: &mut [u8], _from: &[u8]) {
        match self.never {}
    }

    /// Instruction that copies of `len` bytes use; cannot be called, because `calibrate` always fails here.
    #[must_use]
    pub fn choice(&self, _len: usize) -> Access {
        match self.never {}
    }
}

#[cfg(test)]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "cannot copy 3 B into 4 B")]
    fn slices_of_different_lengths_are_rejected() {
        let copy = DeviceCopy::calibrate(Destination::Hot, Duration::ZERO).unwrap();
        copy.copy_to_device(&mut [0; 4], &[0; 3]);
    }
}
