//! Memory of this process that devices write, and the data that it has before they do.

#![allow(unsafe_code)]

use crate::linux_sysfs::access;
use crate::x86::pattern;
use lanemark_machine::{Plan, Transfer};
use lanemark_units::HostVirt;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::collections::BTreeSet;
use std::ptr::{self, NonNull};

/// Bytes of a page, and of a huge page.
const PAGE: u64 = 4096;
/// See [`PAGE`].
pub(crate) const HUGE: u64 = 2 << 20;

/// Memory of this process for DMA, in whole pages.
#[derive(Debug)]
pub(crate) struct HostPages {
    start: NonNull<u8>,
    len: usize,
    page_bytes: u64,
}

// SAFETY: the pages own their mapping, and mappings belong to the process, not to a thread.
unsafe impl Send for HostPages {}

impl HostPages {
    /// Allocates `len` bytes, in pages of 2 MiB if the system has reserved enough of them (`vm.nr_hugepages`).
    pub(crate) fn new(len: u64) -> Result<HostPages, Errno> {
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
    pub(crate) const fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Length in bytes.
    pub(crate) const fn len(&self) -> u64 {
        self.len as u64
    }

    /// Address of the first byte in this process.
    pub(crate) fn address(&self) -> HostVirt {
        HostVirt(self.start.as_ptr().addr() as u64)
    }

    /// Copies `bytes` to `offset`.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let at = self.within(offset, bytes.len());
        // SAFETY: the bytes are within the mapping, and no reference to it exists.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
    }

    /// Copies the bytes at `offset` to `bytes`. A device may have written them.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) {
        let at = self.within(offset, bytes.len());
        // SAFETY: as for `write`; the device has finished its transfers.
        unsafe { ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Loads 8 B at a multiple of 8, which a device may write at any time.
    #[inline]
    pub(crate) fn load_word(&self, offset: u64) -> u64 {
        let at = self.within(offset / 8 * 8, 8);
        // SAFETY: the bytes are within the mapping and aligned.
        unsafe { access::load(at, 8) }
    }

    /// Stores 8 B at a multiple of 8, which a device may read at any time.
    #[inline]
    pub(crate) fn store_word(&self, offset: u64, value: u64) {
        let at = self.within(offset / 8 * 8, 8);
        // SAFETY: as for `load_word`; no reference to the bytes exists.
        unsafe { access::store(at, 8, value) };
    }

    /// Pointer to `len` bytes at `offset`.
    pub(crate) fn within(&self, offset: u64, len: usize) -> *mut u8 {
        let is_inside = offset.checked_add(len as u64).is_some_and(|end| end <= self.len());
        assert!(is_inside, "{len} B at {offset} of {} B", self.len);
        self.start.as_ptr().wrapping_add(offset as usize)
    }
}

impl Drop for HostPages {
    fn drop(&mut self) {
        // SAFETY: the range is the one mapped in `of`; a DMA mapping of it is removed first, and the kernel
        // pins the pages of a command of its own driver.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

/// Bytes that are filled or compared at once.
const CHUNK: u64 = 4096;

/// Fills the memory up to `len` with data that differ from run to run and from chunk to chunk.
pub(crate) fn fill(pages: &mut HostPages, len: u64, seed: u64) {
    let mut chunk = vec![0; CHUNK as usize];
    for at in (0..len).step_by(CHUNK as usize) {
        pattern::fill(&mut chunk, chunk_seed(seed, at));
        pages.write(at, &chunk[..CHUNK.min(len - at) as usize]);
    }
}

const fn chunk_seed(seed: u64, at: u64) -> u64 {
    seed.wrapping_shl(20).wrapping_add(at / CHUNK)
}

/// The bytes at `at` after [`fill`].
pub(crate) fn filled(at: u64, len: u64, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len as usize);
    let mut chunk = vec![0; CHUNK as usize];
    let mut next = at;
    while next < at + len {
        pattern::fill(&mut chunk, chunk_seed(seed, next));
        let within = (next % CHUNK) as usize;
        let count = (CHUNK - next % CHUNK).min(at + len - next);
        bytes.extend(&chunk[within..within + count as usize]);
        next += count;
    }
    bytes
}

/// Offset of the first byte from `from` to `to` that differs from those of [`fill`].
pub(crate) fn changed(pages: &HostPages, from: u64, to: u64, seed: u64) -> Option<u64> {
    let mut next = from;
    while next < to {
        let count = CHUNK.min(to - next);
        let (meant, mut found) = (filled(next, count, seed), vec![0; count as usize]);
        pages.read(next, &mut found);
        if let Some(place) = meant.iter().zip(&found).position(|(meant, found)| meant != found) {
            return Some(next + place as u64);
        }
        next += count;
    }
    None
}

/// Offset of the first byte up to `end` that is outside of every transfer of a plan and differs from those of [`fill`].
pub(crate) fn changed_beside(pages: &HostPages, plan: &Plan, transfer: &Transfer, end: u64, seed: u64) -> Option<u64> {
    let Transfer { bytes, count, window, .. } = *transfer;
    let longest = plan.passes.max(plan.warmup_passes) * count;
    let distinct = if window.pattern.is_random() { longest } else { longest.min(window.places(bytes)) };
    let touched: BTreeSet<u64> = (0..distinct).map(|nth| window.place(nth, bytes)).collect();
    let mut from = 0;
    for at in touched.into_iter().chain([end]) {
        if let Some(changed) = changed(pages, from, at, seed) {
            return Some(changed);
        }
        from = at + bytes;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_beside_the_transfers_that_differs_is_found() {
        let mut pages = HostPages::new(3 * PAGE).unwrap();
        fill(&mut pages, 9000, 6);
        assert_eq!(changed(&pages, 0, 9000, 6), None);
        assert_ne!(changed(&pages, 0, 9000, 8), None, "another run has other bytes");
        let mut byte = [0];
        pages.read(8191, &mut byte);
        pages.write(8191, &[!byte[0]]);
        assert_eq!(changed(&pages, 100, 9000, 6), Some(8191));
        assert_eq!((changed(&pages, 100, 8191, 6), changed(&pages, 8192, 9000, 6)), (None, None));
    }

    #[test]
    fn filled_bytes_are_those_of_the_memory_at_any_offset() {
        let mut pages = HostPages::new(3 * PAGE).unwrap();
        fill(&mut pages, 3 * PAGE, 2);
        for (at, len) in [(0, 64), (4090, 12), (1, 8192), (8191, 1)] {
            let mut found = vec![0; len as usize];
            pages.read(at, &mut found);
            assert_eq!(found, filled(at, len, 2), "{len} B at {at}");
        }
    }
}
