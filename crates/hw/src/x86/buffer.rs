//! Ordinary memory of this process.

#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::{self, NonNull};

/// Zeroed, populated anonymous memory, unmapped on drop.
///
/// The system chooses the page size; huge pages are not requested.
#[derive(Debug)]
pub(crate) struct Buffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a buffer owns its mapping, and mappings belong to the process, not to a thread.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Allocates `len` bytes (at least 1), page-aligned.
    ///
    /// # Errors
    /// Error of `mmap`, usually too little memory.
    pub(crate) fn new(len: usize) -> Result<Buffer, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        Ok(Buffer { start: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, len })
    }

    /// Pointer to byte `offset`, or to the end of the buffer.
    ///
    /// # Panics
    /// If `offset` is beyond the end.
    pub(crate) fn at(&mut self, offset: usize) -> *mut u8 {
        assert!(offset <= self.len, "offset {offset} in a buffer of {} B", self.len);
        // SAFETY: the offset is within the mapping or at its end.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Contents of the buffer.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, zeroed by the kernel, and lives as long as self. Nothing writes to it while self
        // is borrowed: pointers from `at` are used only under a `&mut` borrow of the machine.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Contents of the buffer, writable.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and self is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the range is the one mapped in `new`, and no reference into it is left.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_zeroed_page_aligned_and_writable() {
        let mut buffer = Buffer::new(5000).unwrap();
        assert_eq!(buffer.at(0).align_offset(4096), 0);
        assert!(buffer.bytes().iter().all(|byte| *byte == 0));
        buffer.bytes_mut()[4999] = 7;
        assert_eq!(buffer.bytes().last(), Some(&7));
    }

    #[test]
    fn an_empty_buffer_is_rejected_by_the_system() {
        assert_eq!(Buffer::new(0).unwrap_err(), Errno::INVAL);
    }

    #[test]
    #[should_panic(expected = "offset 4097")]
    fn a_pointer_beyond_the_end_is_rejected() {
        let mut buffer = Buffer::new(4096).unwrap();
        let _ = buffer.at(4096);
        let _ = buffer.at(4097);
    }
}
