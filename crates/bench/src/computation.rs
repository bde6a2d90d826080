//! Computations of kernels, and their parameters in records.

use crate::case::Case;
use lanemark_compute::{Csr, Workload};
use lanemark_machine::{Compute, HostWait, Plan};
use lanemark_method::{ComputeWork, Method};
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
    fn parameters(&self) -> ComputeWork {
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

    /// The case of this computation with `size` bytes.
    pub(crate) fn case(self, size: u64) -> Case {
        let method = Method::Compute { work: self.parameters(), wait: HostWait::Finish };
        Case { computation: Some(self), ..Case::of_runtime(size, method) }
    }
}

/// The plan of a case with kernels.
pub(crate) fn plan(case: &Case, passes: u64) -> Plan {
    let wait = if let Method::Compute { wait, .. } = case.method { wait } else { HostWait::Finish };
    let of = |asked: &Computation| Plan::new(Compute { work: asked.work.clone(), wait }, passes);
    case.computation.as_ref().map_or_else(Plan::empty, of)
}
