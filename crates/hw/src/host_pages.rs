//! Memory of this process that devices write, and the data that it has before they do.

#![allow(unsafe_code)]

use crate::host_page_size::HostPageSize;
use crate::linux_sysfs::access;
use crate::x86::pattern;
use lanemark_machine::{Plan, Transfer};
use lanemark_units::{HostVirt, format_size};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap_fixed, munmap};
use std::collections::BTreeSet;
use std::io;
use std::ptr::{self, NonNull};

/// Bytes of a huge page.
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
        Ok(HostPages::of_any(len)?.accessed())
    }

    /// As [`new`](HostPages::new), in pages of `size` alone, if one is given. The system provides each page at the first
    /// access to it, or when it is pinned.
    ///
    /// # Errors
    /// Too few pages are reserved, with how many more to reserve, and where.
    pub(crate) fn sized(len: u64, size: Option<HostPageSize>) -> io::Result<HostPages> {
        let Some(size) = size else { return Ok(HostPages::of_any(len)?) };
        HostPages::of(len, size).map_err(|error| {
            let count = len.div_ceil(size.bytes());
            let remedy = if size == HostPageSize::Kib4 { String::new() } else { format!("; {}", remedy(size, count)) };
            io::Error::other(format!("{error}: {} in {count} pages of {size}{remedy}", format_size(len)))
        })
    }

    fn of_any(len: u64) -> Result<HostPages, Errno> {
        HostPages::of(len, HostPageSize::Mib2).or_else(|_| HostPages::of(len, HostPageSize::Kib4))
    }

    fn of(len: u64, size: HostPageSize) -> Result<HostPages, Errno> {
        let len = usize::try_from(len.next_multiple_of(size.bytes())).map_err(|_| Errno::NOMEM)?;
        let more = match size {
            HostPageSize::Kib4 => MapFlags::empty(),
            HostPageSize::Mib2 => MapFlags::HUGETLB | MapFlags::HUGE_2MB,
            HostPageSize::Gib1 => MapFlags::HUGETLB | MapFlags::HUGE_1GB,
        };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, access, MapFlags::PRIVATE | more) }?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
        let pages = HostPages { start, len, page_bytes: size.bytes() };
        // A child of this process would share the pages, and the next store here would go to a copy that no device accesses.
        // SAFETY: advice on our own mapping changes no contents.
        unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxDontFork) }?;
        if size == HostPageSize::Kib4 {
            // Before the first access: a kernel may use transparent huge pages, which then have one entry of the IOMMU.
            // SAFETY: advice on our own mapping changes no contents.
            match unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxNoHugepage) } {
                // A kernel without transparent huge pages refuses the advice.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(pages)
    }

    /// The same after an access to each page, so that the system has provided all of them.
    fn accessed(self) -> HostPages {
        for at in (0..self.len()).step_by(self.page_bytes as usize) {
            self.store_word(at, 0);
        }
        self
    }

    /// Pages of 2 MiB or 1 GiB whose physical addresses follow each other: `len` bytes, or the longest run that there is.
    ///
    /// `physical` is the address of a page of this process.
    ///
    /// # Errors
    /// No such page is reserved; of `physical`.
    pub(crate) fn contiguous(
        len: u64,
        size: HostPageSize,
        physical: impl Fn(HostVirt) -> io::Result<u64>,
    ) -> io::Result<HostPages> {
        let most = len.div_ceil(size.bytes()).max(1);
        let halved = |count: &u64| Some(count / 2).filter(|half| *half > 0);
        let tried = std::iter::successors(Some(most), halved);
        let mut got = tried.map(|count| HostPages::sized(count * size.bytes(), Some(size)));
        let first = got.next().unwrap_or_else(|| Err(Errno::NOMEM.into()));
        // A page has a physical address once it is provided.
        let pages = first.or_else(|error| got.find_map(Result::ok).ok_or(error))?.accessed();
        let at = |nth: u64| HostVirt(pages.address().0 + nth * size.bytes());
        let count = pages.len() / size.bytes();
        let mut by_address = (0..count).map(|nth| Ok((physical(at(nth))?, nth))).collect::<io::Result<Vec<_>>>()?;
        by_address.sort_unstable();
        let run = longest_run(&by_address, size.bytes());
        let numbers: Vec<u64> = run.iter().map(|page| page.1).collect();
        // Linux moves huge pages since 5.16 only.
        if numbers.iter().copied().eq(0..count) { Ok(pages) } else { pages.reordered(&numbers) }
    }

    /// The pages with these numbers alone, in this order.
    fn reordered(self, numbers: &[u64]) -> io::Result<HostPages> {
        let (page, len) = (self.page_bytes as usize, numbers.len() * self.page_bytes as usize);
        // Room for a start at a multiple of the page size.
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let room = unsafe { mmap_anonymous(ptr::null_mut(), len + page, ProtFlags::empty(), MapFlags::PRIVATE) }?;
        let (before, end) = (room.addr(), room.addr() + len + page);
        let start = before.next_multiple_of(page);
        let place = |at: usize| room.wrapping_byte_add(at - before);
        let of = |number: usize| self.start.as_ptr().wrapping_add(number * page).cast();
        let mut is_moved = BTreeSet::new();
        let moved = numbers.iter().enumerate().try_for_each(|(place_number, number)| {
            let (number, to) = (*number as usize, place(start + place_number * page));
            // SAFETY: the page is ours, and so is the room, in which nothing is yet.
            unsafe { mremap_fixed(of(number), page, page, MremapFlags::MAYMOVE, to) }?;
            is_moved.insert(number);
            Ok::<(), Errno>(())
        });
        let ends = [(place(before), start - before), (place(start + len), end - start - len)];
        let rest = (0..self.len / page).filter(|number| !is_moved.contains(number)).map(|number| (of(number), page));
        for (at, len) in ends.into_iter().chain(rest).filter(|(_, len)| *len > 0) {
            // SAFETY: it is ours: an end of the room, or a page that was not moved. Where a page was, another thread may have
            // mapped something meanwhile.
            let unmapped = unsafe { munmap(at, len) };
            debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
        }
        std::mem::forget(self);
        let start = NonNull::new(place(start).cast::<u8>()).ok_or(Errno::NOMEM)?;
        // On an error, dropping it unmaps the pages that were moved, and the rest of the room.
        let pages = HostPages { start, len, page_bytes: page as u64 };
        moved.map_err(|error| {
            io::Error::other(format!(
                "{error}: moving huge pages next to each other, as Linux 5.16 and newer can; with older ones, reserve a single page of \
                 1 GiB, and use: --host-pages 1GiB"
            ))
        })?;
        Ok(pages)
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

/// How to reserve `count` huge pages of this size. The file has the total of the pool, of which pages may be in use.
fn remedy(size: HostPageSize, count: u64) -> String {
    let kib = size.bytes() / 1024;
    let boot = match size {
        HostPageSize::Gib1 => " (or on the kernel's command line: hugepagesz=1G hugepages=N)",
        HostPageSize::Kib4 | HostPageSize::Mib2 => "",
    };
    format!("reserve {count} more in /sys/kernel/mm/hugepages/hugepages-{kib}kB/nr_hugepages{boot}")
}

/// The longest run of pages that follow each other, of pages by ascending address.
fn longest_run(by_address: &[(u64, u64)], page_bytes: u64) -> &[(u64, u64)] {
    let runs = by_address.chunk_by(|one, next| one.0 + page_bytes == next.0);
    runs.max_by_key(|run| run.len()).unwrap_or(&[])
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
    let (mut chunk, mut found) = ([0; CHUNK as usize], [0; CHUNK as usize]);
    let mut next = from;
    while next < to {
        pattern::fill(&mut chunk, chunk_seed(seed, next));
        let within = (next % CHUNK) as usize;
        let count = (CHUNK - next % CHUNK).min(to - next);
        let (meant, found) = (&chunk[within..][..count as usize], &mut found[..count as usize]);
        pages.read(next, found);
        // Whole slices first: that is many bytes at once.
        if meant != found {
            let place = meant.iter().zip(found).position(|(meant, found)| meant != found);
            return place.map(|place| next + place as u64);
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

    const PAGE: u64 = 4096;

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
    fn the_longest_run_is_of_pages_whose_addresses_follow_each_other() {
        let pages = [(10, 0), (30, 4), (31, 2), (32, 3), (40, 1), (41, 5)];
        assert_eq!(longest_run(&pages, 1), &pages[1..4]);
        assert_eq!(longest_run(&pages, 10), &pages[5..], "none follows another");
        assert_eq!(longest_run(&[], 1), &[]);
    }

    #[test]
    fn pages_of_a_size_that_is_not_reserved_are_refused_with_how_many_more_to_reserve() {
        let small = HostPages::sized(5000, Some(HostPageSize::Kib4)).unwrap();
        assert_eq!((small.page_bytes(), small.len()), (PAGE, 2 * PAGE));
        // No machine has so many.
        let said = HostPages::sized(1 << 46, Some(HostPageSize::Gib1)).unwrap_err().to_string();
        for words in
            ["65536 pages of 1GiB", "reserve 65536 more in /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"]
        {
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn the_remedy_names_the_pool_of_the_size_of_the_pages() {
        let words = "reserve 3 more in /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        assert_eq!(remedy(HostPageSize::Mib2, 3), words);
    }

    #[test]
    fn pages_are_moved_to_another_order_with_their_contents() {
        let mut pages = HostPages::of(4 * PAGE, HostPageSize::Kib4).unwrap();
        for nth in 0..4_u8 {
            pages.write(u64::from(nth) * PAGE, &[nth; 64]);
        }
        let moved = pages.reordered(&[2, 0, 3]).unwrap();
        assert_eq!((moved.len(), moved.address().0 % PAGE), (3 * PAGE, 0));
        let bytes = [0, 1, 2].map(|nth| moved.load_word(nth * PAGE).to_le_bytes()[0]);
        assert_eq!(bytes, [2, 0, 3]);
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
