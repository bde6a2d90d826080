//! Kernels that a runtime is given to launch.

use crate::{Arguments, HostWait};

/// Launches of a kernel that does nothing, through a queue of a runtime: what a launch costs by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Launch {
    /// How many are put into the queue before anybody waits; at least 1.
    pub kernels: u32,
    /// By what it is known that the last of them is over.
    pub told: HostWait,
    /// What each of them is given and does not touch.
    pub arguments: Arguments,
}

impl Launch {
    /// The most before anybody waits: runtimes keep all of them.
    pub const MOST_KERNELS: u32 = 10_000;
}
