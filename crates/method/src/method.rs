//! Methods of moving bytes, and other timed operations, with every parameter.

use crate::{
    Access, Allocation, Arguments, Clock, Completion, ComputeWork, CopyBy, CoreAccess, Descriptors, Discipline, Fence,
    Flow, HostWait, KernelCall, LaunchBy, LineSource, Means, Reach, Share, Verb, Width,
};
use lanemark_units::MemoryType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A method of moving bytes, or another timed operation.
///
/// In files, the key `kind` names the variant, and the other keys are its fields. `to_string`
/// returns the label shown to users.
///
/// ```
/// use lanemark_method::{HostWait, LaunchBy, Method};
/// let method: Method = serde_json::from_str(r#"{"kind": "launch", "kernels": 100, "wait": "finish"}"#).unwrap();
/// let (by, wait) = (LaunchBy::Calls, HostWait::Finish);
/// assert_eq!(method, Method::Launch { kernels: 100, by, wait, arguments: None, pinned: true });
/// assert_eq!(method.to_string(), "100 launches, wait by finish");
/// let error = serde_json::from_str::<Method>(r#"{"kind": "lunch"}"#).unwrap_err().to_string();
/// assert!(error.contains("expected one of `core`, `fence`, `clock`"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Method {
    /// Loads, stores or copies of a core.
    Core(CoreAccess),
    /// A fence alone.
    Fence {
        /// The fence.
        fence: Fence,
    },
    /// A reading of a clock.
    Clock {
        /// The clock.
        clock: Clock,
    },
    /// A system call without work for the kernel.
    KernelCall {
        /// The call.
        call: KernelCall,
    },
    /// A wake-up of a thread that sleeps on another core.
    Wake {
        /// Call that wakes it.
        by: WakeBy,
    },
    /// Cache lines that two cores write and read alternately.
    CacheLines {
        /// The memory type of the lines.
        memory_type: MemoryType,
        /// The store.
        access: Access,
        /// One line for both directions, or one for each.
        lines: Lines,
    },
    /// A load of 8 B of write-back memory whose line misses in the core's caches.
    LineLoad {
        /// Source of the line.
        source: LineSource,
    },
    /// DMA by devices.
    Dma {
        /// Source, destination and direction of each concurrent flow.
        flows: Vec<Flow>,
        /// Largest number of outstanding transfers; absent for as many as the device supports.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outstanding: Option<u32>,
        /// Requested placement in memory.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// DMA with one transfer at a time, cycling through a few pages.
    DmaPages {
        /// Source, destination and direction of each concurrent flow.
        flows: Vec<Flow>,
        /// Number of pages.
        pages: u64,
        /// Requested placement in memory.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// DMA under load: the first flow has one outstanding transfer, and all others load the links.
    /// A single flow loads them itself.
    DmaUnderLoad {
        /// The timed flow, then the loading flows.
        flows: Vec<Flow>,
        /// Number of outstanding transfers of each loading flow.
        outstanding: u32,
        /// Requested placement in memory.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// DMA that a core starts, with a notification of its end.
    DmaCall {
        /// Source, destination and direction of each concurrent flow.
        flows: Vec<Flow>,
        /// Included steps of a driver call.
        share: Share,
        /// Transfer of the descriptors.
        descriptors: Descriptors,
        /// Notification of the core.
        completion: Completion,
        /// Requested placement in memory.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// A relay from host memory through cards, each of which writes to the next, and back to host
    /// memory.
    Relay {
        /// The cards, in the order of the data.
        cards: Vec<u32>,
        /// Requested placement in memory.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// A copy by a runtime.
    RuntimeCopy {
        /// To the device or from it.
        direction: CopyDirection,
        /// Wait of the program for the end.
        wait: HostWait,
        /// Kind of memory.
        allocation: Allocation,
    },
    /// Copies of many pieces of equal size through a runtime, with one wait.
    SmallCopies {
        /// To the device or from it.
        direction: CopyDirection,
        /// Number of pieces.
        copies: u32,
        /// The way the pieces are copied.
        by: CopyBy,
    },
    /// Launches of an empty kernel through a runtime.
    Launch {
        /// Number of launches per wait.
        kernels: u32,
        /// The way launches are made; absent if each kernel is launched by a call.
        #[serde(default, skip_serializing_if = "LaunchBy::is_calls")]
        by: LaunchBy,
        /// Wait of the program for the end.
        wait: HostWait,
        /// Arguments of each launch; absent without arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Arguments>,
        /// Whether the calling thread is pinned to a core.
        #[serde(default = "yes")]
        pinned: bool,
    },
    /// One more argument of a launched kernel.
    Argument {
        /// Wait of the program for the end.
        wait: HostWait,
        /// Kind of memory.
        allocation: Allocation,
    },
    /// Kernels that compute on device memory.
    Compute {
        /// The computation.
        work: ComputeWork,
        /// Wait of the program for the end.
        wait: HostWait,
    },
    /// Mapping of memory for a device, and unmapping.
    MapUnmap {
        /// Strategy and table.
        means: Means,
    },
    /// A buffer of ordinary memory that a core shares with a device.
    SharedBuffer {
        /// Writing for the device, or reading after it.
        direction: CopyDirection,
        /// Method that gives both the same view.
        discipline: Discipline,
    },
}

/// Call by which one thread wakes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WakeBy {
    /// A write to an `eventfd` that the other thread reads.
    Eventfd,
}

impl WakeBy {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WakeBy::Eventfd => "eventfd",
        }
    }
}

/// Direction of a copy, as seen by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyDirection {
    /// From the program to the device.
    ToDevice,
    /// From the device to the program.
    FromDevice,
}

impl CopyDirection {
    /// The direction of a core's stores or loads.
    #[must_use]
    pub const fn of(verb: Verb) -> CopyDirection {
        match verb {
            Verb::Store => CopyDirection::ToDevice,
            Verb::Load => CopyDirection::FromDevice,
        }
    }

    /// The access of a core for a copy in this direction: a store to the device, or a load from it.
    #[must_use]
    pub const fn verb(self) -> Verb {
        match self {
            CopyDirection::ToDevice => Verb::Store,
            CopyDirection::FromDevice => Verb::Load,
        }
    }

    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CopyDirection::ToDevice => "to_device",
            CopyDirection::FromDevice => "from_device",
        }
    }
}

/// Cache lines of a message exchange between two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// One line for both directions.
    One,
    /// One line per direction.
    Two,
}

impl Lines {
    /// Name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Lines::One => "one",
            Lines::Two => "two",
        }
    }
}

const fn yes() -> bool {
    true
}

impl Method {
    /// Requested placement of DMA in memory; the default without DMA.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach_ref().copied().unwrap_or_default()
    }

    const fn reach_ref(&self) -> Option<&Reach> {
        match self {
            Method::Dma { reach, .. }
            | Method::DmaPages { reach, .. }
            | Method::DmaUnderLoad { reach, .. }
            | Method::DmaCall { reach, .. }
            | Method::Relay { reach, .. } => Some(reach),
            Method::Core(_)
            | Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::CacheLines { .. }
            | Method::LineLoad { .. }
            | Method::RuntimeCopy { .. }
            | Method::SmallCopies { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// Whether the method is DMA.
    ///
    /// ```
    /// use lanemark_method::{Method, Reach, WakeBy};
    /// assert!(Method::Relay { cards: vec![0], reach: Reach::default() }.is_dma());
    /// assert!(!Method::Wake { by: WakeBy::Eventfd }.is_dma());
    /// ```
    #[must_use]
    pub const fn is_dma(&self) -> bool {
        self.reach_ref().is_some()
    }

    /// Instruction of a core that moves the bytes; `None` if no instruction does, or none is named.
    #[must_use]
    pub const fn access(&self) -> Option<Access> {
        match self {
            Method::Core(core) => Some(core.access),
            Method::CacheLines { access, .. } => Some(*access),
            Method::LineLoad { .. } => Some(Access::Plain(Width::B8)),
            Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::Dma { .. }
            | Method::DmaPages { .. }
            | Method::DmaUnderLoad { .. }
            | Method::DmaCall { .. }
            | Method::Relay { .. }
            | Method::RuntimeCopy { .. }
            | Method::SmallCopies { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// Memory type of a core's accesses; `None` if no core accesses memory.
    #[must_use]
    pub const fn memory_type(&self) -> Option<MemoryType> {
        match self {
            Method::Core(core) => Some(core.memory_type),
            Method::CacheLines { memory_type, .. } => Some(*memory_type),
            Method::LineLoad { .. } => Some(MemoryType::Wb),
            Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::Dma { .. }
            | Method::DmaPages { .. }
            | Method::DmaUnderLoad { .. }
            | Method::DmaCall { .. }
            | Method::Relay { .. }
            | Method::RuntimeCopy { .. }
            | Method::SmallCopies { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// The reach, to be changed; `None` without DMA.
    #[must_use]
    pub const fn reach_mut(&mut self) -> Option<&mut Reach> {
        match self {
            Method::Dma { reach, .. }
            | Method::DmaPages { reach, .. }
            | Method::DmaUnderLoad { reach, .. }
            | Method::DmaCall { reach, .. }
            | Method::Relay { reach, .. } => Some(reach),
            Method::Core(_)
            | Method::Fence { .. }
            | Method::Clock { .. }
            | Method::KernelCall { .. }
            | Method::Wake { .. }
            | Method::CacheLines { .. }
            | Method::LineLoad { .. }
            | Method::RuntimeCopy { .. }
            | Method::SmallCopies { .. }
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// The same method with a pinned calling thread.
    #[must_use]
    pub fn pinned(&self) -> Method {
        let mut method = self.clone();
        if let Method::Launch { pinned, .. } = &mut method {
            *pinned = true;
        }
        method
    }
}
