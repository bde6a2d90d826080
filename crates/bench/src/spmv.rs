//! How fast do kernels multiply a sparse matrix by a vector, by number of kernels and of memory
//! ports?
//!
//! Traffic: loads and stores between kernels and ports of device memory; none on the link.
//!
//! Unit: bytes per second of matrix and vectors, each counted once
//! ([`Csr::bytes`](lanemark_compute::Csr::bytes)), so figures of one matrix compare as speeds. Rows
//! are distributed over kernels by number of entries. The arrays of a kernel are distributed over
//! its ports by number of words.
//!
//! Spoiled by: a matrix too small to keep the kernels busy; `--matrix` names another one.

use crate::case::{Axes, Case};
use crate::computation::{Computation, Matrix};
use crate::kernel_case;
use crate::needs;
use crate::question::Question;
use lanemark_compute::{Generated, Spmv, Workload};
use lanemark_machine::Facts;
use lanemark_record::Quantity;
use std::sync::Arc;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "spmv",
    summary: "rate of sparse matrix-vector multiplication by kernels, by kernels and ports of each",
    quantity: Quantity::Bandwidth,
    cases,
    plan: kernel_case::plan,
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: false,
    left_out: needs::compute_kernels,
};

/// Default matrix: near neighbours, as in most computations on grids.
const USUAL: Generated = Generated::Poisson(256);
const KERNELS: [u32; 4] = [1, 2, 4, 8];
const PORTS: [u32; 4] = [1, 2, 3, 4];

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(runtime) = facts.runtime.as_ref().filter(|runtime| runtime.computes) else { return Vec::new() };
    let all = runtime.memory_ports;
    let usual = || vec![Matrix { name: USUAL.to_string(), matrix: Arc::new(USUAL.matrix()) }];
    let matrices = axes.matrices.clone().unwrap_or_else(usual);
    // Ports of their own, or one shared port if there are too few.
    let fits = |kernels: u32, ports: u32| ports == 1 || kernels.saturating_mul(ports) <= all;
    let dealt = KERNELS.into_iter().flat_map(|kernels| PORTS.map(|ports| (kernels, ports)));
    let dealt: Vec<(u32, u32)> = dealt.filter(|(kernels, ports)| fits(*kernels, *ports)).collect();
    let of_matrix = |named: Matrix| {
        let Matrix { name, matrix } = named;
        dealt.iter().map(move |(kernels, ports_each)| {
            let spmv = Spmv { matrix: Arc::clone(&matrix), kernels: *kernels, ports_each: *ports_each };
            Computation { work: Workload::Spmv(spmv), matrix: name.clone() }.case(matrix.bytes())
        })
    };
    matrices.into_iter().flat_map(of_matrix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_names_matrix_kernels_and_ports() {
        let matrix = Arc::new(Generated::Poisson(2).matrix());
        let spmv = Spmv { matrix, kernels: 8, ports_each: 1 };
        let case = Computation { work: Workload::Spmv(spmv), matrix: "poisson:2".to_owned() }.case(1);
        assert_eq!(case.method.to_string(), "spmv poisson:2 8 kernels 1 port each, wait by finish");
    }
}
