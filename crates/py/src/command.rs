//! The command `lanemark`, as a part of the package.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command and returns its exit code; `program` are the words that start it again.
#[pyfunction]
pub fn main(py: Python<'_>, program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| lanemark_cli::run(program, arguments))
}
