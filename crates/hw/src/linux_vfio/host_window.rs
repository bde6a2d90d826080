//! Host memory that is mapped for a device, by `lanemark-dma` and the real IOMMU.

#![allow(unsafe_code)]

use super::{Container, Iommu};
use crate::linux_sysfs::access;
use lanemark_dma::{
    Align, Buffer, Device, Domain, FreeList, Hints, Invalidation, MapRequest, Mapping, Permission, Region, Space,
};
use lanemark_units::{HostVirt, Iova, Ticks};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::error::Error;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Bytes of a page, and of a huge page.
const PAGE: u64 = 4096;
const HUGE: u64 = 2 << 20;

/// Memory of this process for DMA, in whole pages.
#[derive(Debug)]
pub(super) struct HostPages {
    start: NonNull<u8>,
    len: usize,
    page_bytes: u64,
}

// SAFETY: the pages own their mapping, and mappings belong to the process, not to a thread.
unsafe impl Send for HostPages {}

impl HostPages {
    /// Allocates `len` bytes, in pages of 2 MiB if the system has reserved enough of them (`vm.nr_hugepages`).
    pub(super) fn new(len: u64) -> Result<HostPages, Errno> {
        HostPages::of(len.next_multiple_of(HUGE), MapFlags::HUGETLB | MapFlags::HUGE_2MB, HUGE)
            .or_else(|_| HostPages::of(len.next_multiple_of(PAGE), MapFlags::empty(), PAGE))
    }

    fn of(len: u64, more: MapFlags, page_bytes: u64) -> Result<HostPages, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE | more;
        let len = len as usize;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        Ok(HostPages { start: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, len, page_bytes })
    }

    /// Page size.
    pub(super) const fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    pub(super) const fn len(&self) -> u64 {
        self.len as u64
    }

    fn address(&self) -> HostVirt {
        HostVirt(self.start.as_ptr().addr() as u64)
    }

    /// Copies `bytes` to `offset`.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let at = self.within(offset, bytes.len());
        // SAFETY: the bytes are within the mapping, and no reference to it exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
    }

    /// Copies the bytes at `offset` to `bytes`. A device may have written them.
    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) {
        let at = self.within(offset, bytes.len());
        // SAFETY: as for `write`; the device has finished its transfers.
        unsafe { ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Loads 8 B at a multiple of 8, which a device may write at any time.
    #[inline]
    pub(super) fn load_word(&self, offset: u64) -> u64 {
        let at = self.within(offset / 8 * 8, 8);
        // SAFETY: the bytes are within the mapping and aligned.
        unsafe { access::load(at, 8) }
    }

    /// Stores 8 B at a multiple of 8, which a device may read at any time.
    #[inline]
    pub(super) fn store_word(&self, offset: u64, value: u64) {
        let at = self.within(offset / 8 * 8, 8);
        // SAFETY: as for `load_word`; no reference to the bytes exists.
        unsafe { access::store(at, 8, value) };
    }

    /// Pointer to `len` bytes at `offset`.
    fn within(&self, offset: u64, len: usize) -> *mut u8 {
        let is_inside = offset.checked_add(len as u64).is_some_and(|end| end <= self.len());
        assert!(is_inside, "{len} B at {offset} of {} B", self.len);
        self.start.as_ptr().wrapping_add(offset as usize)
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        // SAFETY: the range is the one mapped in `of`; a DMA mapping of it is removed first.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

/// Pages that a device can read and write, until dropped.
pub(super) struct HostWindow<'a> {
    pages: &'a mut HostPages,
    domain: Domain<FreeList, Iommu>,
    mapping: Mapping,
}

/// Error of the mapping library.
pub(super) type MapError = Box<dyn Error + Send + Sync>;

impl HostWindow<'_> {
    /// Maps the first `len` bytes of `pages`, in one piece, within the first `address_bits` bits of the IOVAs.
    ///
    /// The lowest IOVAs stay unmapped, so that an address register that was never written, or that lacks its upper bits,
    /// does not lead to mapped memory.
    pub(super) fn map<'a>(
        container: &Arc<Container>,
        pages: &'a mut HostPages,
        len: u64,
        address_bits: u32,
    ) -> Result<HostWindow<'a>, MapError> {
        let space = HostWindow::space(container, address_bits)?;
        // SAFETY: the pages live longer than this window, which unmaps them, and are accessed by copies only.
        let iommu = unsafe { Iommu::new(Arc::clone(container)) };
        let mut domain = Domain::new("dma", FreeList::new(space), iommu, Invalidation::Strict)?;
        let device: Device = domain.attach("the engine")?;
        let align = if pages.page_bytes == HUGE { Align::MIB_2 } else { Align::PAGE };
        let len = len.next_multiple_of(pages.page_bytes).min(pages.len());
        let request = MapRequest::new(device, Permission::ReadWrite).hints(Hints::ONE_PIECE).aligned(align);
        let mapping = domain.map(&mut Buffer::new(pages.address(), len), request, Ticks::ZERO)?;
        Ok(HostWindow { pages, domain, mapping })
    }

    /// IOVAs that an engine with this address width and the IOMMU can use.
    pub(super) fn space(container: &Container, address_bits: u32) -> Result<Space, MapError> {
        let unmapped = Region { name: "the lowest addresses", first: Iova(0), last: Iova(HUGE - 1) };
        Ok(Iommu::space(container, address_bits)?.without(unmapped)?)
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

    /// The memory.
    pub(super) fn pages(&mut self) -> &mut HostPages {
        self.pages
    }
}

impl Drop for HostWindow<'_> {
    fn drop(&mut self) {
        // If it fails, the next mapping fails, too, because it has the same IOVAs. The device is no bus master meanwhile.
        let _ = self.domain.unmap(self.mapping, Ticks::ZERO);
    }
}
