//! A piece of ordinary memory.

#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::{self, NonNull};

/// Zeroed anonymous memory of this process, present from the start, given back on drop.
///
/// Page size is the system's choice; nothing asks for huge pages.
#[derive(Debug)]
pub(crate) struct Buffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a Buffer owns its mapping alone and has no thread-bound state; the mapping is the process's.
unsafe impl Send for Buffer {}

impl Buffer {
    /// `len` bytes, at least 1, page-aligned.
    ///
    /// # Errors
    /// What `mmap` said, mostly that memory is short.
    pub(crate) fn new(len: usize) -> Result<Buffer, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: no address is asked for, so no existing mapping is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        Ok(Buffer { start: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, len })
    }

    /// Where byte `offset` lies; may be just behind the last byte.
    ///
    /// # Panics
    /// If `offset` lies behind the end.
    pub(crate) fn at(&mut self, offset: usize) -> *mut u8 {
        assert!(offset <= self.len, "offset {offset} in a buffer of {} B", self.len);
        // SAFETY: the offset is inside the mapping or just behind it.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, initialised by the kernel, lives as long as self, and nobody writes to it
        // while self is borrowed: pointers from `at` are used only under a `&mut` borrow of the machine.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and self is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the range is the one mapped in `new`, and nobody can hold a reference into it any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_starts_zeroed_on_a_page_and_holds_what_is_written() {
        let mut buffer = Buffer::new(5000).unwrap();
        assert_eq!(buffer.at(0).align_offset(4096), 0);
        assert!(buffer.bytes().iter().all(|byte| *byte == 0));
        buffer.bytes_mut()[4999] = 7;
        assert_eq!(buffer.bytes().last(), Some(&7));
    }

    #[test]
    fn a_buffer_of_no_bytes_is_refused_by_the_system() {
        assert_eq!(Buffer::new(0).unwrap_err(), Errno::INVAL);
    }

    #[test]
    #[should_panic(expected = "offset 4097")]
    fn a_pointer_behind_the_end_is_refused() {
        let mut buffer = Buffer::new(4096).unwrap();
        let _ = buffer.at(4096);
        let _ = buffer.at(4097);
    }
}
