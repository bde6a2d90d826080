//! Stub for targets without the measurement loops: other architectures.

use super::{UnmappedRead, VfioError, VfioOptions};
use crate::drive_options::Destructive;
use crate::linux_sysfs::{Address, Attachment, Mapping, Rehearsal, System};
use crate::no_machine::no_machine;
use lanemark_machine::MachineError;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn unsupported(device: Address) -> VfioError {
    let because = format!("measurements need x86-64 Linux; this is {}", std::env::consts::ARCH);
    VfioError::Unsupported { device, because }
}

/// A device behind VFIO; cannot be opened on this target.
#[derive(Debug)]
pub struct VfioMachine {
    never: Infallible,
}

/// Dry run of a device behind VFIO; cannot be created on this target.
#[derive(Debug)]
pub struct VfioRehearsal {
    never: Infallible,
}

/// Record of a dry run; always empty on this target.
#[derive(Clone, Debug, Default)]
pub struct VfioNotes {}

// Same interface as on x86-64 Linux, but every constructor fails.
#[allow(missing_docs, clippy::missing_errors_doc, clippy::needless_pass_by_value)]
impl VfioMachine {
    pub fn open(_: &System, device: Address, _: &VfioOptions<'_>) -> Result<VfioMachine, VfioError> {
        Err(unsupported(device))
    }
    #[must_use]
    pub fn interrupted_by(self, _flag: Arc<AtomicBool>) -> VfioMachine {
        self
    }
    #[must_use]
    pub fn attachment(&self) -> Option<&Attachment> {
        match self.never {}
    }
    pub fn read_drive(&mut self, _: u64, _: u64, _: (u32, u32), _: &mut [u8]) -> Result<(), MachineError> {
        match self.never {}
    }
    pub fn read_unmapped(&mut self) -> Result<UnmappedRead, MachineError> {
        match self.never {}
    }
    #[must_use]
    pub fn overwrites(&self) -> Option<Destructive> {
        match self.never {}
    }
    #[must_use]
    pub fn keeps_data_in_drive(&self) -> bool {
        match self.never {}
    }
    #[must_use]
    pub fn reads_a_drive(&self) -> bool {
        match self.never {}
    }
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        match self.never {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc)]
impl VfioRehearsal {
    pub fn new(_: &System, device: Address, _: &VfioOptions<'_>, _: bool) -> Result<VfioRehearsal, VfioError> {
        Err(unsupported(device))
    }
    #[must_use]
    pub fn summary(&self) -> &[String] {
        match self.never {}
    }
    #[must_use]
    pub fn ranges(&self) -> Option<&Rehearsal> {
        match self.never {}
    }
    #[must_use]
    pub fn notes(&self) -> VfioNotes {
        match self.never {}
    }
}

#[allow(missing_docs)]
impl VfioNotes {
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        Vec::new()
    }
}

no_machine!(VfioMachine, VfioRehearsal);
