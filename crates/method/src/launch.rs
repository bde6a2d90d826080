//! What a launched kernel is given, and how a program waits for it.

use crate::Allocation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Memory of the device that a kernel is given: what its runtime has to look at before each launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
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

impl HostWait {
    /// Both, in the order they are listed to users.
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

crate::name::from_name!(HostWait, "a wait");
