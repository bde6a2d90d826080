//! The ioctls of VFIO that are used, one function each. Source: Linux, `include/uapi/linux/vfio.h`.

#![allow(unsafe_code)]

use super::region::VfioRegion;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DEVICE_FLAGS_RESET, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE, VFIO_IRQ_SET_ACTION_TRIGGER,
    VFIO_IRQ_SET_DATA_EVENTFD, VFIO_IRQ_SET_DATA_NONE, VFIO_TYPE, vfio_device_info, vfio_group_status,
    vfio_iommu_type1_dma_map, vfio_iommu_type1_dma_unmap, vfio_iommu_type1_info, vfio_irq_info, vfio_irq_set,
    vfio_region_info,
};

/// Numbers of the ioctls, from `VFIO_BASE`.
mod number {
    pub(super) const GET_API_VERSION: u32 = 0;
    pub(super) const CHECK_EXTENSION: u32 = 1;
    pub(super) const SET_IOMMU: u32 = 2;
    pub(super) const GROUP_GET_STATUS: u32 = 3;
    pub(super) const GROUP_SET_CONTAINER: u32 = 4;
    pub(super) const GROUP_GET_DEVICE_FD: u32 = 6;
    pub(super) const DEVICE_GET_INFO: u32 = 7;
    pub(super) const DEVICE_GET_REGION_INFO: u32 = 8;
    pub(super) const DEVICE_GET_IRQ_INFO: u32 = 9;
    pub(super) const DEVICE_SET_IRQS: u32 = 10;
    pub(super) const DEVICE_RESET: u32 = 11;
    pub(super) const IOMMU_GET_INFO: u32 = 12;
    pub(super) const IOMMU_MAP_DMA: u32 = 13;
    pub(super) const IOMMU_UNMAP_DMA: u32 = 14;
}

/// Calls an ioctl of VFIO.
///
/// # Safety
/// `argument` must be what the ioctl takes: a number, or a pointer to its structure, which the kernel reads and writes.
unsafe fn call(file: BorrowedFd<'_>, number: u32, argument: usize) -> io::Result<i32> {
    let request = (u32::from(VFIO_TYPE) << 8) | (VFIO_BASE + number);
    // SAFETY: guaranteed by the caller.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), request.into(), argument) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Size of a structure, as its first field tells the kernel.
fn size_of<T>() -> u32 {
    std::mem::size_of::<T>() as u32
}

pub(super) fn api_version(container: BorrowedFd<'_>) -> io::Result<i32> {
    // SAFETY: it takes no argument.
    unsafe { call(container, number::GET_API_VERSION, 0) }
}

pub(super) fn has_extension(container: BorrowedFd<'_>, extension: u32) -> io::Result<bool> {
    // SAFETY: it takes a number.
    Ok(unsafe { call(container, number::CHECK_EXTENSION, extension as usize) }? > 0)
}

pub(super) fn set_iommu(container: BorrowedFd<'_>, iommu: u32) -> io::Result<()> {
    // SAFETY: it takes a number.
    unsafe { call(container, number::SET_IOMMU, iommu as usize) }.map(drop)
}

/// Returns the flags of a group.
pub(super) fn group_flags(group: BorrowedFd<'_>) -> io::Result<u32> {
    let mut status = vfio_group_status { argsz: size_of::<vfio_group_status>(), flags: 0 };
    // SAFETY: it takes this structure.
    unsafe { call(group, number::GROUP_GET_STATUS, (&raw mut status) as usize) }?;
    Ok(status.flags)
}

pub(super) fn set_container(group: BorrowedFd<'_>, container: BorrowedFd<'_>) -> io::Result<()> {
    let number = container.as_raw_fd();
    // SAFETY: it takes a pointer to the number of the file.
    unsafe { call(group, number::GROUP_SET_CONTAINER, (&raw const number) as usize) }.map(drop)
}

/// Opens a device of a group by its PCI address.
pub(super) fn device(group: BorrowedFd<'_>, address: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: it takes a pointer to a string that ends with 0, and returns a new file.
    unsafe { Ok(OwnedFd::from_raw_fd(call(group, number::GROUP_GET_DEVICE_FD, address.as_ptr() as usize)?)) }
}

/// Reads the properties of the IOMMU and their capabilities into `room`; returns the part at the start.
pub(super) fn iommu_info(container: BorrowedFd<'_>, room: &mut [u64]) -> io::Result<vfio_iommu_type1_info> {
    const WORDS: usize = std::mem::size_of::<vfio_iommu_type1_info>() / 8;
    if room.len() < WORDS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let first = vfio_iommu_type1_info {
        argsz: std::mem::size_of_val(room) as u32,
        flags: 0,
        iova_pgsizes: 0,
        cap_offset: 0,
        pad: 0,
    };
    let at = room.as_mut_ptr().cast::<vfio_iommu_type1_info>();
    // SAFETY: the room begins with the structure, is aligned for it, and is as long as its first field says.
    unsafe {
        at.write(first);
        call(container, number::IOMMU_GET_INFO, at as usize)?;
        Ok(at.read())
    }
}

/// Maps `len` bytes of this process's memory from `address` on at `iova`. The kernel pins the pages.
///
/// # Safety
/// A device may read and write the memory, as permitted, until it is unmapped: nothing else may use it in a way that this
/// breaks.
pub(super) unsafe fn map(
    container: BorrowedFd<'_>,
    iova: u64,
    address: u64,
    len: u64,
    [may_read, may_write]: [bool; 2],
) -> io::Result<()> {
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let mut map = vfio_iommu_type1_dma_map {
        argsz: size_of::<vfio_iommu_type1_dma_map>(),
        flags: flag(may_read, VFIO_DMA_MAP_FLAG_READ) | flag(may_write, VFIO_DMA_MAP_FLAG_WRITE),
        vaddr: address,
        iova,
        size: len,
    };
    // SAFETY: it takes this structure; the memory is the caller's.
    unsafe { call(container, number::IOMMU_MAP_DMA, (&raw mut map) as usize) }.map(drop)
}

/// Unmaps what is mapped within `len` bytes from `iova` on; returns the number of bytes that were.
pub(super) fn unmap(container: BorrowedFd<'_>, iova: u64, len: u64) -> io::Result<u64> {
    let mut unmap = vfio_iommu_type1_dma_unmap {
        argsz: size_of::<vfio_iommu_type1_dma_unmap>(),
        flags: 0,
        iova,
        size: len,
        ..Default::default()
    };
    // SAFETY: it takes this structure, without the optional data.
    unsafe { call(container, number::IOMMU_UNMAP_DMA, (&raw mut unmap) as usize) }?;
    Ok(unmap.size)
}

/// Whether the function of a device file can be reset.
pub(super) fn can_reset(device: BorrowedFd<'_>) -> io::Result<bool> {
    let mut info = vfio_device_info { argsz: size_of::<vfio_device_info>(), ..Default::default() };
    // SAFETY: it takes this structure.
    unsafe { call(device, number::DEVICE_GET_INFO, (&raw mut info) as usize) }?;
    Ok(info.flags & VFIO_DEVICE_FLAGS_RESET != 0)
}

pub(super) fn reset(device: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: it takes no argument.
    unsafe { call(device, number::DEVICE_RESET, 0) }.map(drop)
}

/// Reads the properties of a region with its capabilities.
pub(super) fn region(device: BorrowedFd<'_>, index: u32) -> io::Result<VfioRegion> {
    /// Words for the properties with all capabilities.
    const ROOM: usize = 256;
    let mut room = [0_u64; ROOM];
    let first = vfio_region_info { argsz: std::mem::size_of_val(&room) as u32, index, ..Default::default() };
    let at = room.as_mut_ptr().cast::<vfio_region_info>();
    // SAFETY: the room begins with the structure, is aligned for it, and is as long as its first field says.
    let info = unsafe {
        at.write(first);
        call(device, number::DEVICE_GET_REGION_INFO, at as usize)?;
        at.read()
    };
    let bytes: Vec<u8> = room.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(VfioRegion::of(&info, &bytes))
}

/// Number of vectors of a kind of interrupt.
pub(super) fn vectors(device: BorrowedFd<'_>, index: u32) -> io::Result<u32> {
    let mut info = vfio_irq_info { argsz: size_of::<vfio_irq_info>(), index, ..Default::default() };
    // SAFETY: it takes this structure.
    unsafe { call(device, number::DEVICE_GET_IRQ_INFO, (&raw mut info) as usize) }?;
    Ok(info.count)
}

/// Connects the vectors of a kind of interrupt from `first` on to eventfds, and enables the kind.
pub(super) fn set_interrupts(device: BorrowedFd<'_>, index: u32, first: u32, events: &[OwnedFd]) -> io::Result<()> {
    let flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set_irqs(device, [flags, index, first, events.len() as u32], events)
}

/// Disables a kind of interrupt.
pub(super) fn disable_interrupts(device: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    set_irqs(device, [VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER, index, 0, 0], &[])
}

/// Flags, index, first vector and number of vectors, and the files of the vectors.
fn set_irqs(device: BorrowedFd<'_>, fields: [u32; 4], events: &[OwnedFd]) -> io::Result<()> {
    // The structure, whose last field has no length, and the file numbers.
    const HEAD: usize = std::mem::size_of::<vfio_irq_set>() / 4;
    let mut words = vec![0_u32; HEAD];
    words[0] = 4 * (HEAD + events.len()) as u32;
    words[1..=4].copy_from_slice(&fields);
    words.extend(events.iter().map(|event| event.as_raw_fd().cast_unsigned()));
    // SAFETY: it takes this structure, whose length is its first field, followed by the file numbers.
    match unsafe { call(device, number::DEVICE_SET_IRQS, words.as_ptr() as usize) }? {
        0 => Ok(()),
        // Source: Linux, `vfio_msi_enable`: the number that there is, of which none is enabled.
        there => Err(io::Error::other(format!(
            "the kernel has {there} of {} interrupt vectors for it: use fewer --channels, or polling",
            events.len()
        ))),
    }
}
