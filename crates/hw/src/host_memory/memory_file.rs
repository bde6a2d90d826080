//! The file that stands in for a device driver.
//!
//! A driver call enters the kernel, which copies between user memory and the device. With no device
//! there is still the kernel: `pread` and `pwrite` on a memory file (`memfd`) enter it, find the pages
//! and copy. So a driver call on this machine costs what entering, finding and copying cost; what an
//! `ioctl` handler does besides is not in it.

#![allow(unsafe_code)]

use crate::x86::pattern;
use crate::x86::sample::{Limits, Stamps, timed};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr;

/// A file in memory, as long as the region.
#[derive(Debug)]
pub(super) struct MemoryFile(OwnedFd);

impl MemoryFile {
    /// A file that holds `bytes`; writing them makes every page present.
    ///
    /// # Errors
    /// What the kernel said.
    pub(super) fn holding(bytes: &[u8]) -> Result<MemoryFile, Errno> {
        let file = MemoryFile(memfd_create("lanemark", MemfdFlags::CLOEXEC)?);
        let mut done = 0;
        while done < bytes.len() {
            done += moved(retry_on_intr(|| pwrite(&file.0, &bytes[done..], done as u64)))?;
        }
        Ok(file)
    }

    /// How many bytes from `offset` on equal those of `wanted`, place by place.
    ///
    /// # Errors
    /// What the kernel said.
    pub(super) fn equal_bytes(&self, offset: u64, wanted: &[u8]) -> Result<u64, Errno> {
        let mut found = vec![0_u8; wanted.len().min(1 << 20)];
        let (mut done, mut equal) = (0, 0);
        while done < wanted.len() {
            let room = found.len().min(wanted.len() - done);
            let read = moved(retry_on_intr(|| pread(&self.0, &mut found[..room], offset + done as u64)))?;
            equal += pattern::equal_bytes(&found[..read], &wanted[done..done + read]);
            done += read;
        }
        Ok(equal)
    }
}

/// No progress is an error: our file is as long as everything that is asked of it.
fn moved(call: Result<usize, Errno>) -> Result<usize, Errno> {
    match call {
        Ok(0) => Err(Errno::IO),
        other => other,
    }
}

/// One pass of calls, ascending over a span of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls<'a> {
    pub(super) file: &'a MemoryFile,
    /// Where in the file the span starts.
    pub(super) offset: u64,
    /// The user memory behind the span, `len` bytes.
    pub(super) user: *mut u8,
    pub(super) len: usize,
    /// Bytes asked for by one call; at least 1.
    pub(super) call_bytes: usize,
}

/// Times `passes` passes of `pread` calls.
///
/// # Safety
/// `calls.user` must be valid for writes of `calls.len` bytes that nobody else uses.
pub(super) unsafe fn timed_reads(calls: &Calls<'_>, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        each_call(calls, |at, len| {
            // SAFETY: `at + len <= calls.len`, and the caller vouches for the memory.
            let user = unsafe { std::slice::from_raw_parts_mut(calls.user.add(at), len) };
            pread(&calls.file.0, user, calls.offset + at as u64)
        })
    })
}

/// Times `passes` passes of `pwrite` calls.
///
/// # Safety
/// `calls.user` must be valid for reads of `calls.len` bytes that nobody writes meanwhile.
pub(super) unsafe fn timed_writes(calls: &Calls<'_>, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        each_call(calls, |at, len| {
            // SAFETY: `at + len <= calls.len`, and the caller vouches for the memory.
            let user = unsafe { std::slice::from_raw_parts(calls.user.add(at), len) };
            pwrite(&calls.file.0, user, calls.offset + at as u64)
        })
    })
}

/// Times `passes` passes that map `len` bytes from `offset` on, which is a page's start, and give them back.
pub(super) fn timed_maps(
    file: &MemoryFile,
    offset: u64,
    len: usize,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |_| {
        // SAFETY: no address is asked for, so no existing mapping is replaced; it is given back unused.
        unsafe {
            let rights = ProtFlags::READ | ProtFlags::WRITE;
            let start = mmap(ptr::null_mut(), len, rights, MapFlags::SHARED, &file.0, offset)?;
            munmap(start, len)
        }
    })
}

/// Covers the span with calls. A call that moved less than asked is followed by one for what is left of it.
#[inline(always)]
#[allow(clippy::inline_always)] // A call of our own between the timestamps is not the driver's.
fn each_call(calls: &Calls<'_>, mut call: impl FnMut(usize, usize) -> Result<usize, Errno>) -> Result<(), Errno> {
    let mut done = 0;
    while done < calls.len {
        let end = calls.len.min(done + calls.call_bytes);
        while done < end {
            match call(done, end - done) {
                Ok(0) => return Err(Errno::IO),
                Ok(moved) => done += moved,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_file_holds_what_it_was_made_with_and_differences_are_counted() {
        let bytes: Vec<u8> = (0..9000_u32).map(|place| place as u8).collect();
        let file = MemoryFile::holding(&bytes).unwrap();
        assert_eq!(file.equal_bytes(0, &bytes), Ok(9000));
        assert_eq!(file.equal_bytes(256, &bytes[..512]), Ok(512));
        assert_eq!(file.equal_bytes(1, &bytes[..512]), Ok(0));
        assert_eq!(file.equal_bytes(8999, &bytes[..2]), Err(Errno::IO));
    }

    #[test]
    fn calls_cover_a_span_once_and_the_last_one_is_shorter() {
        let file = MemoryFile::holding(&[0]).unwrap();
        let calls = Calls { file: &file, offset: 0, user: std::ptr::null_mut(), len: 10, call_bytes: 4 };
        let mut seen = Vec::new();
        let mut short = true;
        each_call(&calls, |at, len| {
            seen.push((at, len));
            Ok(if std::mem::take(&mut short) { 1 } else { len })
        })
        .unwrap();
        assert_eq!(seen, [(0, 4), (1, 3), (4, 4), (8, 2)]);
        assert_eq!(each_call(&calls, |_, _| Ok(0)), Err(Errno::IO));
    }
}
