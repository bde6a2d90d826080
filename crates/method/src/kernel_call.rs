//! Calls for which the kernel has nothing to do.

use std::fmt;

/// A call into the kernel that costs the way there and back and little else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KernelCall {
    /// `getppid`: the least a call can do.
    Getppid,
    /// An `ioctl` that the device has not got (`/dev/null`): through the file, and back with an error.
    FailingIoctl,
}

impl KernelCall {
    /// Every call, in the order they are listed to users.
    pub const ALL: [KernelCall; 2] = [KernelCall::Getppid, KernelCall::FailingIoctl];

    /// The name in records.
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
