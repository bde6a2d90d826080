//! Location of the kernel's files, and detection of emulated machines.

use super::Address;
use crate::interpreter::interpreter;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Root of the kernel's files: this machine's, or a folder that imitates them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// Root of this machine.
    #[must_use]
    pub fn this() -> System {
        System { root: PathBuf::from("/") }
    }

    /// A folder that contains `sys` and `proc`, where a BAR can be a plain file. For tests: records made there are marked
    /// as emulated.
    #[doc(hidden)]
    #[must_use]
    pub fn at(root: &Path) -> System {
        System { root: root.to_owned() }
    }

    /// Path of a file, given without the leading slash.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Sysfs folder of a device.
    #[must_use]
    pub fn device(&self, address: Address) -> PathBuf {
        self.path("sys/bus/pci/devices").join(address.to_string())
    }

    /// Reason why timings here are not meaningful; `None` if there is none.
    #[must_use]
    pub fn emulated(&self) -> Option<String> {
        if self.root != Path::new("/") {
            return Some(format!("its BARs are files below {}", self.root.display()));
        }
        if let Some(because) = interpreter() {
            return Some(because.to_owned());
        }
        let vendor = text(&self.path("sys/class/dmi/id/sys_vendor")).ok()?;
        (vendor.trim() == "QEMU").then(|| {
            "this machine runs under QEMU, where a passed-through card cannot be told from an emulated one".to_owned()
        })
    }
}

/// Maximum length read from a kernel file in bytes; the longest, the list of memory types, has one line per mapping.
const MOST: u64 = 16 << 20;

/// Reads a text file of the kernel.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}
