//! The interface of the kernel by which a device behind VFIO is opened.

use super::VfioError;
use super::iommufd::{self, device_file};
use crate::drive_options::by_name;
use crate::linux_sysfs::{Address, System};

/// The file of containers.
pub(super) const CONTAINERS: &str = "dev/vfio/vfio";

/// Interface of the kernel by which a device behind VFIO is opened, and memory is mapped for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VfioInterface {
    /// The device's IOMMU group in a container with a type 1 IOMMU: `/dev/vfio/vfio` and `/dev/vfio/GROUP`.
    Container,
    /// The device's own file in an address space of iommufd, since Linux 6.6: `/dev/iommu` and `/dev/vfio/devices/vfioN`.
    Iommufd,
    /// A container of a device that no IOMMU translates for: `/dev/vfio/vfio` and `/dev/vfio/noiommu-GROUP`. The device has
    /// access to all memory, so this is never chosen by itself.
    NoIommu,
}

impl VfioInterface {
    /// All, in the order shown to users.
    pub const ALL: [VfioInterface; 3] = [VfioInterface::Container, VfioInterface::Iommufd, VfioInterface::NoIommu];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            VfioInterface::Container => "container",
            VfioInterface::Iommufd => "iommufd",
            VfioInterface::NoIommu => "no-iommu",
        }
    }

    /// Whether an IOMMU translates the addresses of the device, and blocks those that are not mapped.
    #[must_use]
    pub const fn is_translated(self) -> bool {
        !matches!(self, VfioInterface::NoIommu)
    }

    /// In words, for summaries.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            VfioInterface::Container => "VFIO type 1",
            VfioInterface::Iommufd => "VFIO by iommufd",
            VfioInterface::NoIommu => "VFIO without an IOMMU",
        }
    }

    /// The interface for a device: `asked` if it is given. Else iommufd, if the kernel has `/dev/iommu` and a file of the
    /// device, and a container otherwise. With memory of another device, a container if the kernel has them.
    ///
    /// # Errors
    /// [`VfioError::NoPeerByIommufd`] if memory of another device is used and a container cannot be;
    /// [`VfioError::NoPeerWithoutIommu`].
    pub fn choose(
        system: &System,
        device: Address,
        asked: Option<VfioInterface>,
        has_peer: bool,
    ) -> Result<VfioInterface, VfioError> {
        let has_file = || device_file(system, device).is_some() || will_have_file(system, device);
        let has_iommufd = || system.path(iommufd::FILE).exists() && has_file();
        let has_containers = || system.path(CONTAINERS).exists();
        let chosen = match asked {
            Some(asked) => asked,
            None if has_peer && has_containers() => VfioInterface::Container,
            None if has_iommufd() => VfioInterface::Iommufd,
            None => VfioInterface::Container,
        };
        match chosen {
            VfioInterface::Iommufd if has_peer => return Err(VfioError::NoPeerByIommufd { device }),
            VfioInterface::NoIommu if has_peer => return Err(VfioError::NoPeerWithoutIommu { device }),
            _ => {}
        }
        Ok(chosen)
    }
}

/// Whether a device that is not bound yet gets a file when it is: the kernel has a number for such files.
fn will_have_file(system: &System, device: Address) -> bool {
    let devices = || std::fs::read_to_string(system.path("proc/devices")).unwrap_or_default();
    !system.device(device).join("vfio-dev").exists() && devices().lines().any(|line| line.ends_with(" vfio-dev"))
}

by_name!(VfioInterface, "an interface of VFIO");

#[cfg(test)]
mod tests {
    use super::super::AddressSpace;
    use super::*;
    use std::fs;
    use std::path::Path;

    const DEVICE: &str = "0000:01:00.0";

    /// A system with a device that is bound to `vfio-pci`, and these files below its root.
    fn system(files: &[&str]) -> (tempfile::TempDir, System, Address) {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/bus/pci/devices").join(DEVICE);
        fs::create_dir_all(device.join("vfio-dev/vfio3")).unwrap();
        std::os::unix::fs::symlink("../../../kernel/iommu_groups/7", device.join("iommu_group")).unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs::write(path, "").unwrap();
        }
        let system = System::at(root.path());
        (root, system, DEVICE.parse().unwrap())
    }

    const GROUPS: [&str; 2] = ["dev/vfio/vfio", "dev/vfio/7"];
    const IOMMUFD: [&str; 2] = ["dev/iommu", "dev/vfio/devices/vfio3"];

    fn chosen(files: &[&str], asked: Option<VfioInterface>, has_peer: bool) -> Option<VfioInterface> {
        let (_root, system, device) = system(files);
        VfioInterface::choose(&system, device, asked, has_peer).ok()
    }

    #[test]
    fn iommufd_is_chosen_where_the_kernel_has_both_of_its_files() {
        let (container, iommufd) = (Some(VfioInterface::Container), Some(VfioInterface::Iommufd));
        let both = [GROUPS, IOMMUFD].concat();
        assert_eq!(chosen(&IOMMUFD, None, false), iommufd);
        assert_eq!(chosen(&both, None, false), iommufd);
        assert_eq!(chosen(&GROUPS, None, false), container);
        // One of the files is not enough.
        assert_eq!(chosen(&[GROUPS[0], IOMMUFD[0]], None, false), container);
        assert_eq!(chosen(&[GROUPS[0], IOMMUFD[1]], None, false), container);
        // The user's choice is not replaced by another one.
        assert_eq!(chosen(&both, container, false), container);
        assert_eq!(chosen(&GROUPS, iommufd, false), iommufd);
        let no_iommu = Some(VfioInterface::NoIommu);
        assert_eq!((chosen(&GROUPS, no_iommu, false), chosen(&GROUPS, no_iommu, true)), (no_iommu, None));
    }

    #[test]
    fn before_a_device_is_bound_the_kernels_list_of_devices_tells() {
        let (root, system, device) = system(&[GROUPS[0], IOMMUFD[0], "proc/devices"]);
        let chosen = || VfioInterface::choose(&system, device, None, false).unwrap();
        fs::write(root.path().join("proc/devices"), "Character devices:\n 10 misc\n511 vfio-dev\n").unwrap();
        assert_eq!(chosen(), VfioInterface::Container, "a bound device has a file, or will never have one");
        fs::remove_dir_all(root.path().join("sys/bus/pci/devices").join(DEVICE).join("vfio-dev")).unwrap();
        assert_eq!(chosen(), VfioInterface::Iommufd);
        fs::write(root.path().join("proc/devices"), "Character devices:\n511 vfio\n").unwrap();
        assert_eq!(chosen(), VfioInterface::Container);
    }

    #[test]
    fn memory_of_another_device_needs_a_container() {
        let both = [GROUPS, IOMMUFD].concat();
        assert_eq!(chosen(&both, None, true), Some(VfioInterface::Container));
        assert_eq!(chosen(&IOMMUFD, None, true), None);
        assert_eq!(chosen(&both, Some(VfioInterface::Iommufd), true), None);
    }

    #[test]
    fn an_interface_that_the_kernel_lacks_is_an_error_with_its_options() {
        let said = |files: &[&str], by| {
            let (root, system, device) = system(files);
            let error = AddressSpace::open(&system, device, by, None).unwrap_err().to_string();
            error.replace(root.path().to_str().unwrap(), "")
        };
        for (files, by, words) in [
            (&IOMMUFD[..], VfioInterface::Container, ["no /dev/vfio/vfio", "CONFIG_VFIO_CONTAINER"]),
            (&GROUPS, VfioInterface::Iommufd, ["no /dev/vfio/devices", "CONFIG_VFIO_DEVICE_CDEV"]),
            (&IOMMUFD[1..], VfioInterface::Iommufd, ["no /dev/iommu", "CONFIG_IOMMUFD"]),
            // These files are no files of VFIO.
            (&GROUPS, VfioInterface::Container, ["reading the version of", "/dev/vfio/vfio"]),
            (&IOMMUFD, VfioInterface::Iommufd, ["allocating an address space of", "/dev/iommu"]),
        ] {
            let said = said(files, by);
            assert!(said.starts_with(DEVICE) && words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        }
    }

    #[test]
    fn names_are_parsed() {
        for by in VfioInterface::ALL {
            assert_eq!(by.to_string().parse(), Ok(by));
        }
        let error = "groups".parse::<VfioInterface>().unwrap_err().to_string();
        assert_eq!(error, "'groups' is not an interface of VFIO: use one of container, iommufd, no-iommu");
    }
}
