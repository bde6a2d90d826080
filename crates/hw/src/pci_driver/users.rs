//! What uses a PCI function: binding it to another driver would take it away from them.

use super::function::names_in;
use super::{DriverError, PciFunction};
use crate::linux_sysfs::text;
use std::fmt;
use std::path::{Path, PathBuf};

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
    /// Swap space.
    Swap {
        /// Block device.
        device: String,
    },
    /// A block device on top of one of its own, such as RAID, LVM or encryption.
    Holder {
        /// Block device of the function.
        device: String,
        /// The other one.
        holder: String,
    },
    /// A network interface that is up.
    Network {
        /// Interface.
        interface: String,
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
            User::Swap { device } => format!("stop it with: swapoff /dev/{device}"),
            User::Holder { holder, .. } => format!("stop {holder} first"),
            User::Network { interface } => {
                format!("set it down with: ip link set {interface} down, or add --i-own-this-device")
            }
            User::Console => "add --i-own-this-device if you do not need the screen".to_owned(),
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            User::FileSystem { device, at } => write!(f, "/dev/{device} is mounted at {at}"),
            User::Swap { device } => write!(f, "/dev/{device} is swap space"),
            User::Holder { device, holder } => write!(f, "/dev/{device} is part of {holder}"),
            User::Network { interface } => write!(f, "network interface {interface} is up"),
            User::Console => f.write_str("it shows the console"),
        }
    }
}

/// Finds the users of a function, those that yield to nothing first.
pub(super) fn users_of(function: &PciFunction) -> Result<Vec<User>, DriverError> {
    let mut users = block_users(function)?;
    for interface in below(function, "sys/class/net")? {
        let path = function.system().path("sys/class/net").join(&interface).join("operstate");
        if text(&path).is_ok_and(|state| state.trim() == "up") {
            users.push(User::Network { interface });
        }
    }
    if text(&function.path("boot_vga")).is_ok_and(|flag| flag.trim() == "1") {
        users.push(User::Console);
    }
    Ok(users)
}

fn block_users(function: &PciFunction) -> Result<Vec<User>, DriverError> {
    let system = function.system();
    // A machine without swap may lack the second file.
    let read = |name| text(&system.path(name)).unwrap_or_default();
    let (mounts, swaps) = (read("proc/self/mounts"), read("proc/swaps"));
    let words = |line: &str, nth| line.split_whitespace().nth(nth).unwrap_or_default().to_owned();
    let is_at = |line: &&str, device: &str| Path::new(&words(line, 0)) == Path::new("/dev").join(device);
    let mut users = Vec::new();
    for device in below(function, "sys/class/block")? {
        let mounted = mounts.lines().filter(|line| is_at(line, &device));
        users.extend(mounted.map(|line| User::FileSystem { device: device.clone(), at: words(line, 1) }));
        users.extend(swaps.lines().filter(|line| is_at(line, &device)).map(|_| User::Swap { device: device.clone() }));
        let path = system.path("sys/class/block").join(&device).join("holders");
        let holders = names_in(&path).map_err(|source| function.os("listing", path, source))?;
        users.extend(holders.into_iter().map(|holder| User::Holder { device: device.clone(), holder }));
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
