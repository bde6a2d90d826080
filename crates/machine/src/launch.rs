//! Kernels that a runtime is given to launch.

use crate::Allocation;
use std::fmt;

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

/// Memory of the device that a kernel is given: what its runtime has to look at before each launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arguments {
    /// How many pieces of memory; 0 is a kernel that is given nothing.
    pub count: u32,
    /// As what: a [`Allocation::Buffer`], or an address, [`Allocation::Device`]; others are no arguments.
    pub allocation: Allocation,
}

impl Arguments {
    /// Nothing is given.
    pub const NONE: Arguments = Arguments { count: 0, allocation: Allocation::Buffer };
    /// The most that a kernel is given.
    pub const MOST: u32 = 16;
}

/// How it is known that everything in a queue is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HostWait {
    /// A call that returns when the queue is empty (`clFinish`).
    Finish,
    /// A wait for the event of the last command (`clWaitForEvents`).
    Event,
}

impl Launch {
    /// The most before anybody waits: runtimes keep all of them.
    pub const MOST_KERNELS: u32 = 10_000;
}

impl HostWait {
    /// Every way, in the order they are listed to users.
    pub const ALL: [HostWait; 2] = [HostWait::Finish, HostWait::Event];

    /// The name in records.
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
