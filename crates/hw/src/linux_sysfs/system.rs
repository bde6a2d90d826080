//! Where the kernel says things, and whether the machine around us is a real one.

use super::Address;
use crate::interpreter::interpreter;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The files of the kernel: those of this machine, or a folder that looks like them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// This machine.
    #[must_use]
    pub fn this() -> System {
        System { root: PathBuf::from("/") }
    }

    /// A folder with `sys` and `proc` in it, where a BAR can be an ordinary file. For tests: a record made there is
    /// marked as emulated.
    #[doc(hidden)]
    #[must_use]
    pub fn at(root: &Path) -> System {
        System { root: root.to_owned() }
    }

    /// A file below the root, named without the leading slash.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The folder of a device.
    pub(super) fn device(&self, address: Address) -> PathBuf {
        self.path("sys/bus/pci/devices").join(address.to_string())
    }

    /// Why what is measured here says nothing about speed; `None` where nothing speaks against it.
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
            "this machine is one of QEMU's, where a card passed through cannot be told from an emulated one".to_owned()
        })
    }
}

/// The most that a file of the kernel's is read: its longest, the list of memory types, has a line a mapping.
const MOST: u64 = 16 << 20;

/// The text of a file of the kernel's.
pub(super) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}
