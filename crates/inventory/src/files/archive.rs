//! A tar in memory as a root.

use super::store::{FileError, Kind, Store};
use crate::InventoryError;
use std::collections::{BTreeSet, HashMap};
use std::io::Read;

/// Maximum number of entries; a tar of a machine with thousands of functions has some hundred thousand.
const MOST_ENTRIES: usize = 2_000_000;
/// Maximum size of an entry: configuration space has 4 KiB, `/proc/cpuinfo` of a large machine some MiB.
const MOST_ENTRY_BYTES: u64 = 16 << 20;
/// Maximum total size of all entries, with sparse ones expanded.
const MOST_BYTES: u64 = 256 << 20;
/// Maximum nesting of folders.
const MOST_DEPTH: usize = 48;
/// Maximum length of a path, as in Linux.
const MOST_PATH_BYTES: usize = 4096;

enum Node {
    File(Vec<u8>),
    Folder(BTreeSet<String>),
    Link(String),
    Special,
}

/// A tar in memory as a root.
pub(crate) struct Archive {
    nodes: HashMap<String, Node>,
    /// Total length of the paths of folders without an entry; a long path implies one folder per component.
    folder_bytes: u64,
}

impl Archive {
    /// Reads the whole tar; `place` is its name in messages.
    ///
    /// # Errors
    /// If an entry is corrupt, or the total size exceeds that of a copy of `/sys`.
    pub(crate) fn read(bytes: &[u8], place: &str) -> Result<Archive, InventoryError> {
        let mut archive = Archive { nodes: HashMap::new(), folder_bytes: 0 };
        archive.nodes.insert(String::new(), Node::Folder(BTreeSet::new()));
        let mut tar = tar::Archive::new(bytes);
        let broken = |entry: usize, error: &std::io::Error| InventoryError::Malformed {
            place: place.to_owned(),
            line: entry,
            problem: format!(
                "the archive is corrupt here: {}; is it complete?",
                crate::shortened::shortened(&error.to_string())
            ),
        };
        let too_large = |what: String, most: u64| InventoryError::TooLarge { place: place.to_owned(), what, most };
        let mut total = 0;
        for (at, entry) in tar.entries().map_err(|error| broken(1, &error))?.enumerate() {
            let number = at + 1;
            if number > MOST_ENTRIES {
                return Err(too_large("the number of entries".to_owned(), MOST_ENTRIES as u64));
            }
            let mut entry = entry.map_err(|error| broken(number, &error))?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
            let malformed = |problem| InventoryError::Malformed { place: place.to_owned(), line: number, problem };
            if parts.contains(&"..") || parts.len() > MOST_DEPTH {
                let problem = format!(
                    "the entry '{}' leads out of the archive or is nested too deep",
                    crate::shortened::shortened(&path)
                );
                return Err(malformed(problem));
            }
            if path.len() > MOST_PATH_BYTES {
                return Err(malformed(format!(
                    "the name '{}' has {} B, more than the {MOST_PATH_BYTES} B of Linux; this is not a copy of /sys",
                    crate::shortened::shortened(&path),
                    path.len()
                )));
            }
            let kind = entry.header().entry_type();
            let node = if kind.is_dir() {
                Node::Folder(BTreeSet::new())
            } else if kind.is_symlink() {
                let target = entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
                Node::Link(target.unwrap_or_default())
            } else if kind.is_hard_link() {
                // A hard link to an earlier entry, with a target relative to the root.
                let target = entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
                Node::Link(format!("/{}", target.unwrap_or_default()))
            } else if kind.is_file() || kind.is_gnu_sparse() || kind.is_contiguous() {
                if entry.size() > MOST_ENTRY_BYTES {
                    let what = format!("the entry '{}' with {} B", crate::shortened::shortened(&path), entry.size());
                    return Err(too_large(what, MOST_ENTRY_BYTES));
                }
                total += entry.size();
                if total > MOST_BYTES {
                    return Err(too_large("the total size of the entries".to_owned(), MOST_BYTES));
                }
                let mut contents = Vec::new();
                entry.read_to_end(&mut contents).map_err(|error| broken(number, &error))?;
                Node::File(contents)
            } else {
                Node::Special
            };
            archive.insert(&parts, node);
            if total + archive.folder_bytes > MOST_BYTES {
                return Err(too_large("the total size of the entries and their names".to_owned(), MOST_BYTES));
            }
        }
        Ok(archive)
    }

    /// The part of this archive below folder `name`.
    pub(crate) fn below(self, name: &str) -> Archive {
        let inside = |path: String| {
            let rest = path.strip_prefix(name)?;
            if rest.is_empty() { Some(String::new()) } else { Some(rest.strip_prefix('/')?.to_owned()) }
        };
        let nodes = self.nodes.into_iter().filter_map(|(path, node)| Some((inside(path)?, node))).collect();
        Archive { nodes, ..self }
    }

    /// Adds an entry. The last entry of a name counts, as on extraction; a repeated folder entry does not empty the
    /// folder.
    fn insert(&mut self, parts: &[&str], node: Node) {
        let Some((name, folders)) = parts.split_last() else { return };
        let mut folder = String::new();
        for part in folders {
            self.name_in(&folder, part);
            folder = super::join(&folder, part);
        }
        self.name_in(&folder, name);
        let path = super::join(&folder, name);
        match (self.nodes.get(&path), &node) {
            (Some(Node::Folder(_)), Node::Folder(_)) => {}
            _ => drop(self.nodes.insert(path, node)),
        }
    }

    fn name_in(&mut self, folder: &str, name: &str) {
        let node = self.nodes.entry(folder.to_owned()).or_insert_with(|| {
            self.folder_bytes += folder.len() as u64;
            Node::Folder(BTreeSet::new())
        });
        if let Node::Folder(names) = node {
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
        } else {
            *node = Node::Folder(BTreeSet::from([name.to_owned()]));
        }
    }
}

impl Store for Archive {
    fn kind(&self, path: &str) -> Result<Kind, FileError> {
        Ok(match self.nodes.get(path).ok_or(FileError::Missing)? {
            Node::File(_) => Kind::File,
            Node::Folder(_) => Kind::Folder,
            Node::Link(target) => Kind::Link(target.clone()),
            Node::Special => Kind::Special,
        })
    }

    fn read(&self, path: &str, most: usize) -> Result<Vec<u8>, FileError> {
        match self.nodes.get(path) {
            Some(Node::File(bytes)) => Ok(bytes[..bytes.len().min(most)].to_vec()),
            _ => Err(FileError::Missing),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        match self.nodes.get(path) {
            Some(Node::Folder(names)) => Ok(names.iter().cloned().collect()),
            _ => Err(FileError::Missing),
        }
    }
}
