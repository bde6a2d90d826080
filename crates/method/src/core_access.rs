//! Loads, stores and copies of a core.

use crate::{Access, Fence, Verb};
use lanemark_units::MemoryType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Loads, stores or copies of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreAccess {
    /// How the core reaches the memory.
    pub path: AccessPath,
    /// Load or store.
    pub verb: Verb,
    /// The effective memory type of the mapping.
    pub memory_type: MemoryType,
    /// The instruction.
    pub access: Access,
    /// The fence after it; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
}

/// How a core reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessPath {
    /// A pointer of the program.
    Pointer,
    /// A driver call.
    Driver,
    /// Driver calls that read a flag until it is set, and then a value.
    DriverPoll,
    /// A mapping that is made for the access and removed again.
    Mmap,
    /// A pointer, where a device could move the bytes by DMA instead.
    Loads,
    /// A pointer, to a destination whose lines are in a cache.
    HotCopy,
    /// A pointer, to a destination whose lines are in no cache.
    ColdCopy,
}

impl AccessPath {
    /// Every path, in the order they are listed to users.
    pub const ALL: [AccessPath; 7] = [
        AccessPath::Pointer,
        AccessPath::Driver,
        AccessPath::DriverPoll,
        AccessPath::Mmap,
        AccessPath::Loads,
        AccessPath::HotCopy,
        AccessPath::ColdCopy,
    ];

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AccessPath::Pointer => "pointer",
            AccessPath::Driver => "driver",
            AccessPath::DriverPoll => "driver_poll",
            AccessPath::Mmap => "mmap",
            AccessPath::Loads => "loads",
            AccessPath::HotCopy => "hot_copy",
            AccessPath::ColdCopy => "cold_copy",
        }
    }
}

crate::name::from_name!(AccessPath, "a path");
