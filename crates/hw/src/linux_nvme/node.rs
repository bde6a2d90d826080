//! The character device of a namespace, and what sysfs says about it.

use super::DriveError;
use crate::linux_sysfs::{Address, System, text};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Class of the character devices of namespaces, and of those of controllers.
const GENERIC: &str = "nvme-generic";
const CONTROLLER: &str = "nvme";

/// A namespace of a drive in this machine. Creating a value does not access the drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveNode {
    path: PathBuf,
    /// Name in sysfs, such as `ng0n1`.
    name: String,
    /// Name of the only controller, such as `nvme0`.
    controller: String,
    function: Address,
    system: System,
}

impl DriveNode {
    /// Finds the namespace of the character device at `path`, such as `/dev/ng0n1`.
    ///
    /// # Errors
    /// [`DriveError`] if it is none, or if its drive is not attached by PCIe to this machine alone.
    pub fn find(system: &System, path: &Path) -> Result<DriveNode, DriveError> {
        let not = |is: String, name: Option<String>| DriveError::NotANamespace {
            path: path.to_owned(),
            is,
            hint: hint(system, name),
        };
        let unsupported = |because: String| DriveError::Unsupported { path: path.to_owned(), because };
        let kind = match fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(not("does not exist".to_owned(), None));
            }
            Err(source) => {
                return Err(DriveError::Os { path: path.to_owned(), doing: "reading its type", source });
            }
            Ok(kind) => kind,
        };
        let number = kind.rdev();
        let of = |class: &str| {
            let number = format!("{}:{}", major(number), minor(number));
            system.path("sys/dev").join(class).join(number).canonicalize().ok()
        };
        let named = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
        if kind.file_type().is_block_device() {
            // A partition is below its disk.
            let folder = of("block");
            let disk =
                folder.as_deref().map(|at| if at.join("partition").exists() { at.parent().unwrap_or(at) } else { at });
            let disk = disk.and_then(named).filter(|name| name.starts_with("nvme"));
            let name = disk.map(|name| name.replacen("nvme", "ng", 1));
            return Err(not("is a block device, which takes no NVMe commands".to_owned(), name));
        }
        if !kind.file_type().is_char_device() {
            return Err(not("is no device".to_owned(), None));
        }
        let folder =
            of("char").ok_or_else(|| not("is a character device without an entry in sysfs".to_owned(), None))?;
        let class = folder.join("subsystem").canonicalize().ok().as_deref().and_then(named);
        match class.as_deref() {
            Some(GENERIC) => {}
            Some(CONTROLLER) => return Err(not("is a controller, and not one of its namespaces".to_owned(), None)),
            _ => return Err(not("is no device of an NVMe drive".to_owned(), None)),
        }
        let name = named(&folder).unwrap_or_default();
        let above = folder.parent().unwrap_or(&folder);
        let controllers = controllers(above);
        let [controller] = controllers.as_slice() else {
            let paths = controllers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
            let because = if paths.is_empty() {
                "no controller of this namespace is in sysfs: its drive has just been removed; see dmesg".to_owned()
            } else {
                format!(
                    "it has several paths ({paths}), and the kernel chooses one for each command: use a drive with one path"
                )
            };
            return Err(unsupported(because));
        };
        let (controller, at) = controller;
        let transport = read(&at.join("transport")).unwrap_or_default();
        if transport != "pcie" {
            let because = format!(
                "its controller {controller} is attached by '{transport}', not by PCIe: use a drive in this machine"
            );
            return Err(unsupported(because));
        }
        let function = read(&at.join("address")).and_then(|address| address.parse().ok());
        let function =
            function.ok_or_else(|| unsupported(format!("sysfs has no PCI address of its controller {controller}")))?;
        Ok(DriveNode { path: path.to_owned(), name, controller: controller.clone(), function, system: system.clone() })
    }

    /// Path of the character device, as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// PCI function of the controller.
    #[must_use]
    pub const fn function(&self) -> Address {
        self.function
    }

    /// Namespace and controller, in words.
    #[must_use]
    pub fn summary(&self) -> String {
        format!("{} of the controller {} ({})", self.name, self.controller, self.function)
    }
}

#[cfg(target_arch = "x86_64")]
impl DriveNode {
    /// The system that has the drive.
    pub(super) const fn system(&self) -> &System {
        &self.system
    }

    /// Largest transfer that the kernel's driver accepts for memory in pages of `page_bytes`; `None` if sysfs does not say it.
    ///
    /// The driver maps the memory of a command, and cuts none: it is limited in bytes and in segments. A segment is a page at
    /// most, and one more is needed if the memory does not begin with a page.
    pub(super) fn most_bytes(&self, page_bytes: u64) -> Option<u64> {
        let block = self.name.replacen("ng", "nvme", 1);
        let queue = self.system.path("sys/class/block").join(block).join("queue");
        let number = |name: &str| read(&queue.join(name))?.parse::<u64>().ok();
        let bytes = number("max_hw_sectors_kb")?.saturating_mul(1024);
        let segments = number("max_segments")?.saturating_sub(1).max(1).saturating_mul(page_bytes);
        Some(bytes.min(segments))
    }

    /// Whether the kernel has removed the namespace or its controller, or does so now.
    pub(super) fn is_removed(&self) -> bool {
        let state = read(&self.system.path("sys/class/nvme").join(&self.controller).join("state"));
        let is_there = self.system.path("sys/class/nvme-generic").join(&self.name).exists();
        !is_there || state.is_none_or(|state| state.starts_with("deleting") || state == "dead")
    }
}

/// Controllers with their folders: the parent of a namespace; of one with several paths, those of its subsystem.
fn controllers(above: &Path) -> Vec<(String, PathBuf)> {
    let is_controller = |at: &Path| at.join("transport").is_file();
    let named = |at: PathBuf| at.file_name().map(|name| (name.to_string_lossy().into_owned(), at.clone()));
    if is_controller(above) {
        return named(above.to_owned()).into_iter().collect();
    }
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> =
        entries.map(|entry| entry.path()).filter(|at| is_controller(at)).filter_map(named).collect();
    found.sort();
    found
}

/// The namespaces to name instead: `name`, if it exists, or all of this machine.
fn hint(system: &System, name: Option<String>) -> String {
    let folder = system.path("sys/class").join(GENERIC);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    if let Some(name) = name.filter(|name| names.contains(name)) {
        return format!("here nvme:/dev/{name}");
    }
    if names.is_empty() {
        return "such as nvme:/dev/ng0n1; this machine has none (Linux 5.13 or newer, modprobe nvme)".to_owned();
    }
    format!("here {}", names.iter().map(|name| format!("nvme:/dev/{name}")).collect::<Vec<_>>().join(" or "))
}

fn read(path: &Path) -> Option<String> {
    Some(text(path).ok()?.trim().to_owned())
}

/// Parts of a device number. Source: Linux, `include/linux/kdev_t.h`, `new_encode_dev`, and the C library's `sys/sysmacros.h`.
const fn major(number: u64) -> u64 {
    number >> 32 & 0xffff_f000 | number >> 8 & 0xfff
}

/// See [`major`].
const fn minor(number: u64) -> u64 {
    number >> 12 & 0xffff_ff00 | number & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(with: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in with {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let system = System::at(folder.path());
        (folder, system)
    }

    #[test]
    fn what_is_no_namespace_is_named_with_the_namespaces_of_the_machine() {
        let (folder, system) = system(&[("sys/class/nvme-generic/ng1n1", ""), ("file", "")]);
        let of = |path: &Path| DriveNode::find(&system, path).unwrap_err().to_string();
        let said = of(&folder.path().join("absent"));
        assert!(
            said.ends_with("does not exist: name the character device of a namespace, here nvme:/dev/ng1n1"),
            "{said}"
        );
        assert!(of(&folder.path().join("file")).contains("is no device: "));
        let said = of(Path::new("/dev/null"));
        assert!(said.contains("/dev/null is a character device without an entry in sysfs"), "{said}");
        let (_folder, empty) = self::system(&[]);
        let said = DriveNode::find(&empty, Path::new("/absent")).unwrap_err().to_string();
        assert!(said.contains("this machine has none"), "{said}");
    }

    #[test]
    fn controllers_are_the_parent_or_those_of_the_subsystem() {
        let (folder, _) = system(&[
            ("nvme0/transport", "pcie"),
            ("nvme-subsys0/nvme0/transport", "pcie"),
            ("nvme-subsys0/nvme1/transport", "tcp"),
            ("nvme-subsys0/ng0n1/dev", "1:2"),
        ]);
        let names =
            |of: &str| controllers(&folder.path().join(of)).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(
            (names("nvme0"), names("nvme-subsys0")),
            (vec!["nvme0".to_owned()], vec!["nvme0".to_owned(), "nvme1".to_owned()])
        );
    }

    #[test]
    fn a_device_number_has_its_parts_where_the_c_library_puts_them() {
        // makedev(0x12345, 0x6789a)
        let number = 0x0001_2000_6780_0000 | 0x345 << 8 | 0x9a;
        assert_eq!((major(number), minor(number)), (0x12345, 0x6789a));
        assert_eq!((major(0xf103), minor(0xf103)), (0xf1, 3));
    }
}
