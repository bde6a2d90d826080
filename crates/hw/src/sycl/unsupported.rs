//! Stub for targets without the timestamp code: other architectures and operating systems.

use super::error::SyclError;
use crate::opencl::FinishedKernels;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Device of a SYCL runtime; cannot be opened on this target.
#[derive(Debug)]
pub struct SyclMachine {
    never: Infallible,
}

impl SyclMachine {
    /// Always fails: measuring needs timestamps, which exist for x86-64 Linux only.
    ///
    /// # Errors
    /// [`SyclError::System`], always.
    pub fn open(_number: usize, _interrupted: Arc<AtomicBool>) -> Result<SyclMachine, SyclError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(SyclError::System(format!("its timestamps exist for x86-64 Linux only; this is {arch} {os}")))
    }

    /// Always fails, as [`open`](SyclMachine::open).
    ///
    /// # Errors
    /// The errors of [`open`](SyclMachine::open).
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
