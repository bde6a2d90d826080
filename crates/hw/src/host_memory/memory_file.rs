//! Memory file that replaces a device driver.
//!
//! A driver call enters the kernel, which copies between user memory and the device. Without a device, `pread` and
//! `pwrite` on a memory file (`memfd`) do the same: they enter the kernel, look up the pages and copy. The time contains
//! these three parts, but not the rest of an `ioctl` handler.

use crate::x86::driver_calls::moved;
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, pwrite, retry_on_intr};

/// Memory file as long as the region.
#[derive(Debug)]
pub(super) struct MemoryFile(OwnedFd);

impl MemoryFile {
    /// Creates a file with the contents `bytes`; writing them populates every page.
    ///
    /// # Errors
    /// Error of the system call.
    pub(super) fn holding(bytes: &[u8]) -> Result<MemoryFile, Errno> {
        let file = MemoryFile(memfd_create("lanemark", MemfdFlags::CLOEXEC)?);
        let mut done = 0;
        while done < bytes.len() {
            done += moved(retry_on_intr(|| pwrite(&file.0, &bytes[done..], done as u64)))?;
        }
        Ok(file)
    }

    /// The file, for calls.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86::driver_calls::equal_bytes;

    #[test]
    fn a_memory_file_keeps_its_contents_and_counts_equal_bytes() {
        let bytes: Vec<u8> = (0..9000_u32).map(|place| place as u8).collect();
        let file = MemoryFile::holding(&bytes).unwrap();
        assert_eq!(equal_bytes(file.file(), 0, &bytes), Ok(9000));
        assert_eq!(equal_bytes(file.file(), 256, &bytes[..512]), Ok(512));
        assert_eq!(equal_bytes(file.file(), 1, &bytes[..512]), Ok(0));
        assert_eq!(equal_bytes(file.file(), 8999, &bytes[..2]), Err(Errno::IO));
    }
}
