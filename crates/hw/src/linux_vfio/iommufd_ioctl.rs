//! The ioctls of iommufd that are used, one function each. Source: Linux, `include/uapi/linux/iommufd.h`, and for device files
//! `include/uapi/linux/vfio.h`.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Requests: `_IO(';', number)`.
mod request {
    pub(super) const DESTROY: u32 = 0x3b80;
    pub(super) const IOAS_ALLOC: u32 = 0x3b81;
    pub(super) const IOAS_IOVA_RANGES: u32 = 0x3b84;
    pub(super) const IOAS_MAP: u32 = 0x3b85;
    pub(super) const IOAS_UNMAP: u32 = 0x3b86;
    pub(super) const DEVICE_BIND_IOMMUFD: u32 = 0x3b76;
    pub(super) const DEVICE_ATTACH_IOMMUFD_PT: u32 = 0x3b77;
}

/// Flags of [`Map`]: the IOVA is that of the caller, and what the device may do.
mod flag {
    pub(super) const FIXED_IOVA: u32 = 1;
    pub(super) const WRITEABLE: u32 = 2;
    pub(super) const READABLE: u32 = 4;
}

/// `struct iommu_destroy`.
#[repr(C)]
struct Destroy {
    size: u32,
    id: u32,
}

/// `struct iommu_ioas_alloc`.
#[repr(C)]
struct Allocate {
    size: u32,
    flags: u32,
    out_ioas_id: u32,
}

/// `struct iommu_iova_range`.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Range {
    /// First IOVA.
    pub(super) start: u64,
    /// Last IOVA.
    pub(super) last: u64,
}

/// `struct iommu_ioas_iova_ranges`.
#[repr(C)]
struct Ranges {
    size: u32,
    ioas_id: u32,
    num_iovas: u32,
    reserved: u32,
    allowed_iovas: u64,
    out_iova_alignment: u64,
}

/// `struct iommu_ioas_map`.
#[repr(C)]
struct Map {
    size: u32,
    flags: u32,
    ioas_id: u32,
    reserved: u32,
    user_va: u64,
    length: u64,
    iova: u64,
}

/// `struct iommu_ioas_unmap`.
#[repr(C)]
struct Unmap {
    size: u32,
    ioas_id: u32,
    iova: u64,
    length: u64,
}

/// `struct vfio_device_bind_iommufd` without the token of later kernels.
#[repr(C)]
struct Bind {
    argsz: u32,
    flags: u32,
    iommufd: i32,
    out_devid: u32,
}

/// `struct vfio_device_attach_iommufd_pt` without the PASID of later kernels.
#[repr(C)]
struct Attach {
    argsz: u32,
    flags: u32,
    pt_id: u32,
}

/// Calls an ioctl.
///
/// # Safety
/// The request must take a pointer to a `T`, and every address in it must be valid for what the request does with it.
unsafe fn call<T>(file: BorrowedFd<'_>, request: u32, argument: &mut T) -> io::Result<()> {
    // SAFETY: guaranteed by the caller.
    let returned = unsafe { libc::ioctl(file.as_raw_fd(), request.into(), std::ptr::from_mut(argument)) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Size of a structure, as its first field tells the kernel.
const fn size_of<T>() -> u32 {
    std::mem::size_of::<T>() as u32
}

/// Allocates an I/O address space; returns its number.
pub(super) fn allocate(iommufd: BorrowedFd<'_>) -> io::Result<u32> {
    let mut allocate = Allocate { size: size_of::<Allocate>(), flags: 0, out_ioas_id: 0 };
    // SAFETY: it takes this structure.
    unsafe { call(iommufd, request::IOAS_ALLOC, &mut allocate) }?;
    Ok(allocate.out_ioas_id)
}

/// Destroys an object that is not in use.
pub(super) fn destroy(iommufd: BorrowedFd<'_>, id: u32) -> io::Result<()> {
    // SAFETY: it takes this structure.
    unsafe { call(iommufd, request::DESTROY, &mut Destroy { size: size_of::<Destroy>(), id }) }
}

/// Binds the file of a device to an iommufd, which opens the device.
pub(super) fn bind(device: BorrowedFd<'_>, iommufd: BorrowedFd<'_>) -> io::Result<()> {
    let mut bind = Bind { argsz: size_of::<Bind>(), flags: 0, iommufd: iommufd.as_raw_fd(), out_devid: 0 };
    // SAFETY: it takes this structure.
    unsafe { call(device, request::DEVICE_BIND_IOMMUFD, &mut bind) }
}

/// Attaches a device to an address space of its iommufd.
pub(super) fn attach(device: BorrowedFd<'_>, ioas: u32) -> io::Result<()> {
    let mut attach = Attach { argsz: size_of::<Attach>(), flags: 0, pt_id: ioas };
    // SAFETY: it takes this structure.
    unsafe { call(device, request::DEVICE_ATTACH_IOMMUFD_PT, &mut attach) }
}

/// Most ranges that are read: an IOMMU reserves a few regions.
const MOST_RANGES: usize = 256;

/// The ranges of IOVAs that can be mapped, ascending, and their alignment in bytes.
pub(super) fn ranges(iommufd: BorrowedFd<'_>, ioas: u32) -> io::Result<(Vec<Range>, u64)> {
    let mut room = vec![Range::default(); MOST_RANGES];
    let mut ranges = Ranges {
        size: size_of::<Ranges>(),
        ioas_id: ioas,
        num_iovas: MOST_RANGES as u32,
        reserved: 0,
        allowed_iovas: room.as_mut_ptr() as u64,
        out_iova_alignment: 0,
    };
    // SAFETY: it takes this structure; the room has as many ranges as it says.
    unsafe { call(iommufd, request::IOAS_IOVA_RANGES, &mut ranges) }?;
    room.truncate(ranges.num_iovas as usize);
    Ok((room, ranges.out_iova_alignment))
}

/// Maps this process's memory: its IOVA, its address and its length in bytes. The kernel pins the pages.
///
/// # Safety
/// A device may read and write the memory, as permitted, until it is unmapped: nothing else may use it in a way that this
/// breaks.
pub(super) unsafe fn map(
    iommufd: BorrowedFd<'_>,
    ioas: u32,
    [iova, user_va, length]: [u64; 3],
    [may_read, may_write]: [bool; 2],
) -> io::Result<()> {
    let allowed = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let flags = flag::FIXED_IOVA | allowed(may_read, flag::READABLE) | allowed(may_write, flag::WRITEABLE);
    let mut map = Map { size: size_of::<Map>(), flags, ioas_id: ioas, reserved: 0, user_va, length, iova };
    // SAFETY: it takes this structure; the memory is the caller's.
    unsafe { call(iommufd, request::IOAS_MAP, &mut map) }
}

/// Unmaps the mappings within `length` bytes from `iova` on; returns the number of bytes that were mapped.
pub(super) fn unmap(iommufd: BorrowedFd<'_>, ioas: u32, iova: u64, length: u64) -> io::Result<u64> {
    let mut unmap = Unmap { size: size_of::<Unmap>(), ioas_id: ioas, iova, length };
    // SAFETY: it takes this structure.
    unsafe { call(iommufd, request::IOAS_UNMAP, &mut unmap) }?;
    Ok(unmap.length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;
    use std::os::fd::AsFd as _;
    use vfio_bindings::bindings::vfio;

    #[test]
    fn structures_have_the_sizes_and_offsets_of_the_kernels_headers() {
        let sizes = [size_of::<Destroy>(), size_of::<Allocate>(), size_of::<Range>(), size_of::<Ranges>()];
        assert_eq!(sizes, [8, 12, 16, 32]);
        assert_eq!([size_of::<Map>(), size_of::<Unmap>(), size_of::<Bind>(), size_of::<Attach>()], [40, 24, 16, 12]);
        assert_eq!([offset_of!(Ranges, allowed_iovas), offset_of!(Ranges, out_iova_alignment)], [16, 24]);
        assert_eq!([offset_of!(Map, user_va), offset_of!(Map, length), offset_of!(Map, iova)], [16, 24, 32]);
        assert_eq!([offset_of!(Unmap, iova), offset_of!(Unmap, length)], [8, 16]);
        // Later kernels have longer ones, and accept these.
        assert_eq!(offset_of!(vfio::vfio_device_bind_iommufd, token_uuid_ptr), std::mem::size_of::<Bind>());
        assert_eq!(offset_of!(vfio::vfio_device_attach_iommufd_pt, pasid), std::mem::size_of::<Attach>());
        assert_eq!(offset_of!(Bind, iommufd), offset_of!(vfio::vfio_device_bind_iommufd, iommufd));
        assert_eq!(offset_of!(Attach, pt_id), offset_of!(vfio::vfio_device_attach_iommufd_pt, pt_id));
    }

    #[test]
    fn requests_have_the_numbers_of_the_kernels_headers() {
        let io = |number: u32| (u32::from(b';') << 8) | number;
        assert_eq!([request::DESTROY, request::IOAS_ALLOC], [io(0x80), io(0x81)]);
        assert_eq!([request::IOAS_IOVA_RANGES, request::IOAS_MAP, request::IOAS_UNMAP], [0x84, 0x85, 0x86].map(io));
        let vfio = |number: u32| (u32::from(vfio::VFIO_TYPE) << 8) | (vfio::VFIO_BASE + number);
        assert_eq!([request::DEVICE_BIND_IOMMUFD, request::DEVICE_ATTACH_IOMMUFD_PT], [vfio(18), vfio(19)]);
    }

    #[test]
    fn each_request_to_another_file_is_an_error_of_the_kernel() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let file = file.as_fd();
        // SAFETY: this file maps nothing.
        let mapped = unsafe { map(file, 1, [0x20_0000, 0, 4096], [true, true]) };
        let errors = [
            allocate(file).map(drop),
            destroy(file, 1),
            bind(file, file),
            attach(file, 1),
            ranges(file, 1).map(drop),
            mapped,
            unmap(file, 1, 0x20_0000, 4096).map(drop),
        ];
        for (nth, error) in errors.into_iter().enumerate() {
            assert_eq!(error.unwrap_err().raw_os_error(), Some(libc::ENOTTY), "request {nth}");
        }
    }
}
