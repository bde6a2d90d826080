//! What kernels are asked to do, and its name in records.

use crate::case::{Case, Through};
use lanemark_compute::{Csr, Work};
use lanemark_machine::{Compute, HostWait, Op, Plan, Verb};
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
    /// As records name it.
    pub(crate) fn through(&self) -> String {
        let several = |count: u32, one: &str| if count == 1 { format!("1_{one}") } else { format!("{count}_{one}s") };
        match &self.work {
            Work::StreamCopy(copy) => {
                let loop_of = match copy.vector_words {
                    1 => "plain".to_owned(),
                    words => format!("vectors_of_{words}"),
                };
                let apart = match copy.stride_bytes {
                    8 => String::new(),
                    bytes => format!("_every_{bytes}_B"),
                };
                let ports = match copy.first_port {
                    0 => several(copy.ports, "port"),
                    first => format!("{}_from_{first}_on", several(copy.ports, "port")),
                };
                format!("compute_stream_copy_{ports}_{loop_of}{apart}")
            }
            Work::Spmv(spmv) => {
                let (kernels, ports) = (several(spmv.kernels, "kernel"), several(spmv.ports_each, "port"));
                format!("compute_spmv_{}_{kernels}_{ports}_each", self.matrix)
            }
        }
    }

    /// The case that asks for it, of so many bytes.
    pub(crate) fn case(self, size: u64) -> Case {
        Case { computation: Some(self), ..Case::of_runtime(Verb::Load, size, Through::Compute(HostWait::Finish)) }
    }
}

/// What a case of kernels becomes.
pub(crate) fn plan(case: &Case, passes: u64) -> Plan {
    let told = if let Through::Compute(told) = case.through { told } else { HostWait::Finish };
    let compute = case.computation.iter().map(|asked| Op::Compute(Compute { work: asked.work.clone(), told }));
    Plan::on_one_core(compute.collect(), passes)
}
