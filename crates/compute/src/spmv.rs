//! A sparse matrix times a vector, by several kernels.

use crate::Csr;
use std::sync::Arc;

/// `y = A x`: rows are dealt to kernels, and each kernel has arrays in ports of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Spmv {
    /// The matrix.
    pub matrix: Arc<Csr>,
    /// How many kernels; at least 1. Each has a block of neighbouring rows.
    pub kernels: u32,
    /// How many ports of memory each of them has; at least 1.
    pub ports_each: u32,
}
