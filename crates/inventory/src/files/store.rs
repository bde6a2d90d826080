//! Sources of files.

use crate::Why;
use std::borrow::Cow;

/// Type of the entry at a path; links before the last component are resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, with its target.
    Link(String),
    /// A device, pipe or socket, which is never opened.
    Special,
}

/// Reasons why a file could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FileError {
    /// The file does not exist.
    Missing,
    /// The file exists but cannot be read.
    Refused(String),
}

impl FileError {
    /// As the reason of an unseen fact in file `name`.
    pub(crate) fn why(self, name: impl Into<Cow<'static, str>>) -> Why {
        match self {
            FileError::Missing => Why::NoFile(name.into()),
            FileError::Refused(error) => Why::Refused { file: name.into(), error: error.into() },
        }
    }
}

/// A source of files. Paths contain no links.
pub(crate) trait Store {
    /// Type of the entry at `path`; the root is the empty path.
    fn kind(&self, path: &str) -> Result<Kind, FileError>;
    /// The first `most` bytes of a regular file.
    fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, FileError>;
    /// Sorted names in a folder.
    fn list(&self, path: &str) -> Result<Vec<String>, FileError>;
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
