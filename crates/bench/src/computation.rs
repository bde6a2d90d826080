//! What kernels compute, and its parameters in records.

use crate::case::Case;
use lanemark_compute::{Csr, Work};
use lanemark_machine::{Compute, HostWait, Op, Plan};
use lanemark_method::{ComputeWork, Method};
use std::sync::Arc;

/// A matrix and what people call it.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// A generator's text, or a file's name.
    pub name: String,
    /// Its numbers.
    pub matrix: Arc<Csr>,
}

/// A work, and the name of the matrix it is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Computation {
    /// What kernels do.
    pub work: Work,
    /// Of which matrix; empty where there is none.
    pub matrix: String,
}

impl Computation {
    /// Its parameters, as a method has them.
    fn parameters(&self) -> ComputeWork {
        match &self.work {
            Work::StreamCopy(copy) => ComputeWork::StreamCopy {
                ports: copy.ports,
                first_port: copy.first_port,
                vector_words: copy.vector_words,
                stride_bytes: copy.stride_bytes,
            },
            Work::Spmv(spmv) => {
                ComputeWork::Spmv { matrix: self.matrix.clone(), kernels: spmv.kernels, ports_each: spmv.ports_each }
            }
        }
    }

    /// The case that asks for it, of so many bytes.
    pub(crate) fn case(self, size: u64) -> Case {
        let method = Method::Compute { work: self.parameters(), wait: HostWait::Finish };
        Case { computation: Some(self), ..Case::of_runtime(size, method) }
    }
}

/// What a case of kernels becomes.
pub(crate) fn plan(case: &Case, passes: u64) -> Plan {
    let told = if let Method::Compute { wait, .. } = case.method { wait } else { HostWait::Finish };
    let compute = case.computation.iter().map(|asked| Op::Compute(Compute { work: asked.work.clone(), told }));
    Plan::on_one_core(compute.collect(), passes)
}
