//! What kernels compute, by the parameters of a method.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kernels compute on memory of their device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ComputeWork {
    /// A copy from one array to another.
    StreamCopy {
        /// Ports of the memory that are used.
        ports: u32,
        /// The first of them.
        #[serde(default)]
        first_port: u32,
        /// Words of 8 B that a kernel loads at once; 1 for a plain loop.
        vector_words: u32,
        /// From the start of one access to that of the next, in bytes.
        #[serde(default = "one_word")]
        stride_bytes: u64,
    },
    /// A sparse matrix times a vector.
    Spmv {
        /// The matrix: a generator's text or a file's name.
        matrix: String,
        /// Kernels that share its rows.
        kernels: u32,
        /// Ports of the memory that each of them uses.
        ports_each: u32,
    },
}

/// Bytes of a word.
pub(crate) const WORD: u64 = 8;

const fn one_word() -> u64 {
    WORD
}
