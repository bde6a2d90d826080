//! Stub for targets without the timestamp code: other architectures and operating systems.

use super::CudaError;
use super::device::Device;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use lanemark_units::Ticks;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Device of the CUDA driver; cannot be opened on this target.
#[derive(Debug)]
pub struct CudaMachine {
    never: Infallible,
}

impl CudaMachine {
    /// Always fails: measuring needs timestamps, which exist for x86-64 Linux only.
    ///
    /// # Errors
    /// [`CudaError::System`], always.
    pub fn open(_number: usize, _interrupted: Arc<AtomicBool>) -> Result<CudaMachine, CudaError> {
        let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
        Err(CudaError::System(format!("its timestamps exist for x86-64 Linux only; this is {arch} {os}")))
    }

    /// Device; cannot be called, because `open` always fails here.
    #[must_use]
    pub fn device(&self) -> &Device {
        match self.never {}
    }

    /// State of the device under traffic; cannot be called, because `open` always fails here.
    ///
    /// # Errors
    /// None.
    pub fn under_traffic<T: Send + 'static>(
        &mut self,
        _look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CudaError> {
        match self.never {}
    }

    /// Latency of a read from the device's own memory; cannot be called, because `open` always fails here.
    #[must_use]
    pub const fn own_reads(&self) -> [Ticks; 2] {
        match self.never {}
    }

    /// Cores that a plan may name; cannot be called, because `open` always fails here.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        match self.never {}
    }
}

impl Machine for CudaMachine {
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
