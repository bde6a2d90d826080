//! Kernels that compute, as a runtime is asked for them.

use crate::NoHostMemory;
use crate::kernel_source::KernelSource;
use lanemark_machine::Verb;

/// Kernels of one program, each of one work item, with a queue and arrays of its own.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// What each of them runs.
    pub(crate) source: KernelSource,
    pub(crate) workers: Vec<Given>,
}

/// What one of them is given: arrays, and behind them numbers.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) arrays: Vec<Array>,
    pub(crate) numbers: Vec<Number>,
}

/// A piece of the device's memory, of at least 1 B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    /// The port of the memory, where a program can choose.
    pub(crate) port: u32,
    pub(crate) bytes: usize,
}

/// A number as kernels have them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Uint(u32),
    Ulong(u64),
}

impl Wanted {
    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> u64 {
        let arrays = self.workers.iter().flat_map(|given| &given.arrays);
        arrays.fold(0, |sum, array| sum.saturating_add(array.bytes as u64))
    }
}

/// Such kernels, built and given their arrays.
pub(crate) trait Workers {
    /// What their runtime says.
    type Error: From<NoHostMemory>;

    /// Launches each of them once and waits: runtimes build at the first launch what no later one needs.
    ///
    /// # Errors
    /// What the runtime said.
    fn begin(&self) -> Result<(), Self::Error>;

    /// Copies between `own` and an array of a worker, of as many bytes, and waits until that is over.
    ///
    /// # Errors
    /// What the runtime said.
    fn bring(&self, worker: usize, array: usize, verb: Verb, own: &mut [u8]) -> Result<(), Self::Error>;
}
