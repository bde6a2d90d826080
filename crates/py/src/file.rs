//! Files that the Python part of the package writes.

use crate::error::{Kind, raised};
use lanemark_record::file::write_whole;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Writes a file completely or not at all, as the command does.
#[pyfunction]
pub fn write_file(py: Python<'_>, path: PathBuf, data: &[u8]) -> PyResult<()> {
    let written = py.detach(|| write_whole(&path, data));
    written.map_err(|error| raised(Kind::Usage, &error.to_string()))
}
