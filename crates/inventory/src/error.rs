//! What can keep an inventory from being read.

use std::io;
use std::path::PathBuf;

/// Why no inventory could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// The file or folder could not be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// It is none of the things that can be read.
    #[error("{}: this is nothing that holds a PCI tree: {}", path.display(), tried.join("; "))]
    Unrecognised {
        /// Which.
        path: PathBuf,
        /// What was tried, and what was missing.
        tried: Vec<String>,
    },
    /// A line or an entry is wrong.
    #[error("{place}:{line}: {problem}")]
    Malformed {
        /// Which file.
        place: String,
        /// Which line, from 1; of a tar, which entry.
        line: usize,
        /// What is wrong, and what to try.
        problem: String,
    },
    /// It is larger than anything sensible.
    #[error("{place}: {what} is more than {most}; this is no PCI tree of one machine")]
    TooLarge {
        /// Which file.
        place: String,
        /// What is too much, with its figure.
        what: String,
        /// The most that is read.
        most: u64,
    },
}
