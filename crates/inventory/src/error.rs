//! Errors of reading an inventory.

use std::io;
use std::path::PathBuf;

/// Reasons why no inventory could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// The file or folder could not be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The file has none of the supported formats.
    #[error("{}: no PCI tree found: {}", path.display(), tried.join("; "))]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
        /// The formats tried, and what each lacked.
        tried: Vec<String>,
    },
    /// A malformed line or entry.
    #[error("{place}:{line}: {problem}")]
    Malformed {
        /// The file.
        place: String,
        /// Line number, from 1; in a tar, the entry number.
        line: usize,
        /// The violated rule and the fix.
        problem: String,
    },
    /// Larger than any plausible machine.
    #[error("{place}: {what} exceeds {most}; this is not the PCI tree of one machine")]
    TooLarge {
        /// The file.
        place: String,
        /// The quantity, with its value if known.
        what: String,
        /// Limit.
        most: u64,
    },
}
