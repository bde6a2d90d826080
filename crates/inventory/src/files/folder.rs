//! A folder of this machine as a root.

use super::store::{FileError, Kind, Store};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A folder of this machine as a root, such as `/`.
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(crate) fn new(root: &Path) -> Folder {
        Folder { root: root.to_owned() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

fn trouble(error: &io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::Missing,
        _ => FileError::Refused(error.to_string()),
    }
}

impl Store for Folder {
    fn kind(&self, path: &str) -> Result<Kind, FileError> {
        let at = self.at(path);
        let kind = fs::symlink_metadata(&at).map_err(|error| trouble(&error))?.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&at).map_err(|error| trouble(&error))?;
            return Ok(Kind::Link(target.to_string_lossy().into_owned()));
        }
        Ok(match kind {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            _ => Kind::Special,
        })
    }

    fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, FileError> {
        // sysfs returns at most a page per read; another read finds the end.
        let mut bytes = Vec::with_capacity(most.min(8192));
        let file = fs::File::open(self.at(path)).map_err(|error| trouble(&error))?;
        file.take(most as u64).read_to_end(&mut bytes).map_err(|error| trouble(&error))?;
        Ok(bytes)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(path)).map_err(|error| trouble(&error))? {
            let entry = entry.map_err(|error| trouble(&error))?;
            // The kernel creates no names that are not UTF-8.
            names.extend(entry.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }
}
