//! A user of a PCI function: binding it to another driver would take it away from that user.

use std::fmt;
use std::path::PathBuf;

/// A user of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum User {
    /// A mounted file system.
    FileSystem {
        /// Block device.
        device: String,
        /// Mount point.
        at: String,
    },
    /// A block device that the kernel uses: swap space, RAID, LVM, a file system of several drives or in another mount
    /// namespace.
    Claimed {
        /// Block device.
        device: String,
    },
    /// A path to a drive with several paths, whose file systems are those of another block device.
    Path {
        /// Block device.
        device: String,
    },
    /// A network interface.
    Network {
        /// Interface.
        interface: String,
    },
    /// Virtual functions of this one.
    VirtualFunctions {
        /// Their number.
        count: u32,
    },
    /// A program that uses it through VFIO.
    Vfio {
        /// File that it has open: of the IOMMU group, or of a function in it.
        file: PathBuf,
    },
    /// Another process of Lanemark.
    Lanemark,
    /// The console.
    Console,
}

impl User {
    /// Whether the user's consent is enough to take the function away.
    #[must_use]
    pub const fn yields(&self) -> bool {
        matches!(self, User::Network { .. } | User::Console)
    }

    /// Remedy: how this user gives the function up.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            User::FileSystem { at, .. } => format!("unmount it with: umount {at}"),
            User::Claimed { device } => {
                format!("see 'lsblk /dev/{device}' and 'swapon', and stop what uses it")
            }
            User::Path { .. } => "boot with nvme_core.multipath=N".to_owned(),
            User::Network { interface } => {
                format!("set it down with: ip link set {interface} down, or add --i-own-this-device")
            }
            User::VirtualFunctions { .. } => "write 0 to its file sriov_numvfs".to_owned(),
            User::Vfio { .. } | User::Lanemark => "end that program first".to_owned(),
            User::Console => "add --i-own-this-device if you do not need the screen".to_owned(),
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::FileSystem { device, at } => write!(f, "/dev/{device} is mounted at {at}"),
            User::Claimed { device } => write!(f, "the kernel uses /dev/{device}"),
            User::Path { device } => write!(f, "{device} is one of several paths to a drive"),
            User::Network { interface } => write!(f, "network interface {interface} is up"),
            User::VirtualFunctions { count } => write!(f, "it has {count} virtual functions"),
            User::Vfio { file } => write!(f, "a program uses it through {}", file.display()),
            User::Lanemark => f.write_str("another process of Lanemark uses it"),
            User::Console => f.write_str("it shows the console"),
        }
    }
}
