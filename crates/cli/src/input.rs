//! Files of the user's, read whole or refused.

use crate::failure::Failure;
use lanemark_fit::Table;
use lanemark_hw::opencl::FinishedKernels;
use lanemark_record::{Record, file};
use lanemark_units::format_size;
use std::io::{self, Read};
use std::path::Path;

/// The longest platform file: thousands of regions fit.
pub const PLATFORM: u64 = 4 << 20;
/// The longest record: a hundred times a usual one.
const RECORD: u64 = 256 << 20;

/// The longest file of kernels: a bitstream of a large FPGA has 100 MiB.
const KERNELS: u64 = 1 << 30;

/// The longest table of figures.
const TABLE: u64 = 1 << 20;

/// The longest capture: a million TLPs and more.
pub const CAPTURE: u64 = 256 << 20;

/// The bytes of a file of at most `most`. A pipe or a device is refused, for it may never end.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() {
        return Err(io::Error::other("it is a pipe or a device; a regular file is needed"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is longer than {}", format_size(most))));
    }
    Ok(bytes)
}

/// The record in a file.
pub fn record(path: &Path) -> Result<Record, Failure> {
    let bytes = read(path, RECORD).map_err(|error| Failure::Usage(format!("reading {}: {error}", path.display())))?;
    file::from_bytes(&bytes, path).map_err(|error| Failure::Usage(error.to_string()))
}

/// Kernels in a file of which a device's compiler made them.
pub fn kernels(path: &Path) -> Result<FinishedKernels, Failure> {
    let bytes = read(path, KERNELS).map_err(|error| Failure::Usage(format!("reading {}: {error}", path.display())))?;
    Ok(FinishedKernels { file: path.display().to_string(), bytes })
}

/// Whether a file is a table of figures and no record, by its name.
pub fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

/// The table of figures in a file.
pub fn table(path: &Path) -> Result<Table, Failure> {
    let reading = |why: String| Failure::Usage(format!("reading {}: {why}", path.display()));
    let bytes = read(path, TABLE).map_err(|error| reading(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| reading("it is no text in UTF-8".to_owned()))?;
    Table::parse(&path.display().to_string(), &text).map_err(|error| Failure::Usage(error.to_string()))
}
