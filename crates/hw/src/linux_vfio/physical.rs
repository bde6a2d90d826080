//! Physical addresses of this process's memory.

use lanemark_units::HostVirt;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::pread;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The kernel's table of the pages of this process.
///
/// Source: Linux, `Documentation/admin-guide/mm/pagemap.rst`: 8 B for each page; bit 63 is set if it is in memory, and bits 0 to
/// 54 are its number, or 0 for a process that may not know it.
#[derive(Debug)]
pub(super) struct Pagemap(OwnedFd);

impl Pagemap {
    pub(super) fn open() -> io::Result<Pagemap> {
        Ok(Pagemap(open("/proc/self/pagemap", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Physical address of a byte.
    ///
    /// # Errors
    /// The page is not in memory; the process may not know its address.
    pub(super) fn physical(&self, at: HostVirt) -> io::Result<u64> {
        let mut entry = [0; 8];
        if pread(&self.0, &mut entry, at.0 / PAGE * 8)? != 8 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let entry = u64::from_le_bytes(entry);
        match (entry >> 63 == 1, entry & ((1 << 55) - 1)) {
            (false, _) => Err(io::Error::other(format!("the page at {:#x} is not in memory", at.0))),
            (true, 0) => {
                Err(io::Error::other("/proc/self/pagemap has no physical addresses for this user: run as root"))
            }
            (true, number) => Ok(number * PAGE + at.0 % PAGE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_never_touched_has_no_physical_address() {
        let pagemap = Pagemap::open().unwrap();
        let refused = pagemap.physical(HostVirt(0)).unwrap_err().to_string();
        assert!(refused.contains("is not in memory"), "{refused}");
        let byte = Box::new(7_u8);
        let at = HostVirt((&raw const *byte).addr() as u64);
        // A user without the right is told so.
        match pagemap.physical(at) {
            Ok(physical) => assert_eq!(physical % PAGE, at.0 % PAGE),
            Err(error) => assert!(error.to_string().contains("run as root"), "{error}"),
        }
    }
}
