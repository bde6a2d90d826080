//! Host memory that is mapped for a device, by `lanemark-dma` and the real IOMMU.

#![allow(unsafe_code)]

use super::{AddressSpace, Iommu};
use crate::host_pages::{HUGE, HostPages};
use lanemark_dma::{
    Align, AllocError, AllocRequest, Buffer, Device, Domain, FreeList, Hints, Invalidation, IovaAllocator as _,
    MapRequest, Mapping, Permission, Region, Space,
};
use lanemark_units::{HostVirt, Iova, Ticks};
use std::error::Error;
use std::sync::Arc;

/// Pages that a device can read and write, until dropped.
pub(super) struct HostWindow<'a> {
    pages: &'a mut HostPages,
    domain: Domain<FreeList, Iommu>,
    device: Device,
    mapping: Mapping,
    /// Memory of another device.
    peer: Option<Mapping>,
}

/// Error of the mapping library.
pub(super) type MapError = Box<dyn Error + Send + Sync>;

impl HostWindow<'_> {
    /// Maps the first `len` bytes of `pages`, in one piece, within the first `address_bits` bits of the IOVAs, and outside of
    /// the addresses `own` that the device takes for its own.
    ///
    /// The lowest IOVAs stay unmapped, so that an address register that was never written, or that lacks its upper bits,
    /// does not lead to mapped memory.
    pub(super) fn map<'a>(
        address_space: &Arc<AddressSpace>,
        pages: &'a mut HostPages,
        len: u64,
        address_bits: u32,
        own: Option<Region>,
    ) -> Result<HostWindow<'a>, MapError> {
        let len = len.next_multiple_of(pages.page_bytes()).min(pages.len());
        let space = match address_space.untranslated(pages.address())? {
            None => HostWindow::space(address_space, address_bits)?,
            // The one place that there is.
            Some(Iova(at)) if at + (len - 1) <= u64::MAX >> (64 - address_bits.clamp(12, 64)) => {
                Space::between(Iova(at), Iova(at + (len - 1)), address_space.properties().granule)?
            }
            Some(Iova(at)) => {
                let last = at + (len - 1);
                return Err(format!(
                    "its host memory is at the physical addresses {at:#x} to {last:#x}, which the device cannot reach with \
                     {address_bits} bits; only an IOMMU can help"
                )
                .into());
            }
        };
        let space = own.map_or(Ok(space.clone()), |own| space.without(own))?;
        // SAFETY: the pages live longer than this window, which unmaps them, and are accessed by copies only.
        let iommu = unsafe { Iommu::new(Arc::clone(address_space)) };
        let mut domain = Domain::new("dma", FreeList::new(space), iommu, Invalidation::Strict)?;
        let device: Device = domain.attach("the engine")?;
        let align = Align::of_bytes(pages.page_bytes()).unwrap_or(Align::PAGE);
        let request = MapRequest::new(device, Permission::ReadWrite).hints(Hints::ONE_PIECE).aligned(align);
        let mapping = domain.map(&mut Buffer::new(pages.address(), len), request, Ticks::ZERO)?;
        Ok(HostWindow { pages, domain, device, mapping, peer: None })
    }

    /// Maps whole pages of another device's memory, which this process has mapped. Returns the IOVA.
    ///
    /// # Safety
    /// The memory must stay mapped in this process as long as this window.
    pub(super) unsafe fn map_peer(&mut self, memory: HostVirt, len: u64) -> Result<Iova, MapError> {
        let request = MapRequest::new(self.device, Permission::ReadWrite).hints(Hints::ONE_PIECE).aligned(Align::PAGE);
        let mapping = self.domain.map(&mut Buffer::new(memory, len), request, Ticks::ZERO)?;
        self.peer = Some(mapping);
        Ok(mapping.iova())
    }

    /// IOVAs that an engine with this address width and the IOMMU can use.
    pub(super) fn space(address_space: &AddressSpace, address_bits: u32) -> Result<Space, MapError> {
        let unmapped = Region { name: "the lowest addresses", first: Iova(0), last: Iova(HUGE - 1) };
        Ok(Iommu::space(address_space, address_bits)?.without(unmapped)?)
    }

    /// First IOVA of `len` bytes that the IOMMU translates, and at which the domain has no mapping.
    pub(super) fn unused(&self, len: u64) -> Result<Iova, AllocError> {
        unused(self.domain.allocator(), self.device, len)
    }

    /// IOVA of the byte at `offset`.
    pub(super) fn iova(&self, offset: u64) -> u64 {
        self.mapping.iova().0 + offset
    }

    /// As [`HostPages::load_word`].
    #[inline]
    pub(super) fn load_word(&self, offset: u64) -> u64 {
        self.pages.load_word(offset)
    }

    /// As [`HostPages::store_word`].
    #[inline]
    pub(super) fn store_word(&self, offset: u64, value: u64) {
        self.pages.store_word(offset, value);
    }

    /// As [`HostPages::read`].
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) {
        self.pages.read(offset, bytes);
    }

    /// The memory, while a device may write to it.
    pub(super) fn memory(&self) -> &HostPages {
        self.pages
    }

    /// The memory.
    pub(super) fn pages(&mut self) -> &mut HostPages {
        self.pages
    }
}

/// First of `len` bytes that are free, in large pages of their own.
fn unused(free: &FreeList, device: Device, len: u64) -> Result<Iova, AllocError> {
    let request = AllocRequest { align: Align::MIB_2, ..AllocRequest::bytes(device, len.next_multiple_of(HUGE)) };
    Ok(free.clone().alloc(request)?.at)
}

impl Drop for HostWindow<'_> {
    fn drop(&mut self) {
        // If it fails, the next mapping fails, too, because it has the same IOVAs. The device is no bus master meanwhile.
        for mapping in self.peer.into_iter().chain([self.mapping]) {
            let _ = self.domain.unmap(mapping, Ticks::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: Device = Device(0);

    /// IOVAs below 16 MiB without those from 4 MiB to 8 MiB, of which the first `taken` bytes are mapped.
    fn free(taken: u64) -> FreeList {
        let reserved = Region { name: "reserved", first: Iova(2 * HUGE), last: Iova(4 * HUGE - 1) };
        let mut free = FreeList::new(Space::of_device(24).unwrap().without(reserved).unwrap());
        if taken > 0 {
            free.alloc(AllocRequest::bytes(DEVICE, taken)).unwrap();
        }
        free
    }

    #[test]
    fn an_unused_address_is_beside_all_mappings_and_in_no_reserved_range() {
        let at = |taken, len| unused(&free(taken), DEVICE, len).map(|iova| iova.0);
        assert_eq!(at(0, 4096), Ok(0));
        assert_eq!(at(4096, 4096), Ok(HUGE), "a large page of its own");
        assert_eq!(at(HUGE + 4096, 4096), Ok(4 * HUGE), "behind the reserved range");
        assert!(at(0, 5 * HUGE).is_err(), "no free range is so long");
    }
}
