//! System calls that do no work, to measure kernel entry.

use crate::x86::sample::{Limits, Stamps, timed};
use lanemark_machine::KernelCall;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, ioctl_fionread};
use rustix::process::getppid;
use std::hint::black_box;

/// `/dev/null`, which supports no `ioctl`.
#[derive(Debug)]
pub(super) struct NullDevice(OwnedFd);

impl NullDevice {
    /// Opens `/dev/null`.
    ///
    /// # Errors
    /// Error of the system call.
    pub(super) fn open() -> Result<NullDevice, Errno> {
        Ok(NullDevice(open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Times `passes` iterations of `call`.
    pub(super) fn timed(&self, call: KernelCall, limits: &Limits<'_>, first: u64, passes: u64) -> Stamps {
        match call {
            KernelCall::Getppid => timed(limits, first, passes, |_| {
                black_box(getppid());
                Ok(())
            }),
            KernelCall::FailingIoctl => timed(limits, first, passes, |_| match ioctl_fionread(&self.0) {
                Err(Errno::NOTTY | Errno::INVAL) => Ok(()),
                Err(other) => Err(other),
                // If the call succeeds, it measures something other than kernel entry.
                Ok(_) => Err(Errno::EXIST),
            }),
        }
    }
}
