//! The search for users of a PCI function.

use super::function::names_in;
use super::{DriverError, PciFunction, User};
use crate::linux_sysfs::text;
use rustix::fs::{Mode, OFlags, major, minor, open};
use rustix::io::Errno;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

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

/// The program that has opened the IOMMU group of a function, or through iommufd a function of this group.
pub(super) fn vfio_user(function: &PciFunction) -> Result<Option<User>, DriverError> {
    let Some(group) = function.iommu_group()? else { return Ok(None) };
    let file = function.system().path("dev/vfio").join(group);
    // The kernel refuses a second open of a group.
    if matches!(open(&file, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()), Err(Errno::BUSY)) {
        return Ok(Some(User::Vfio { file }));
    }
    for member in std::iter::once(function).chain(&function.group_members()?) {
        for (file, number) in vfio_files(member)? {
            if is_open(member, &number)? {
                return Ok(Some(User::Vfio { file }));
            }
        }
    }
    Ok(None)
}

/// The files by which iommufd opens a function, each with its device number, MAJOR:MINOR.
fn vfio_files(function: &PciFunction) -> Result<Vec<(PathBuf, String)>, DriverError> {
    let folder = function.path("vfio-dev");
    let names = names_in(&folder).map_err(|source| function.os("listing", folder.clone(), source))?;
    let mut files = Vec::new();
    for name in names {
        let path = folder.join(&name).join("dev");
        match text(&path) {
            Ok(number) => {
                files.push((function.system().path("dev/vfio/devices").join(name), number.trim().to_owned()));
            }
            // A kernel without such files has no number for them.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(function.os("reading", path, source)),
        }
    }
    Ok(files)
}

/// Whether a process that can be seen from here has a VFIO file with this device number open. Opening the file would not
/// show it: the kernel refuses a second user later, at the binding to iommufd, which resets a device without a user.
fn is_open(function: &PciFunction, number: &str) -> Result<bool, DriverError> {
    let path = function.system().path("proc");
    let entries = names_in(&path).and_then(|names| {
        let processes: Vec<String> = names.into_iter().filter(|name| name.parse::<u32>().is_ok()).collect();
        // This process is one of them.
        if processes.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(processes) }
    });
    let processes = entries.map_err(|source| function.os("listing the processes of", path.clone(), source))?;
    Ok(processes.iter().any(|process| {
        // A process may end meanwhile, or be another user's, who may not bind drivers either.
        let files = std::fs::read_dir(path.join(process).join("fd"));
        files.is_ok_and(|files| files.flatten().any(|file| has_number(&file.path(), number)))
    }))
}

/// Whether a link of `/proc/PROCESS/fd` leads to a VFIO file with a device number. Only files named so are examined, because
/// examining a file of an unreachable server does not end.
fn has_number(link: &Path, number: &str) -> bool {
    let is_named = std::fs::read_link(link).is_ok_and(|target| target.to_string_lossy().contains("vfio"));
    is_named
        && std::fs::metadata(link).is_ok_and(|file| {
            let found = file.rdev();
            file.file_type().is_char_device() && format!("{}:{}", major(found), minor(found)) == number
        })
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
