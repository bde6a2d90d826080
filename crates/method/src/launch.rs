//! Arguments of a launched kernel, and waits for its completion.

use crate::Allocation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Memory arguments of a kernel, which the runtime processes at each launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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

/// The way in which a program launches kernels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum LaunchBy {
    /// A call for each kernel.
    #[default]
    Calls,
    /// One call for a graph of kernels, each of which starts after the one before it has ended (`cuGraphLaunch`).
    Graph,
    /// The kernels are queued behind a wait for a word of host memory before the time starts; a store starts them
    /// (`cuStreamWaitValue32`).
    StreamWait,
}

impl LaunchBy {
    /// All methods, in the order shown to users.
    pub const ALL: [LaunchBy; 3] = [LaunchBy::Calls, LaunchBy::Graph, LaunchBy::StreamWait];

    /// Name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LaunchBy::Calls => "calls",
            LaunchBy::Graph => "graph",
            LaunchBy::StreamWait => "stream_wait",
        }
    }

    /// Whether each kernel has a call of its own.
    ///
    /// ```
    /// use lanemark_method::LaunchBy;
    /// assert!(LaunchBy::Calls.is_calls() && !LaunchBy::Graph.is_calls());
    /// ```
    #[must_use]
    // Its signature is that of `skip_serializing_if`.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn is_calls(&self) -> bool {
        *self == LaunchBy::Calls
    }
}

impl fmt::Display for LaunchBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

crate::name::from_name!(LaunchBy, "a method for launches");

/// How a program waits until all commands of a queue have completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum HostWait {
    /// A call that returns when the queue is empty (`clFinish`).
    Finish,
    /// A wait for the event of the last command (`clWaitForEvents`).
    Event,
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

crate::name::from_name!(HostWait, "a wait");
