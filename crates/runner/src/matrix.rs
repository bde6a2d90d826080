//! Sparse matrices by name: a file, or one that is generated.

use crate::error::RunError;
use crate::input::read_file;
use lanemark_bench::Matrix;
use lanemark_compute::{Generated, matrix_market};
use std::path::Path;
use std::sync::Arc;

/// The longest file: some ten million entries.
const LONGEST: u64 = 512 << 20;

/// The matrix of this name: a file in Matrix Market format, or `poisson:SIDE`, `random:ROWSxEACH` or `powerlaw:ROWSxEACH`.
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
        return Err(failed("it has no entry, and nothing is multiplied".to_owned()));
    }
    if let Some(row) = matrix.overflowing_row() {
        let row = u64::from(row) + 1;
        let because =
            format!("row {row} adds up to more than a number of 64 bits holds, and no sum of it can be checked");
        return Err(failed(because));
    }
    let name = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(Matrix { name, matrix: Arc::new(matrix) })
}
