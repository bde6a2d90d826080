//! Where the kernel says things, and whether the machine around us is a real one.

use super::Address;
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
        if hypervisor().is_some_and(|name| name == *b"TCGTCGTCGTCG") {
            return Some("QEMU interprets every instruction (TCG) and knows no memory types".to_owned());
        }
        let vendor = text(&self.path("sys/class/dmi/id/sys_vendor")).ok()?;
        (vendor.trim() == "QEMU").then(|| {
            "this machine is one of QEMU's, where a card passed through cannot be told from an emulated one".to_owned()
        })
    }
}

/// What a hypervisor calls itself. Source: CPUID leaf 40000000H, as KVM's `Documentation/virt/kvm/x86/cpuid.rst` has it.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<[u8; 12]> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(1).ecx & 1 << 31 == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let mut name = [0; 12];
    for (bytes, register) in name.chunks_mut(4).zip([leaf.ebx, leaf.ecx, leaf.edx]) {
        bytes.copy_from_slice(&register.to_le_bytes());
    }
    Some(name)
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<[u8; 12]> {
    None
}

/// The most that a file of the kernel's is read: its longest, the list of memory types, has a line a mapping.
const MOST: u64 = 16 << 20;

/// The text of a file of the kernel's.
pub(super) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST).read_to_string(&mut text)?;
    Ok(text)
}
