//! Stub for targets without the measurement loops: other architectures.

use super::VfioError;
use crate::linux_sysfs::{Address, System};
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Memory of this process, mapped for a device; cannot be opened on this target.
#[derive(Debug)]
pub struct VfioMachine {
    never: Infallible,
}

impl VfioMachine {
    /// Always fails: the measurement loops exist for x86-64 Linux only.
    ///
    /// # Errors
    /// [`VfioError::Unsupported`], always.
    pub fn open(_system: &System, device: Address, _is_emulated: bool) -> Result<VfioMachine, VfioError> {
        let because = format!("measurements need x86-64 Linux; this is {}", std::env::consts::ARCH);
        Err(VfioError::Unsupported { device, because })
    }

    /// Sets the flag that ends a run with [`MachineError::Interrupted`].
    #[must_use]
    pub fn interrupted_by(self, _flag: Arc<AtomicBool>) -> VfioMachine {
        self
    }
}

impl Machine for VfioMachine {
    fn facts(&self) -> &Facts {
        match self.never {}
    }

    fn supports(&self, _plan: &Plan) -> Result<(), Unsupported> {
        match self.never {}
    }

    fn run(&mut self, _plan: &Plan, _samples: &mut Samples) -> Result<(), MachineError> {
        match self.never {}
    }
}
