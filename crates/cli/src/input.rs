//! Input files, read completely and with a size limit.

use crate::failure::Failure;
use lanemark_fit::Table;
use lanemark_record::{Record, file};
use lanemark_runner::read_file;
use std::path::Path;

/// Largest record, in bytes: about a hundred times a typical one.
const RECORD: u64 = 256 << 20;

/// Largest table of figures, in bytes.
const TABLE: u64 = 1 << 20;

/// Largest capture, in bytes: more than a million TLPs.
pub const CAPTURE: u64 = 256 << 20;

/// Reads a record.
pub fn record(path: &Path) -> Result<Record, Failure> {
    let bytes =
        read_file(path, RECORD).map_err(|error| Failure::Usage(format!("reading {}: {error}", path.display())))?;
    file::from_bytes(&bytes, path).map_err(|error| Failure::Usage(error.to_string()))
}

/// Whether a file is a table of figures, by its extension.
pub fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// Reads a table of figures.
pub fn table(path: &Path) -> Result<Table, Failure> {
    let reading = |why: String| Failure::Usage(format!("reading {}: {why}", path.display()));
    let bytes = read_file(path, TABLE).map_err(|error| reading(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| reading("it is not valid UTF-8".to_owned()))?;
    Table::parse(&path.display().to_string(), &text).map_err(|error| Failure::Usage(error.to_string()))
}
