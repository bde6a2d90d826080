//! Launches of empty kernels through a runtime.

use crate::Allocation;
use std::fmt;

/// Launches of an empty kernel through a queue of a runtime, which measure the overhead of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Launch {
    /// Kernels enqueued before each wait; at least 1.
    pub kernels: u32,
    /// How the program waits for the last kernel.
    pub told: HostWait,
    /// Arguments of each kernel, which it does not access.
    pub arguments: Arguments,
}

/// Memory arguments of a kernel, which the runtime processes at each launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arguments {
    /// Number of arguments; 0 for a kernel without arguments.
    pub count: u32,
    /// Kind of memory: a [`Allocation::Buffer`] or an address ([`Allocation::Device`]). Other kinds are rejected.
    pub allocation: Allocation,
}

impl Arguments {
    /// No arguments.
    pub const NONE: Arguments = Arguments { count: 0, allocation: Allocation::Buffer };
    /// Maximum number of arguments.
    pub const MOST: u32 = 16;
}

/// How a program waits until all commands of a queue have completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HostWait {
    /// A call that returns when the queue is empty (`clFinish`).
    Finish,
    /// A wait for the event of the last command (`clWaitForEvents`).
    Event,
}

impl Launch {
    /// Maximum number of kernels before a wait, because runtimes keep all of them.
    pub const MOST_KERNELS: u32 = 10_000;
}

impl HostWait {
    /// All methods, in the order shown to users.
    pub const ALL: [HostWait; 2] = [HostWait::Finish, HostWait::Event];

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            HostWait::Finish => "finish",
            HostWait::Event => "event",
        }
    }
}

impl fmt::Display for HostWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
