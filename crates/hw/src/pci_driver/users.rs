//! The search for users of a PCI function.

use super::function::names_in;
use super::{DriverError, PciFunction, User};
use crate::linux_sysfs::text;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::path::PathBuf;

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
