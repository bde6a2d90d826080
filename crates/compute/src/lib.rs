//! Computations for devices, as data.
//!
//! A [`Workload`] describes what kernels load, store and compute, and over which ports of a device's memory. A runtime or a
//! simulated card executes it for real, and this crate computes the expected result. It measures no time and reads no
//! files.

#![forbid(unsafe_code)]

mod csr;
mod generate;
mod matrix_market;
mod port_words;
mod spmv;
mod stream_copy;

pub use csr::{Csr, NotCsr};
pub use generate::{Generated, NotGenerated};
pub use matrix_market::{NotMatrixMarket, Wrong, matrix_market};
pub use port_words::PortWords;
pub use spmv::{Array, Spmv};
pub use stream_copy::StreamCopy;

/// A computation for kernels.
#[derive(Clone, PartialEq, Debug)]
pub enum Workload {
    /// Copies words within each port of a memory.
    StreamCopy(StreamCopy),
    /// Multiplies a sparse matrix by a vector.
    Spmv(Spmv),
}

impl Workload {
    /// Bytes that must be loaded and stored, each once: the numerator of a bandwidth.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Workload::StreamCopy(copy) => copy.bytes(),
            Workload::Spmv(spmv) => spmv.matrix.bytes(),
        }
    }

    /// Number of kernels on the card; a copy has one for each port.
    #[must_use]
    pub fn kernels(&self) -> u32 {
        match self {
            Workload::StreamCopy(copy) => copy.ports,
            Workload::Spmv(spmv) => spmv.kernels,
        }
    }
}
