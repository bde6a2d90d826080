//! Where the loops are not written: another processor architecture, another system.

use super::NAME;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The ordinary memory of this machine; on this architecture it cannot be opened.
#[derive(Debug)]
pub struct HostMemory {
    never: Infallible,
}

impl HostMemory {
    /// Refuses.
    ///
    /// # Errors
    /// [`MachineError::Unsupported`], always: the loops are written for x86-64 Linux.
    pub fn open() -> Result<HostMemory, MachineError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(MachineError::Unsupported(Unsupported {
            what: "measuring host memory".to_owned(),
            machine: NAME.to_owned(),
            because: format!("its loops are written for x86-64 Linux, and this is {arch} {os}"),
        }))
    }

    /// Ends a run with [`MachineError::Interrupted`] once `flag` is set.
    #[must_use]
    pub fn interrupted_by(self, _flag: Arc<AtomicBool>) -> HostMemory {
        self
    }

    /// What the region holds, to look closer.
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
