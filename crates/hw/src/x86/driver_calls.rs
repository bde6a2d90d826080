//! Calls of a driver: `pread`, `pwrite` and `mmap` on its file, or on a memory file that replaces one.

#![allow(unsafe_code)]

use super::pattern;
use super::sample::{Limits, Stamps, timed};
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr;

/// Number of bytes of `file` from `offset` on that equal the byte of `expected` at the same position.
///
/// # Errors
/// Error of the system call.
pub(crate) fn equal_bytes(file: BorrowedFd<'_>, offset: u64, expected: &[u8]) -> Result<u64, Errno> {
    let mut found = vec![0_u8; expected.len().min(1 << 20)];
    let (mut done, mut equal) = (0, 0);
    while done < expected.len() {
        let len = found.len().min(expected.len() - done);
        let read = moved(retry_on_intr(|| pread(file, &mut found[..len], offset + done as u64)))?;
        equal += pattern::equal_bytes(&found[..read], &expected[done..done + read]);
        done += read;
    }
    Ok(equal)
}

/// Rejects a transfer of 0 bytes: the file is as long as any request.
pub(crate) fn moved(call: Result<usize, Errno>) -> Result<usize, Errno> {
    match call {
        Ok(0) => Err(Errno::IO),
        other => other,
    }
}

/// Calls of one iteration, ascending over a span of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls<'a> {
    pub(crate) file: BorrowedFd<'a>,
    /// Start of the span in the file.
    pub(crate) offset: u64,
    /// User memory for the span, `len` bytes.
    pub(crate) user: *mut u8,
    pub(crate) len: usize,
    /// Bytes per call, at least 1.
    pub(crate) call_bytes: usize,
}

/// Times `passes` iterations of `pread` calls.
///
/// # Safety
/// `calls.user` must be valid for writes of `calls.len` bytes, without other users.
pub(crate) unsafe fn timed_reads(calls: &Calls<'_>, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        each_call(calls, |at, len| {
            // SAFETY: `at + len <= calls.len`, and the caller guarantees the memory.
            let user = unsafe { std::slice::from_raw_parts_mut(calls.user.add(at), len) };
            pread(calls.file, user, calls.offset + at as u64)
        })
    })
}

/// Times `passes` iterations of `pwrite` calls.
///
/// # Safety
/// `calls.user` must be valid for reads of `calls.len` bytes, without concurrent writers.
pub(crate) unsafe fn timed_writes(calls: &Calls<'_>, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
    timed(limits, first, passes, |_| {
        each_call(calls, |at, len| {
            // SAFETY: `at + len <= calls.len`, and the caller guarantees the memory.
            let user = unsafe { std::slice::from_raw_parts(calls.user.add(at), len) };
            pwrite(calls.file, user, calls.offset + at as u64)
        })
    })
}

/// Times `passes` iterations that map `len` bytes at the page-aligned `offset` and unmap them.
pub(crate) fn timed_maps(
    file: BorrowedFd<'_>,
    offset: u64,
    len: usize,
    limits: &Limits<'_>,
    first: u64,
    passes: u64,
) -> Stamps {
    timed(limits, first, passes, |_| {
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced; the mapping is never accessed.
        unsafe {
            let rights = ProtFlags::READ | ProtFlags::WRITE;
            let start = mmap(ptr::null_mut(), len, rights, MapFlags::SHARED, file, offset)?;
            munmap(start, len)
        }
    })
}

/// Covers the span with calls; a partial transfer is followed by a call for the remainder.
#[inline(always)]
#[allow(clippy::inline_always)] // A function call between the timestamps is not part of a driver call.
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
    use rustix::fd::AsFd as _;

    #[test]
    fn calls_cover_a_span_once_and_the_last_one_is_shorter() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let calls = Calls { file: file.as_fd(), offset: 0, user: std::ptr::null_mut(), len: 10, call_bytes: 4 };
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
