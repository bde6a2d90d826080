//! Loads, stores and copies of a core.

use crate::{Access, Fence, Verb};
use lanemark_units::MemoryType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Loads, stores or copies of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreAccess {
    /// Path of the core to the memory.
    pub path: AccessPath,
    /// Load or store.
    pub verb: Verb,
    /// Effective memory type of the mapping.
    pub memory_type: MemoryType,
    /// Instruction.
    pub access: Access,
    /// Fence after the accesses; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<Fence>,
}

/// Path of a core to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessPath {
    /// A pointer of the program.
    Pointer,
    /// A driver call.
    Driver,
    /// Driver calls that poll a flag and then read a value.
    DriverPoll,
    /// A mapping created for the access and removed afterwards.
    Mmap,
    /// A pointer, for transfers that DMA could also make.
    Loads,
    /// A pointer to a device that is polled until the result of earlier stores is ready.
    Handshake,
    /// A pointer to a destination in a cache.
    HotCopy,
    /// A pointer to a destination that no cache holds.
    ColdCopy,
}

impl AccessPath {
    /// All paths, in the order shown to users.
    pub const ALL: [AccessPath; 8] = [
        AccessPath::Pointer,
        AccessPath::Driver,
        AccessPath::DriverPoll,
        AccessPath::Mmap,
        AccessPath::Loads,
        AccessPath::Handshake,
        AccessPath::HotCopy,
        AccessPath::ColdCopy,
    ];

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AccessPath::Pointer => "pointer",
            AccessPath::Driver => "driver",
            AccessPath::DriverPoll => "driver_poll",
            AccessPath::Mmap => "mmap",
            AccessPath::Loads => "loads",
            AccessPath::Handshake => "handshake",
            AccessPath::HotCopy => "hot_copy",
            AccessPath::ColdCopy => "cold_copy",
        }
    }
}

crate::name::from_name!(AccessPath, "a path");
