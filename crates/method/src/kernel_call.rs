//! System calls that do almost nothing.

use std::fmt;

/// System call whose cost is that of entering and leaving the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KernelCall {
    /// `getppid`, one of the cheapest system calls.
    Getppid,
    /// An `ioctl` that the device does not implement (on `/dev/null`): passes the file layer and returns an error.
    FailingIoctl,
}

impl KernelCall {
    /// All calls, in the order shown to users.
    pub const ALL: [KernelCall; 2] = [KernelCall::Getppid, KernelCall::FailingIoctl];

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            KernelCall::Getppid => "getppid",
            KernelCall::FailingIoctl => "failing_ioctl",
        }
    }
}

impl fmt::Display for KernelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::name::from_name!(KernelCall, "a kernel call");
