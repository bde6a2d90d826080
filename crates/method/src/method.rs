//! How bytes are moved, or what is done where none are, with every parameter.

use crate::{
    Access, Allocation, Arguments, Clock, Completion, ComputeWork, CoreAccess, Descriptors, Discipline, Fence, Flow,
    HostWait, KernelCall, LineSource, Means, Reach, Share, Verb, Width,
};
use lanemark_units::MemoryType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bytes are moved, or what is done where none are.
///
/// In files the key `kind` says which variant it is, and the other keys are the variant's own. `to_string` gives the label
/// that people read.
///
/// ```
/// use lanemark_method::{HostWait, Method};
/// let method: Method = serde_json::from_str(r#"{"kind": "launch", "kernels": 100, "wait": "finish"}"#).unwrap();
/// assert_eq!(method, Method::Launch { kernels: 100, wait: HostWait::Finish, arguments: None, pinned: true });
/// assert_eq!(method.to_string(), "100 launches, wait by finish");
/// let error = serde_json::from_str::<Method>(r#"{"kind": "lunch"}"#).unwrap_err().to_string();
/// assert!(error.contains("expected one of `core`, `fence`, `clock`"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Method {
    /// Loads, stores or copies of a core.
    Core(CoreAccess),
    /// A fence with nothing before it.
    Fence {
        /// The fence.
        fence: Fence,
    },
    /// A reading of a clock.
    Clock {
        /// The clock.
        clock: Clock,
    },
    /// A system call for which the kernel has nothing to do.
    KernelCall {
        /// The call.
        call: KernelCall,
    },
    /// One core wakes a thread that sleeps on another.
    Wake {
        /// By which call.
        by: WakeBy,
    },
    /// Cache lines that two cores write and read in turn.
    CacheLines {
        /// The memory type of the lines.
        memory_type: MemoryType,
        /// The store.
        access: Access,
        /// One line for both directions, or one each.
        lines: Lines,
    },
    /// A load of 8 B of write-back memory whose line is in no cache of the core.
    LineLoad {
        /// Where the line is.
        source: LineSource,
    },
    /// DMA: devices move the bytes themselves.
    Dma {
        /// Source, destination and direction of each concurrent flow.
        flows: Vec<Flow>,
        /// Transfers outstanding at once; absent for as many as the device can have.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outstanding: Option<u32>,
        /// Where in memory, as far as it was asked for.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// DMA of one transfer at a time, each to the next of a few pages in turn.
    DmaPages {
        /// Source, destination and direction of each concurrent flow.
        flows: Vec<Flow>,
        /// The number of pages.
        pages: u64,
        /// Where in memory, as far as it was asked for.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// DMA under load: the first flow has one transfer outstanding while all others load the links; a flow alone is its own
    /// load.
    DmaUnderLoad {
        /// The flow that is timed, and then those that load the links.
        flows: Vec<Flow>,
        /// Transfers that each loading flow has outstanding.
        outstanding: u32,
        /// Where in memory, as far as it was asked for.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// DMA that a core asks a device for, and is notified of.
    DmaCall {
        /// Source, destination and direction of each concurrent flow.
        flows: Vec<Flow>,
        /// How much of a driver call there is.
        share: Share,
        /// How the device gets the descriptors.
        descriptors: Descriptors,
        /// How the core is notified.
        completion: Completion,
        /// Where in memory, as far as it was asked for.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// Bytes from host memory through cards, each of which writes them to the next, and back to host memory.
    Relay {
        /// The cards, in the order in which the bytes pass them.
        cards: Vec<u32>,
        /// Where in memory, as far as it was asked for.
        #[serde(default, skip_serializing_if = "Reach::is_usual")]
        reach: Reach,
    },
    /// A copy by a runtime.
    RuntimeCopy {
        /// To the device or from it.
        direction: CopyDirection,
        /// How the program waits for the end.
        wait: HostWait,
        /// What the memory of the device is to the program.
        allocation: Allocation,
    },
    /// Launches of a kernel that does nothing, through a runtime.
    Launch {
        /// Launches before the program waits.
        kernels: u32,
        /// How the program waits for the end.
        wait: HostWait,
        /// The memory that each of them is given; absent where it is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Arguments>,
        /// Whether the calling thread is held on one core.
        #[serde(default = "yes")]
        pinned: bool,
    },
    /// One more piece of memory that a launched kernel is given.
    Argument {
        /// How the program waits for the end.
        wait: HostWait,
        /// What the memory is.
        allocation: Allocation,
    },
    /// Kernels that compute on memory of their device.
    Compute {
        /// What they compute.
        work: ComputeWork,
        /// How the program waits for the end.
        wait: HostWait,
    },
    /// Memory that is mapped for a device and unmapped.
    MapUnmap {
        /// By which means.
        means: Means,
    },
    /// A buffer of ordinary memory that a core shares with a device.
    SharedBuffer {
        /// Written for the device, or read after it.
        direction: CopyDirection,
        /// How both see the same bytes.
        discipline: Discipline,
    },
}

/// The call by which one thread wakes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WakeBy {
    /// A write to an `eventfd` that the other thread reads.
    Eventfd,
}

impl WakeBy {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WakeBy::Eventfd => "eventfd",
        }
    }
}

/// The direction of a copy, as a program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyDirection {
    /// From the program to the device.
    ToDevice,
    /// From the device to the program.
    FromDevice,
}

impl CopyDirection {
    /// The direction of what a core stores or loads.
    #[must_use]
    pub const fn of(verb: Verb) -> CopyDirection {
        match verb {
            Verb::Store => CopyDirection::ToDevice,
            Verb::Load => CopyDirection::FromDevice,
        }
    }

    /// What a core does for a copy in this direction: a store to the device, or a load from it.
    #[must_use]
    pub const fn verb(self) -> Verb {
        match self {
            CopyDirection::ToDevice => Verb::Store,
            CopyDirection::FromDevice => Verb::Load,
        }
    }

    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CopyDirection::ToDevice => "to_device",
            CopyDirection::FromDevice => "from_device",
        }
    }
}

/// The lines by which two cores exchange messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// One line for both directions.
    One,
    /// A line for each direction.
    Two,
}

impl Lines {
    /// The name in files.
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
    /// Where in memory devices move bytes, as far as it was asked for; the usual reach where they move none.
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
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// Whether devices move the bytes.
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

    /// The instruction of a core that moves the bytes; `None` where no instruction does, or none is named.
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
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// The memory type that a core's accesses go through; `None` where no core accesses memory.
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
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// The reach, to change it; `None` where devices move no bytes.
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
            | Method::Launch { .. }
            | Method::Argument { .. }
            | Method::Compute { .. }
            | Method::MapUnmap { .. }
            | Method::SharedBuffer { .. } => None,
        }
    }

    /// The method with the calling thread held on a core, whether it was or not.
    #[must_use]
    pub fn pinned(&self) -> Method {
        let mut method = self.clone();
        if let Method::Launch { pinned, .. } = &mut method {
            *pinned = true;
        }
        method
    }
}
