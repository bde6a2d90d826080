//! The ioctls of VFIO that are used, one function each. Source: Linux, `include/uapi/linux/vfio.h`.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use vfio_bindings::bindings::vfio::{
    VFIO_BASE, VFIO_DMA_MAP_FLAG_READ, VFIO_DMA_MAP_FLAG_WRITE, VFIO_TYPE, vfio_group_status, vfio_iommu_type1_dma_map,
    vfio_iommu_type1_dma_unmap, vfio_iommu_type1_info,
};

/// Numbers of the ioctls, from `VFIO_BASE`.
mod number {
    pub(super) const GET_API_VERSION: u32 = 0;
    pub(super) const CHECK_EXTENSION: u32 = 1;
    pub(super) const SET_IOMMU: u32 = 2;
    pub(super) const GROUP_GET_STATUS: u32 = 3;
    pub(super) const GROUP_SET_CONTAINER: u32 = 4;
    pub(super) const GROUP_GET_DEVICE_FD: u32 = 6;
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
