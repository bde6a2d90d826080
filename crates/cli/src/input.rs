//! Input files, read completely and with a size limit.

use crate::failure::Failure;
use lanemark_fit::{Table, Tool};
use lanemark_record::{Record, file};
use lanemark_runner::read_file;
use std::path::Path;

/// Largest record, in bytes: about a hundred times a typical one.
const RECORD: u64 = 256 << 20;

/// Largest table of figures, in bytes.
const TABLE: u64 = 1 << 20;

/// Largest output of a tool, in bytes: JSON with histograms.
const OUTPUT: u64 = 16 << 20;

/// Largest capture, in bytes: more than a million TLPs.
pub const CAPTURE: u64 = 256 << 20;

/// Largest case of a design under test, in bytes.
pub const CASE: u64 = 1 << 20;

/// Reads a record, and refuses one with figures that cannot be.
pub fn record(path: &Path) -> Result<Record, Failure> {
    let record = any_record(path)?;
    record.refuse_impossible(path).map_err(Failure::Usage)?;
    Ok(record)
}

/// Reads a record with any figures.
pub fn any_record(path: &Path) -> Result<Record, Failure> {
    let bytes =
        read_file(path, RECORD).map_err(|error| Failure::Usage(format!("reading {}: {error}", path.display())))?;
    file::from_bytes(&bytes, path).map_err(|error| Failure::Usage(error.to_string()))
}

/// Whether a file is a table of figures, by its extension.
pub fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// Reads the output of a tool.
pub fn output(path: &Path) -> Result<String, Failure> {
    read_text(path, OUTPUT)
}

/// Reads a text; an error names the first line that is none.
fn read_text(path: &Path, most: u64) -> Result<String, Failure> {
    let name = path.display();
    let bytes = read_file(path, most).map_err(|error| Failure::Usage(format!("reading {name}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        Failure::Usage(format!("{name}:{line}: the line is not valid UTF-8"))
    })
}

/// Reads a table of figures: CSV, or the output of a tool.
pub fn table(path: &Path, tool: Option<Tool>) -> Result<Table, Failure> {
    let name = path.display().to_string();
    let most = if tool.is_some() { OUTPUT } else { TABLE };
    let text = read_text(path, most)?;
    let table = match tool {
        Some(tool) => tool.read(&name, &text),
        None => Table::parse(&name, &text),
    };
    table.map_err(|error| Failure::Usage(error.to_string()))
}
