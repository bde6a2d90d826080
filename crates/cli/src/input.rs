//! Files of the user's, read whole or refused.

use crate::failure::Failure;
use lanemark_record::{Record, file};
use lanemark_units::format_size;
use std::io::{self, Read};
use std::path::Path;

/// The longest platform file: thousands of regions fit.
pub const PLATFORM: u64 = 4 << 20;
/// The longest record: a hundred times a usual one.
const RECORD: u64 = 256 << 20;

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
