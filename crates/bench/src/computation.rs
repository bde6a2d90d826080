//! Computations of kernels, and their parameters in records.

use lanemark_compute::{Csr, Workload};
use lanemark_method::ComputeWork;
use std::sync::Arc;

/// A matrix and its name.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// Text of a generator, or a file name.
    pub name: String,
    /// The entries.
    pub matrix: Arc<Csr>,
}

/// A computation, and the name of its matrix.
#[derive(Clone, PartialEq, Debug)]
pub struct Computation {
    /// The computation of the kernels.
    pub work: Workload,
    /// Name of the matrix; empty without one.
    pub matrix: String,
}

impl Computation {
    /// The parameters as in a method.
    pub(crate) fn parameters(&self) -> ComputeWork {
        match &self.work {
            Workload::StreamCopy(copy) => ComputeWork::StreamCopy {
                ports: copy.ports,
                first_port: copy.first_port,
                vector_words: copy.vector_words,
                stride_bytes: copy.stride_bytes,
            },
            Workload::Spmv(spmv) => {
                ComputeWork::Spmv { matrix: self.matrix.clone(), kernels: spmv.kernels, ports_each: spmv.ports_each }
            }
        }
    }
}
