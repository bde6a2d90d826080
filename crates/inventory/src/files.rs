//! Files below a root: of this machine, of a folder, of a tar. The same code reads all three.
//!
//! Paths are relative to the root, with `/`. Symbolic links are resolved inside the root: `..` above the root is the
//! root, and an absolute target starts at the root. A cycle of links is refused. Only regular files are opened, and
//! only for reading.

mod archive;
mod folder;
mod store;

pub(crate) use archive::Archive;
pub(crate) use folder::Folder;
pub(crate) use store::{FileError, Kind, Store, join};

use crate::{Seen, Why};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

/// Maximum number of links in the resolution of one path, as in Linux.
const MOST_LINKS: u32 = 40;
/// Maximum number of components in a path.
const MOST_NAMES: usize = 64;
/// Maximum size of a text file; the largest is `/proc/cpuinfo` of a large machine.
const MOST_TEXT_BYTES: usize = 16 << 20;

/// A root and the files below it.
pub(crate) struct Files<'a> {
    store: &'a dyn Store,
    /// Resolved path of every folder looked up so far.
    folders: RefCell<HashMap<String, Result<String, FileError>>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(store: &'a dyn Store) -> Files<'a> {
        Files { store, folders: RefCell::default() }
    }

    /// `path` with all links resolved.
    pub(crate) fn real(&self, path: &str) -> Result<String, FileError> {
        self.resolve(path, MOST_LINKS).map(|(path, _)| path)
    }

    /// Whether an entry exists at `path`, including a dangling link.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.folder(folder, MOST_LINKS).is_ok_and(|folder| self.store.kind(&join(&folder, name)).is_ok())
    }

    /// The first `most` bytes of a file.
    pub(crate) fn bytes(&self, path: &str, most: usize) -> Result<Vec<u8>, FileError> {
        match self.resolve(path, MOST_LINKS)? {
            (path, Kind::File) => self.store.read(&path, most),
            _ => Err(FileError::Refused("it is not a regular file".to_owned())),
        }
    }

    /// The text of a file, without surrounding blanks, line ends and NUL padding (a tar may pad to the reported size).
    pub(crate) fn text(&self, path: &str) -> Result<String, FileError> {
        let bytes = self.bytes(path, MOST_TEXT_BYTES)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.trim_end_matches(['\0', '\n', ' ', '\t']).trim_start().to_owned())
    }

    /// Sorted names in a folder.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, FileError> {
        self.store.list(&self.folder(path, MOST_LINKS)?)
    }

    /// Last component of the target of link `path`: `../../bus/pci/drivers/nvme` is `nvme`.
    pub(crate) fn link_name(&self, path: &str) -> Result<String, FileError> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.folder(folder, MOST_LINKS)?;
        match self.store.kind(&join(&folder, name))? {
            Kind::Link(target) => Ok(target.rsplit('/').next().unwrap_or("").to_owned()),
            _ => Err(FileError::Refused("it is not a symbolic link".to_owned())),
        }
    }

    /// A fact parsed from the text of file `name` in `folder`.
    pub(crate) fn fact<T>(&self, folder: &str, name: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Seen<T> {
        let text = match self.text(&join(folder, name)) {
            Ok(text) => text,
            Err(trouble) => return Seen::Unseen(trouble.why(name)),
        };
        parse(&text).map_or_else(|| Seen::Unseen(garbled(name, &text)), Seen::Known)
    }

    fn resolve(&self, path: &str, links: u32) -> Result<(String, Kind), FileError> {
        let path = path.trim_matches('/');
        if matches!(path, "" | ".") {
            return Ok((String::new(), Kind::Folder));
        }
        if path.len() > 4096 || path.split('/').count() > MOST_NAMES {
            return Err(FileError::Refused("the path is too long".to_owned()));
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.folder(folder, links)?;
        match name {
            "" | "." => return Ok((folder, Kind::Folder)),
            // `..` of the root is the root.
            ".." => return Ok((folder.rsplit_once('/').unwrap_or(("", "")).0.to_owned(), Kind::Folder)),
            _ => {}
        }
        let path = join(&folder, name);
        match self.store.kind(&path)? {
            Kind::Link(_) if links == 0 => Err(FileError::Refused("too many symbolic links in the path".to_owned())),
            Kind::Link(target) if target.starts_with('/') => self.resolve(&target, links - 1),
            Kind::Link(target) => self.resolve(&join(&folder, &target), links - 1),
            kind => Ok((path, kind)),
        }
    }

    fn folder(&self, path: &str, links: u32) -> Result<String, FileError> {
        if path.is_empty() {
            return Ok(String::new());
        }
        if let Some(known) = self.folders.borrow().get(path) {
            return known.clone();
        }
        let real = match self.resolve(path, links) {
            Ok((path, Kind::Folder)) => Ok(path),
            Ok(_) => Err(FileError::Missing),
            Err(trouble) => Err(trouble),
        };
        self.folders.borrow_mut().insert(path.to_owned(), real.clone());
        real
    }
}

/// The reason of a fact whose file or line `at` has unexpected contents.
pub(crate) fn garbled(at: impl Into<Cow<'static, str>>, text: &str) -> Why {
    Why::Garbled { at: at.into(), text: crate::shortened::shortened(text).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `check` on the same tree as a folder and as a tar.
    fn both(check: impl Fn(&Files<'_>)) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("sys/devices/a")).unwrap();
        std::fs::create_dir_all(root.join("sys/bus")).unwrap();
        std::fs::write(root.join("sys/devices/a/value"), "7\n").unwrap();
        std::fs::write(folder.path().join("secret"), "outside").unwrap();
        for (link, target) in [
            ("sys/bus/a", "../devices/a"),
            ("sys/bus/absolute", "/sys/devices/a"),
            ("sys/bus/out", "../../../../../../secret"),
            ("sys/bus/circle", "circle2"),
            ("sys/bus/circle2", "circle"),
            ("sys/bus/deep", "deep/deep"),
            ("sys/bus/nowhere", "../nowhere"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        check(&Files::new(&Folder::new(&root)));
        let mut tar = tar::Builder::new(Vec::new());
        tar.follow_symlinks(false);
        tar.append_dir_all("./", &root).unwrap();
        check(&Files::new(&Archive::read(&tar.into_inner().unwrap(), "a.tar").unwrap()));
    }

    #[test]
    fn links_inside_the_root_are_resolved() {
        both(|files| {
            for path in
                ["sys/devices/a/value", "sys/bus/a/value", "/sys/bus/absolute/value", "sys/bus/../bus/./a/value"]
            {
                assert_eq!(files.text(path).as_deref(), Ok("7"), "{path}");
            }
            assert_eq!(files.real("sys/bus/a"), Ok("sys/devices/a".to_owned()));
            assert_eq!(files.link_name("sys/bus/a"), Ok("a".to_owned()));
            assert_eq!(files.names("sys/bus/a"), Ok(vec!["value".to_owned()]));
        });
    }

    #[test]
    fn links_that_leave_the_root_or_form_a_cycle_are_not_followed() {
        both(|files| {
            assert_eq!(files.text("sys/bus/out"), Err(FileError::Missing));
            assert_eq!(files.text("../secret"), Err(FileError::Missing));
            assert_eq!(files.text("sys/bus/nowhere"), Err(FileError::Missing));
            assert!(files.exists("sys/bus/nowhere") && !files.exists("sys/bus/nobody"));
            for circle in ["sys/bus/circle", "sys/bus/deep", "sys/bus/deep/value"] {
                assert!(matches!(files.text(circle), Err(FileError::Refused(_))), "{circle}");
            }
        });
    }

    #[test]
    fn a_folder_cannot_be_read_as_a_file_nor_a_file_as_a_folder() {
        both(|files| {
            assert!(matches!(files.bytes("sys/devices", 1), Err(FileError::Refused(_))));
            assert_eq!(files.text("sys/devices/a/value/more"), Err(FileError::Missing));
            assert!(files.names("sys/devices/a/value").is_err());
        });
    }

    #[test]
    fn a_pipe_is_never_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let store = Folder::new(folder.path());
        assert!(matches!(Files::new(&store).bytes("config", 1), Err(FileError::Refused(_))));
    }
}
