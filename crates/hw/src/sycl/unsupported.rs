//! Where the timestamps are not written: another processor architecture, another system.

use super::SyclError;
use crate::opencl::FinishedKernels;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A device behind a SYCL runtime; on this architecture it cannot be opened.
#[derive(Debug)]
pub struct SyclMachine {
    never: Infallible,
}

impl SyclMachine {
    /// Refuses.
    ///
    /// # Errors
    /// [`SyclError::System`], always: timestamps are written for x86-64 Linux.
    pub fn open(_number: usize, _interrupted: Arc<AtomicBool>) -> Result<SyclMachine, SyclError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(SyclError::System(format!("its timestamps are written for x86-64 Linux, and this is {arch} {os}")))
    }

    /// Refuses.
    ///
    /// # Errors
    /// As [`open`](SyclMachine::open).
    pub fn open_with(
        number: usize,
        _kernels: Option<FinishedKernels>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<SyclMachine, SyclError> {
        SyclMachine::open(number, interrupted)
    }
}

impl Machine for SyclMachine {
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
