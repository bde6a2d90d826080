//! What uses a PCI function: binding it to another driver would take it away from them.

use super::function::names_in;
use super::{DriverError, PciFunction};
use crate::linux_sysfs::text;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::fmt;
use std::path::PathBuf;

/// A user of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum User {
    /// A mounted file system.
    FileSystem {
        /// Block device.
        device: String,
        /// Where it is mounted.
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
        /// File of its IOMMU group.
        group: PathBuf,
    },
    /// The console.
    Console,
}

impl User {
    /// Whether the user's consent is enough to take the function away.
    #[must_use]
    pub const fn yields(&self) -> bool {
        matches!(self, User::Network { .. } | User::Console)
    }

    /// What to do.
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
            User::Vfio { .. } => "end that program first".to_owned(),
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
            User::Vfio { group } => write!(f, "a program uses it through {}", group.display()),
            User::Console => f.write_str("it shows the console"),
        }
    }
}

/// Finds the users of a function that can be seen from here. A program that has opened a drive without claiming it cannot.
pub(super) fn users_of(function: &PciFunction) -> Result<Vec<User>, DriverError> {
    let mut users = block_users(function)?;
    users.extend(vfio_user(function)?);
    let count = text(&function.path("sriov_numvfs")).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    if count > 0 {
        users.push(User::VirtualFunctions { count });
    }
    for interface in below(function, "sys/class/net")? {
        let path = function.system().path("sys/class/net").join(&interface).join("operstate");
        // Some drivers report 'unknown' for an interface that works.
        if text(&path).is_ok_and(|state| !matches!(state.trim(), "down" | "notpresent")) {
            users.push(User::Network { interface });
        }
    }
    if text(&function.path("boot_vga")).is_ok_and(|flag| flag.trim() == "1") {
        users.push(User::Console);
    }
    Ok(users)
}

/// The program that has opened the IOMMU group of a function.
pub(super) fn vfio_user(function: &PciFunction) -> Result<Option<User>, DriverError> {
    let Some(group) = function.iommu_group()? else { return Ok(None) };
    let group = function.system().path("dev/vfio").join(group);
    let opened = open(&group, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    Ok(matches!(opened, Err(Errno::BUSY)).then_some(User::Vfio { group }))
}

fn block_users(function: &PciFunction) -> Result<Vec<User>, DriverError> {
    let system = function.system();
    let devices = below(function, "sys/class/block")?;
    if devices.is_empty() {
        return Ok(Vec::new());
    }
    let path = system.path("proc/self/mountinfo");
    let mounts = text(&path).map_err(|source| function.os("reading", path, source))?;
    let mut users = Vec::new();
    for device in devices {
        let folder = system.path("sys/class/block").join(&device);
        if text(&folder.join("hidden")).is_ok_and(|flag| flag.trim() == "1") {
            users.push(User::Path { device });
            continue;
        }
        let path = folder.join("dev");
        let number = text(&path).map_err(|source| function.os("reading", path, source))?;
        // Fields of a line: number, parent, device number, root, mount point.
        let mounted = mounts.lines().find(|line| line.split(' ').nth(2) == Some(number.trim()));
        // In sysfs, a slash in the name of a device is an exclamation mark.
        let node = device.replace('!', "/");
        if let Some(line) = mounted {
            let at = line.split(' ').nth(4).unwrap_or_default().to_owned();
            users.push(User::FileSystem { device: node, at });
            continue;
        }
        // The kernel refuses an exclusive use of a block device that it uses itself.
        let exclusive = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match open(system.path("dev").join(&node), exclusive, Mode::empty()) {
            // Without a medium, nothing uses it.
            Ok(_) | Err(Errno::NOMEDIUM | Errno::NXIO) => {}
            Err(Errno::BUSY) => users.push(User::Claimed { device: node }),
            Err(error) => return Err(function.os("opening", system.path("dev").join(&node), error.into())),
        }
    }
    Ok(users)
}

/// Names in a class of devices that lie below the function in the device tree.
fn below(function: &PciFunction, class: &str) -> Result<Vec<String>, DriverError> {
    let resolved = |path: PathBuf| path.canonicalize().map_err(|source| function.os("following", path.clone(), source));
    let folder = resolved(function.path(""))?;
    let class = function.system().path(class);
    let names = names_in(&class).map_err(|source| function.os("listing", class.clone(), source))?;
    // A device may vanish meanwhile.
    Ok(names.into_iter().filter(|name| resolved(class.join(name)).is_ok_and(|at| at.starts_with(&folder))).collect())
}
