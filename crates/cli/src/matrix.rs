//! `--matrix`: a file, or the name of one that is made.

use crate::failure::Failure;
use crate::input;
use lanemark_bench::Matrix;
use lanemark_compute::{Generated, matrix_market};
use std::path::Path;
use std::sync::Arc;

/// The longest file: some ten million entries.
const FILE: u64 = 512 << 20;

/// The matrix of this name.
pub fn matrix(name: &str) -> Result<Matrix, Failure> {
    let path = Path::new(name);
    let is_file = path.exists() || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mtx"));
    if !is_file {
        let made: Generated = name.parse().map_err(|wrong| {
            Failure::Usage(format!("--matrix: {wrong}; or a file in Matrix Market format, MATRIX.mtx"))
        })?;
        return Ok(Matrix { name: made.to_string(), matrix: Arc::new(made.matrix()) });
    }
    let failed = |why: String| Failure::Usage(format!("--matrix {name}: {why}"));
    let bytes = input::read(path, FILE).map_err(|error| failed(error.to_string()))?;
    let matrix = matrix_market(&bytes).map_err(|wrong| failed(wrong.to_string()))?;
    if matrix.entries() == 0 {
        return Err(failed("it has no entry, and nothing is multiplied".to_owned()));
    }
    if let Some(row) = matrix.overflowing_row() {
        let row = u64::from(row) + 1;
        return Err(failed(format!(
            "row {row} adds up to more than a number of 64 bits holds, and no sum of it can be checked"
        )));
    }
    let name = path.file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(Matrix { name, matrix: Arc::new(matrix) })
}
