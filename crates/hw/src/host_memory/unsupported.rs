//! Stub for targets without the measurement loops: other architectures and operating systems.

use super::NAME;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Ordinary memory of this machine; cannot be opened on this target.
#[derive(Debug)]
pub struct HostMemory {
    never: Infallible,
}

impl HostMemory {
    /// Always fails: the measurement loops exist for x86-64 Linux only.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`], always.
    pub fn open() -> Result<HostMemory, MachineError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(MachineError::Unsupported(Unsupported {
            what: "measuring host memory".to_owned(),
            machine: NAME.to_owned(),
            because: format!("its measurement loops exist for x86-64 Linux only; this is {arch} {os}"),
        }))
    }

    /// Sets the flag that ends a run with [`MachineError::Interrupted`].
    #[must_use]
    pub fn interrupted_by(self, _flag: Arc<AtomicBool>) -> HostMemory {
        self
    }

    /// Current contents of the region.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self.never {}
    }
}

impl Machine for HostMemory {
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
