//! Interface to the compute kernels of a runtime.

use crate::NoHostMemory;
use crate::kernel_source::KernelSource;
use lanemark_machine::Verb;

/// Specification of a set of kernels: one program, one work item each, each with its own queue and arrays.
#[derive(Debug)]
pub(crate) struct WorkersSpec {
    /// Source of the program that every worker runs.
    pub(crate) source: KernelSource,
    pub(crate) workers: Vec<WorkerSpec>,
}

/// Arguments of one worker: arrays first, then numbers.
#[derive(Debug)]
pub(crate) struct WorkerSpec {
    pub(crate) arrays: Vec<Array>,
    pub(crate) numbers: Vec<Number>,
}

/// Array in device memory, at least 1 B long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    /// Memory port; ignored on devices without selectable ports.
    pub(crate) port: u32,
    pub(crate) bytes: usize,
}

/// Scalar kernel argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Uint(u32),
    Ulong(u64),
}

impl WorkersSpec {
    /// Total length of all arrays in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let arrays = self.workers.iter().flat_map(|spec| &spec.arrays);
        arrays.fold(0, |sum, array| sum.saturating_add(array.bytes as u64))
    }
}

/// Compute kernels of a runtime, built and with their arguments set.
pub(crate) trait Workers {
    /// Error of the runtime.
    type Error: From<NoHostMemory>;

    /// Launches each kernel once and waits: runtimes do one-time work at the first launch.
    ///
    /// # Errors
    /// Errors of the runtime.
    fn launch_once(&self) -> Result<(), Self::Error>;

    /// Copies between `own` and the start of an array of a worker, and waits.
    ///
    /// # Errors
    /// Errors of the runtime.
    fn copy_and_wait(&self, worker: usize, array: usize, verb: Verb, own: &mut [u8]) -> Result<(), Self::Error>;
}
