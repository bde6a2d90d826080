//! The user BAR of a card, which the core forwards to its AXI4-Lite master port, mapped through the driver's file for it.
//!
//! Source: `cdev_ctrl.c` (`bridge_mmap`) and `libxdma.c` (`identify_bars`) of the driver.

use super::XdmaCard;
use crate::linux_sysfs::{BarFile, BarFiles, CardError, Device, Place};
use lanemark_units::MemoryType;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The file of the user BAR.
#[derive(Debug)]
pub(super) struct UserBar(pub(super) XdmaCard);

impl BarFiles for UserBar {
    fn types(&self) -> &'static str {
        "the driver xdma maps the user BAR as UC"
    }

    fn path(&self, _: &Device, _: u8, memory_type: MemoryType) -> Option<PathBuf> {
        (memory_type == MemoryType::Uc).then(|| self.0.user_file())
    }

    fn open(&self, device: &Device, place: &Place, _: MemoryType, path: &Path) -> Result<BarFile, CardError> {
        let address = device.address();
        let refused = |because: String| CardError::Unsupported { device: address, because };
        // The driver refuses pages beyond the BAR.
        if place.range.to.next_multiple_of(PAGE) > place.bar.len {
            return Err(refused(format!(
                "the driver xdma maps whole pages, and BAR{} is not whole pages long: unbind the driver, and use --on {address}",
                place.range.bar
            )));
        }
        let access = if place.kind.may_store() { OFlags::RDWR } else { OFlags::RDONLY };
        let file = open(path, access | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
            Errno::ACCESS | Errno::PERM => CardError::Permission { device: address, path: path.to_owned() },
            Errno::BUSY => refused(format!("{}: it is open in another program: end it first", path.display())),
            other => device.os("opening", path.to_owned(), other.into()),
        })?;
        self.0.check_user_number(&file).map_err(|error| refused(error.to_string()))?;
        Ok(BarFile { file, start: 0 })
    }
}
