//! The ioctls of the module that are used, one function each. Source: `kmod/lanemark_uapi.h`.

#![allow(unsafe_code)]

use lanemark_units::MemoryType;
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

/// `_IOC` of `asm-generic/ioctl.h`, of type 'L'.
const fn request(direction: u64, number: u64, bytes: usize) -> u64 {
    direction << 30 | (bytes as u64) << 16 | (b'L' as u64) << 8 | number
}

const WRITE: u64 = 1;
const READ: u64 = 2;
const WINDOW: u64 = request(WRITE, 0x61, size_of::<Window>());
const PAGE: u64 = request(WRITE | READ, 0x62, size_of::<Page>());

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
