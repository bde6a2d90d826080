//! Launches of empty kernels through a runtime.

use crate::{Arguments, HostWait, LaunchBy};

/// Launches of an empty kernel through a queue of a runtime, which measure the overhead of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Launch {
    /// Kernels enqueued before each wait; at least 1.
    pub kernels: u32,
    /// The way of launching these kernels.
    pub by: LaunchBy,
    /// How the program waits for the last kernel.
    pub wait: HostWait,
    /// Arguments of each kernel, which it does not access.
    pub arguments: Arguments,
}

impl Launch {
    /// Maximum number of kernels before a wait, because runtimes keep all of them.
    pub const MOST_KERNELS: u32 = 10_000;
}
