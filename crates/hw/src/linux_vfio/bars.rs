//! BARs mapped through the device file of VFIO.

use super::VfioDevice;
use crate::linux_sysfs::{BarFile, BarFiles, CardError, Device, Place};
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
pub(crate) struct RehearsedBars(pub(crate) PathBuf);

/// The memory type of VFIO, in words.
const TYPES: &str = "VFIO maps a BAR as UC";

impl BarFiles for DeviceBars {
    fn types(&self) -> &'static str {
        TYPES
    }

    fn path(&self, _: &Device, _: u8, memory_type: MemoryType) -> Option<PathBuf> {
        (memory_type == MemoryType::Uc).then(|| self.0.path().clone())
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
        (memory_type == MemoryType::Uc).then(|| self.0.clone())
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
