//! The ioctls of the module that are used, one function each. Source: `kmod/lanemark_uapi.h`.

#![allow(unsafe_code)]

use lanemark_units::{HostVirt, MemoryType, Ticks};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// `struct lanemark_window`.
#[repr(C)]
struct Window {
    bar: u32,
    memory_type: u32,
    offset: u64,
    len: u64,
}

/// `struct lanemark_page`: the memory type of a mapped page, as encoded in PAT and MTRRs.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Page {
    pub(super) address: u64,
    pub(super) pat_index: u32,
    pub(super) pat: u32,
    pub(super) mtrr: u32,
    pub(super) reserved: u32,
}

/// `struct lanemark_dma_map`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct DmaMap {
    address: u64,
    len: u64,
    direction: u32,
    handle: u32,
    segments: u32,
    bounced: u32,
    dma_address: u64,
    pin_ns: u64,
    map_ns: u64,
}

/// `struct lanemark_dma_unmap`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct DmaUnmap {
    handle: u32,
    reserved: u32,
    unmap_ns: u64,
    unpin_ns: u64,
}

/// `struct lanemark_dma_sync`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct DmaSync {
    handle: u32,
    reserved: u32,
    for_cpu_ns: u64,
    for_device_ns: u64,
}

/// Direction of a streaming mapping, of `enum lanemark_direction`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    ToDevice = 0,
    FromDevice = 1,
    Both = 2,
}

/// Memory that is mapped for the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mapped {
    /// Whole pages of this process at this address.
    Pages(HostVirt, Direction),
    /// Memory that the kernel allocates.
    Coherent,
}

/// Times of the parts of a mapping, by the kernel's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DmaTimes {
    pub(super) pin: Ticks,
    pub(super) map: Ticks,
    /// 0 without a synchronisation.
    pub(super) sync_for_cpu: Ticks,
    /// 0 without a synchronisation.
    pub(super) sync_for_device: Ticks,
    pub(super) unmap: Ticks,
    pub(super) unpin: Ticks,
}

/// `_IOC` of `asm-generic/ioctl.h`, of type 'L'.
const fn request(direction: u64, number: u64, bytes: usize) -> u64 {
    direction << 30 | (bytes as u64) << 16 | (b'L' as u64) << 8 | number
}

const WRITE: u64 = 1;
const READ: u64 = 2;
const WINDOW: u64 = request(WRITE, 0x61, size_of::<Window>());
const PAGE: u64 = request(WRITE | READ, 0x62, size_of::<Page>());
const DMA_MAP: u64 = request(WRITE | READ, 0x64, size_of::<DmaMap>());
const DMA_UNMAP: u64 = request(WRITE | READ, 0x65, size_of::<DmaUnmap>());
const DMA_SYNC: u64 = request(WRITE | READ, 0x66, size_of::<DmaSync>());

/// `LANEMARK_COHERENT` of `enum lanemark_direction`.
const COHERENT: u32 = 3;

fn checked(returned: i32) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the window of a file: whole pages of a BAR; WB is no type of it.
pub(super) fn set_window(file: BorrowedFd<'_>, bar: u8, kind: MemoryType, offset: u64, len: u64) -> io::Result<()> {
    let memory_type = match kind {
        MemoryType::Uc => 0,
        MemoryType::Wc => 2,
        MemoryType::Wt => 3,
        MemoryType::Wp => 4,
        MemoryType::Wb => return Err(io::ErrorKind::Unsupported.into()),
    };
    let window = Window { bar: bar.into(), memory_type, offset, len };
    // SAFETY: it takes a pointer to this structure, and only reads it.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), WINDOW, &raw const window) })
}

/// Reads the memory type of the page at an address of this process back, which is in a mapping of the file.
pub(super) fn page(file: BorrowedFd<'_>, address: u64) -> io::Result<Page> {
    let mut page = Page { address, ..Page::default() };
    // SAFETY: it takes a pointer to this structure, and writes it.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), PAGE, &raw mut page) })?;
    Ok(page)
}

/// Maps `len` bytes for the device and unmaps them: two system calls.
#[inline]
pub(super) fn map_and_unmap(file: BorrowedFd<'_>, memory: Mapped, len: u64) -> io::Result<DmaTimes> {
    all_calls(file, memory, len, false, false).map(|(times, _)| times)
}

/// Maps `len` bytes for the device, synchronises them and unmaps them: three system calls.
pub(super) fn map_sync_and_unmap(file: BorrowedFd<'_>, memory: Mapped, len: u64) -> io::Result<DmaTimes> {
    all_calls(file, memory, len, false, true).map(|(times, _)| times)
}

/// Counts the pages of `len` bytes that go through a bounce buffer when they are mapped for the device.
pub(super) fn bounced_pages(file: BorrowedFd<'_>, memory: Mapped, len: u64) -> io::Result<u64> {
    all_calls(file, memory, len, true, false).map(|(_, bounced)| bounced.into())
}

/// Maps and unmaps; counts the pages that go through a bounce buffer, and synchronises, if that is asked for.
#[inline]
fn all_calls(file: BorrowedFd<'_>, memory: Mapped, len: u64, counts: bool, syncs: bool) -> io::Result<(DmaTimes, u32)> {
    let (address, direction) = match memory {
        Mapped::Pages(at, direction) => (at.0, direction as u32),
        Mapped::Coherent => (0, COHERENT),
    };
    let mut map = DmaMap { address, len, direction, bounced: counts.into(), ..DmaMap::default() };
    // SAFETY: it takes a pointer to this structure, and writes it. The device does nothing: its bus mastering is off.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), DMA_MAP, &raw mut map) })?;
    let mut sync = DmaSync { handle: map.handle, ..DmaSync::default() };
    // SAFETY: as above.
    let synced =
        if syncs { checked(unsafe { libc::ioctl(file.as_raw_fd(), DMA_SYNC, &raw mut sync) }) } else { Ok(()) };
    let mut unmap = DmaUnmap { handle: map.handle, ..DmaUnmap::default() };
    // SAFETY: as above.
    let unmapped = checked(unsafe { libc::ioctl(file.as_raw_fd(), DMA_UNMAP, &raw mut unmap) });
    // The mapping is removed even if synchronising fails.
    synced.and(unmapped)?;
    let times = DmaTimes {
        pin: Ticks::whole_ns(map.pin_ns),
        map: Ticks::whole_ns(map.map_ns),
        sync_for_cpu: Ticks::whole_ns(sync.for_cpu_ns),
        sync_for_device: Ticks::whole_ns(sync.for_device_ns),
        unmap: Ticks::whole_ns(unmap.unmap_ns),
        unpin: Ticks::whole_ns(unmap.unpin_ns),
    };
    Ok((times, map.bounced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_lengths_of_the_header() {
        assert_eq!([size_of::<Window>(), size_of::<Page>()], [24, 24]);
        assert_eq!([size_of::<DmaMap>(), size_of::<DmaUnmap>(), size_of::<DmaSync>()], [56, 24, 24]);
    }
}
