//! Files of the user's, read whole or refused.

use crate::failure::Failure;
use lanemark_fit::Table;
use lanemark_record::{Record, file};
use lanemark_runner::read_file;
use std::path::Path;

/// The longest record: a hundred times a usual one.
const RECORD: u64 = 256 << 20;

/// The longest table of figures.
const TABLE: u64 = 1 << 20;

/// The longest capture: a million TLPs and more.
pub const CAPTURE: u64 = 256 << 20;

/// The record in a file.
pub fn record(path: &Path) -> Result<Record, Failure> {
    let bytes =
        read_file(path, RECORD).map_err(|error| Failure::Usage(format!("reading {}: {error}", path.display())))?;
    file::from_bytes(&bytes, path).map_err(|error| Failure::Usage(error.to_string()))
}

/// Whether a file is a table of figures and no record, by its name.
pub fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// The table of figures in a file.
pub fn table(path: &Path) -> Result<Table, Failure> {
    let reading = |why: String| Failure::Usage(format!("reading {}: {why}", path.display()));
    let bytes = read_file(path, TABLE).map_err(|error| reading(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| reading("it is no text in UTF-8".to_owned()))?;
    Table::parse(&path.display().to_string(), &text).map_err(|error| Failure::Usage(error.to_string()))
}
