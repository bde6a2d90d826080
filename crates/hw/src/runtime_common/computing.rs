//! Compute kernels of either kind.

use super::spmv::SpmvKernels;
use super::stream_copy::StreamCopies;
use super::workers::{Workers, WorkersSpec};
use lanemark_compute::Workload;
use lanemark_machine::Confirmed;

/// Compute kernels with their arrays.
#[derive(Debug)]
pub(crate) enum Computing<W> {
    /// Stream copy within memory ports.
    StreamCopy(StreamCopies<W>),
    /// Sparse matrix times vector.
    Spmv(SpmvKernels<W>),
}

impl<W: Workers> Computing<W> {
    /// Builds the kernels for `work` on a device with `memory_ports` ports; `make` creates them in the runtime.
    ///
    /// # Errors
    /// Errors of the runtime or the system, usually too little memory.
    pub(crate) fn new(
        work: &Workload,
        memory_ports: u32,
        make: impl FnOnce(WorkersSpec) -> Result<W, W::Error>,
    ) -> Result<Computing<W>, W::Error> {
        Ok(match work {
            Workload::StreamCopy(copy) => Computing::StreamCopy(StreamCopies::new(*copy, make)?),
            Workload::Spmv(spmv) => Computing::Spmv(SpmvKernels::new(spmv, memory_ports, make)?),
        })
    }

    /// Whether these kernels can be reused for `work`.
    pub(crate) fn matches(&self, work: &Workload) -> bool {
        match (self, work) {
            (Computing::StreamCopy(kernels), Workload::StreamCopy(copy)) => kernels.matches(copy),
            (Computing::Spmv(kernels), Workload::Spmv(spmv)) => kernels.matches(spmv),
            _ => false,
        }
    }

    /// Fills the input arrays with values that depend on `seed`, and the result arrays with wrong values.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(crate) fn prepare(&mut self, seed: u64) -> Result<(), W::Error> {
        match self {
            Computing::StreamCopy(kernels) => kernels.prepare(seed),
            Computing::Spmv(kernels) => kernels.prepare(seed),
        }
    }

    /// Kernels as the runtime holds them.
    pub(crate) fn workers(&self) -> &W {
        match self {
            Computing::StreamCopy(kernels) => &kernels.workers,
            Computing::Spmv(kernels) => &kernels.workers,
        }
    }

    /// Number of correct result bytes of the last iteration, after [`prepare`](Computing::prepare) with the same `seed`.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(crate) fn confirmed(&mut self, seed: u64) -> Result<Confirmed, W::Error> {
        match self {
            Computing::StreamCopy(kernels) => kernels.confirmed(seed),
            Computing::Spmv(kernels) => kernels.confirmed(),
        }
    }
}
