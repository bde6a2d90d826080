//! Where the timestamps are not written: another processor architecture, another system.

use super::device::Device;
use super::{FinishedKernels, OpenClError};
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A device behind an OpenCL runtime; on this architecture it cannot be opened.
#[derive(Debug)]
pub struct OpenClMachine {
    never: Infallible,
}

impl OpenClMachine {
    /// Refuses.
    ///
    /// # Errors
    /// [`OpenClError::System`], always: timestamps are written for x86-64 Linux.
    pub fn open(_number: usize, _interrupted: Arc<AtomicBool>) -> Result<OpenClMachine, OpenClError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(OpenClError::System(format!("its timestamps are written for x86-64 Linux, and this is {arch} {os}")))
    }

    /// There is none.
    #[must_use]
    pub fn device(&self) -> &Device {
        match self.never {}
    }

    /// There are none.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        match self.never {}
    }

    /// Refuses.
    ///
    /// # Errors
    /// As [`open`](OpenClMachine::open).
    pub fn open_with(
        number: usize,
        _kernels: Option<FinishedKernels>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<OpenClMachine, OpenClError> {
        OpenClMachine::open(number, interrupted)
    }
}

impl Machine for OpenClMachine {
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
