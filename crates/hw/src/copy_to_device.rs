//! A copy that picks its instruction by measurement, for programs that use this library.
//!
//! Which copy is the fastest depends on the processor, on the length, and on what stands behind the
//! destination; CPUID tells none of it. So [`DeviceCopy::calibrate`] tries every routine this processor has,
//! once, for a bounded time, and keeps a table; a copy looks its routine up by its length.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::x86::copy_table::CopyTable;
use lanemark_machine::{Access, MachineError};
use std::time::Duration;

/// What a copy finds at its destination.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Destination {
    /// Lines that this core has in a cache: memory that is written again and again.
    Hot,
    /// Lines that no cache has: memory that something else will read, or that was not used for long.
    Cold,
}

/// Copies with the instruction that was measured to be the fastest for each length.
///
/// ```
/// use lanemark_hw::{Destination, DeviceCopy};
/// use std::time::Duration;
///
/// let Ok(copy) = DeviceCopy::calibrate(Destination::Cold, Duration::from_millis(50)) else { return };
/// let (message, mut ring) = ([7_u8; 256], vec![0_u8; 4096]);
/// copy.copy_to_device(&mut ring[1024..1280], &message);
/// assert_eq!(ring[1024..1280], message);
/// println!("256 B go by {}", copy.choice(256));
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
    /// Measures copies of 64 B to 4 MiB between ordinary memory, each routine in turn, for about `limit`; 0.3 s
    /// are plenty. Each routine is tried three times even if the time is over, which takes some 50 ms.
    ///
    /// # Errors
    /// [`MachineError::Os`] if there is no memory for it; [`MachineError::Unsupported`] on another system or
    /// architecture.
    pub fn calibrate(destination: Destination, limit: Duration) -> Result<DeviceCopy, MachineError> {
        let table = CopyTable::measured(destination, limit).map_err(|source| MachineError::Os {
            machine: "host".to_owned(),
            doing: "allocating memory to measure copies on",
            source: source.into(),
        })?;
        Ok(DeviceCopy { table })
    }

    /// Copies all of `from` to `to`. Stores may still be in the core's buffers when it returns: order them with a
    /// fence before telling a device.
    ///
    /// # Panics
    /// If the two differ in length.
    #[inline]
    pub fn copy_to_device(&self, to: &mut [u8], from: &[u8]) {
        assert!(to.len() == from.len(), "{} B cannot be copied to {} B", from.len(), to.len());
        // SAFETY: both slices are valid for their common length, and an exclusive one overlaps no other.
        unsafe { self.table.copy(to.as_mut_ptr(), from.as_ptr(), from.len()) }
    }

    /// By which instruction copies of this length go.
    #[must_use]
    pub fn choice(&self, len: usize) -> Access {
        self.table.choice(len)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
impl DeviceCopy {
    /// Refuses.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`], always: the routines are written for x86-64 Linux.
    pub fn calibrate(_: Destination, _: Duration) -> Result<DeviceCopy, MachineError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(MachineError::Unsupported(lanemark_machine::Unsupported {
            what: "choosing a copy".to_owned(),
            machine: "host".to_owned(),
            because: format!("its routines are written for x86-64 Linux, and this is {arch} {os}"),
        }))
    }

    /// Copies all of `from` to `to`.
    pub fn copy_to_device(&self, _to: &mut [u8], _from: &[u8]) {
        match self.never {}
    }

    /// By which instruction copies of this length go.
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
    #[should_panic(expected = "3 B cannot be copied to 4 B")]
    fn ends_of_different_lengths_are_refused() {
        let copy = DeviceCopy::calibrate(Destination::Hot, Duration::ZERO).unwrap();
        copy.copy_to_device(&mut [0; 4], &[0; 3]);
    }
}
