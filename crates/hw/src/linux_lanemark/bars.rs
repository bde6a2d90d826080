//! BARs mapped through the file of the module.

use super::dma::KernelMapper;
use super::ioctl::{Page, page, set_window};
use crate::linux_sysfs::{BarFile, BarFiles, CardError, Device, MappedType, Place};
use crate::map_unmap::{LibraryError, Mapper};
use crate::x86::timer::Timer;
use lanemark_machine::{MapUnmap, Table, Width};
use lanemark_platform::memory_type::{Effective, Manual, Pat, effective_of_encodings};
use lanemark_units::MemoryType;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Distance of the pages whose type is read back; MTRRs of BARs are not finer in practice.
const STRIDE: usize = 2 << 20;

/// The file of the module for each card.
#[derive(Debug, Default)]
struct ModuleBars {
    /// Whether the file was there once: if it is missing later, the card has lost its driver.
    has_opened: AtomicBool,
}

pub(super) fn files() -> Arc<dyn BarFiles> {
    Arc::new(ModuleBars::default())
}

impl BarFiles for ModuleBars {
    fn types(&self) -> &'static str {
        "the module maps a BAR as UC, WC, WT or WP"
    }

    fn path(&self, device: &Device, _: u8, memory_type: MemoryType) -> Option<PathBuf> {
        let path = || device.system().path("dev/lanemark").join(device.address().to_string());
        (memory_type != MemoryType::Wb).then(path)
    }

    fn exists(&self, _: &Path) -> bool {
        // The file appears when the card is bound.
        true
    }

    fn driver_width(&self) -> Option<Width> {
        Some(Width::B8)
    }

    fn tables(&self) -> &'static [Table] {
        &[Table::Kernel]
    }

    fn mapper(&self, file: BarFile, asked: MapUnmap, timer: Timer) -> Result<Box<dyn Mapper>, LibraryError> {
        Ok(Box::new(KernelMapper::new(file.file, asked, timer)?))
    }

    fn open(&self, device: &Device, place: &Place, memory_type: MemoryType, path: &Path) -> Result<BarFile, CardError> {
        let (address, range) = (device.address(), place.range);
        let refused = |because: String| CardError::Unsupported { device: address, because };
        let unbound = || CardError::Unbound { device: address, path: path.to_owned() };
        let file = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
            Errno::NODEV => unbound(),
            Errno::NOENT if self.has_opened.load(Ordering::Relaxed) => unbound(),
            Errno::NOENT => {
                refused(format!("no {}: bind it with: lanemark bind {address} --to lanemark", path.display()))
            }
            Errno::BUSY => refused(format!("another program has opened {}: end it", path.display())),
            Errno::ACCESS => CardError::Permission { device: address, path: path.to_owned() },
            Errno::PERM => CardError::LockedDown { device: address, bar: range.bar },
            other => device.os("opening", path.to_owned(), other.into()),
        })?;
        self.has_opened.store(true, Ordering::Relaxed);
        let (from, to) = (range.from / PAGE * PAGE, range.to.next_multiple_of(PAGE));
        set_window(file.as_fd(), range.bar, memory_type, from, to - from).map_err(|error| {
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NXIO | Errno::RANGE) => {
                    refused(format!("the module maps whole pages, and BAR{} is not whole pages long", range.bar))
                }
                Some(Errno::OPNOTSUPP) => {
                    refused(format!("this kernel has no page attribute table, so {memory_type} cannot be mapped"))
                }
                Some(Errno::NODEV) => unbound(),
                _ => device.os("setting the window of", path.to_owned(), error),
            }
        })?;
        Ok(BarFile { file, start: 0 })
    }

    fn mapped_type(
        &self,
        file: &BarFile,
        _: &Device,
        _: &Place,
        [first, last]: [usize; 2],
    ) -> Result<MappedType, String> {
        let each = (first..last).step_by(STRIDE).chain([last]);
        let mut found = BTreeSet::new();
        for address in each {
            let page = page(file.file.as_fd(), address as u64).map_err(|error| format!("not read back: {error}"))?;
            found.insert((page.pat_index, page.pat, page.mtrr));
        }
        let read = |(pat_index, pat, mtrr)| Page { pat_index, pat, mtrr, ..Page::default() };
        match found.into_iter().map(read).collect::<Vec<_>>().as_slice() {
            [page] => Ok(mapped_type(*page)),
            several => Err(format!("its pages have different types: {several:?}")),
        }
    }
}

/// Name of an encoding of PAT and MTRRs. Source: Intel SDM volume 3, "Memory Types That Can Be Encoded in PAT".
fn name(encoding: u32) -> &'static str {
    let known = u8::try_from(encoding).ok().and_then(Pat::from_encoding);
    known.map_or("of several types", |pat| match pat {
        Pat::Uc => "UC",
        Pat::Wc => "WC",
        Pat::Wt => "WT",
        Pat::Wp => "WP",
        Pat::Wb => "WB",
        Pat::UcMinus => "UC-",
    })
}

/// The effective type of a page; the tables of Intel and AMD must agree.
fn mapped_type(page: Page) -> MappedType {
    let Page { pat_index, pat, mtrr, .. } = page;
    let because = format!(
        "page table entry with PAT index {pat_index}, which is {}; MTRRs {}; read back by the module",
        name(pat),
        name(mtrr)
    );
    let by = |manual| match (u8::try_from(mtrr), u8::try_from(pat)) {
        (Ok(mtrr), Ok(pat)) => effective_of_encodings(manual, mtrr, pat),
        _ => Effective::Undefined,
    };
    let found = match (by(Manual::Intel), by(Manual::Amd)) {
        (Effective::Type(intel), Effective::Type(amd)) => (intel == amd).then_some(intel),
        // Cache-disabled behaves as UC.
        (Effective::Cd | Effective::Type(MemoryType::Uc), Effective::Cd | Effective::Type(MemoryType::Uc)) => {
            Some(MemoryType::Uc)
        }
        _ => None,
    };
    MappedType { found, because }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pat: u32, mtrr: u32) -> Option<MemoryType> {
        mapped_type(Page { pat, mtrr, ..Page::default() }).found
    }

    #[test]
    fn mtrrs_override_types_of_the_page_table_except_write_combining() {
        let (uc, wc, wt, wp, wb) = (0, 1, 4, 5, 6);
        assert_eq!([uc, wc].map(|mtrr| found(wc, mtrr)), [Some(MemoryType::Wc); 2]);
        assert_eq!([wt, wp, wb].map(|pat| found(pat, uc)), [Some(MemoryType::Uc); 3]);
        assert_eq!(found(wt, wb), Some(MemoryType::Wt));
        assert_eq!(found(wp, wb), Some(MemoryType::Wp));
    }

    #[test]
    fn mtrrs_of_several_types_leave_the_type_unknown() {
        let mapped = mapped_type(Page { pat: 4, mtrr: 0xff, ..Page::default() });
        assert_eq!(mapped.found, None);
        assert!(mapped.because.contains("MTRRs of several types"), "{}", mapped.because);
    }
}
