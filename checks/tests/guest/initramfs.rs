//! The guest's file system: a cpio archive in the `newc` format, which the kernel unpacks into memory.

use std::collections::BTreeSet;
use std::path::Path;

/// An archive under construction.
#[derive(Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
}

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Initramfs {
    /// Adds an executable file and its parent folders.
    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, content);
    }

    /// Adds an empty folder.
    pub fn folder(&mut self, path: &str) {
        if !path.is_empty() && self.folders.insert(path.to_owned()) {
            self.entry(path, FOLDER, &[]);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        let inode = self.bytes.len();
        let (links, size, name) = (1, content.len(), path.len() + 1);
        // magic, inode, mode, uid, gid, links, mtime, size, device (4 numbers), length of the name, check sum
        let header = format!(
            "070701{inode:08x}{mode:08x}{0:08x}{0:08x}{links:08x}{0:08x}{size:08x}{0:08x}{0:08x}{0:08x}{0:08x}{name:08x}{0:08x}",
            0
        );
        self.bytes.extend(header.bytes().chain(path.bytes()).chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// Pads to a multiple of four, where names and contents start.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Writes the archive.
    pub fn write(mut self, path: &Path) -> std::io::Result<()> {
        self.entry("TRAILER!!!", 0, &[]);
        std::fs::write(path, self.bytes)
    }
}
