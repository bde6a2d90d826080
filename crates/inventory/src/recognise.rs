//! Detects the format of a file or folder.

use crate::files::{Archive, Files, Folder, Store};
use crate::{Inventory, InventoryError, Source, lspci, sysfs};
use std::io::Read;
use std::path::Path;

/// Maximum size of a file, packed or unpacked: a dump of ten thousand functions has 128 MiB.
const MOST_BYTES: u64 = 256 << 20;

/// Reads a folder or a file.
pub(crate) fn path(path: &Path) -> Result<Inventory, InventoryError> {
    let io = |error| InventoryError::Io { path: path.to_owned(), error };
    let kind = std::fs::metadata(path).map_err(io)?;
    if kind.is_dir() {
        return folder(path);
    }
    if !kind.is_file() {
        let tried = vec!["it is neither a file nor a folder".to_owned()];
        return Err(InventoryError::Unrecognised { path: path.to_owned(), tried });
    }
    let mut contents = Vec::new();
    let file = std::fs::File::open(path).map_err(io)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut contents).map_err(io)?;
    bytes(&contents, path)
}

fn has_functions(store: &dyn Store) -> bool {
    Files::new(store).names(sysfs::FUNCTIONS).is_ok()
}

/// Top-level folders of a root, one of which may contain the tree.
fn tops(store: &dyn Store) -> Vec<String> {
    store.list("").unwrap_or_default()
}

fn folder(path: &Path) -> Result<Inventory, InventoryError> {
    let source = || Source::Folder(path.to_owned());
    let whole = Folder::new(path);
    if has_functions(&whole) {
        return sysfs::read(&Files::new(&whole), source(), false);
    }
    for top in tops(&whole) {
        // A symbolic link could leave the folder.
        let top = path.join(top);
        let part = Folder::new(&top);
        if std::fs::symlink_metadata(&top).is_ok_and(|kind| kind.is_dir()) && has_functions(&part) {
            return sysfs::read(&Files::new(&part), source(), false);
        }
    }
    let tried = vec![format!("as a copy of a machine it lacks {}", sysfs::FUNCTIONS)];
    Err(InventoryError::Unrecognised { path: path.to_owned(), tried })
}

/// Reads the contents of a file.
pub(crate) fn bytes(bytes: &[u8], path: &Path) -> Result<Inventory, InventoryError> {
    let place = path.display().to_string();
    let too_large =
        |what: &str| InventoryError::TooLarge { place: place.clone(), what: what.to_owned(), most: MOST_BYTES };
    let unrecognised = |tried: Vec<String>| InventoryError::Unrecognised { path: path.to_owned(), tried };
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large("its size in bytes"));
    }
    for (magic, name, unpack) in [
        (&b"\x28\xb5\x2f\xfd"[..], "zstd", "zstd -d"),
        (&b"\xfd7zXZ\0"[..], "xz", "xz -d"),
        (&b"BZh"[..], "bzip2", "bzip2 -d"),
        (&b"PK\x03\x04"[..], "zip", "unzip"),
    ] {
        if bytes.starts_with(magic) {
            return Err(unrecognised(vec![format!(
                "it is compressed with {name}; only gzip is supported: run {unpack} {place}"
            )]));
        }
    }
    let mut unpacked = Vec::new();
    let bytes = if bytes.starts_with(b"\x1f\x8b") {
        let gzip = flate2::read::MultiGzDecoder::new(bytes);
        gzip.take(MOST_BYTES + 1)
            .read_to_end(&mut unpacked)
            .map_err(|error| unrecognised(vec![format!("as gzip it is corrupt: {error}")]))?;
        if unpacked.len() as u64 > MOST_BYTES {
            return Err(too_large("its unpacked size in bytes"));
        }
        &unpacked[..]
    } else {
        bytes
    };
    // Every tar since POSIX.1-1988 has this magic in its first header.
    if bytes.get(257..262) == Some(&b"ustar"[..]) {
        return archive(Archive::read(bytes, &place)?, path);
    }
    if bytes.iter().take(1 << 16).any(|byte| *byte == 0) {
        let tried = vec!["as a tar it has no header".to_owned(), "as lspci output it contains NUL bytes".to_owned()];
        return Err(unrecognised(tried));
    }
    // Names in another encoding may make a few bytes invalid.
    match std::str::from_utf8(bytes) {
        Ok(text) => lspci::read(text, path),
        Err(_) => lspci::read(&String::from_utf8_lossy(bytes), path),
    }
}

fn archive(archive: Archive, path: &Path) -> Result<Inventory, InventoryError> {
    let source = Source::Archive(path.to_owned());
    if has_functions(&archive) {
        return sysfs::read(&Files::new(&archive), source, false);
    }
    let top = tops(&archive)
        .into_iter()
        .find(|top| Files::new(&archive).names(&format!("{top}/{}", sysfs::FUNCTIONS)).is_ok());
    let Some(top) = top else {
        let tried = vec![format!("as a tar of a machine it lacks {}", sysfs::FUNCTIONS)];
        return Err(InventoryError::Unrecognised { path: path.to_owned(), tried });
    };
    sysfs::read(&Files::new(&archive.below(&top)), source, false)
}
