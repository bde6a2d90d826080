//! Computations of kernels, with the parameters of a method.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Computation of kernels on device memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ComputeWork {
    /// A copy from one array to another.
    StreamCopy {
        /// Number of memory ports.
        ports: u32,
        /// First port.
        #[serde(default)]
        first_port: u32,
        /// Words of 8 B per load of a kernel; 1 for a plain loop.
        vector_words: u32,
        /// Distance between the starts of two accesses, in bytes.
        #[serde(default = "one_word")]
        stride_bytes: u64,
    },
    /// Multiplication of a sparse matrix by a vector.
    Spmv {
        /// The matrix: text of a generator, or a file name.
        matrix: String,
        /// Number of kernels that share the rows.
        kernels: u32,
        /// Number of memory ports per kernel.
        ports_each: u32,
    },
}

/// Bytes of a word.
pub(crate) const WORD: u64 = 8;

const fn one_word() -> u64 {
    WORD
}
