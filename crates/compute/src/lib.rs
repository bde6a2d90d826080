//! What devices compute, as data.
//!
//! A [`Work`] says what kernels load, store and compute, and over which ports of a device's memory; who runs one, a runtime or a
//! simulated card, really computes it, and what must come out is said here too. Nothing is timed and nothing is read from a file.

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

/// What kernels are to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Copies words within each port of a memory.
    StreamCopy(StreamCopy),
    /// Multiplies a sparse matrix by a vector.
    Spmv(Spmv),
}

impl Work {
    /// Bytes that it is there to load and store, each once: what a bandwidth is computed from.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Work::StreamCopy(copy) => copy.bytes(),
            Work::Spmv(spmv) => spmv.matrix.bytes(),
        }
    }
}
