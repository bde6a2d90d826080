//! Bounded reading of user files.

use lanemark_units::format_size;
use std::io::{self, Read};
use std::path::Path;

/// Reads a regular file of at most `most` bytes. Pipes and devices are refused, because they may be endless.
///
/// # Errors
/// The system's error, or an error that names the limit.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() {
        return Err(io::Error::other("it is a pipe or a device; use a regular file"));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {}", format_size(most))));
    }
    Ok(bytes)
}
