//! Kernels that compute what a plan says.

use super::spmv::SpmvKernels;
use super::stream_copy::StreamCopies;
use super::workers::{Wanted, Workers};
use lanemark_compute::Work;
use lanemark_machine::Confirmed;

/// One of the works that there are.
#[derive(Debug)]
pub(crate) enum Computing<W> {
    /// Words within ports.
    StreamCopy(StreamCopies<W>),
    /// A sparse matrix times a vector.
    Spmv(SpmvKernels<W>),
}

impl<W: Workers> Computing<W> {
    /// Kernels for `work` in a memory of so many ports; `make` has a runtime build them.
    ///
    /// # Errors
    /// What the runtime or the system said, mostly that memory is short.
    pub(crate) fn new(
        work: &Work,
        memory_ports: u32,
        make: impl FnOnce(Wanted) -> Result<W, W::Error>,
    ) -> Result<Computing<W>, W::Error> {
        Ok(match work {
            Work::StreamCopy(copy) => Computing::StreamCopy(StreamCopies::new(*copy, make)?),
            Work::Spmv(spmv) => Computing::Spmv(SpmvKernels::new(spmv, memory_ports, make)?),
        })
    }

    /// Whether they are of this work.
    pub(crate) fn are_of(&self, work: &Work) -> bool {
        match (self, work) {
            (Computing::StreamCopy(kernels), Work::StreamCopy(copy)) => kernels.are_of(copy),
            (Computing::Spmv(kernels), Work::Spmv(spmv)) => kernels.are_of(spmv),
            _ => false,
        }
    }

    /// Fills their arrays: with what another `seed` makes others, and where results go, with none.
    ///
    /// # Errors
    /// What the runtime said.
    pub(crate) fn prepare(&mut self, seed: u64) -> Result<(), W::Error> {
        match self {
            Computing::StreamCopy(kernels) => kernels.prepare(seed),
            Computing::Spmv(kernels) => kernels.prepare(seed),
        }
    }

    /// What launches them.
    pub(crate) fn workers(&self) -> &W {
        match self {
            Computing::StreamCopy(kernels) => &kernels.workers,
            Computing::Spmv(kernels) => &kernels.workers,
        }
    }

    /// How many bytes of the results of the last pass are right, [prepared](Computing::prepare) with the same `seed`.
    ///
    /// # Errors
    /// What the runtime said.
    pub(crate) fn confirmed(&mut self, seed: u64) -> Result<Confirmed, W::Error> {
        match self {
            Computing::StreamCopy(kernels) => kernels.confirmed(seed),
            Computing::Spmv(kernels) => kernels.confirmed(),
        }
    }
}
