//! An I/O address space as a backend of `lanemark-dma`: the real IOMMU.

#![allow(unsafe_code)]

use super::{AddressSpace, IommuProperties, VfioInterface};
use lanemark_dma::{
    Abilities, Attributes, Backend, BackendError, Invalidated, IovaRange, Permission, Region, Space, SpaceError,
};
use lanemark_units::{HostVirt, Iova, Ticks};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;

/// The IOMMU of an address space.
///
/// `map` pins the pages and enters them, `unmap` removes them, invalidates the IOTLB and unpins them: one ioctl each. So
/// there is nothing left to invalidate, and a deferred invalidation saves nothing. Neither type 1 nor iommufd can change a
/// mapping or unmap a part of one.
#[derive(Debug)]
pub struct Iommu {
    address_space: Arc<AddressSpace>,
}

impl Iommu {
    /// The IOMMU of `address_space`.
    ///
    /// # Safety
    /// Memory that a domain maps through this backend must stay allocated until it is unmapped, and no reference may
    /// exist to bytes that the device may write.
    #[must_use]
    pub unsafe fn new(address_space: Arc<AddressSpace>) -> Iommu {
        Iommu { address_space }
    }

    /// IOVAs of at most `bits` (12 to 64) bits that the IOMMU of `address_space` translates, without the first page.
    ///
    /// # Errors
    /// [`SpaceError`] if no page is left.
    pub fn space(address_space: &AddressSpace, bits: u32) -> Result<Space, SpaceError> {
        space_of(address_space.properties(), bits)
    }
}

/// Addresses that the IOMMU can map. If the kernel reports no spans, only the window of interrupts is left out.
fn space_of(properties: &IommuProperties, bits: u32) -> Result<Space, SpaceError> {
    let IommuProperties { granule: page, spans, .. } = properties;
    let mut space = Space::between(Iova(*page), Iova(u64::MAX >> (64 - bits.clamp(12, 64))), *page)?;
    let mut free_from = 0;
    for span in spans {
        if let Some(before) = span.first.0.checked_sub(1).filter(|before| free_from <= *before) {
            space = without(space, free_from, before)?;
        }
        free_from = span.last.0.saturating_add(1);
    }
    if spans.is_empty() { without(space, 0xfee0_0000, 0xfeef_ffff) } else { without(space, free_from, u64::MAX) }
}

/// The space without the addresses from `first` to `last`.
fn without(space: Space, first: u64, last: u64) -> Result<Space, SpaceError> {
    if first > last {
        return Ok(space);
    }
    space.without(Region { name: "a range that the IOMMU reserves", first: Iova(first), last: Iova(last) })
}

impl Backend for Iommu {
    type Memory = HostVirt;

    fn name(&self) -> &'static str {
        self.address_space.interface().in_words()
    }

    fn abilities(&self) -> Abilities {
        Abilities::NONE
    }

    fn map(&mut self, range: IovaRange, memory: HostVirt, attributes: Attributes) -> Result<(), BackendError> {
        let may = match attributes.permission() {
            Permission::Read => [true, false],
            Permission::Write => [false, true],
            Permission::ReadWrite => [true, true],
        };
        // SAFETY: guaranteed by the caller of `new`.
        let mapped = unsafe { self.address_space.map(range.at, memory, range.len_bytes, may) };
        mapped.map_err(|source| match Errno::from_io_error(&source) {
            Some(Errno::EXIST) => BackendError::Overlap { at: range.at },
            Some(Errno::NOSPC) if self.address_space.interface() == VfioInterface::Container => {
                os("mapping: no more mappings fit; raise dma_entry_limit of the module vfio_iommu_type1", source)
            }
            Some(Errno::NOMEM) => os("mapping: more memory than 'ulimit -l' may be pinned", source),
            _ => os("mapping", source),
        })
    }

    fn unmap(&mut self, range: IovaRange) -> Result<(), BackendError> {
        let unmapped = self.address_space.unmap(range.at, range.len_bytes).map_err(|source| os("unmapping", source))?;
        if unmapped == range.len_bytes { Ok(()) } else { Err(BackendError::NotThere { at: range.at }) }
    }

    fn invalidate(&mut self, _: Invalidated) -> Result<Ticks, BackendError> {
        // `unmap` has done it.
        Ok(Ticks::ZERO)
    }
}

fn os(doing: &'static str, source: io::Error) -> BackendError {
    BackendError::Os { doing, source }
}

#[cfg(test)]
mod tests {
    use super::super::IovaSpan;
    use super::*;

    const PAGE: u64 = 4096;

    fn space(spans: &[(u64, u64)], bits: u32) -> Space {
        let spans = spans.iter().map(|(first, last)| IovaSpan { first: Iova(*first), last: Iova(*last) }).collect();
        space_of(&IommuProperties { spans, ..IommuProperties::untranslated() }, bits).unwrap()
    }

    #[test]
    fn addresses_that_the_iommu_reserves_are_in_no_space() {
        // As VT-d reports them: the window of interrupts is reserved, and there are 39 bits.
        let with_hole = space(&[(0, 0xfedf_ffff), (0xfef0_0000, (1 << 39) - 1)], 64);
        for (page, is_free) in [
            (0, false),
            (PAGE, true),
            (0xfedf_f000, true),
            (0xfee0_0000, false),
            (0xfeef_f000, false),
            (0xfef0_0000, true),
            ((1 << 39) - PAGE, true),
            (1 << 39, false),
        ] {
            assert_eq!(with_hole.contains(Iova(page), PAGE), is_free, "{page:#x}");
        }
        // A hole in the middle of a range, and one before the first span.
        let late = space(&[(0x10_0000, 0x1f_ffff), (0x30_0000, 0x3f_ffff)], 22);
        assert!(!late.contains(Iova(0x1f_f000), 2 * PAGE) && !late.contains(Iova(0xf_f000), PAGE));
        assert_eq!(late.free_pages(), 2 << 8);
    }

    #[test]
    fn without_a_report_only_the_window_of_interrupts_and_the_first_page_are_left_out() {
        let space = space(&[], 32);
        let [window, others] = [0x100, (1 << 20) - 0x100 - 1];
        assert_eq!(space.free_pages(), others);
        assert!(!space.contains(Iova(0xfee0_0000 + (window - 1) * PAGE), PAGE));
        assert!(space.contains(Iova(0xfee0_0000 + window * PAGE), PAGE));
    }
}
