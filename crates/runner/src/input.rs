//! Files of the user, read completely or refused.

use lanemark_units::format_size;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a regular file of at most `most` bytes. Pipes and devices are refused, because they may never end.
///
/// # Errors
/// The system's error, or one that names the limit.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
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
