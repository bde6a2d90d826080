//! What a machine is.

use crate::{Access, Allocation, Discipline, LineSource, Verb, Width};
use lanemark_units::{BarOffset, MemoryType, format_size};

/// What was found when a machine was opened.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// How the user named it: a preset, a file, `host`.
    pub name: String,
    /// One line: processor and card, or processor and memory.
    pub summary: String,
    /// Whose time the samples are in.
    pub time_base: TimeBase,
    /// Cores a plan may name.
    pub cores: u32,
    /// Where a plan may load and store.
    pub regions: Vec<Region>,
    /// Memory types a span may have.
    pub memory_types: Vec<MemoryType>,
    /// Instructions the core has for stores.
    pub stores: Vec<Access>,
    /// Instructions the core has for loads.
    pub loads: Vec<Access>,
    /// Which `memcpy` stands behind [`Access::Memcpy`].
    pub memcpy: String,
    /// What its cards can move by themselves; `None` if they cannot, or nobody can tell them to.
    pub dma: Option<DmaFacts>,
    /// The kernel's copy width behind a driver call; `None` if there is no driver to call.
    pub driver_width: Option<Width>,
    /// How its cores can share buffers of ordinary memory with devices; none where nobody knows what that takes.
    pub disciplines: Vec<Discipline>,
    /// From whom its cores can be told to load a line of ordinary memory; none where nobody knows what that takes, or can say
    /// who has one.
    pub line_sources: Vec<LineSource>,
    /// What is behind the runtime that it is; `None` for a machine that can be loaded from and stored to.
    pub runtime: Option<RuntimeFacts>,
}

/// A device that takes work from the queue of a runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuntimeFacts {
    /// What the runtime says that it is.
    pub kind: DeviceKind,
    /// Whether the runtime says that it only behaves like one: what work takes there says nothing about a real one.
    pub is_emulated: bool,
    /// What memory of it can be.
    pub allocations: Vec<Allocation>,
    /// Ports of its memory that a program chooses among; 1 where it cannot.
    pub memory_ports: u32,
    /// Whether it runs kernels that [compute](crate::Op::Compute).
    pub computes: bool,
}

/// What a device of a runtime is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// The processor of this machine.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Something else that computes, an FPGA for instance.
    Accelerator,
    /// What the runtime has no word for.
    Other,
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Gpu => "GPU",
            DeviceKind::Accelerator => "accelerator",
            DeviceKind::Other => "other device",
        })
    }
}

impl Facts {
    /// The instructions for this verb.
    #[must_use]
    pub fn accesses(&self, verb: Verb) -> &[Access] {
        match verb {
            Verb::Load => &self.loads,
            Verb::Store => &self.stores,
        }
    }

    /// The largest region that is plain storage, where bandwidth is asked for.
    #[must_use]
    pub fn storage(&self) -> Option<&Region> {
        self.regions.iter().filter(|region| region.kind == RegionKind::Storage).max_by_key(|region| region.len)
    }

    /// The region of registers, where the latency of one read is asked for.
    #[must_use]
    pub fn registers(&self) -> Option<&Region> {
        self.regions.iter().find(|region| region.kind == RegionKind::Registers)
    }

    /// The region of this name.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }
}

/// What the cards of a machine can move by themselves; they are all of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DmaFacts {
    /// How many cards.
    pub cards: u32,
    /// Bytes of host memory that are lent to them.
    pub mapped_bytes: u64,
    /// The pages by which something translates what devices ask for; `None` if they name memory as it is.
    pub page_bytes: Option<u64>,
    /// What of the last-level cache holds lines that devices read; `None` if no read of theirs is any sooner for it.
    pub cache: Option<CacheFacts>,
    /// Whether a write that does not fill its lines costs host memory more than one that does.
    pub is_partial_dearer: bool,
    /// Whether there is memory of another socket, farther away.
    pub has_remote: bool,
    /// Reads that one card may have under way.
    pub tags: u32,
    /// Jobs that one card may have at once.
    pub channels: u32,
    /// Where in a card's BARs others write what it hands on ([`Op::Relay`](crate::Op::Relay)); `None` if they cannot.
    pub relays_at: Option<BarOffset>,
    /// Whether there is a driver that lets them make transfers and waits ([`Op::Dma`](crate::Op::Dma)).
    pub has_driver: bool,
}

/// A last-level cache as devices meet it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheFacts {
    /// Bytes of all of it.
    pub bytes: u64,
    /// Bytes of what lines that devices write may take of it.
    pub device_bytes: u64,
}

/// Whose time it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeBase {
    /// Virtual time; every run of the same plan is the same.
    Simulated,
    /// The time-stamp counter of a real core.
    Real,
    /// The counter of an emulated core: it says nothing about how long anything takes on a machine.
    Emulated,
}

/// A window a plan may touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its name in the platform file.
    pub name: String,
    /// Where it starts.
    pub at: BarOffset,
    /// Its length in bytes.
    pub len: u64,
    /// What stands behind it.
    pub kind: RegionKind,
}

impl std::fmt::Display for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} at {})", self.name, format_size(self.len), self.at)
    }
}

/// What stands behind a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionKind {
    /// Registers; reading or writing may have side effects.
    Registers,
    /// Bytes that stay as they were written.
    Storage,
    /// A queue: every write is an entry.
    Fifo,
}
