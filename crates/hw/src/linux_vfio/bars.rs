//! BARs mapped through the device file of VFIO.

use super::VfioDevice;
use crate::linux_sysfs::{BarFile, BarFiles, CardError, Device, Place, System};
use lanemark_machine::Width;
use lanemark_units::MemoryType;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The file of an open device, in which its BARs are mapped as UC.
#[derive(Debug)]
pub(super) struct DeviceBars(pub(super) Arc<VfioDevice>);

/// The file of a device that is not open, for a dry run.
#[derive(Debug)]
pub(crate) struct RehearsedBars {
    pub(crate) path: PathBuf,
    pub(crate) width: Width,
}

/// Width of the loads and stores of `pread` and `pwrite` on a BAR: 8 B since Linux 6.14, and since 6.12.16 of the 6.12 series, and
/// 4 B before. Source: Linux, `vfio_pci_core_do_io_rw`, and "vfio/pci: Enable iowrite64 and ioread64 for vfio pci" for x86.
pub(super) fn call_width(system: &System) -> Width {
    let release = std::fs::read_to_string(system.path("proc/sys/kernel/osrelease")).unwrap_or_default();
    let number = |part: &str| part.split(|other: char| !other.is_ascii_digit()).next()?.parse::<u32>().ok();
    let mut parts = release.trim().splitn(3, '.').map(number);
    let version = [(); 3].map(|()| parts.next().flatten().unwrap_or(0));
    if version >= [6, 14, 0] || ([6, 12, 16]..[6, 13, 0]).contains(&version) { Width::B8 } else { Width::B4 }
}

/// The memory type of VFIO, in words.
const TYPES: &str = "VFIO maps a BAR as UC";

impl BarFiles for DeviceBars {
    fn types(&self) -> &'static str {
        TYPES
    }

    fn path(&self, _: &Device, _: u8, memory_type: MemoryType) -> Option<PathBuf> {
        (memory_type == MemoryType::Uc).then(|| self.0.path().clone())
    }

    fn driver_width(&self) -> Option<Width> {
        Some(call_width(self.0.system()))
    }

    fn open(&self, device: &Device, place: &Place, _: MemoryType, path: &Path) -> Result<BarFile, CardError> {
        let os = |doing, error| device.os(doing, path.to_owned(), error);
        let region = self.0.bar(place.range.bar).map_err(|error| os("finding a BAR in", error))?;
        let (from, to) = (place.range.from / PAGE * PAGE, place.range.to.next_multiple_of(PAGE));
        // A BAR shorter than a page is mapped with its page.
        if !region.is_mappable(from, to.min(region.len)) {
            return Err(CardError::NotMappable {
                device: device.address(),
                range: place.range,
                mappable: region.mappable,
            });
        }
        let file = self.0.file().try_clone_to_owned().map_err(|error| os("opening", error))?;
        Ok(BarFile { file, start: region.start })
    }
}

impl BarFiles for RehearsedBars {
    fn types(&self) -> &'static str {
        TYPES
    }

    fn path(&self, _: &Device, _: u8, memory_type: MemoryType) -> Option<PathBuf> {
        (memory_type == MemoryType::Uc).then(|| self.path.clone())
    }

    fn driver_width(&self) -> Option<Width> {
        Some(self.width)
    }

    fn exists(&self, _: &Path) -> bool {
        // The file of a group appears when the device is bound.
        true
    }

    fn open(&self, device: &Device, _: &Place, _: MemoryType, _: &Path) -> Result<BarFile, CardError> {
        let because = "a dry run opens no device".to_owned();
        Err(CardError::Unsupported { device: device.address(), because })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_access_8_bytes_at_a_time_from_linux_6_14_on_and_in_late_ones_of_6_12() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        let of = |release: &str| {
            std::fs::write(folder.join("osrelease"), release).unwrap();
            call_width(&System::at(root.path()))
        };
        for old in ["6.11.0-8-generic\n", "6.12.15\n", "6.13.9\n", "6.1.0-57-cloud-amd64\n", "5.19\n", ""] {
            assert_eq!(of(old), Width::B4, "{old}");
        }
        for new in ["6.12.16\n", "6.12.118+deb13\n", "6.14.0-rc1\n", "7.0-rc1\n"] {
            assert_eq!(of(new), Width::B8, "{new}");
        }
    }
}
