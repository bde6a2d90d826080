//! Sparse matrices by name: files and generated matrices.

use crate::error::RunError;
use crate::input::read_file;
use lanemark_bench::Matrix;
use lanemark_compute::{Generated, matrix_market};
use std::path::Path;
use std::sync::Arc;

/// Largest matrix file, in bytes; holds about ten million entries.
const LONGEST: u64 = 512 << 20;

/// Returns a matrix by name: a file in Matrix Market format, or `poisson:SIDE`, `random:ROWSxEACH` or
/// `powerlaw:ROWSxEACH`.
///
/// # Errors
/// [`RunError::MatrixName`] or [`RunError::MatrixFile`].
///
/// ```
/// assert_eq!(lanemark_runner::matrix("poisson:16").unwrap().matrix.rows(), 256);
/// assert!(lanemark_runner::matrix("poison:16").is_err());
/// ```
pub fn matrix(name: &str) -> Result<Matrix, RunError> {
    let path = Path::new(name);
    let is_file = path.exists() || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mtx"));
    if !is_file {
        let made: Generated = name.parse().map_err(|wrong| RunError::MatrixName { because: format!("{wrong}") })?;
        return Ok(Matrix { name: made.to_string(), matrix: Arc::new(made.matrix()) });
    }
    let failed = |because: String| RunError::MatrixFile { name: name.to_owned(), because };
    let bytes = read_file(path, LONGEST).map_err(|error| failed(error.to_string()))?;
    let matrix = matrix_market(&bytes).map_err(|wrong| failed(wrong.to_string()))?;
    if matrix.entries() == 0 {
        return Err(failed("it has no entries, so there is nothing to multiply".to_owned()));
    }
    if let Some(row) = matrix.overflowing_row() {
        let row = u64::from(row) + 1;
        let because = format!("the sum of row {row} overflows 64 bits, so results cannot be verified");
        return Err(failed(because));
    }
    let name = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(Matrix { name, matrix: Arc::new(matrix) })
}
